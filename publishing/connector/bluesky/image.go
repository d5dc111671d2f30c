package bluesky

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"sync"

	"crier/publishing/connector"
	"crier/publishing/media/picture"
)

const (
	maxBlob = 1_000_000 // bytes of one image
	maxSide = 2000      // pixels of an image that had to be made smaller
)

// Derived returns the JPEG that Bluesky gets in place of an image that is too large. A large GIF has none: Validate
// refuses it.
func (c *Connector) Derived(m connector.Media) (picture.Spec, bool) {
	if m.Video || m.Size <= maxBlob || m.ContentType == "image/gif" {
		return picture.Spec{}, false
	}
	return picture.Spec{MaxBytes: maxBlob, MaxSide: maxSide}, true
}

// upload sends an image, byte for byte as it is stored. Its bytes are read while they are sent.
func (c *Connector) upload(ctx context.Context, cl client, m connector.Media) (upload, error) {
	width, height, err := shown(m)
	if err != nil {
		return upload{}, err
	}
	file, err := m.Open()
	if err != nil {
		return upload{}, lostFile(err)
	}
	body := &source{ReadCloser: file}
	var said struct{ Blob blob }
	err = cl.stream(ctx, "com.atproto.repo.uploadBlob", m.ContentType, body, m.Size, &said)
	switch lost := body.failure(); {
	case lost != nil:
		return upload{}, lostFile(lost)
	case err != nil:
		return upload{}, err
	case said.Blob.Type != "blob" || said.Blob.Ref.Link == "":
		return upload{}, unreadable(http.StatusOK, errors.New("an upload's answer names no blob"), false)
	}
	return upload{Blob: said.Blob, Width: width, Height: height, At: cl.clock.Now().Unix()}, nil
}

// shown returns an image's size as it is shown. An image whose header cannot be read has the size that is stored with
// it, and the server decides.
func shown(m connector.Media) (width, height int, err error) {
	switch {
	case m.Size > maxBlob:
		return 0, 0, badImage(m, "has more than 1,000,000 bytes, which Bluesky does not take")
	case m.Size == 0:
		return 0, 0, badImage(m, "is empty")
	}
	file, err := m.Open()
	if err != nil {
		return 0, 0, lostFile(err)
	}
	defer func() { _ = file.Close() }() // only read
	src := &source{ReadCloser: file}
	h, err := picture.Inspect(src)
	if lost := src.failure(); lost != nil {
		return 0, 0, lostFile(lost)
	}
	if err != nil {
		return m.Width, m.Height, nil
	}
	return h.Width, h.Height, nil
}

// source is a file that keeps its own failure apart from the server's. The HTTP client may read and close it even
// after its answer.
type source struct {
	io.ReadCloser
	mu  sync.Mutex
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrClosed) {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}
	return n, err
}

func (s *source) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func badImage(m connector.Media, what string) error {
	return &connector.Error{Kind: connector.KindContent, Public: m.Name + " " + what + "."}
}

func lostFile(err error) error {
	return &connector.Error{Kind: connector.KindTransient, Public: "An image of this post could not be read.", Err: err}
}
