package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"crier/platform/fault"
)

// span is where a line lies in the journal, so that texts need not stay in memory.
type span struct {
	at  int64
	len int
}

// journal is the append-only file: one JSON object a line, on disk before append returns. The caller serializes appends.
type journal struct {
	file   *os.File
	size   int64
	broken error // set once the end of the file is no longer known: nothing may be promised after that
}

var errClosed = errors.New("the sandbox is closed")

// openJournal locks the file, replays every line into apply and cuts off a torn last one.
func openJournal(path string, log *slog.Logger, apply func(record, span) error) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "sandbox.openJournal", "The sandbox cannot open its file "+path+".", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(lockFault(path, err), file.Close())
	}
	j := &journal{file: file}
	if err := j.replay(log, apply); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Internal, "sandbox.openJournal", "The sandbox cannot read its file "+path+".", err), file.Close())
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Internal, "sandbox.openJournal", "The sandbox cannot make the folder of "+path+" durable.", err), file.Close())
	}
	return j, nil
}

// lockFault leaves the cause out where the sentence is all that the system says.
func lockFault(path string, err error) error {
	const op = "sandbox.openJournal"
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fault.New(fault.Conflict, op, "Another process is using "+path+".")
	}
	return fault.Wrap(fault.Internal, op, "The sandbox cannot lock its file "+path+".", err)
}

func (j *journal) replay(log *slog.Logger, apply func(record, span) error) error {
	r := bufio.NewReaderSize(j.file, 1<<16)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return j.cut(log, n, len(line))
		}
		if err != nil {
			return err
		}
		rec, err := parseRecord(line)
		if err == nil {
			err = apply(rec, span{j.size, len(line)})
		}
		if err != nil {
			return fmt.Errorf("line %d is broken: %w", n, err)
		}
		j.size += int64(len(line))
	}
}

// cut removes a last line without its newline: the kill came before the fsync, so nobody was told of it.
func (j *journal) cut(log *slog.Logger, line, torn int) error {
	if torn > 0 {
		log.Warn("sandbox: cut off a torn last line", "line", line, "bytes", torn)
		if err := j.file.Truncate(j.size); err != nil {
			return err
		}
	}
	return j.file.Sync()
}

func parseRecord(line []byte) (record, error) {
	var rec record
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rec); err != nil {
		return rec, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return rec, errors.New("more than one value on the line")
	}
	return rec, nil
}

// append writes the record and returns only when it is on disk.
func (j *journal) append(rec record) (span, error) {
	if j.broken != nil {
		return span{}, j.broken
	}
	line, err := json.Marshal(rec)
	if err != nil {
		return span{}, err
	}
	line = append(line, '\n')
	if _, err := j.file.WriteAt(line, j.size); err != nil {
		if undo := errors.Join(j.file.Truncate(j.size), j.file.Sync()); undo != nil {
			j.broken = errors.Join(err, undo)
		}
		return span{}, err
	}
	if err := j.file.Sync(); err != nil {
		j.broken = fmt.Errorf("what the disk holds is unknown after a failed sync: %w", err)
		return span{}, j.broken
	}
	s := span{j.size, len(line)}
	j.size += int64(len(line))
	return s, nil
}

// read gives one record back; it may run beside append.
func (j *journal) read(s span) (record, error) {
	line := make([]byte, s.len)
	if _, err := j.file.ReadAt(line, s.at); err != nil {
		return record{}, err
	}
	return parseRecord(line)
}

// close gives the lock back by itself: a process that is being started elsewhere holds a copy of the file until its exec.
func (j *journal) close() error {
	j.broken = errClosed
	return errors.Join(syscall.Flock(int(j.file.Fd()), syscall.LOCK_UN), j.file.Close())
}

// syncDir makes names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
