package edge_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/publishing/connector"
)

func TestRequest_UnsupportedFormIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	request := func(version string, headers ...string) string {
		return "POST /public/v1/posts " + version + "\r\nHost: x\r\nAuthorization: " + goodKey +
			"\r\nContent-Type: application/json\r\n" + strings.Join(append(headers, ""), "\r\n") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(goodPost), goodPost)
	}
	for name, c := range map[string]struct {
		message string
		status  int
	}{
		"HTTP/1.1":                   {message: request("HTTP/1.1"), status: 201},
		"HTTP/1.9":                   {message: request("HTTP/1.9"), status: 505},
		"HTTP/2.0":                   {message: request("HTTP/2.0"), status: 505},
		"an unknown expectation":     {message: request("HTTP/1.1", "Expect: banana"), status: 417},
		"no encoding":                {message: request("HTTP/1.1", "Content-Encoding: identity"), status: 201},
		"a body in gzip":             {message: request("HTTP/1.1", "Content-Encoding: gzip"), status: 415},
		"a body in br":               {message: request("HTTP/1.1", "Content-Encoding: br"), status: 415},
		"a body in deflate and gzip": {message: request("HTTP/1.1", "Content-Encoding: deflate, gzip"), status: 415},
	} {
		if out := s.raw(t, c.message); !strings.HasPrefix(out, fmt.Sprintf("HTTP/1.1 %d ", c.status)) {
			t.Errorf("%s: got %.60q, want %d", name, out, c.status)
		}
	}
}

func TestEveryAnswer_HasSecurityHeaders(t *testing.T) {
	t.Parallel()
	for base, hsts := range map[string]string{"https://crier.test": "max-age=31536000", "http://crier.test": ""} {
		s := start(t, map[string]string{"BASE_URL": base})
		for name, a := range map[string]answer{
			"an answer":        s.api(t, "GET", "/public/v1/is-connected", ""),
			"a refusal":        s.call(t, "GET", "/public/v1/is-connected", ""),
			"a session's":      s.call(t, "GET", "/integrations/list", "", "auth", goodSession),
			"health":           s.call(t, "GET", "/health", ""),
			"an unknown route": s.call(t, "GET", "/nowhere", ""),
		} {
			for header, want := range map[string]string{
				"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
				"Content-Security-Policy":   "default-src 'none'; frame-ancestors 'none'",
				"Strict-Transport-Security": hsts,
			} {
				if got := a.header.Get(header); got != want {
					t.Errorf("%s of %s (%d): %s is %q, want %q", name, base, a.status, header, got, want)
				}
			}
		}
	}
}

// TestPath_DoubledSlashesAreOne calls every route with single and with doubled slashes, without a
// credential, with a key and with a session. The bodies are invalid JSON, so the response shows how
// far each request got.
func TestPath_DoubledSlashesAreOne(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"APP_LIMIT": "100000"})
	for _, credential := range [][]string{nil, {"Authorization", goodKey}, {"auth", goodSession}} {
		headers := append([]string{"Content-Type", "application/json"}, credential...)
		reached := 0
		for _, r := range edge.Routes() {
			path := concrete(r)
			once := s.call(t, r.Method, path, "{", headers...)
			if once.status != 404 && once.status != 401 {
				reached++
			}
			for _, doubled := range []string{"/" + path, strings.ReplaceAll(path, "/", "//")} {
				twice := s.call(t, r.Method, doubled, "{", headers...)
				if twice.status != once.status || once.status >= 400 && twice.body != once.body {
					t.Errorf("%s %s: answered %d %s, want %d %s as with single slashes",
						r.Method, doubled, twice.status, twice.body, once.status, once.body)
				}
			}
		}
		if reached < 20 {
			t.Errorf("%v has reached %d routes, want more", credential, reached)
		}
	}
	// A proxy passes on what follows the scheme unchanged, and no route is ever found through dots or encoded slashes.
	for target, status := range map[string]string{
		"//public/v1/is-connected": " 200 ", "//public//v1//is-connected": " 200 ",
		"http://crier.test//public/v1/is-connected": " 200 ",
		"//public/v1%2F%2Fis-connected":             " 404 ", "//public/v1/x//..//is-connected": " 404 ",
	} {
		out := s.raw(t, "GET "+target+" HTTP/1.1\r\nHost: x\r\nAuthorization: "+goodKey+"\r\n\r\n")
		if line, _, _ := strings.Cut(out, "\r\n"); !strings.Contains(line, status) {
			t.Errorf("%s: answered %q, want%s", target, line, status)
		}
	}
}

func TestUnauthenticated_NamesScheme(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, a := range map[string]answer{
		"no key":       s.call(t, "GET", "/public/v1/is-connected", ""),
		"a wrong key":  s.call(t, "GET", "/public/v1/is-connected", "", "Authorization", "wrong"),
		"a bearer key": s.call(t, "GET", "/public/v1/is-connected", "", "Authorization", "Bearer "+goodKey),
		"no session":   s.call(t, "GET", "/integrations/list", ""),
	} {
		if got, want := a.header.Get("WWW-Authenticate"), `ApiKey realm="crier"`; a.status != 401 || got != want {
			t.Errorf("%s: got %d with %q, want 401 with %q", name, a.status, got, want)
		}
	}
}

// TestKey_IsTakenAsPeoplePasteIt: what a settings file or a clipboard adds to a key is not part of it.
func TestKey_IsTakenAsPeoplePasteIt(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, pasted := range []string{goodKey, goodKey + "\u200b", "\u202a" + goodKey + "\u202c", `"` + goodKey + `"`, "“" + goodKey + "”", goodKey + "\u00a0"} {
		if a := s.call(t, "GET", "/public/v1/is-connected", "", "Authorization", pasted); a.status != 200 {
			t.Errorf("the key %+q: got %d %s, want 200", pasted, a.status, a.body)
		}
	}
}

func TestCORS_ExposesEveryHeaderOfAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"FRONTEND_URL": "https://app.test/ui"})
	exposed := s.call(t, "GET", "/health", "", "Origin", "https://app.test").header.Get("Access-Control-Expose-Headers")
	all := "," + strings.ReplaceAll(strings.ToLower(exposed), " ", "") + ","
	for _, name := range []string{
		"reload", "onboarding", "activate", "logout", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after",
		"x-request-id", "x-total-count", "x-has-more", "idempotent-replayed", "idempotent-mismatch",
	} {
		if !strings.Contains(all, ","+name+",") {
			t.Errorf("%s is not in %q", name, exposed)
		}
	}
}

// TestLogout_ClearsCookieOfLogin compares the attributes: a browser keeps a cookie whose deletion has another path or
// other attributes.
func TestLogout_ClearsCookieOfLogin(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"https://crier.test", "http://localhost:4000"} {
		s := start(t, map[string]string{"BASE_URL": base})
		place := func(a answer) string {
			t.Helper()
			for _, line := range a.header.Values("Set-Cookie") {
				c, err := http.ParseSetCookie(line)
				if err != nil {
					t.Fatal(err)
				}
				if c.Name == "auth" {
					return fmt.Sprintf("path %s, domain %q, secure %v, http only %v, same site %v", c.Path, c.Domain, c.Secure, c.HttpOnly, c.SameSite)
				}
			}
			t.Fatalf("got %d without the cookie auth: %v", a.status, a.header)
			return ""
		}
		in := place(s.call(t, "POST", "/auth/login", `{"provider":"LOCAL","email":"ada@example.org","password":"right"}`, "Content-Type", "application/json"))
		out := place(s.call(t, "POST", "/user/logout", "", "auth", goodSession))
		if in != out || !strings.HasPrefix(in, "path /, ") {
			t.Errorf("%s: set with %s and cleared with %s, want the same", base, in, out)
		}
	}
}

func TestLogin_PasswordHasAtMost128Characters(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for n, want := range map[int]string{128: "is wrong", 129: "1 to 128 characters", 1500: "1 to 128 characters"} {
		body := fmt.Sprintf(`{"email":"person%d@example.org","password":%q}`, n, strings.Repeat("é", n))
		if a := s.call(t, "POST", "/auth/login", body, "Content-Type", "application/json"); a.status != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%d characters: got %d %s, want 400 with %q", n, a.status, a.body, want)
		}
	}
}

// withDefaults has a connector with a field that has a default value.
type withDefaults struct {
	channels
	value string
}

func (w withDefaults) Catalogue() []connector.Descriptor {
	return []connector.Descriptor{{ID: "sandbox", Name: "Sandbox", Fields: []connector.Field{{Key: "service", Label: "Address", DefaultValue: w.value}}}}
}

// TestCatalogue_ShowsNoAddressAsDefault is about secrets: the catalogue needs no session.
func TestCatalogue_ShowsNoAddressAsDefault(t *testing.T) {
	t.Parallel()
	for value, shown := range map[string]bool{"A": true, "http://127.0.0.1:37835": false, "wss://inner.example, wss://other.example": false} {
		s := start(t, nil, func(d *edge.Deps) { d.Channels = withDefaults{channels: d.Channels.(channels), value: value} })
		if a := s.call(t, "GET", "/integrations", ""); a.status != 200 || strings.Contains(a.body, `"defaultValue":"`+value) != shown {
			t.Errorf("%q: got %d %s, want it shown: %v", value, a.status, a.body, shown)
		}
	}
}

func TestAPIKey_NamesSchemeInFrontOfKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, scheme := range []string{"Bearer", "Basic", "Token", "ApiKey"} {
		a := s.call(t, "GET", "/public/v1/is-connected", "", "Authorization", strings.ToLower(scheme)+" "+goodKey)
		want(t, a, 401, "Invalid API key: send the key alone, without "+scheme+".")
	}
}
