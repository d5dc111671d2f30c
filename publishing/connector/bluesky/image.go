package bluesky

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"sync"

	"crier/publishing/connector"
	"crier/publishing/file/picture"
)

const (
	maxBlob = 1_000_000 // bytes per image
	maxSide = 2000      // pixels per side of a derived picture
)

// Derived returns the spec of the JPEG that replaces an image larger than maxBlob. A GIF is never
// replaced, because Validate rejects a GIF that is too large.
func (c *Connector) Derived(m connector.Media) (picture.Spec, bool) {
	if m.Video || m.Size <= maxBlob || m.ContentType == "image/gif" {
		return picture.Spec{}, false
	}
	return picture.Spec{MaxBytes: maxBlob, MaxSide: maxSide}, true
}

// upload uploads an image unchanged, streaming it from the store.
func (c *Connector) upload(ctx context.Context, cl client, m connector.Media) (upload, error) {
	width, height, err := displaySize(m)
	if err != nil {
		return upload{}, err
	}
	file, err := m.Open()
	if err != nil {
		return upload{}, fileError(err)
	}
	body := &imageFile{ReadCloser: file}
	var answer struct{ Blob blob }
	err = cl.stream(ctx, "com.atproto.repo.uploadBlob", m.ContentType, body, m.Size, &answer)
	switch lost := body.failure(); {
	case lost != nil:
		return upload{}, fileError(lost)
	case err != nil:
		return upload{}, err
	case answer.Blob.Type != "blob" || answer.Blob.Ref.Link == "":
		return upload{}, badAnswer(http.StatusOK, errors.New("the response to an upload names no blob"), false)
	}
	return upload{Blob: answer.Blob, Width: width, Height: height, At: cl.clock.Now().Unix()}, nil
}

// displaySize returns the width and height at which an image is displayed. If the header cannot be
// parsed, displaySize returns the stored size and lets the server decide whether to accept the
// image. It returns KindContent for an empty or oversized image, and KindTransient if the file
// cannot be read.
func displaySize(m connector.Media) (width, height int, err error) {
	switch {
	case m.Size > maxBlob:
		return 0, 0, badImage(m, "has more than 1,000,000 bytes, which Bluesky does not accept")
	case m.Size == 0:
		return 0, 0, badImage(m, "is empty")
	}
	file, err := m.Open()
	if err != nil {
		return 0, 0, fileError(err)
	}
	defer func() { _ = file.Close() }() // opened for reading only
	src := &imageFile{ReadCloser: file}
	h, err := picture.Inspect(src)
	if lost := src.failure(); lost != nil {
		return 0, 0, fileError(lost)
	}
	if err != nil {
		return m.Width, m.Height, nil
	}
	return h.Width, h.Height, nil
}

// imageFile records its own read error, so that the error is not mistaken for a server failure. The
// mutex is needed because the HTTP client may read and close the file even after it has returned a
// response.
type imageFile struct {
	io.ReadCloser
	mu  sync.Mutex
	err error
}

func (s *imageFile) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrClosed) {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}
	return n, err
}

func (s *imageFile) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func badImage(m connector.Media, what string) error {
	return &connector.Error{Kind: connector.KindContent, Public: m.Name + " " + what + "."}
}

func fileError(err error) error {
	return &connector.Error{Kind: connector.KindTransient, Public: "An image of this post could not be read.", Err: err}
}
