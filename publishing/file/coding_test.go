package file_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/rand"
	"errors"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"crier/publishing/file"
)

// answering is a transport that always returns the same response.
type answering struct {
	header http.Header
	body   io.Reader
	status int
}

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(a.body), ContentLength: 7, Request: req}, nil
}

func encoded(t *testing.T, coding string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw deflate":
		w, err = flate.NewWriter(&b, flate.BestSpeed)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFetch_UndoesContentCodings(t *testing.T) {
	t.Parallel()
	picture := append(picture(t, png.Encode), make([]byte, 100_000)...)
	noise := make([]byte, 5000)
	_, _ = rand.Read(noise) // never fails
	packed := encoded(t, "gzip", picture)
	for name, c := range map[string]struct {
		codings []string
		body    []byte
		want    []byte
		err     error
	}{
		"gzip":                               {codings: []string{"gzip"}, body: packed, want: picture},
		"gzip by its old name":               {codings: []string{"X-GZip"}, body: packed, want: picture},
		"deflate":                            {codings: []string{"deflate"}, body: encoded(t, "deflate", picture), want: picture},
		"deflate without its header":         {codings: []string{"deflate"}, body: encoded(t, "raw deflate", picture), want: picture},
		"br":                                 {codings: []string{"br"}, body: encoded(t, "br", picture), want: picture},
		"zstd":                               {codings: []string{"zstd"}, body: encoded(t, "zstd", picture), want: picture},
		"two":                                {codings: []string{"gzip, br"}, body: packed, want: packed},
		"two in two headers":                 {codings: []string{"gzip", "identity, zstd"}, body: packed, want: packed},
		"none":                               {codings: []string{"identity"}, body: picture, want: picture},
		"a coding that was not applied":      {codings: []string{"br"}, body: picture, want: picture},
		"a name that is none":                {codings: []string{"aws-chunked"}, body: picture, want: picture},
		"a known one below an unknown":       {codings: []string{"gzip, x"}, body: packed, want: packed},
		"an empty file":                      {codings: []string{"gzip"}},
		"gzip that is none":                  {codings: []string{"gzip"}, body: noise, err: file.ErrCoding},
		"br that is none":                    {codings: []string{"br"}, body: noise, err: file.ErrCoding},
		"zstd that is none":                  {codings: []string{"zstd"}, body: noise, err: file.ErrCoding},
		"gzip that breaks off":               {codings: []string{"gzip"}, body: packed[:len(packed)-9], err: file.ErrCoding},
		"a coding that only grows, for ever": {codings: []string{"gzip"}, body: bytes.Repeat(encoded(t, "gzip", nil), 100_000), err: file.ErrCoding},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := file.Fetch(t.Context(), answering{
				header: http.Header{"Content-Encoding": c.codings}, body: bytes.NewReader(c.body), status: 200,
			}, file.Source{Address: "https://example.com/a.png"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if !errors.Is(err, c.err) || err == nil && !bytes.Equal(got, c.want) {
				t.Errorf("got %d bytes with error %v, want %d with %v", len(got), err, len(c.want), c.err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFetch_BoundsDecodedFiles checks that a small response that decodes to a large file is subject
// to the limit of its kind.
func TestFetch_BoundsDecodedFiles(t *testing.T) {
	t.Parallel()
	bomb := encoded(t, "zstd", append(picture(t, png.Encode), make([]byte, 50<<20)...))
	resp, err := file.Fetch(t.Context(), answering{
		header: http.Header{"Content-Encoding": {"zstd"}}, body: bytes.NewReader(bomb), status: 200,
	}, file.Source{Address: "https://example.com/a.png"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := reads("", resp.Body); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%d bytes became %d with error %v, want too large", len(bomb), len(got), err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestFetch_ReturnsErrorOfConnection(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	packed := encoded(t, "gzip", picture(t, png.Encode))
	resp, err := file.Fetch(t.Context(), answering{
		header: http.Header{"Content-Encoding": {"gzip"}}, status: 200,
		body: io.MultiReader(bytes.NewReader(packed[:20]), iotest.ErrReader(lost)),
	}, file.Source{Address: "https://example.com/a.png"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, lost) || errors.Is(err, file.ErrCoding) {
		t.Errorf("got %v, want the error of the connection", err)
	}
}

// TestFetch_LeavesPartsEncoded checks that a part of an encoded file, which cannot be decoded,
// stays as it is.
func TestFetch_LeavesPartsEncoded(t *testing.T) {
	t.Parallel()
	resp, err := file.Fetch(t.Context(), answering{
		header: http.Header{"Content-Encoding": {"gzip"}}, body: strings.NewReader("part"), status: 206,
	}, file.Source{Address: "https://example.com/a.mp4", Range: "bytes=0-3"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(resp.Body); string(got) != "part" || err != nil || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("got %q with error %v and %v, want the answer as it is", got, err, resp.Header)
	}
}
