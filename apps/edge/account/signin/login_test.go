package signin_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func TestLogin_SetsCookie(t *testing.T) {
	t.Parallel()
	for base, secure := range map[string]bool{
		"http://localhost:4000": false, "http://127.0.0.1:4000": false, "https://crier.test": true, "http://crier.test": true,
	} {
		s := edgetest.New(t, map[string]string{"BASE_URL": base})
		a := s.Call(t, "POST", "/auth/login", edgetest.LoginBody, "Content-Type", "application/json", "Origin", base)
		edgetest.Want(t, a, 201, `{"login":true}`)
		c := strings.ToLower(a.Header.Get("Set-Cookie"))
		for _, part := range []string{"auth=session-token", "httponly", "samesite=lax", "path=/"} {
			if !strings.Contains(c, part) {
				t.Errorf("%s is not in %s", part, c)
			}
		}
		if strings.Contains(c, "secure") != secure || strings.Contains(c, "domain") || a.Header.Get("Reload") != "true" {
			t.Errorf("%s: got the headers %v, want a cookie without domain, secure %v, and reload", base, a.Header, secure)
		}
	}
}

func TestLogin_RefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	json := []string{"Content-Type", "application/json"}
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"a form":                    {body: edgetest.LoginBody, headers: []string{"Content-Type", "text/plain"}, status: 400},
		"no content type":           {body: edgetest.LoginBody, headers: nil, status: 400},
		"another site":              {body: edgetest.LoginBody, headers: append([]string{"Origin", "https://evil.test"}, json...), status: 403},
		"an opaque origin":          {body: edgetest.LoginBody, headers: append([]string{"Origin", "null"}, json...), status: 403},
		"another site's fetch":      {body: edgetest.LoginBody, headers: append([]string{"Sec-Fetch-Site", "cross-site"}, json...), status: 403},
		"a cookie from nowhere":     {body: edgetest.LoginBody, headers: append([]string{"Cookie", "track=1"}, json...), status: 403},
		"no object":                 {body: "[]", headers: json, status: 400},
		"nothing":                   {body: "", headers: json, status: 400},
		"numbers":                   {body: `{"email":1,"password":2}`, headers: json, status: 400},
		"no address":                {body: `{"email":"ada","password":"right"}`, headers: json, status: 400},
		"another way of signing in": {body: `{"provider":"GITHUB","email":"ada@example.org","password":"right"}`, headers: json, status: 400},
		"a very long password":      {body: `{"email":"ada@example.org","password":"` + strings.Repeat("x", 129) + `"}`, headers: json, status: 400},
		"a wrong password":          {body: `{"email":"ada@example.org","password":"wrong"}`, headers: json, status: 400},
	} {
		a := s.Call(t, "POST", "/auth/login", c.body, c.headers...)
		if a.Status != c.status || a.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: answered %d %s, want %d", name, a.Status, a.Body, c.status)
		}
	}
	edgetest.Want(t, s.Call(t, "POST", "/auth/login", edgetest.LoginBody, append([]string{"Sec-Fetch-Site", "same-origin", "Cookie", "track=1"}, json...)...), 201)
	edgetest.Want(t, s.Call(t, "POST", "/auth/login", edgetest.LoginBody, json...), 201)
}

func TestLogin_PasswordHasAtMost128Characters(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for n, want := range map[int]string{128: "is wrong", 129: "1 to 128 characters", 1500: "1 to 128 characters"} {
		body := fmt.Sprintf(`{"email":"person%d@example.org","password":%q}`, n, strings.Repeat("é", n))
		if a := s.Call(t, "POST", "/auth/login", body, "Content-Type", "application/json"); a.Status != 400 || !strings.Contains(a.Body, want) {
			t.Errorf("%d characters: got %d %s, want 400 with %q", n, a.Status, a.Body, want)
		}
	}
}

func TestLogin_EndsPreviousSession(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	in := `{"provider":"LOCAL","email":"ada@example.org","password":"right"}`
	edgetest.Want(t, s.Call(t, "POST", "/auth/login", in, "Content-Type", "application/json", "Cookie", "auth=an-old-one", "Origin", edgetest.BaseURL), 201)
	if want := []string{"logout an-old-one"}; !slices.Equal(s.IDs, want) {
		t.Errorf("sessions ended: %q, want that of the cookie", s.IDs)
	}
}

var loggedAccount = regexp.MustCompile(`login failed.* account=([0-9a-f]+)`)

func TestFailedLogin_IsLoggedWithoutAddressAndPassword(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	edgetest.Want(t, s.Call(t, "POST", "/auth/login", edgetest.WrongLoginBody, "Content-Type", "application/json"), 400)
	edgetest.Want(t, s.Call(t, "POST", "/auth/login", strings.Replace(edgetest.WrongLoginBody, "ada", "ADA", 1), "Content-Type", "application/json"), 400)
	found := loggedAccount.FindAllStringSubmatch(s.Log.String(), -1)
	if len(found) != 2 || found[0][1] != found[1][1] {
		t.Errorf("got %q, want two lines of one account", found)
	}
	for _, private := range []string{"ada@", "ADA@", "wrong\""} {
		if strings.Contains(s.Log.String(), private) {
			t.Errorf("the log contains %s: %s", private, s.Log)
		}
	}
}

func TestLogout_ClearsCookies(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	a := s.Call(t, "POST", "/user/logout", "", "auth", edgetest.UserSession)
	edgetest.Want(t, a, 201)
	cookies := strings.Join(a.Header.Values("Set-Cookie"), "\n")
	for _, part := range []string{"auth=;", "showorg=;", "impersonate=;", "1970"} {
		if !strings.Contains(cookies, part) {
			t.Errorf("%s is not in %s", part, cookies)
		}
	}
	if a.Header.Get("Logout") != "true" || a.Body != "" || len(s.IDs) != 1 {
		t.Errorf("got %+v and the sessions %v, want the header logout, no body, and one session", a, s.IDs)
	}
}

// TestLogout_ClearsCookieOfLogin compares the attributes: a browser keeps a cookie if the deletion
// has another path or other attributes.
func TestLogout_ClearsCookieOfLogin(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"https://crier.test", "http://localhost:4000"} {
		s := edgetest.New(t, map[string]string{"BASE_URL": base})
		place := func(a edgetest.Answer) string {
			t.Helper()
			for _, line := range a.Header.Values("Set-Cookie") {
				c, err := http.ParseSetCookie(line)
				if err != nil {
					t.Fatal(err)
				}
				if c.Name == "auth" {
					return fmt.Sprintf("path %s, domain %q, secure %v, http only %v, same site %v", c.Path, c.Domain, c.Secure, c.HttpOnly, c.SameSite)
				}
			}
			t.Fatalf("got %d without the cookie auth: %v", a.Status, a.Header)
			return ""
		}
		in := place(s.Call(t, "POST", "/auth/login", `{"provider":"LOCAL","email":"ada@example.org","password":"right"}`, "Content-Type", "application/json"))
		out := place(s.Call(t, "POST", "/user/logout", "", "auth", edgetest.UserSession))
		if in != out || !strings.HasPrefix(in, "path /, ") {
			t.Errorf("%s: set with %s and cleared with %s, want the same", base, in, out)
		}
	}
}
