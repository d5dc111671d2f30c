package edge_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

// ended waits until the server closes the connection and returns the status of its response, or 0
// if there was none. It fails the test if the connection stays open.
func ended(t *testing.T, c net.Conn) (status int) {
	t.Helper()
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection stays open; it answered %q", b)
	}
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(b))), nil)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close() // it was read from memory
	return resp.StatusCode
}

// TestSlowBody_WithoutCredentialHasRequestTimeout sends only one byte of each body.
func TestSlowBody_WithoutCredentialHasRequestTimeout(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"REQUEST_TIMEOUT": "200ms", "UPLOAD_TIMEOUT": "1h"})
	const wrongKey = "Authorization: crier_x\r\n"
	for name, message := range map[string]string{
		"a path that ends like an upload":            post("/nope/upload", "", 100_000_000) + "x",
		"the same with a key":                        post("/nope/upload", edgetest.KeyLine, 100_000_000) + "x",
		"an upload below another mount":              post("/x/public/v1/upload", edgetest.KeyLine, 100_000_000) + "x",
		"an upload without a key":                    post("/public/v1/upload", withForm, 100_000_000) + "x",
		"an upload with a wrong key":                 post("/public/v1/upload", wrongKey+withForm, 100_000_000) + "x",
		"an upload on the other mount without a key": post("/api/public/v1/upload", withForm, 100_000_000) + "x",
		"a post with a key":                          post("/public/v1/posts", edgetest.KeyLine, 1000) + "x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended(t, dial(t, s, message))
		})
	}
}

func TestSlowBody_BelowMinimumRateIs408(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"REQUEST_TIMEOUT": "300ms", "UPLOAD_TIMEOUT": "1h", "UPLOAD_MIN_RATE": "1000000000"})
	some := strings.Repeat("x", 64<<10)
	for name, message := range map[string]string{
		"an upload":                    post("/public/v1/upload", edgetest.KeyLine+withForm, 1<<20) + formHead + some,
		"an upload on the other mount": post("/api/public/v1/upload", edgetest.KeyLine+withForm, 1<<20) + formHead + some,
		"a JSON body":                  post("/public/v1/posts", edgetest.KeyLine, 1<<20) + some,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if status := ended(t, dial(t, s, message)); status != http.StatusRequestTimeout {
				t.Errorf("got %d, want 408", status)
			}
		})
	}
}

// TestSlowUpload_AtMinimumRateOutlastsRequestTimeout continues an upload after REQUEST_TIMEOUT has
// ended a later upload without a credential.
func TestSlowUpload_AtMinimumRateOutlastsRequestTimeout(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"REQUEST_TIMEOUT": "2s", "UPLOAD_MIN_RATE": "100"})
	body := formHead + strings.Repeat("x", 64<<10) + "\r\n--b--\r\n"
	upload := dial(t, s, post("/public/v1/upload", edgetest.KeyLine+withForm, len(body))+body[:32<<10])
	until(t, "the upload has begun", s.UploadBegan.Load)
	ended(t, dial(t, s, post("/public/v1/upload", withForm, 100_000)+"x"))
	get := "GET /public/v1/is-connected HTTP/1.1\r\nHost: x\r\n" + edgetest.KeyLine
	slow := post("/public/v1/posts", edgetest.KeyLine, 1<<20) + strings.Repeat("x", 16<<10)
	if _, err := io.WriteString(upload, body[32<<10:]+get+"\r\n"+slow); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(upload)
	// The time that the upload took does not count against the next request.
	for _, status := range []int{201, 200, 408} {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err != nil || resp.StatusCode != status {
			t.Errorf("got %d, %v, want %d", resp.StatusCode, err, status)
		}
	}
}
