package request

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"crier/platform/clock"
	"crier/platform/fault"
)

// drainLimit and drainTime limit how many bytes of an unread body Finish discards, and how long
// this may take. Finish discards the bytes to keep the connection open. The response is sent
// afterward.
const (
	drainLimit = 256 << 10
	drainTime  = 300 * time.Millisecond
)

// Body is the body of a request as it arrives. It remembers whether it has ended or failed, because
// further reads from fasthttp's stream would return the bytes of the next request. Only one
// goroutine may use it.
type Body struct {
	stream io.Reader
	length int   // from the header; negative if chunked
	read   int   // bytes read so far
	limit  int64 // in bytes; 0 means no limit
	err    error // of the last read; io.EOF after the end
	loaded []byte
}

func newBody(ctx *fasthttp.RequestCtx) *Body {
	b := &Body{stream: ctx.RequestBodyStream(), length: ctx.Request.Header.ContentLength()}
	if b.stream == nil {
		b.err = io.EOF
	}
	return b
}

// Limit makes reads beyond n bytes fail with fault.TooLarge. If the header announces a larger body,
// Limit itself returns fault.TooLarge.
func (b *Body) Limit(n int64) error {
	b.limit = n
	if b.err != nil || int64(b.length) <= n {
		return nil
	}
	return tooLarge()
}

// Read reads from the body. It returns io.EOF at the end of the body, fault.TooLarge beyond the
// limit, and fault.Invalid if the body ended too early or is malformed.
func (b *Body) Read(p []byte) (int, error) {
	if b.limit > 0 && int64(b.read) > b.limit {
		return 0, tooLarge()
	}
	n, err := b.readStream(p)
	if b.limit > 0 && int64(b.read) > b.limit {
		return 0, tooLarge()
	}
	return n, err
}

// readStream reads from the stream without checking the limit, and records the error.
func (b *Body) readStream(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.stream == nil {
		return 0, io.EOF
	}
	n, err := b.stream.Read(p)
	b.read += n
	if errors.Is(err, io.EOF) && b.length >= 0 && b.read < b.length {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fault.Wrap(fault.Invalid, "request.Body", "The request body ended too early or is malformed.", err)
	}
	b.err = err
	return n, err
}

// Load reads and returns the whole body, up to limit bytes, without a leading byte order mark.
// Later handlers can read the same bytes from ctx. Load returns any error from Limit or Read.
func (b *Body) Load(ctx *fasthttp.RequestCtx, limit int64) ([]byte, error) {
	if err := b.Limit(limit); err != nil {
		return nil, err
	}
	data, err := b.readAll()
	if err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // some editors write a byte order mark
	b.loaded = data
	ctx.Request.SetBodyStream(bytes.NewReader(data), len(data))
	return data, nil
}

// Loaded returns the body that Load has read, or nil if Load has not read it yet. The caller must
// not modify the body, or keep it after the request.
func (b *Body) Loaded() []byte { return b.loaded }

// trustedLength is the largest Content-Length, in bytes, for which memory is allocated before any
// of the body has arrived. For a larger body, more memory is allocated only after this many bytes
// have arrived.
const trustedLength = 256 << 10

// readAll reads the body to its end. If the length is known, it copies the bytes at most once.
func (b *Body) readAll() ([]byte, error) {
	var data bytes.Buffer
	first := min(max(b.length, 0), trustedLength)
	// A buffer of limit bytes is smaller than a growing buffer would become.
	if b.length < 0 && 0 < b.limit && b.limit < trustedLength {
		first = int(b.limit)
	}
	data.Grow(first + bytes.MinRead)
	if _, err := io.CopyN(&data, b, trustedLength); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return data.Bytes(), err
	}
	data.Grow(max(b.length-trustedLength, 0) + bytes.MinRead)
	_, err := data.ReadFrom(b)
	return data.Bytes(), err
}

// Finish must be called when the response is ready. It reads and discards the rest of the body. If
// the rest is too long, takes too long or cannot be read, Finish closes the connection, so that no
// part of a body is ever read as a request.
//
// After a chunked body, Finish always closes the connection, because a proxy may see the end of the
// trailer in a different place.
func (b *Body) Finish(ctx *fasthttp.RequestCtx) {
	chunked := b.stream != nil && b.length < 0
	replaced := b.err == nil && ctx.RequestBodyStream() != b.stream
	tooLong := b.err == nil && b.length-b.read > drainLimit
	if chunked || replaced || tooLong || ctx.Response.ConnectionClose() {
		CloseAfterAnswer(ctx)
		return
	}
	b.drain(ctx)
	if !errors.Is(b.err, io.EOF) {
		CloseAfterAnswer(ctx)
	}
}

// drain reads and discards the rest of the body. Afterward, b.err is io.EOF only if the body ended
// within drainLimit bytes and drainTime.
func (b *Body) drain(ctx *fasthttp.RequestCtx) {
	if b.err != nil {
		return
	}
	b.err = ctx.Conn().SetReadDeadline(clock.System{}.Now().Add(drainTime))
	buf := make([]byte, 16<<10)
	for left := drainLimit; left > 0; {
		n, err := b.readStream(buf[:min(left, len(buf))])
		if err != nil {
			return // the error is in b.err
		}
		left -= n
	}
}

// CloseAfterAnswer closes the connection after the response. A client that is still sending can
// read the response first.
func CloseAfterAnswer(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c, ok := ctx.Conn().(interface{ Linger() }); ok {
		c.Linger()
	}
}

// Err returns the first error from reading the body, or nil if there is none. The end of the body
// is not an error.
func (b *Body) Err() error {
	if b.limit > 0 && int64(b.read) > b.limit {
		return tooLarge()
	}
	if errors.Is(b.err, io.EOF) {
		return nil
	}
	return b.err
}

func tooLarge() error {
	return fault.New(fault.TooLarge, "request.Body", "The request body is too large.")
}
