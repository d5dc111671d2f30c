package edge_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"crier/tests/edgetest"
)

// largeFile is a size in bytes that exceeds the buffers of a loopback connection.
const largeFile = 32 << 20

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

// soon waits for done and fails the test after 20 seconds.
func soon(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

func TestDownload_EndsWhenNotRead(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]string{
		"below the least rate":   {"REQUEST_TIMEOUT": "200ms", "UPLOAD_TIMEOUT": "1h", "UPLOAD_MIN_RATE": "1000000000"},
		"after the longest time": {"REQUEST_TIMEOUT": "1m", "UPLOAD_TIMEOUT": "200ms", "UPLOAD_MIN_RATE": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edgetest.New(t, settings)
			s.File = make([]byte, largeFile)
			c := dial(t, s, get(edgetest.Picture.Path()))
			soon(t, "the server ends the answer", s.FileClosed.Load)
			if n, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) || n >= largeFile {
				t.Errorf("%d bytes came, then %v; want a part and the end", n, err)
			}
		})
	}
}

// TestDownload_AtMinimumRateOutlastsRequestTimeout still reads the file after REQUEST_TIMEOUT has
// ended later requests.
func TestDownload_AtMinimumRateOutlastsRequestTimeout(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"REQUEST_TIMEOUT": "500ms", "UPLOAD_MIN_RATE": "100"})
	s.File = make([]byte, largeFile)
	c := dial(t, s, get(edgetest.Picture.Path())+"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	ended(t, dial(t, s, "GET /hea"))
	for range 2 { // wait for the timeout twice more
		ended(t, dial(t, s, "GET /hea"))
	}
	resp, _, rest := answered(t, c)
	if resp.StatusCode != http.StatusOK || resp.ContentLength != largeFile {
		t.Errorf("got %d with %d bytes", resp.StatusCode, resp.ContentLength)
	}
	if !strings.HasPrefix(rest, "HTTP/1.1 200 ") {
		t.Errorf("the next request on the connection is answered with %q", rest)
	}
}

// TestAnswer_WithoutFileHasRequestTimeout sends requests below /files/ and reads no responses.
func TestAnswer_WithoutFileHasRequestTimeout(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"REQUEST_TIMEOUT": "200ms", "UPLOAD_TIMEOUT": "1h"})
	c := dial(t, s, "")
	// Megabytes of responses must fill the buffers of both sides first.
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	many := strings.Repeat(get("/files/x/y.png"), 1000)
	for {
		_, err := io.WriteString(c, many)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection stays open, want it closed")
		}
		if err != nil {
			return
		}
	}
}
