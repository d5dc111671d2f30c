package edgetest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Answer is a complete response.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Want fails the test unless a has the status and its body contains every part.
func Want(t *testing.T, a Answer, status int, parts ...string) {
	t.Helper()
	if a.Status != status {
		t.Errorf("got %d, want %d: %s", a.Status, status, a.Body)
	}
	for _, p := range parts {
		if !strings.Contains(a.Body, p) {
			t.Errorf("got %s, want it to contain %q", a.Body, p)
		}
	}
}

// WantNoServerError fails the test if the status of a is 500 or more.
func WantNoServerError(t *testing.T, a Answer) {
	t.Helper()
	if a.Status >= 500 {
		t.Fatalf("answered %d: %s", a.Status, a.Body)
	}
}

// Decode returns the JSON body of a.
func Decode[T any](t *testing.T, a Answer) (out T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil {
		t.Fatalf("answered %d %q, want a body of %T: %v", a.Status, a.Body, out, err)
	}
	return out
}

// SetCookies returns the cookies that a sets, keyed by name. It fails the test if one is set twice.
func SetCookies(t *testing.T, a Answer) map[string]*http.Cookie {
	t.Helper()
	out := map[string]*http.Cookie{}
	for _, line := range a.Header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		if err != nil {
			t.Fatal(err)
		}
		if out[c.Name] != nil {
			t.Errorf("the cookie %s is set twice", c.Name)
		}
		out[c.Name] = c
	}
	return out
}

// Unprefixed returns the cookies without the prefix __Host-. It fails the test if a cookie with the
// prefix differs from the same cookie without it.
func Unprefixed(t *testing.T, cookies map[string]*http.Cookie) map[string]*http.Cookie {
	t.Helper()
	out := map[string]*http.Cookie{}
	for name, c := range cookies {
		plain, prefixed := strings.CutPrefix(name, "__Host-")
		if !prefixed {
			out[name] = c
			continue
		}
		if same := cookies[plain]; same == nil || same.Value != c.Value || same.MaxAge != c.MaxAge {
			t.Errorf("%s is not like the cookie without the prefix: %v", c, same)
		}
	}
	return out
}

// CookieNames returns the sorted names of cookies, with a minus sign before each deleted one.
// Example: "-auth showorg".
func CookieNames(cookies map[string]*http.Cookie) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(cookies)) {
		if cookies[name].MaxAge < 0 {
			name = "-" + name
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}
