package mcp_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

const challenge = `Bearer resource_metadata="http://crier.test/.well-known/oauth-protected-resource/mcp", scope="mcp:read mcp:write"`

func TestAuthenticate_ChallengesWithoutCredential(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, method := range []string{"POST", "GET", "DELETE"} {
		for name, c := range map[string]struct {
			path      string
			headers   []string
			challenge string
		}{
			"no credential":          {path: "/mcp", challenge: challenge},
			"a token in a query":     {path: "/mcp?access_token=" + writer + "&token=" + edgetest.APIKey, challenge: challenge},
			"a wrong key":            {path: "/mcp", headers: []string{"Authorization", "Bearer crier_wrong"}, challenge: challenge + `, error="invalid_token"`},
			"a wrong token":          {path: "/mcp", headers: []string{"Authorization", "Bearer cra_wrong"}, challenge: challenge + `, error="invalid_token"`},
			"a key without a scheme": {path: "/mcp", headers: []string{"Authorization", edgetest.APIKey}, challenge: challenge + `, error="invalid_token"`},
			"two credentials":        {path: "/mcp", headers: []string{"Authorization", "Bearer " + writer, "Authorization", "Bearer " + writer}, challenge: challenge + `, error="invalid_token"`},
			"a session":              {path: "/mcp", headers: []string{"auth", edgetest.OwnerSession}, challenge: challenge},
		} {
			a := s.Call(t, method, c.path, "", append(c.headers, "Content-Type", "application/json")...)
			edgetest.Want(t, a, 401, `"jsonrpc":"2.0","id":null,"error":{"code":-32000`, `"statusCode":401`)
			if got := a.Header.Get("WWW-Authenticate"); got != c.challenge {
				t.Errorf("%s with %s: got the challenge %s, want %s", method, name, got, c.challenge)
			}
		}
	}
}

func TestRefuse_OtherMethodsWithCredential(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, method := range []string{"GET", "DELETE"} {
		a := s.Call(t, method, "/mcp", "", "Authorization", "Bearer "+writer)
		edgetest.Want(t, a, 405, `"jsonrpc":"2.0"`)
		if got := a.Header.Get("Allow"); got != "POST" {
			t.Errorf("%s: got Allow %q, want POST", method, got)
		}
	}
}

func TestAuthenticate_AcceptsKeysAndTokens(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, credential := range []string{edgetest.APIKey, writer, reader, declined} {
		if tools := s.ask(t, credential, "tools/list", `{}`)["tools"].([]any); len(tools) != 16 {
			t.Errorf("%s: got %d tools, want 16", credential, len(tools))
		}
	}
	a := s.Call(t, "POST", "/mcp", request("ping", `{}`), "authorization", "bearer  "+writer)
	edgetest.Want(t, a, 200, `"result":{}`)
	edgetest.Want(t, s.post(t, removed, request("ping", `{}`)), 403, "no longer a member")
}

func TestKeyInPath_NeedsSetting(t *testing.T) {
	t.Parallel()
	off, on := serve(t, nil), serve(t, map[string]string{"MCP_KEY_IN_PATH": "true"})
	body := request("ping", `{}`)
	edgetest.Want(t, off.Call(t, "POST", "/mcp/"+edgetest.APIKey, body, "Content-Type", "application/json"), 404)
	edgetest.Want(t, on.Call(t, "POST", "/mcp/"+edgetest.APIKey, body, "Content-Type", "application/json"), 200, `"result":{}`)
	edgetest.Want(t, on.Call(t, "POST", "/mcp/crier_wrong", body, "Content-Type", "application/json"), 401)
	edgetest.Want(t, on.Call(t, "POST", "/mcp/"+writer, body, "Content-Type", "application/json"), 401)
	if strings.Contains(on.Log.String(), edgetest.APIKey) {
		t.Error("the log has a key from a path")
	}
}

func TestScope_ClientThatNeverAskedIsToldTo(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const call = `{"name":"service_delete_post","arguments":{"id":"x","confirm":true}}`
	a := s.post(t, reader, request("tools/call", call))
	edgetest.Want(t, a, 403, `"id":7`, "mcp:write")
	want := `Bearer error="insufficient_scope", scope="mcp:read mcp:write", resource_metadata="http://crier.test/.well-known/oauth-protected-resource/mcp"`
	if got := a.Header.Get("WWW-Authenticate"); got != want {
		t.Errorf("got the challenge %s, want %s", got, want)
	}
	// The SDK reads the last of members with the same name.
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call","params":` + call + `}`,
		`{"jsonrpc":"2.0","id":7,"m\u0065thod":"tools/call","params":` + call + `}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"service_list_channels","name":"service_delete_post"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"service_list_channels"},"params":` + call + `}`,
	} {
		edgetest.Want(t, s.post(t, reader, body), 403, `"id":7`, "mcp:write")
	}
	s.useAs(t, declined, "service_delete_post", `{"id":"x","confirm":true}`).wantFailure(t, "forbidden", "", "read only")
	s.useAs(t, reader, "service_list_channels", `{}`).want(t)
	s.useAs(t, writer, "service_delete_post", `{"id":"x","confirm":true}`).want(t)
	if ids := s.IDs; !slices.Equal(ids, []string{"x"}) {
		t.Errorf("the use case was called with %q, want one call", ids)
	}
}

func TestSource_ForeignPagesAreRefused(t *testing.T) {
	t.Parallel()
	remote := serve(t, map[string]string{"MCP_ORIGINS": "https://agent.example", "MAIN_URL": "https://main.example"})
	for origin, status := range map[string]int{
		"": 200, "http://crier.test": 200, "https://main.example": 200, "https://agent.example": 200, "HTTPS://AGENT.example": 200,
		"https://evil.example": 403, "null": 403, "https://agent.example.evil.example": 403, "http://agent.example": 403,
		"http://localhost": 403,
	} {
		var headers []string
		if origin != "" {
			headers = []string{"Origin", origin}
		}
		if a := remote.post(t, writer, request("ping", `{}`), headers...); a.Status != status {
			t.Errorf("the origin %q: got %d %s, want %d", origin, a.Status, a.Body, status)
		}
	}
	local := serve(t, map[string]string{"BASE_URL": "http://127.0.0.1:4000"})
	for origin, status := range map[string]int{
		"": 200, "http://localhost:6274": 200, "http://127.0.0.1": 200, "http://[::1]:3000": 200,
		"https://evil.example": 403, "null": 403, "http://localhost.evil.example": 403,
	} {
		var headers []string
		if origin != "" {
			headers = []string{"Origin", origin}
		}
		if a := local.post(t, writer, request("ping", `{}`), headers...); a.Status != status {
			t.Errorf("the origin %q on loopback: got %d %s, want %d", origin, a.Status, a.Body, status)
		}
	}
	for host, status := range map[string]string{
		"localhost:4000": " 200 ", "127.0.0.1": " 200 ", "[::1]:80": " 200 ", "LOCALHOST": " 200 ", "evil.example": " 403 ",
		"evil.example:4000": " 403 ", "127.0.0.1.evil.example": " 403 ",
	} {
		body := request("ping", `{}`)
		out := local.Raw(t, "POST /mcp HTTP/1.1\r\nHost: "+host+"\r\nAuthorization: Bearer "+writer+
			"\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		if line, _, _ := strings.Cut(out, "\r\n"); !strings.Contains(line, status) {
			t.Errorf("the host %s: got %q, want%s", host, line, status)
		}
	}
}

func TestCORS_OnlyForAllowedOrigins(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"MCP_ORIGINS": "https://agent.example"})
	preflight := func(path, origin string) http.Header {
		return s.Call(t, "OPTIONS", path, "", "Origin", origin, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,mcp-protocol-version").Header
	}
	got := preflight("/mcp", "https://agent.example")
	if got.Get("Access-Control-Allow-Origin") != "https://agent.example" || got.Get("Access-Control-Allow-Credentials") != "" ||
		!strings.Contains(got.Get("Access-Control-Allow-Headers"), "mcp-protocol-version") {
		t.Errorf("got %v, want the origin allowed without credentials", got)
	}
	for path, origin := range map[string]string{"/mcp": "https://evil.example", "/public/v1/posts": "https://agent.example"} {
		if got := preflight(path, origin).Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s allows %s for %q, want no permission", path, origin, got)
		}
	}
	a := s.post(t, "", "{}", "Origin", "https://agent.example")
	if !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("got %v, want WWW-Authenticate exposed", a.Header)
	}
}

func TestPost_AcceptsAnyAcceptHeader(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, accept := range []string{"", "*/*", "application/json", "text/event-stream", "text/html", "application/json;q=0, nonsense"} {
		a := s.post(t, writer, request("tools/list", `{}`), "Accept", accept)
		edgetest.Want(t, a, 200, `"tools":[`)
		if got := a.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("Accept %q: got the type %q, want application/json", accept, got)
		}
	}
}

func TestPost_RefusesWhatIsNotOneMessage(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"BODY_LIMIT": "2000"})
	for name, c := range map[string]struct {
		body, words string
		status      int
	}{
		"an array":            {body: "[" + request("ping", `{}`) + "]", status: 400, words: `"code":-32600`},
		"an array of nothing": {body: " \n[]", status: 400, words: `"code":-32600`},
		"a text":              {body: `"hi"`, status: 400, words: `"code":-32700`},
		"nothing":             {body: ``, status: 400, words: `"code":-32700`},
		"half a message":      {body: `{"jsonrpc":`, status: 400, words: `"code":-32700`},
		"no UTF-8":            {body: "{\"a\":\"\xff\"}", status: 400, words: `"code":-32700`},
		"a long id":           {body: `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, status: 400, words: `"code":-32600`},
		"a fraction as id":    {body: `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, status: 400, words: "id must be a string of at most 256 bytes, or a whole number"},
		"a huge id":           {body: `{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}`, status: 400, words: "id must be"},
		"an inexact id":       {body: `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, status: 400, words: "id must be"},
		"an object as id":     {body: `{"jsonrpc":"2.0","id":{},"method":"ping"}`, status: 400, words: "id must be"},
		"a large id":          {body: `{"jsonrpc":"2.0","id":-9007199254740991,"method":"ping"}`, status: 200, words: `"id":-9007199254740991`},
		"an empty id":         {body: `{"jsonrpc":"2.0","id":"","method":"ping"}`, status: 200, words: `"id":""`},
		"an older JSON-RPC":   {body: `{"jsonrpc":"1.0","id":1,"method":"ping"}`, status: 400, words: `jsonrpc must be`},
		"a number as method":  {body: `{"jsonrpc":"2.0","id":1,"method":5}`, status: 400, words: "method must be a string"},
		"a list as params":    {body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, status: 400, words: "params must be an object"},
		"a number as tool":    {body: request("tools/call", `{"name":5}`), status: 400, words: "params.name must be a string"},
		"a large body":        {body: `{"a":"` + strings.Repeat("x", 2000) + `"}`, status: 413, words: `"statusCode":413`},
		"a notification":      {body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, status: 202},
		"a response":          {body: `{"jsonrpc":"2.0","id":1,"result":{}}`, status: 202},
		"an unknown method":   {body: request("resources/list", `{}`), status: 200, words: `"code":-32601`},
		"a stream":            {body: request("subscriptions/listen", `{}`), status: 404, words: `"code":-32601`},
		"an unknown tool":     {body: request("tools/call", `{"name":"nothing"}`), status: 200, words: `"code":-32602`},
	} {
		a := s.post(t, writer, c.body)
		if a.Status != c.status || !strings.Contains(a.Body, c.words) {
			t.Errorf("%s: got %d %s, want %d with %s", name, a.Status, a.Body, c.status, c.words)
		}
	}
	a := s.post(t, writer, "{}", "Content-Type", "text/plain")
	edgetest.Want(t, a, 400, `"jsonrpc":"2.0"`)
}

func TestAdmit_CountsRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := s.post(t, writer, request("ping", `{}`))
	if a.Header.Get("X-RateLimit-Limit") != "60" || a.Header.Get("X-RateLimit-Remaining") != "59" || s.Admitted.Load() != 1 {
		t.Errorf("got %v and %d counted requests, want the limit 60, 59 left, and 1", a.Header, s.Admitted.Load())
	}
	s.RateLimited.Store(true)
	a = s.post(t, writer, request("ping", `{}`))
	edgetest.Want(t, a, 429, `"jsonrpc":"2.0"`, `"error":{"code":-32000,"message":"Too many requests`, `"statusCode":429`, `"retryAfter":2`, `"msg":"Too many`)
	if a.Header.Get("Retry-After") != "2" || a.Header.Get("X-RateLimit-Limit") != "60" {
		t.Errorf("got %v, want Retry-After 2 and the limit", a.Header)
	}
}

func TestVersions_AllAreSpoken(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		got := s.ask(t, writer, "initialize", `{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
		capabilities := got["capabilities"].(map[string]any)
		if got["protocolVersion"] != version || len(capabilities) != 1 || capabilities["tools"] == nil {
			t.Errorf("%s: got %v, want this version, and tools as the only capability", version, got)
		}
		a := s.post(t, writer, request("tools/call", `{"name":"service_list_groups"}`), "Mcp-Protocol-Version", version)
		edgetest.Want(t, a, 200, `"structuredContent"`)
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	stateless := func(method, name, params string) edgetest.Answer {
		return s.post(t, writer, request(method, params), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name)
	}
	edgetest.Want(t, stateless("server/discover", "", `{`+meta+`}`), 200, "2026-07-28", `"tools":{`)
	edgetest.Want(t, stateless("tools/list", "", `{`+meta+`}`), 200, `"tools":[`)
	edgetest.Want(t, stateless("tools/call", "service_list_groups", `{"name":"service_list_groups",`+meta+`}`), 200, `"structuredContent"`)
	edgetest.Want(t, stateless("tools/call", "another", `{"name":"service_list_groups",`+meta+`}`), 400, `"code":-32020`)
	edgetest.Want(t, stateless("resources/list", "", `{`+meta+`}`), 404, `"code":-32601`)
	edgetest.Want(t, s.post(t, writer, request("ping", `{}`), "Mcp-Protocol-Version", "1999-01-01"), 400, `"jsonrpc":"2.0"`)
}
