package file

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/gabriel-vasile/mimetype"
	"github.com/klauspost/compress/zstd"
)

// ErrCoding means that a file is not encoded as the response's Content-Encoding header declares.
var ErrCoding = errors.New("the content coding cannot be decoded")

const (
	// maxCodings is the maximum number of content codings that are decoded per response. Each
	// coding multiplies the work that a server can cause with every byte it sends.
	maxCodings = 1
	// zstdWindow is the largest zstd window, in bytes, that HTTP allows (RFC 9659).
	zstdWindow = 8 << 20
	// codingSlack is how many bytes a server may send in addition to twice the number of decoded
	// bytes. A server that sends more is assumed to be keeping the connection open on purpose.
	codingSlack = 1 << 20
)

// decodeBody replaces the response's body with a body that is decoded according to the
// Content-Encoding header, and removes the header. It is needed because some servers encode a file
// even though the request asks them not to. If the status is not 200, if there are more than
// maxCodings codings, or if a coding is unknown, decodeBody leaves the response unchanged.
func decodeBody(resp *http.Response) {
	codings := contentCodings(resp.Header)
	if len(codings) == 0 || len(codings) > maxCodings || resp.StatusCode != http.StatusOK {
		return
	}
	for _, c := range codings {
		if decoders[c] == nil {
			return
		}
	}
	// the last coding must be undone first
	slices.Reverse(codings)
	resp.Header.Del("Content-Encoding")
	resp.ContentLength = -1
	resp.Body = &decodedBody{source: resp.Body, codings: codings}
}

// contentCodings returns a response's codings in the order in which they were applied.
func contentCodings(h http.Header) (codings []string) {
	for c := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		if c = strings.ToLower(strings.TrimSpace(c)); c != "" && c != "identity" {
			codings = append(codings, c)
		}
	}
	return codings
}

// decoders maps each content coding to a function that returns a decoding reader. The function's
// argument is a reader of the encoded body.
var decoders = map[string]func(*bufio.Reader) (io.Reader, error){
	"gzip": newGzip, "x-gzip": newGzip,
	"deflate": func(r *bufio.Reader) (io.Reader, error) {
		if head, err := r.Peek(2); err == nil && head[0]&15 == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
			return zlib.NewReader(r)
		}
		return flate.NewReader(r), nil // some servers omit the zlib header
	},
	"br": func(r *bufio.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
	"zstd": func(r *bufio.Reader) (io.Reader, error) {
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	},
}

func newGzip(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// decodedBody decodes the body of a response as it is read. If the encoded bytes are already a
// picture or video, it returns them unchanged, because some servers declare a coding that they did
// not apply.
type decodedBody struct {
	source  io.ReadCloser
	codings []string

	r       io.Reader // nil before the first read
	err     error     // from the first read
	closers []io.Closer
	broken  error // an error from the source
	in, out int64 // bytes
}

func (d *decodedBody) Read(p []byte) (int, error) {
	if d.r == nil {
		d.r, d.err = d.open()
	}
	if d.err != nil {
		return 0, d.fault(d.err)
	}
	n, err := d.r.Read(p)
	d.out += int64(n)
	return n, d.fault(err)
}

func (d *decodedBody) open() (io.Reader, error) {
	first := bufio.NewReaderSize(encodedBody{d}, sniffLen)
	head, err := first.Peek(sniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return first, err
	}
	if _, plain := kindOf(mimetype.Detect(head)); plain || len(head) == 0 {
		return first, nil
	}
	for _, c := range d.codings {
		r, err := decoders[c](first)
		if err != nil {
			return first, err
		}
		if closer, ok := r.(io.Closer); ok {
			d.closers = append(d.closers, closer)
		}
		first = bufio.NewReader(r)
	}
	return first, nil
}

// fault returns the error to report for a decoder error. If reading the source failed, it returns
// the source's error, which caused the decoder error. Otherwise, it returns ErrCoding.
func (d *decodedBody) fault(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return err
	case d.broken != nil:
		return d.broken
	}
	return fmt.Errorf("%w: %s: %w", ErrCoding, strings.Join(d.codings, ", "), err)
}

func (d *decodedBody) Close() error {
	var errs []error
	for _, c := range d.closers {
		// the caller might have stopped reading before the end of the file
		if err := c.Close(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, d.source.Close())...)
}

// encodedBody reads the source of a decodedBody.
type encodedBody struct{ d *decodedBody }

func (e encodedBody) Read(p []byte) (int, error) {
	d := e.d
	if d.in > codingSlack+2*d.out {
		return 0, errors.New("the encoded file is larger than its content")
	}
	n, err := d.source.Read(p)
	d.in += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		d.broken = err
	}
	return n, err
}
