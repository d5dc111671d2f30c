package sandbox

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"unicode/utf8"

	"crier/platform/id"
)

const (
	maxImage = 10 << 20 // bytes
	maxVideo = 1 << 30  // bytes
	maxAlt   = 1500     // characters
)

// upload is a received file that is on disk but does not belong to an account yet.
type upload struct {
	path   string
	kind   string
	size   int64
	sha256 string
}

// mediaLimit returns the maximum size in bytes for a content type, or 0 if the type is not
// supported.
func mediaLimit(kind string) int64 {
	switch kind {
	case "image/png", "image/jpeg", "image/gif":
		return maxImage
	case "video/mp4":
		return maxVideo
	}
	return 0
}

// spool writes the body to a temporary file and syncs the file. It rejects a body that does not
// match its Content-Type.
func (p *Platform) spool(w http.ResponseWriter, c *call) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	limit := mediaLimit(kind)
	if err != nil || limit == 0 {
		return refuse(http.StatusUnsupportedMediaType, "wrong_content_type",
			"Content-Type must be image/png, image/jpeg, image/gif or video/mp4.")
	}
	if c.r.ContentLength > limit {
		return bodyError(&http.MaxBytesError{Limit: limit}, limit)
	}
	body := bufio.NewReader(http.MaxBytesReader(w, c.r.Body, limit))
	head, err := body.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return bodyError(err, limit)
	}
	if http.DetectContentType(head) != kind {
		return refuse(http.StatusUnprocessableEntity, "media_mismatch", "The bytes are not %s.", kind)
	}
	c.upload = &upload{kind: kind}
	return p.fill(c.upload, body, limit)
}

func (p *Platform) fill(u *upload, body io.Reader, limit int64) error {
	file, err := os.CreateTemp(filepath.Join(p.dir, "media"), "upload-*")
	if err != nil {
		return err
	}
	u.path = file.Name()
	sum := sha256.New()
	read := &errorRecorder{r: body}
	u.size, err = io.Copy(io.MultiWriter(file, sum), read)
	u.sha256 = hex.EncodeToString(sum.Sum(nil))
	if read.err != nil {
		return errors.Join(bodyError(read.err, limit), file.Close())
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// errorRecorder records any error returned by its reader, so that a client that disconnected can be
// distinguished from a full disk.
type errorRecorder struct {
	r   io.Reader
	err error
}

func (f *errorRecorder) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// discard removes the upload of a request that was not carried out.
func (p *Platform) discard(c *call) {
	if c.upload == nil || c.upload.path == "" {
		return
	}
	if err := os.Remove(c.upload.path); err != nil {
		p.opts.Log.Warn("sandbox: cannot remove an unfinished upload", "error", err)
	}
}

// clearUploads removes uploads that were incomplete when the process was killed.
func (p *Platform) clearUploads() error {
	left, err := filepath.Glob(filepath.Join(p.dir, "media", "upload-*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

type mediaView struct {
	ID          mediaID `json:"id"`
	Status      string  `json:"status"`
	ContentType string  `json:"contentType"`
	Size        int64   `json:"size"`
	SHA256      string  `json:"sha256"`
}

func (m *medium) status() string {
	switch {
	case m.Polls > 0:
		return "processing"
	case m.Fails:
		return "failed"
	}
	return "ready"
}

func (m *medium) view() mediaView {
	return mediaView{ID: m.ID, Status: m.status(), ContentType: m.Type, Size: m.Size, SHA256: m.SHA256}
}

func (p *Platform) createMedia(c *call) (answer, error) {
	q, err := query(c.r, "alt")
	if err != nil {
		return answer{}, err
	}
	if utf8.RuneCountInString(q.Get("alt")) > maxAlt {
		return answer{}, refuse(422, "alt_too_long", "alt may have at most %d characters.", maxAlt)
	}
	dir := filepath.Join(p.dir, "media")
	if err := os.Rename(c.upload.path, filepath.Join(dir, c.upload.sha256)); err != nil {
		return answer{}, err
	}
	m := &medium{
		ID: id.New[medium](), Account: c.account.ID, Type: c.upload.kind, Size: c.upload.size,
		SHA256: c.upload.sha256, Alt: q.Get("alt"), Polls: c.polls, Fails: c.fails,
	}
	c.upload = nil
	if err := syncDir(dir); err != nil {
		return answer{}, err
	}
	view := m.view() // before commit shares m with other requests
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.commit(record{Op: opMedia, Media: m}); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusCreated, body: view}, nil
}

// readMedia returns a media item's status. Each call counts as a poll and moves its processing
// forward.
func (p *Platform) readMedia(c *call) (answer, error) {
	if _, err := query(c.r); err != nil {
		return answer{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.state.mediumOf(c.r.PathValue("id"))
	if m == nil || m.Account != c.account.ID {
		return answer{}, refuse(http.StatusNotFound, "media_not_found", "This account has no such media.")
	}
	view := m.view()
	if m.Polls > 0 {
		if err := p.commit(record{Op: opPoll, Ref: m.ID.String()}); err != nil {
			return answer{}, err
		}
	}
	return answer{status: http.StatusOK, body: view}, nil
}
