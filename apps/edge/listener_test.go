package edge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// sendAll writes one request whole, whatever is answered meanwhile, and then reads the answer.
func (r *running) sendAll(t *testing.T, key, body string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	head := "POST /public/v1/posts HTTP/1.1\r\nHost: x\r\nAuthorization: " + key + "\r\nContent-Type: application/json\r\n"
	if _, err := io.WriteString(c, head+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))+body); err != nil {
		t.Fatalf("the client could not even send its request: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer is seen: %v", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

func TestARefusalIsSeenByAClientThatSendsOn(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"POST_BODY_LIMIT": "5000"})
	big := `{"pad":"` + strings.Repeat("x", 20<<20) + `"}`
	for key, status := range map[string]int{goodKey: 413, "crier_wrong": 401} {
		resp, answer := s.sendAll(t, key, big)
		if resp.StatusCode != status || !strings.Contains(answer, fmt.Sprintf(`"statusCode":%d`, status)) {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
		if limited := resp.Header.Get("X-RateLimit-Remaining") != ""; limited != (status == 413) {
			t.Errorf("%d: counted %v", status, limited)
		}
	}
	if len(s.creates) != 0 {
		t.Error("something was created")
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := s.raw(t, "POST /public/v1/posts HTTP/1.1\r\nHost: x\r\nAuthorization: "+goodKey+"\r\n"+framing+"\r\n0\r\n\r\n"+hidden)
			if !strings.HasPrefix(out, "HTTP/1.1 400 ") || strings.Count(out, "HTTP/1.1 ") != 1 {
				t.Errorf("%q", out)
			}
		})
	}
	t.Cleanup(func() {
		if len(s.ids) != 0 || len(s.creates) != 0 {
			t.Errorf("ran: %v", s.ids)
		}
	})
}

func TestShutdownDoesNotWaitForASlowUpload(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	head := "POST /public/v1/upload HTTP/1.1\r\nHost: x\r\nAuthorization: " + goodKey + "\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n"
	if _, err := io.WriteString(c, head+"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n"+strings.Repeat("x", 64<<10)); err != nil {
		t.Fatal(err)
	}
	for !s.began.Load() {
		if t.Context().Err() != nil {
			t.Fatal("the upload never began")
		}
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatalf("the upload held the server up: %v", err)
	}
}
