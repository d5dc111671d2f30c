package edge_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// slowRequest has sent the head of a request and a part of its body, which the server has not refused.
type slowRequest struct {
	net.Conn
	rest string
}

// beginSlowly sends a request up to the last bytes of its body and waits until its credential was checked.
func (r *running) beginSlowly(t *testing.T, path, headers, body string) slowRequest {
	t.Helper()
	before := r.authenticated.Load()
	cut := len(body) - 20
	c := r.dial(t, post(path, headers, len(body))+body[:cut])
	soon(t, "the credential is checked", func() bool { return r.authenticated.Load() > before })
	return slowRequest{Conn: c, rest: body[cut:]}
}

// finish sends the rest of the body and returns the status of the answer.
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

func TestSlowBody_CredentialIsCheckedAgainAtItsEnd(t *testing.T) {
	t.Parallel()
	padded := strings.Repeat(" ", 40<<10)
	file := formHead + strings.Repeat("x", 40<<10) + "\r\n--b--\r\n"
	const withSession = "auth: " + adminSession + "\r\nContent-Type: application/json\r\n"
	for name, c := range map[string]struct {
		path, headers, body string
		good                int
	}{
		"a post":                {path: "/public/v1/posts", headers: withKey, body: goodPost + padded, good: 201},
		"an upload":             {path: "/public/v1/upload", headers: withKey + withForm, body: file, good: 201},
		"a key by a session":    {path: "/settings/api-keys", headers: withSession, body: `{"name":"x"}` + padded, good: 201},
		"a person by a session": {path: "/user/organizations", headers: withSession, body: `{"name":"Other"}` + padded, good: 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			q := s.beginSlowly(t, c.path, c.headers, c.body)
			s.skew.Add(int64(time.Second))
			if got := q.finish(t); got != c.good {
				t.Errorf("a valid credential: answered %d, want %d", got, c.good)
			}
			q = s.beginSlowly(t, c.path, c.headers, c.body)
			s.revoked.Store(true)
			s.skew.Add(int64(time.Second))
			if got := q.finish(t); got != 401 {
				t.Errorf("a credential that was revoked meanwhile: answered %d, want 401", got)
			}
		})
	}
}

func TestSlowBody_RemovedMemberIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	body := `{"name":"x"}` + strings.Repeat(" ", 40<<10)
	q := s.beginSlowly(t, "/settings/api-keys", "auth: "+adminSession+"\r\nContent-Type: application/json\r\n", body)
	s.removed.Store(true)
	s.skew.Add(int64(time.Second))
	if got := q.finish(t); got != 403 {
		t.Errorf("answered %d, want 403", got)
	}
}

func TestImpersonate_WithoutTheGrantNothingIsChanged(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	json := []string{"Content-Type", "application/json", "auth", adminSession, "impersonate", membership}
	want(t, s.call(t, "GET", "/user/self", "", json...), 200, `"impersonate":false`)
	want(t, s.call(t, "POST", "/settings/api-keys", `{"name":"x"}`, json...), 403)
	a := s.call(t, "POST", "/settings/api-keys", `{"name":"x"}`, "Content-Type", "application/json",
		"Origin", baseURL, "Cookie", "auth="+adminSession+"; impersonate="+membership)
	if got := setCookies(t, a); a.status != 403 || got["impersonate"] == nil || got["impersonate"].Value != "" {
		t.Errorf("answered %d with the cookies %v, want 403 and the cookie deleted", a.status, got)
	}
	acting := []string{"Content-Type", "application/json", "auth", behindSession, "showorg", "another"}
	if a := s.call(t, "POST", "/user/email-notifications", `{"sendSuccessEmails":true,"sendFailureEmails":true,"sendStreakEmails":true}`, acting...); a.status != 201 {
		t.Errorf("answered %d %s, want 201 whatever showorg names", a.status, a.body)
	}
}
