package edgetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
)

// Call sends one request over a kept connection. headers are pairs of names and values.
func (s *Service) Call(t testing.TB, method, path, body string, headers ...string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := s.Client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(b)}
}

// CallAPI is Call with APIKey and the type of JSON.
func (s *Service) CallAPI(t testing.TB, method, path, body string, headers ...string) Answer {
	t.Helper()
	return s.Call(t, method, path, body, append([]string{"Authorization", APIKey, "Content-Type", "application/json"}, headers...)...)
}

// Submit posts JSON as a page of BaseURL does.
func (s *Service) Submit(t *testing.T, path, body string, headers ...string) Answer {
	t.Helper()
	return s.Call(t, "POST", path, body, append([]string{"Content-Type", "application/json", "Origin", BaseURL}, headers...)...)
}

// KeyLine is the line of a request's head that authenticates it with APIKey.
const KeyLine = "Authorization: " + APIKey + "\r\n"

// HiddenRequest is a request that must never run: only it deletes a post with the id "smuggled",
// which World.IDs then has.
const HiddenRequest = "DELETE /public/v1/posts/smuggled HTTP/1.1\r\nHost: x\r\nAuthorization: " + APIKey + "\r\nContent-Length: 0\r\n\r\n"

// last follows every message of Raw, so that every connection comes to an end.
const last = "GET /is-this-the-end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// Raw sends message unchanged over a connection of its own, and returns everything that the server
// sends until it closes the connection.
func (s *Service) Raw(t *testing.T, message string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, message+last) }() // the server may close before the end
	if err := conn.SetReadDeadline(clock.System{}.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) { // a reset is an end, too
		t.Errorf("the connection stays open after %q", out)
	}
	return string(out)
}

// Chunked returns a body as one chunk of Transfer-Encoding: chunked, and the end of the body.
func Chunked(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }

// UploadForm returns a form with a text field and a file, and its Content-Type.
func UploadForm(t testing.TB, field, name string, file io.Reader) (form *bytes.Buffer, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.WriteField("before", "something"); err != nil {
		t.Fatal(err)
	}
	part, err := w.CreateFormFile(field, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(part, file); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b, w.FormDataContentType()
}
