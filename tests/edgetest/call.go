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

// Call sends one request over a keep-alive connection. headers are pairs of names and values.
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

// CallAPI is like Call with APIKey and a JSON body.
func (s *Service) CallAPI(t testing.TB, method, path, body string, headers ...string) Answer {
	t.Helper()
	return s.Call(t, method, path, body, append(
		[]string{"Authorization", APIKey, "Content-Type", "application/json"}, headers...,
	)...)
}

// Submit posts JSON like a page of BaseURL.
func (s *Service) Submit(t *testing.T, path, body string, headers ...string) Answer {
	t.Helper()
	return s.Call(t, "POST", path, body, append(
		[]string{"Content-Type", "application/json", "Origin", BaseURL}, headers...,
	)...)
}

// KeyLine is the header line that authenticates a request with APIKey.
const KeyLine = "Authorization: " + APIKey + "\r\n"

// HiddenRequest is a request that must never be executed. Only it deletes a post with the id
// "smuggled", which World.IDs would then contain.
const HiddenRequest = "DELETE /public/v1/posts/smuggled HTTP/1.1\r\nHost: x\r\nAuthorization: " + APIKey +
	"\r\nContent-Length: 0\r\n\r\n"

// last follows every message that Raw sends, so that every connection ends.
const last = "GET /is-this-the-end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// Raw sends message unchanged over a new connection, and returns everything that the server sends
// until it closes the connection.
func (s *Service) Raw(t *testing.T, message string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The server may close the connection before everything is sent.
	go func() { _, _ = io.WriteString(conn, message+last) }()
	if err := conn.SetReadDeadline(clock.System{}.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) { // a reset ends the connection too
		t.Errorf("the connection stays open after %q", out)
	}
	return string(out)
}

// Chunked returns a body as one chunk of Transfer-Encoding: chunked, with the terminating chunk.
func Chunked(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }

// UploadForm returns a form with a text field and a file, and the form's Content-Type.
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
