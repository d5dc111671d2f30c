package route_test

import (
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func TestBody_MustBeJSON(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for kind, status := range map[string]int{
		"": 201, "application/json": 201, "Application/JSON; charset=utf-8": 201, "text/plain": 400,
		"application/cbor": 400, "application/x-www-form-urlencoded": 400, ";": 400,
	} {
		edgetest.Want(t, s.Call(t, "POST", "/public/v1/posts", edgetest.PostBody, "Authorization", edgetest.APIKey, "Content-Type", kind), status)
	}
	edgetest.Want(t, s.CallAPI(t, "POST", "/public/v1/posts", "\xef\xbb\xbf"+edgetest.PostBody), 201)
}

func TestBody_FaultsAreReadable(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for body, words := range map[string]string{
		`{"status":"published"}`: "status must be one of: draft, schedule", `{"status":5}`: "status must be a string", `{"status":"draft","republish":1}`: "republish must be true or false",
		`{`: "body must be valid JSON: unexpected end of JSON input", `[]`: "body must be an object", "\xef\xbb\xbf": "body is required", "\xef\xbb\xbf{}": "status is required",
	} {
		edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/posts/p/status", body), 400, `"msg":"`+words+`"`)
	}
	edgetest.Want(t, s.CallAPI(t, "POST", "/integrations/social-connect/sandbox", `{"state":"","code":""}`), 400, "state must be a string with a length of at least 1")
}

// A decoder error names the member and what it accepts, both on routes for sessions and on routes
// for keys.
func TestBody_DecoderFaultsNameMember(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	const plan, whole = "/integrations/c/queue-plan", "must be a whole number from -9223372036854775808 to 9223372036854775807"
	for _, v := range []struct{ method, path, body, words string }{
		{method: "PUT", path: plan, body: `{"time":[{"time":9223372036854775808}]}`, words: "time.0.time " + whole},
		{method: "PUT", path: plan, body: `{"time":[{"time":1e400}]}`, words: "time.0.time must be a number of at most 64 bits"},
		{method: "PUT", path: plan, body: `{"time":[{"time":1},{"time":"1"}]}`, words: "time.1.time must be a whole number"},
		{method: "PUT", path: plan, body: `{"time":[{"time":1.5}]}`, words: "time.0.time must be a whole number"},
		{method: "PUT", path: plan, body: `{"time":[{"time":null}]}`, words: "time.0.time must be a whole number"},
		{method: "PUT", path: plan, body: `{"time":[]} {}`, words: "body must be valid JSON: invalid character '{' after top-level value"},
		{method: "PUT", path: plan, body: "{\"time\":\"\xff\"}", words: "body must be UTF-8"},
		{method: "POST", path: "/user/api-key/rotate", body: `{"overlapHours":1e30}`, words: "overlapHours must be a number <= 72"},
	} {
		edgetest.Want(t, s.Call(t, v.method, v.path, v.body, "auth", edgetest.AdminSession, "Content-Type", "application/json"), 400, v.words)
		if strings.HasPrefix(v.path, plan) {
			edgetest.Want(t, s.CallAPI(t, v.method, "/public/v1"+v.path, v.body), 400, v.words)
		}
	}
	for query, words := range map[string]string{
		"99999999999999999999": "limit must be a whole number of at most 64 bits", "1.5": "limit must be a whole number",
		"1000": "limit must be a number <= 50",
	} {
		edgetest.Want(t, s.CallAPI(t, "GET", "/public/v1/webhooks/w/deliveries?limit="+query, ""), 400, words)
	}
	for field, body := range map[string]string{
		"posts.0.value.0.content": strings.Replace(edgetest.PostBody, `"content":"`, `"content":"\ud83d`, 1),
		"posts.0.settings":        strings.Replace(edgetest.PostBody, `"group":""`, `"group":"","settings":{"a":"\ud83d"}`, 1),
		"posts.0.settings ":       strings.Replace(edgetest.PostBody, `"group":""`, `"group":"","settings":"{\"a\":\"\ud83d\"}"`, 1),
	} {
		edgetest.Want(t, s.CallAPI(t, "POST", "/public/v1/posts", body), 400, strings.TrimSpace(field)+" must not contain half a character")
	}
	edgetest.Want(t, s.Call(t, "POST", "/settings/api-keys", `{"name":"\ude00"}`, "auth", edgetest.AdminSession, "Content-Type", "application/json"), 400,
		"name must not contain half a character")
	post := strings.Replace(edgetest.PostBody, `"type"`, `"inter":1e30,"type"`, 1)
	edgetest.Want(t, s.CallAPI(t, "POST", "/public/v1/posts", post), 400, "inter must be a whole number of at most 64 bits")
}

func TestBody_WholeNumbersHaveSeveralForms(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, number := range []string{"1000", "1000.0", "1e3", "1.0E+3", "10000e-1"} {
		body := `{"time":[{"time":` + number + `}]}`
		edgetest.Want(t, s.Call(t, "PUT", "/integrations/c/queue-plan", body, "auth", edgetest.UserSession, "Content-Type", "application/json"), 200)
		edgetest.Want(t, s.CallAPI(t, "PUT", "/public/v1/integrations/c/queue-plan", body), 200)
	}
	for _, number := range []string{"30", "30.0", "3e1"} {
		edgetest.Want(t, s.CallAPI(t, "POST", "/public/v1/posts", strings.Replace(edgetest.PostBody, `"type"`, `"inter":`+number+`,"type"`, 1)), 201)
	}
}

func TestBody_NamesAreExact(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	role := func(body string) edgetest.Answer {
		return s.Call(t, "PUT", "/settings/team/u1/role", body, "Content-Type", "application/json", "auth", edgetest.OwnerSession)
	}
	edgetest.Want(t, role(`{"role":"USER","Role":"SUPERADMIN","Password":"right"}`), 200, `"role":"USER"`)
	s.WantCalls(t, "SetRole u1 USER")
	edgetest.Want(t, role(`{"ROLE":"USER"}`), 400, "role is required")
	edgetest.Want(t, role(`{"role":"SUPERADMIN","Password":"right"}`), 400, "password is wrong")
	s.WantCalls(t)
}
