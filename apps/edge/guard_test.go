package edge_test

import (
	"fmt"
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/tests/edgetest"
)

func TestRequest_UnsupportedFormIsRefused(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	request := func(version string, headers ...string) string {
		return "POST /public/v1/posts " + version + "\r\nHost: x\r\nAuthorization: " + edgetest.APIKey +
			"\r\nContent-Type: application/json\r\n" + strings.Join(append(headers, ""), "\r\n") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(edgetest.PostBody), edgetest.PostBody)
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
		if out := s.Raw(t, c.message); !strings.HasPrefix(out, fmt.Sprintf("HTTP/1.1 %d ", c.status)) {
			t.Errorf("%s: got %.60q, want %d", name, out, c.status)
		}
	}
}

func TestEveryAnswer_HasSecurityHeaders(t *testing.T) {
	t.Parallel()
	for base, hsts := range map[string]string{"https://crier.test": "max-age=31536000", "http://crier.test": ""} {
		s := edgetest.New(t, map[string]string{"BASE_URL": base})
		for name, a := range map[string]edgetest.Answer{
			"an answer":        s.CallAPI(t, "GET", "/public/v1/is-connected", ""),
			"a refusal":        s.Call(t, "GET", "/public/v1/is-connected", ""),
			"a session's":      s.Call(t, "GET", "/integrations/list", "", "auth", edgetest.UserSession),
			"health":           s.Call(t, "GET", "/health", ""),
			"an unknown route": s.Call(t, "GET", "/nowhere", ""),
		} {
			for header, want := range map[string]string{
				"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
				"Content-Security-Policy":   "default-src 'none'; frame-ancestors 'none'",
				"Strict-Transport-Security": hsts,
			} {
				if got := a.Header.Get(header); got != want {
					t.Errorf("%s of %s (%d): %s is %q, want %q", name, base, a.Status, header, got, want)
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
	s := edgetest.New(t, map[string]string{"APP_LIMIT": "100000"})
	for _, credential := range [][]string{nil, {"Authorization", edgetest.APIKey}, {"auth", edgetest.UserSession}} {
		headers := append([]string{"Content-Type", "application/json"}, credential...)
		reached := 0
		for _, r := range edge.Routes() {
			path := concrete(r)
			once := s.Call(t, r.Method, path, "{", headers...)
			if once.Status != 404 && once.Status != 401 {
				reached++
			}
			for _, doubled := range []string{"/" + path, strings.ReplaceAll(path, "/", "//")} {
				twice := s.Call(t, r.Method, doubled, "{", headers...)
				if twice.Status != once.Status || once.Status >= 400 && twice.Body != once.Body {
					t.Errorf("%s %s: answered %d %s, want %d %s as with single slashes",
						r.Method, doubled, twice.Status, twice.Body, once.Status, once.Body)
				}
			}
		}
		if reached < 20 {
			t.Errorf("%v has reached %d routes, want more", credential, reached)
		}
	}
	// A proxy passes on everything after the scheme unchanged. No route is ever found through dots
	// or encoded slashes.
	for target, status := range map[string]string{
		"//public/v1/is-connected": " 200 ", "//public//v1//is-connected": " 200 ",
		"http://crier.test//public/v1/is-connected": " 200 ",
		"//public/v1%2F%2Fis-connected":             " 404 ", "//public/v1/x//..//is-connected": " 404 ",
	} {
		out := s.Raw(t, "GET "+target+" HTTP/1.1\r\nHost: x\r\nAuthorization: "+edgetest.APIKey+"\r\n\r\n")
		if line, _, _ := strings.Cut(out, "\r\n"); !strings.Contains(line, status) {
			t.Errorf("%s: answered %q, want%s", target, line, status)
		}
	}
}

func TestUnauthenticated_NamesScheme(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for name, a := range map[string]edgetest.Answer{
		"no key":       s.Call(t, "GET", "/public/v1/is-connected", ""),
		"a wrong key":  s.Call(t, "GET", "/public/v1/is-connected", "", "Authorization", "wrong"),
		"a bearer key": s.Call(t, "GET", "/public/v1/is-connected", "", "Authorization", "Bearer "+edgetest.APIKey),
		"no session":   s.Call(t, "GET", "/integrations/list", ""),
	} {
		if got, want := a.Header.Get("WWW-Authenticate"), `ApiKey realm="crier"`; a.Status != 401 || got != want {
			t.Errorf("%s: got %d with %q, want 401 with %q", name, a.Status, got, want)
		}
	}
}

// TestKey_IsTakenAsPeoplePasteIt: characters that a settings file or a clipboard adds are not part
// of a key.
func TestKey_IsTakenAsPeoplePasteIt(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, pasted := range []string{edgetest.APIKey, edgetest.APIKey + "\u200b", "\u202a" + edgetest.APIKey + "\u202c", `"` + edgetest.APIKey + `"`, "“" + edgetest.APIKey + "”", edgetest.APIKey + "\u00a0"} {
		if a := s.Call(t, "GET", "/public/v1/is-connected", "", "Authorization", pasted); a.Status != 200 {
			t.Errorf("the key %+q: got %d %s, want 200", pasted, a.Status, a.Body)
		}
	}
}

func TestAPIKey_NamesSchemeInFrontOfKey(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, scheme := range []string{"Bearer", "Basic", "Token", "ApiKey"} {
		a := s.Call(t, "GET", "/public/v1/is-connected", "", "Authorization", strings.ToLower(scheme)+" "+edgetest.APIKey)
		edgetest.Want(t, a, 401, "Invalid API key: send the key alone, without "+scheme+".")
	}
}
