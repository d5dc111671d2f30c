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

// How much of an unread body is read away, and for how long, so that the connection lives on. The answer waits for it.
const (
	drainLimit = 256 << 10
	drainTime  = 300 * time.Millisecond
)

// Body is a request's body as it comes from the wire. It remembers its end and its failure, because the stream below would
// take the bytes of the next request for a continuation.
type Body struct {
	stream io.Reader
	length int // from the header, negative when chunked
	read   int
	limit  int64
	err    error
	loaded []byte
}

func newBody(ctx *fasthttp.RequestCtx) *Body {
	b := &Body{stream: ctx.RequestBodyStream(), length: ctx.Request.Header.ContentLength()}
	if b.stream == nil {
		b.err = io.EOF
	}
	return b
}

// Limit makes reads beyond n bytes fail with fault.TooLarge; a body that says it is longer fails at once.
func (b *Body) Limit(n int64) error {
	b.limit = n
	if b.err == nil && int64(b.length) > n {
		return tooLarge()
	}
	return nil
}

// Read reads on. Its errors are io.EOF, a fault.TooLarge, or a fault.Invalid when the client broke off or wrote nonsense.
func (b *Body) Read(p []byte) (int, error) {
	if b.limit > 0 && int64(b.read) > b.limit {
		return 0, tooLarge()
	}
	n, err := b.next(p)
	if b.limit > 0 && int64(b.read) > b.limit {
		return 0, tooLarge()
	}
	return n, err
}

func (b *Body) next(p []byte) (int, error) {
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
		err = fault.Wrap(fault.Invalid, "request.Body", "The request body ended too early or is not well formed.", err)
	}
	b.err = err
	return n, err
}

// Load reads the whole body, at most limit bytes, and puts it back for handlers that want it in one piece.
func (b *Body) Load(ctx *fasthttp.RequestCtx, limit int64) (data []byte, err error) {
	if err := b.Limit(limit); err != nil {
		return nil, err
	}
	if data, err = b.all(); err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // some editors begin a file with a byte order mark
	b.loaded = data
	ctx.Request.SetBodyStream(bytes.NewReader(data), len(data))
	return data, nil
}

// Loaded returns what Load has read, nil before. It belongs to the request and must not be changed.
func (b *Body) Loaded() []byte { return b.loaded }

// believed is how many bytes of a body must have arrived before memory is allocated for as many as its header says.
const believed = 256 << 10

// all reads to the end. A body of known length is copied once at most.
func (b *Body) all() ([]byte, error) {
	var data bytes.Buffer
	first := min(max(b.length, 0), believed)
	if b.length < 0 && 0 < b.limit && b.limit < believed { // less than what a buffer that grows would take
		first = int(b.limit)
	}
	data.Grow(first + bytes.MinRead)
	if _, err := io.CopyN(&data, b, believed); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return data.Bytes(), err
	}
	data.Grow(max(b.length-believed, 0) + bytes.MinRead)
	_, err := data.ReadFrom(b)
	return data.Bytes(), err
}

// Finish is called when the answer is ready: what is left of the body is read away, and the connection closes when that is too much, too slow or has failed,
// so that nothing inside a body is ever taken for a request. It always closes behind chunks, because a proxy may see the end of their trailer elsewhere.
func (b *Body) Finish(ctx *fasthttp.RequestCtx) {
	chunked := b.stream != nil && b.length < 0
	lost := b.err == nil && ctx.RequestBodyStream() != b.stream
	if chunked || lost || ctx.Response.ConnectionClose() || b.err == nil && b.length-b.read > drainLimit {
		HangUp(ctx)
		return
	}
	b.drain(ctx)
	if !errors.Is(b.err, io.EOF) {
		HangUp(ctx)
	}
}

func (b *Body) drain(ctx *fasthttp.RequestCtx) {
	if b.err != nil {
		return
	}
	if b.err = ctx.Conn().SetReadDeadline(clock.System{}.Now().Add(drainTime)); b.err != nil {
		return
	}
	buf := make([]byte, 16<<10)
	for left := drainLimit; b.err == nil && left > 0; {
		n, _ := b.next(buf[:min(left, len(buf))]) // the error stays in b.err
		left -= n
	}
}

// HangUp closes the connection behind the answer, in a way that lets a client which is still sending read it.
func HangUp(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c, ok := ctx.Conn().(interface{ Linger() }); ok {
		c.Linger()
	}
}

// Err is the failure of the body, nil while it is sound.
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
