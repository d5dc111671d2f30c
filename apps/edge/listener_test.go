package edge_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"crier/tests/edgetest"
)

// dial opens a connection with a deadline and writes message to it.
func dial(t *testing.T, r *edgetest.Service, message string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, message); err != nil {
		t.Fatalf("the client could not send its request: %v", err)
	}
	return c
}

// answered returns one response, its body, and everything that follows until the server closes the
// connection.
func answered(t *testing.T, c net.Conn) (resp *http.Response, body, rest string) {
	t.Helper()
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	behind, err := io.ReadAll(r)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open, want it closed after the answer")
	}
	return resp, string(b), string(behind)
}

func post(path, headers string, length int) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + fmt.Sprintf("Content-Length: %d\r\n\r\n", length)
}

const (
	withForm = "Content-Type: multipart/form-data; boundary=b\r\n"
	formHead = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n"
)

func TestRefusal_IsReadByClientThatKeepsSending(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"POST_BODY_LIMIT": "5000", "UPLOAD_BODY_LIMIT": "200000"})
	big := strings.Repeat("x", 20<<20)
	for name, c := range map[string]struct {
		message string
		status  int
	}{
		"a post":               {message: post("/public/v1/posts", edgetest.KeyLine, len(big)) + big, status: 413},
		"a post without a key": {message: post("/public/v1/posts", "", len(big)) + big, status: 401},
		"a post in chunks":     {message: "POST /public/v1/posts HTTP/1.1\r\nHost: x\r\n" + edgetest.KeyLine + "Transfer-Encoding: chunked\r\n\r\n" + edgetest.Chunked(big), status: 413},
		"an upload":            {message: post("/public/v1/upload", edgetest.KeyLine+withForm, len(big)) + formHead + big[len(formHead):], status: 413},
		"an upload in chunks":  {message: "POST /public/v1/upload HTTP/1.1\r\nHost: x\r\n" + edgetest.KeyLine + withForm + "Transfer-Encoding: chunked\r\n\r\n" + edgetest.Chunked(formHead+big), status: 413},
		"what is not HTTP":     {message: post("/public/v1/posts", edgetest.KeyLine+"Transfer-Encoding: gzip\r\n", len(big)) + big, status: 400},
	} {
		resp, answer, _ := answered(t, dial(t, s, c.message))
		if resp.StatusCode != c.status || !strings.Contains(answer, fmt.Sprintf(`"statusCode":%d`, c.status)) {
			t.Errorf("%s: got %d %s, want %d", name, resp.StatusCode, answer, c.status)
		}
		if limited := resp.Header.Get("X-RateLimit-Remaining") != ""; limited != (c.status == 413) {
			t.Errorf("%s: has rate-limit headers: %v, want %v", name, limited, c.status == 413)
		}
	}
	if len(s.Creates) != 0 {
		t.Errorf("%d posts were created, want none", len(s.Creates))
	}
}

// TestRefusal_DoesNotWaitForBody sends only the beginning of a body. A response that waited for the
// rest would come after the client's deadline.
func TestRefusal_DoesNotWaitForBody(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, map[string]string{"REQUEST_TIMEOUT": "10m"})
	some := strings.Repeat("x", 8<<10)
	for name, c := range map[string]struct {
		message string
		status  int
	}{
		"a large body without a key":     {message: post("/public/v1/posts", "", 20<<20) + some, status: 401},
		"a small body without a key":     {message: post("/public/v1/posts", "", 20<<10) + some, status: 401},
		"chunks without a key":           {message: "POST /public/v1/posts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", status: 401},
		"an upload without a key":        {message: post("/public/v1/upload", withForm, 20<<20) + some, status: 401},
		"a large body with a key":        {message: post("/public/v1/posts", edgetest.KeyLine, 20<<20) + some, status: 413},
		"a body without a session":       {message: post("/user/logout", "", 20<<10) + some, status: 401},
		"a sign-in from another site":    {message: post("/auth/login", "Origin: http://evil.test\r\nContent-Type: application/json\r\n", 20<<10) + some, status: 403},
		"a sign-in that is not JSON":     {message: post("/auth/login", "Content-Type: text/plain\r\n", 20<<10) + some, status: 400},
		"a connect form that is no JSON": {message: post("/integrations/social-connect/sandbox", "", 20<<10) + some, status: 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if resp, answer, rest := answered(t, dial(t, s, c.message)); resp.StatusCode != c.status || rest != "" {
				t.Errorf("got %d %s followed by %q, want %d and nothing", resp.StatusCode, answer, rest, c.status)
			}
		})
	}
}

func TestAmbiguousFraming_IsRefused(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for name, framing := range map[string]string{
		"length and chunks": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"chunks and length": "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
		"two lengths":       "Content-Length: 5\r\nContent-Length: 6\r\n",
		"chunks twice":      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"identity besides":  "Transfer-Encoding: identity\r\nContent-Length: 5\r\n",
		"another coding":    "Transfer-Encoding: gzip, chunked\r\n",
		"identity alone":    "Transfer-Encoding: identity\r\n",
		"chunks and more":   "Transfer-Encoding: chunked, identity\r\n",
		"the same twice":    "Content-Length: 5\r\nContent-Length: 5\r\n",
		"a list of lengths": "Content-Length: 5, 5\r\n",
		"a signed length":   "Content-Length: +5\r\n",
		"a length in hex":   "Content-Length: 0x5\r\n",
		"a space in a name": "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n",
		"a folded length":   "Content-Length:\r\n 5\r\n",
		"a folded framing":  "X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
		"a lone line feed":  "Content-Length: 5\nTransfer-Encoding: chunked\r\n",
		"one in a value":    "X: a\nTransfer-Encoding: chunked\r\n",
		"one at the end":    "X: a\nContent-Length: 5\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := s.Raw(t, "POST /public/v1/posts HTTP/1.1\r\nHost: x\r\nAuthorization: "+edgetest.APIKey+"\r\n"+framing+"\r\n0\r\n\r\n"+edgetest.HiddenRequest)
			if !strings.HasPrefix(out, "HTTP/1.1 400 ") || strings.Count(out, "HTTP/1.1 ") != 1 {
				t.Errorf("got %q, want one answer with 400", out)
			}
		})
	}
	t.Run("chunks before HTTP 1.1", func(t *testing.T) {
		t.Parallel()
		out := s.Raw(t, "POST /public/v1/posts HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n"+edgetest.KeyLine+"Transfer-Encoding: chunked\r\n\r\n"+edgetest.Chunked(edgetest.PostBody)+edgetest.HiddenRequest)
		if !strings.HasPrefix(out, "HTTP/1.1 400 ") || strings.Count(out, "HTTP/1.1 ") != 1 {
			t.Errorf("got %q, want one answer with 400", out)
		}
	})
	t.Cleanup(func() {
		if len(s.IDs) != 0 || len(s.Creates) != 0 {
			t.Errorf("requests ran: %v, want none", s.IDs)
		}
	})
}

// until waits for done and fails the test if the test ends first.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for !done() {
		if t.Context().Err() != nil {
			t.Fatalf("timed out: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestShutdown_DoesNotWaitForClients(t *testing.T) {
	t.Parallel()
	some := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct {
		message string
		arrived func(*edgetest.Service) bool
	}{
		"a slow upload":       {message: post("/public/v1/upload", edgetest.KeyLine+withForm, 1<<20) + formHead + some, arrived: func(s *edgetest.Service) bool { return s.UploadBegan.Load() }},
		"a slow JSON body":    {message: post("/public/v1/posts", edgetest.KeyLine, 1<<20) + some, arrived: func(s *edgetest.Service) bool { return s.Admitted.Load() > 0 }},
		"a body not yet sent": {message: post("/public/v1/posts", edgetest.KeyLine, 1<<20), arrived: func(*edgetest.Service) bool { return true }},
		"half a header":       {message: "GET /hea", arrived: func(*edgetest.Service) bool { return true }},
		"nothing":             {message: "", arrived: func(*edgetest.Service) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edgetest.New(t, map[string]string{"REQUEST_TIMEOUT": "10m"})
			dial(t, s, c.message)
			until(t, "the request arrived", func() bool { return c.arrived(s) })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Fatalf("Shutdown returned %v, want nil", err)
			}
		})
	}
}

// TestShutdown_WaitsForAnswer blocks a handler until the server has ended a slow client's request.
func TestShutdown_WaitsForAnswer(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	s.Release = make(chan struct{})
	computing := dial(t, s, post("/public/v1/posts", edgetest.KeyLine, len(edgetest.PostBody))+edgetest.PostBody)
	slow := dial(t, s, post("/public/v1/upload", edgetest.KeyLine+withForm, 1<<20)+formHead+strings.Repeat("x", 64<<10))
	until(t, "both began", func() bool { return s.Creating.Load() == 1 && s.UploadBegan.Load() })
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		down <- s.Shutdown(ctx)
	}()
	if _, err := io.ReadAll(slow); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the slow upload was not ended")
	}
	close(s.Release)
	if resp, answer, _ := answered(t, computing); resp.StatusCode != 201 {
		t.Errorf("got %d %s, want 201", resp.StatusCode, answer)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown returned %v, want nil", err)
	}
}

func TestShutdown_EndsWithContext(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	s.Release = make(chan struct{})
	dial(t, s, post("/public/v1/posts", edgetest.KeyLine, len(edgetest.PostBody))+edgetest.PostBody)
	until(t, "it began", func() bool { return s.Creating.Load() == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returned %v, want context.Canceled", err)
	}
	close(s.Release)
}
