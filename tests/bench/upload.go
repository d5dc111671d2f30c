package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"crier/tests/call"
	"crier/tests/fixture"
)

// uploadSize is the size of an uploaded video, in bytes.
const uploadSize = 10_000_000

// uploading measures POST /upload of a video of 10 MB. Its floor is a bare copy of the same bytes
// to a file on the same disk, with fsync of the file and of its folder.
func uploading(ctx context.Context, r *rig) error {
	return r.withPeople(ctx, 1, func(w *crowd) error {
		folder := r.path("floor")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		var number atomic.Int64 // makes all videos different, because equal videos are stored once
		next := func() []byte { return videoForm(number.Add(1)) }
		all, err := alternate(1, time.Duration(w.opts.seconds)*time.Second/3, w.opts.rounds,
			side{
				name: "upload", used: func() (cost, error) { return w.cost(ctx, w.node) },
				call: func(i int) error { return w.upload(ctx, w.orgs[i%len(w.orgs)].key, next()) },
			},
			side{
				name: "copy", used: func() (cost, error) { return cost{crier: usageOf(os.Getpid()).cpu}, nil },
				call: func(i int) error { return copyAndSync(folder, next()) },
			})
		if err != nil {
			return err
		}
		ours, floor := all[0].less(w.idle, w.idleSpan), all[1]
		line := m{
			"bench": "upload", "clients": 1, "unit": "uploads/s", "bytes": uploadSize, "calls": len(ours.took),
			"meanMs": ours.meanMs(), "floorMeanMs": floor.meanMs(), "cpuMs": ours.cpuMs(), "floorCpuMs": floor.cpuMs(),
			"cpuRatio": ours.cpuMs() / floor.cpuMs(), "statementsPerRequest": ours.statements(),
		}
		ours.beside(floor, line)
		return w.emit(line)
	})
}

const (
	formBoundary = "boundary-of-the-bench"
	formHead     = "--" + formBoundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp4\"\r\n\r\n"
	formEnd      = "\r\n--" + formBoundary + "--\r\n"
)

// mp4Head is the beginning of an MP4 video whose last box extends to the end of the file.
var mp4Head = string(fixture.FilmHead()) + "\x00\x00\x00\x00mdat"

// videoForm returns a form with a video that contains the number n.
func videoForm(n int64) []byte {
	video := make([]byte, uploadSize)
	copy(video, mp4Head)
	binary.BigEndian.PutUint64(video[len(mp4Head):], uint64(n))
	return bytes.Join([][]byte{[]byte(formHead), video, []byte(formEnd)}, nil)
}

func (w *crowd) upload(ctx context.Context, key string, form []byte) error {
	a, err := call.Do(ctx, w.http, http.MethodPost, "http://"+w.node.address+"/public/v1/upload", form,
		"Authorization", key, "Content-Type", "multipart/form-data; boundary="+formBoundary)
	if err == nil && a.Status != http.StatusCreated {
		err = fmt.Errorf("upload: got %.300v, want status 201", a)
	}
	return err
}

// copyAndSync writes the video of a form to a new file, syncs the file and its folder, and deletes
// the file.
func copyAndSync(folder string, form []byte) (err error) {
	f, err := os.CreateTemp(folder, "copy-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	video := form[len(formHead) : len(form)-len(formEnd)]
	if _, err := io.Copy(f, bytes.NewReader(video)); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
