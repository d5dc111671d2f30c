package bounds

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"crier/apps/edge"
)

// anonymous sends a request without a credential and returns the status of the response. The body
// may be shorter than its Content-Length.
func (r *rig) anonymous(t *testing.T, route edge.Route, framing string, body []byte) int {
	t.Helper()
	kind := "application/json"
	if strings.HasSuffix(route.Path, "/upload") {
		kind = "multipart/form-data; boundary=b"
	}
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	go func() { // the service may respond and close the connection before everything is sent
		_, _ = io.WriteString(c, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: crier.test\r\nContent-Type: %s\r\n%s\r\n\r\n", route.Method, filled(route.Path), kind, framing))
		_, _ = c.Write(body)
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s: got the error %v, want an answer", route, err)
	}
	_ = resp.Body.Close() // closing the connection is enough
	return resp.StatusCode
}

// opens returns whether a route may read a body without a credential.
func opens(route edge.Route) bool {
	switch route.Path {
	case "/integrations/social-connect/{integration}", "/enterprise/create-user":
		return true
	case "/auth/unsubscribe":
		return false
	}
	return strings.HasPrefix(route.Path, "/auth/")
}

// TestOtherRoutes_ReadNoBodyWithoutCredential sends part of a body. A route that waited for the
// rest would respond with 408.
func TestOtherRoutes_ReadNoBodyWithoutCredential(t *testing.T) {
	t.Parallel()
	r := start(t)
	begun := bytes.Repeat([]byte(" "), 16<<10) // more than the server reads with the headers
	for _, route := range edge.Routes() {
		if route.Method == http.MethodGet || opens(route) {
			continue
		}
		if status := r.anonymous(t, route, "Content-Length: 900000", begun); status == http.StatusRequestTimeout || status < 400 {
			t.Errorf("%s is answered with %d", route, status)
		}
	}
}
