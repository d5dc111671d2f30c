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
)

// dial opens a connection that gives up in time, and writes to it.
func (r *running) dial(t *testing.T, message string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, message); err != nil {
		t.Fatalf("the client could not even send its request: %v", err)
	}
	return c
}

// answered reads one answer, and what comes behind it until the server closes.
func answered(t *testing.T, c net.Conn) (resp *http.Response, body, rest string) {
	t.Helper()
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("no answer is seen: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	behind, err := io.ReadAll(r)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
	return resp, string(b), string(behind)
}

func post(path, headers string, length int) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + fmt.Sprintf("Content-Length: %d\r\n\r\n", length)
}

const (
	withKey  = "Authorization: " + goodKey + "\r\n"
	withForm = "Content-Type: multipart/form-data; boundary=b\r\n"
	formHead = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n"
)

func TestARefusalIsSeenByAClientThatSendsOn(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"POST_BODY_LIMIT": "5000", "UPLOAD_BODY_LIMIT": "200000"})
	big := strings.Repeat("x", 20<<20)
	for name, c := range map[string]struct {
		message string
		status  int
	}{
		"a post":               {post("/public/v1/posts", withKey, len(big)) + big, 413},
		"a post without a key": {post("/public/v1/posts", "", len(big)) + big, 401},
		"a post in chunks":     {"POST /public/v1/posts HTTP/1.1\r\nHost: x\r\n" + withKey + "Transfer-Encoding: chunked\r\n\r\n" + chunked(big), 413},
		"an upload":            {post("/public/v1/upload", withKey+withForm, len(big)) + formHead + big[len(formHead):], 413},
		"an upload in chunks":  {"POST /public/v1/upload HTTP/1.1\r\nHost: x\r\n" + withKey + withForm + "Transfer-Encoding: chunked\r\n\r\n" + chunked(formHead+big), 413},
		"what is not HTTP":     {post("/public/v1/posts", withKey+"Transfer-Encoding: gzip\r\n", len(big)) + big, 400},
	} {
		resp, answer, _ := answered(t, s.dial(t, c.message))
		if resp.StatusCode != c.status || !strings.Contains(answer, fmt.Sprintf(`"statusCode":%d`, c.status)) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, answer)
		}
		if limited := resp.Header.Get("X-RateLimit-Remaining") != ""; limited != (c.status == 413) {
			t.Errorf("%s: counted %v", name, limited)
		}
	}
	if len(s.creates) != 0 {
		t.Error("something was created")
	}
}

// TestARefusalDoesNotWaitForTheBody sends a beginning only: an answer that waits for more comes after the client has given up.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"REQUEST_TIMEOUT": "10m"})
	some := strings.Repeat("x", 8<<10)
	for name, c := range map[string]struct {
		message string
		status  int
	}{
		"a large body without a key":     {post("/public/v1/posts", "", 20<<20) + some, 401},
		"a small body without a key":     {post("/public/v1/posts", "", 20<<10) + some, 401},
		"chunks without a key":           {"POST /public/v1/posts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 401},
		"an upload without a key":        {post("/public/v1/upload", withForm, 20<<20) + some, 401},
		"a large body with a key":        {post("/public/v1/posts", withKey, 20<<20) + some, 413},
		"a body without a session":       {post("/user/logout", "", 20<<10) + some, 401},
		"a sign-in from another site":    {post("/auth/login", "Origin: http://evil.test\r\nContent-Type: application/json\r\n", 20<<10) + some, 403},
		"a sign-in that is not JSON":     {post("/auth/login", "Content-Type: text/plain\r\n", 20<<10) + some, 400},
		"a connect form that is no JSON": {post("/integrations/social-connect/sandbox", "", 20<<10) + some, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if resp, answer, rest := answered(t, s.dial(t, c.message)); resp.StatusCode != c.status || rest != "" {
				t.Errorf("%d %s and %q", resp.StatusCode, answer, rest)
			}
		})
	}
}

func TestAmbiguousFramingIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
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
			out := s.raw(t, "POST /public/v1/posts HTTP/1.1\r\nHost: x\r\nAuthorization: "+goodKey+"\r\n"+framing+"\r\n0\r\n\r\n"+hidden)
			if !strings.HasPrefix(out, "HTTP/1.1 400 ") || strings.Count(out, "HTTP/1.1 ") != 1 {
				t.Errorf("%q", out)
			}
		})
	}
	t.Run("chunks before HTTP 1.1", func(t *testing.T) {
		t.Parallel()
		out := s.raw(t, "POST /public/v1/posts HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n"+withKey+"Transfer-Encoding: chunked\r\n\r\n"+chunked(goodPost)+hidden)
		if !strings.HasPrefix(out, "HTTP/1.1 400 ") || strings.Count(out, "HTTP/1.1 ") != 1 {
			t.Errorf("%q", out)
		}
	})
	t.Cleanup(func() {
		if len(s.ids) != 0 || len(s.creates) != 0 {
			t.Errorf("ran: %v", s.ids)
		}
	})
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for !done() {
		if t.Context().Err() != nil {
			t.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestShutdownDoesNotWaitForClients(t *testing.T) {
	t.Parallel()
	some := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct {
		message string
		arrived func(*running) bool
	}{
		"a slow upload":        {post("/public/v1/upload", withKey+withForm, 1<<20) + formHead + some, func(s *running) bool { return s.began.Load() }},
		"a slow JSON body":     {post("/public/v1/posts", withKey, 1<<20) + some, func(s *running) bool { return s.admitted.Load() > 0 }},
		"a body that is meant": {post("/public/v1/posts", withKey, 1<<20), func(*running) bool { return true }},
		"half a header":        {"GET /hea", func(*running) bool { return true }},
		"silence":              {"", func(*running) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, map[string]string{"REQUEST_TIMEOUT": "10m"})
			s.dial(t, c.message)
			until(t, "the request arrived", func() bool { return c.arrived(s) })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Fatalf("the server was held up: %v", err)
			}
		})
	}
}

// TestShutdownWaitsForAnAnswer holds a handler until the server has lost its patience with a slow client.
func TestShutdownWaitsForAnAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.release = make(chan struct{})
	computing := s.dial(t, post("/public/v1/posts", withKey, len(goodPost))+goodPost)
	slow := s.dial(t, post("/public/v1/upload", withKey+withForm, 1<<20)+formHead+strings.Repeat("x", 64<<10))
	until(t, "both began", func() bool { return s.computing.Load() == 1 && s.began.Load() })
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		down <- s.Shutdown(ctx)
	}()
	if _, err := io.ReadAll(slow); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the slow upload was never cut off")
	}
	close(s.release)
	if resp, answer, _ := answered(t, computing); resp.StatusCode != 201 {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.release = make(chan struct{})
	s.dial(t, post("/public/v1/posts", withKey, len(goodPost))+goodPost)
	until(t, "it began", func() bool { return s.computing.Load() == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("answered %v", err)
	}
	close(s.release)
}
