package edge_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"crier/tests/edgetest"
)

// slowRequest has sent the head of a request and part of its body, and the server has not refused
// it.
type slowRequest struct {
	net.Conn
	rest string
}

// beginSlowly sends a request up to the last bytes of its body and waits until the server has
// checked its credential.
func beginSlowly(t *testing.T, r *edgetest.Service, path, headers, body string) slowRequest {
	t.Helper()
	before := r.Authenticated.Load()
	cut := len(body) - 20
	c := dial(t, r, post(path, headers, len(body))+body[:cut])
	soon(t, "the credential is checked", func() bool { return r.Authenticated.Load() > before })
	return slowRequest{Conn: c, rest: body[cut:]}
}

// finish sends the rest of the body and returns the status of the response.
func (q slowRequest) finish(t *testing.T) int {
	t.Helper()
	if _, err := q.Write([]byte(q.rest)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(q), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // the connection is closed at the end of the test
	return resp.StatusCode
}

func TestSlowBody_CredentialIsCheckedAgainAtEnd(t *testing.T) {
	t.Parallel()
	padded := strings.Repeat(" ", 40<<10)
	file := formHead + strings.Repeat("x", 40<<10) + "\r\n--b--\r\n"
	const withSession = "auth: " + edgetest.AdminSession + "\r\nContent-Type: application/json\r\n"
	for name, c := range map[string]struct {
		path, headers, body string
		good                int
	}{
		"a post":                {path: "/public/v1/posts", headers: edgetest.KeyLine, body: edgetest.PostBody + padded, good: 201},
		"an upload":             {path: "/public/v1/upload", headers: edgetest.KeyLine + withForm, body: file, good: 201},
		"to an upload address":  {path: uploadPath, headers: withForm, body: file, good: 201},
		"a key by a session":    {path: "/settings/api-keys", headers: withSession, body: `{"name":"x"}` + padded, good: 201},
		"a person by a session": {path: "/user/organizations", headers: withSession, body: `{"name":"Other"}` + padded, good: 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edgetest.New(t, nil)
			q := beginSlowly(t, s, c.path, c.headers, c.body)
			s.Skew.Add(int64(time.Second))
			if got := q.finish(t); got != c.good {
				t.Errorf("a valid credential: answered %d, want %d", got, c.good)
			}
			q = beginSlowly(t, s, c.path, c.headers, c.body)
			s.Revoked.Store(true)
			s.Skew.Add(int64(time.Second))
			if got := q.finish(t); got != 401 {
				t.Errorf("a credential that was revoked meanwhile: answered %d, want 401", got)
			}
		})
	}
}

func TestSlowBody_RemovedMemberIsRefused(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	body := `{"name":"x"}` + strings.Repeat(" ", 40<<10)
	q := beginSlowly(t, s, "/settings/api-keys", "auth: "+edgetest.AdminSession+"\r\nContent-Type: application/json\r\n", body)
	s.Removed.Store(true)
	s.Skew.Add(int64(time.Second))
	if got := q.finish(t); got != 403 {
		t.Errorf("answered %d, want 403", got)
	}
}
