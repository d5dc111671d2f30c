package wall

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"crier/apps/edge"
	"crier/tests/call"
)

// newPost is a body of POST /public/v1/posts.
const newPost = `{"type":"schedule","date":"2099-01-02T15:04:05Z","shortLink":false,"tags":[],"posts":[{"integration":{"id":"$CHANNEL"},"value":[{"content":"` + ownWords + `"}]}]}`

// checkedPosts is a body of the routes that check posts.
const checkedPosts = `{"posts":[{"integration":{"id":"$CHANNEL"},"value":[{"content":"x"}]}]}`

// newWebhook is a body that creates a webhook. The service refuses to call its address.
const newWebhook = `{"name":"new","url":"https://127.0.0.1/","integrations":[],"disabled":true}`

// newApp is a body that creates or changes the organization's application.
const newApp = `{"name":"new","redirectUrl":"https://new.test/callback"}`

// wrongProof is for routes that ask for the password again: callers who may use them get a response
// that it is wrong.
const wrongProof = `"password":"wrong password","code":"000000"`

// bodies are, by route, the bodies of calls that would have an effect. Other bodies are {}. $N is
// the number of the call.
var bodies = map[string]string{
	"POST /mcp":                          `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
	"POST /auth/forgot":                  `{"email":"nobody$N@nowhere.test"}`,
	"POST /auth/login":                   `{"email":"nobody$N@nowhere.test","password":"wrong password"}`,
	"POST /auth/oauth/{provider}/exists": `{"code":"code","state":"state"}`,
	"POST /auth/register":                `{"email":"new$N@nowhere.test","password":"correct horse battery","company":"New Works"}`,
	"POST /auth/resend-activation":       `{"email":"nobody$N@nowhere.test"}`,
	"POST /enterprise/create-user":       `{"params":"not signed"}`,
	"PUT /customers/{id}/pause":          `{"paused":true}`,
	"POST /media/information":            `{"id":"$MEDIUM","alt":"a text"}`,
	"POST /public/v1/upload-from-url":    `{"url":"` + baseURL + `/files/{key}/{file}"}`,
	"PUT /integrations/{id}/pause":       `{"paused":true}`,
	"POST /posts/check":                  checkedPosts,
	"POST /posts/tags":                   `{"name":"tag $N","color":"#123456"}`,
	"PUT /posts/tags/{id}":               `{"name":"changed $N","color":"#123456"}`,
	"PUT /integrations/{id}/queue-plan":  `{"time":[{"time":560}]}`,
	"POST /integrations/{id}/time":       `{"time":[{"time":560}]}`,
	"POST /public/v1/posts":              newPost,
	"POST /public/v1/posts/check":        checkedPosts,
	"PUT /public/v1/posts/{id}/settings": `{"settings":{}}`,
	"POST /approvals/{id}/resolve":       `{"action":"approve"}`,
	"POST /public/v1/tags":               `{"name":"tag $N","color":"#123456"}`,
	"PUT /public/v1/tags/{id}":           `{"name":"changed $N","color":"#123456"}`,
	"PUT /public/v1/posts/{id}/status":   `{"status":"draft"}`,

	"PUT /public/v1/integrations/{id}/queue-plan": `{"time":[{"time":560}]}`,

	"POST /settings/api-keys":                         `{"name":"new"}`,
	"PUT /settings/api-keys/{id}":                     `{"name":"renamed"}`,
	"POST /settings/delete-account":                   `{"confirm":"DELETE",` + wrongProof + `}`,
	"POST /settings/delete-organization":              `{"confirm":"DELETE",` + wrongProof + `}`,
	"PUT /settings/organization":                      `{"description":"changed"}`,
	"PUT /settings/pause":                             `{"paused":true}`,
	"POST /settings/team":                             `{"role":"USER","sendEmail":false}`,
	"PUT /settings/team/{id}/role":                    `{"role":"USER"}`,
	"POST /user/api-key/rotate":                       `{"id":"$ROTATED","overlapHours":1}`,
	"POST /user/change-email":                         `{"email":"new$N@nowhere.test",` + wrongProof + `}`,
	"POST /user/change-org":                           `{"id":"$ORG"}`,
	"POST /user/change-password":                      `{"oldPassword":"wrong password","newPassword":"another good password"}`,
	"POST /user/email-notifications":                  `{"sendSuccessEmails":true,"sendFailureEmails":true,"sendStreakEmails":true}`,
	"POST /user/impersonate":                          `{"id":"$MEMBERSHIP"}`,
	"POST /user/join-org":                             `{"org":"no such token"}`,
	"POST /user/mfa/begin":                            `{` + wrongProof + `}`,
	"POST /user/mfa/confirm":                          `{"code":"000000"}`,
	"POST /user/mfa/disable":                          `{` + wrongProof + `}`,
	"PUT /user/mfa/policy":                            `{"required":false}`,
	"POST /user/mfa/recovery-codes":                   `{"code":"000000"}`,
	"POST /user/organizations":                        `{"name":"Another $N"}`,
	"POST /user/personal":                             `{"fullname":"Another Name"}`,
	"POST /user/oauth-app":                            newApp,
	"PUT /user/oauth-app":                             newApp,
	"POST /user/restore-organization":                 `{"id":"$ORG"}`,
	"POST /public/v1/webhooks":                        newWebhook,
	"PUT /public/v1/webhooks/{id}":                    `{"name":"renamed"}`,
	"POST /webhooks":                                  newWebhook,
	"PUT /webhooks":                                   `{"id":"$WEBHOOK","name":"renamed"}`,
	"POST /public/approval-review/{token}/resolve":    `{"action":"approve"}`,
	"POST /integrations/function":                     `{"name":"topics","id":"$CHANNEL"}`,
	"POST /integrations/provider/{id}/connect":        `{"page":"page"}`,
	"POST /integrations/public/provider/{id}/connect": `{"page":"page","state":"state"}`,
	"PUT /posts/{id}/release-id":                      `{"releaseId":"release"}`,
	"POST /public/t":                                  `{"tt":0}`,
	"POST /user/t":                                    `{"tt":4}`,
	"PUT /public/v1/posts/{id}/release-id":            `{"releaseId":"release"}`,
	"POST /public/v1/integration-trigger/{id}":        `{"methodName":"topics"}`,
	"POST /settings/provider-credentials/{provider}":  `{"credentials":{"clientId":"own","clientSecret":"own secret"}}`,
}

// queries are added to the paths of routes that refuse a request without them.
var queries = map[string]string{
	"GET /public/stream": "?url=" + baseURL + "/files/{key}/{file}", "GET /public/v1/posts": "?page=0", "GET /user/impersonate": "?name=first",
	"POST /webhooks/send": "?url=https://127.0.0.1/", "GET /public/v1/connectors/{id}/analytics": "?date=2026-01-02",
}

// path returns the path for a call of the route. Its parameters are ids of the first organization.
func (w *fixture) path(table permissionTable, r edge.Route) string {
	original := strings.TrimPrefix(r.Path, "/api")
	beginning := "/"
	for candidate := range w.ids {
		if strings.HasPrefix(original, candidate) && len(candidate) > len(beginning) {
			beginning = candidate
		}
	}
	parts := strings.Split(r.Path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = cmp.Or(w.ids[beginning+part], w.ids[part], w.ids[beginning])
		}
	}
	query := strings.NewReplacer("{key}", w.ids["{key}"], "{file}", w.ids["{file}"]).Replace(queries[table.name(r)])
	return strings.Join(parts, "/") + query
}

// body returns the body for a call of the route, or nil for methods without a body.
func (w *fixture) body(table permissionTable, r edge.Route, who caller) any {
	name := table.name(r)
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodDelete || name == "POST /user/logout":
		return nil
	case name == "POST /user/impersonate" && who == "acting":
		return `{"id":""}` // an impersonator may only stop impersonating
	}
	text := strings.ReplaceAll(cmp.Or(bodies[name], "{}"), "$N", fmt.Sprint(w.calls))
	for _, placeholder := range []string{"$CHANNEL", "$MEDIUM", "$MEMBERSHIP", "$ORG", "$ROTATED", "$WEBHOOK", "{key}", "{file}"} {
		text = strings.ReplaceAll(text, placeholder, w.ids[placeholder])
	}
	return text
}

// headers returns the headers of a caller.
func (w *fixture) headers(who caller) []string {
	headers := []string{"X-Forwarded-For", w.address()}
	if key := w.keys[who]; key != "" {
		return append(headers, "Authorization", key)
	}
	switch who {
	case "nobody":
		return headers
	case "operator":
		return append(headers, "X-Monitor-Token", monitorToken)
	case "expired":
		return append(headers, "auth", w.expired)
	}
	headers = append(headers, "auth", w.accounts[who].session)
	switch who {
	case "user", "admin", "owner", "intruder":
		headers = append(headers, "showorg", w.first.String())
	case "acting":
		headers = append(headers, "impersonate", w.ids["$MEMBERSHIP"])
	}
	return headers
}

// insider reports whether a caller may see the first organization.
func insider(who caller) bool {
	return slices.Contains([]caller{"user", "admin", "owner", "acting", "key", "agent", "reader"}, who)
}

// call calls a route and returns the status and everything that is wrong with the response.
func (w *fixture) call(t *testing.T, table permissionTable, r edge.Route, who caller) (status int, wrong []string) {
	t.Helper()
	w.calls++
	path, body := w.path(table, r), w.body(table, r, who)
	headers := w.headers(who)
	if key := w.keys[who]; key != "" && r.Credential == "agent" {
		headers[len(headers)-1] = "Bearer " + key
	}
	a, err := call.Do(t.Context(), w.http, r.Method, baseURL+path, body, headers...)
	if err != nil {
		t.Fatalf("%s as %s: got the error %v, want an answer", r, who, err)
	}
	if fault := table.surprise(r, who, a.Status); fault != "" {
		wrong = append(wrong, fault+": "+a.Body)
	}
	if !documented(t, r, a.Status) {
		wrong = append(wrong, fmt.Sprintf("%s as %s is answered with %d, which the OpenAPI document does not have", r, who, a.Status))
	}
	told := insider(who) || who == "instance" && table.routes[table.name(r)].class == "instance"
	// The simulated platform shows its accounts to everybody.
	if !told && !strings.HasPrefix(r.Path, "/sandbox") {
		for _, needle := range w.revealed(fmt.Sprint(a.Header)+a.Body, path, fmt.Sprint(body)) {
			wrong = append(wrong, fmt.Sprintf("%s as %s reveals %q: %s %v", r, who, needle, a.Body, a.Header))
		}
	}
	if name := table.name(r); name == "POST /user/logout" && w.accounts[who] != nil {
		w.enter(t, w.accounts[who], "")
	}
	return a.Status, wrong
}

// openAPI holds the parts of the OpenAPI document that documented reads.
type openAPI struct {
	Paths map[string]map[string]struct{ Responses map[string]any }
}

var document = sync.OnceValues(func() (doc openAPI, err error) {
	text, err := edge.OpenAPI()
	if err != nil {
		return doc, err
	}
	return doc, json.Unmarshal(text, &doc)
})

// documented reports whether the OpenAPI document has this status for the route, or does not have
// the route because it is not built.
func documented(t *testing.T, r edge.Route, status int) bool {
	t.Helper()
	doc, err := document()
	must(t, err)
	operation, there := doc.Paths[r.Path][strings.ToLower(r.Method)]
	return !there || operation.Responses[strconv.Itoa(status)] != nil
}

func TestDocumented_FindsMissingStatus(t *testing.T) {
	t.Parallel()
	restore := edge.Route{Method: "POST", Path: "/auth/restore"}
	for status, want := range map[int]bool{201: true, 400: true, 410: true, 402: false, 404: false} {
		if got := documented(t, restore, status); got != want {
			t.Errorf("%s with %d: got %v, want %v", restore, status, got, want)
		}
	}
	if !documented(t, edge.Route{Method: "GET", Path: "/sets"}, 501) {
		t.Error("a route that is not built: got false, want true")
	}
}

// revealed returns the texts of the first organization in a response, except those that were in the
// request.
func (w *fixture) revealed(answer string, request ...string) (out []string) {
	answer = strings.ToLower(answer)
	for _, needle := range w.needles {
		sent := slices.ContainsFunc(request, func(text string) bool { return strings.Contains(text, needle) })
		if !sent && strings.Contains(answer, strings.ToLower(needle)) {
			out = append(out, needle)
		}
	}
	return out
}

// inOrder returns the routes in the order of the calls: first those that change nothing, later
// those that delete, and last the end of the session.
func inOrder(routes []edge.Route) []edge.Route {
	rank := func(r edge.Route) int {
		switch {
		case r.String() == "POST /user/logout":
			return 4
		case r.String() == "DELETE /settings/team/{id}" || r.String() == "POST /user/organizations":
			// Other calls name this member, and a person without an organization must stay without
			// one until then.
			return 3
		case r.Method == http.MethodDelete:
			return 2
		case r.Method == http.MethodGet:
			return 0
		}
		return 1
	}
	out := slices.Clone(routes)
	slices.SortStableFunc(out, func(a, b edge.Route) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// refusedBy reports whether the table refuses the caller, or gives the caller nothing of the first
// organization.
func (p permissionTable) refusedBy(r edge.Route, who caller) bool {
	if who == "instance" && p.routes[p.name(r)].class == "instance" {
		// An instance administrator may begin to impersonate a member, which is recorded.
		return false
	}
	return !insider(who) || p.of(r, who) != wantOK
}

// TestRoutes_AnswerEveryCallerAsPermitted calls every route as every caller. Callers that the table
// refuses, and callers outside of the first organization, come first: they must not change the
// organization.
func TestRoutes_AnswerEveryCallerAsPermitted(t *testing.T) {
	t.Parallel()
	table, w := readPermissions(t), newWorld(t)
	routes := inOrder(edge.Routes())
	calls, surprises := 0, 0
	effects := map[string]bool{} // whether any permitted call of the route succeeded
	for _, refused := range []bool{true, false} {
		for _, who := range table.callers {
			before := w.rows(t)
			for _, r := range routes {
				if table.refusedBy(r, who) != refused {
					continue
				}
				status, wrong := w.call(t, table, r, who)
				calls++
				surprises += len(wrong)
				for _, fault := range wrong {
					t.Error(fault)
				}
				if r.State == edge.Built && !refused {
					effects[table.name(r)] = effects[table.name(r)] || status < 400
				}
			}
			if after := w.rows(t); refused && after != before {
				surprises++
				t.Errorf("%s has changed the first organization: %s", who, difference(before, after))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(effects)) {
		if effects[name] == (noEffect[name] != "") {
			t.Errorf("%s answered somebody with success: %v, want %v", name, effects[name], noEffect[name] == "")
		}
	}
	t.Logf("%d routes x %d callers = %d calls, %d surprises", len(routes), len(table.callers), calls, surprises)
	if want := len(routes) * len(table.callers); calls != want {
		t.Errorf("made %d calls, want %d", calls, want)
	}
}

// noEffect maps each route whose calls fail here for everybody who may use it to the reason.
var noEffect = map[string]string{
	"GET /mcp":                                        "there are no streams",
	"DELETE /mcp":                                     "there are no sessions",
	"GET /auth/oauth-mobile-callback":                 "the instance has no app",
	"GET /dev/mail":                                   "only in dev",
	"GET /dev/mail/{id}":                              "only in dev",
	"GET /docs/console/{file}":                        "there is no such file",
	"GET /docs/{chapter}/{page}":                      "there is no such page",
	"GET /docs/{page}":                                "there is no such page",
	"GET /sandbox/media/{file}":                       "nothing is published",
	"GET /sandbox/picture/{file}":                     "nothing is published",
	"GET /auth/unsubscribe":                           "needs a token",
	"POST /auth/activate":                             "needs a token",
	"POST /auth/confirm-email":                        "needs a token",
	"POST /auth/forgot-return":                        "needs a token",
	"POST /auth/login":                                "the password is wrong",
	"POST /auth/mfa/enroll/begin":                     "needs a token",
	"POST /auth/mfa/enroll/confirm":                   "needs a token",
	"POST /auth/mfa/verify":                           "needs a token",
	"POST /auth/oauth/{provider}/exists":              "needs a state",
	"POST /auth/restore":                              "needs a token",
	"POST /auth/unsubscribe":                          "needs a token",
	"GET /public/approval-review/{token}":             "needs a token",
	"POST /public/approval-review/{token}/resolve":    "needs a token",
	"GET /review/{token}":                             "needs a token",
	"POST /review/{token}":                            "needs a token",
	"POST /upload/{token}":                            "needs a token",
	"PUT /upload/{token}":                             "needs a token",
	"GET /connect/{integration}":                      "needs a state",
	"POST /connect/{integration}":                     "needs a state",
	"POST /integrations/function":                     "the channel has no tools",
	"POST /integrations/provider/{id}/connect":        "nothing is to be chosen",
	"POST /integrations/public/provider/{id}/connect": "needs a state",
	"POST /public/v1/integration-trigger/{id}":        "the channel has no tools",
	"POST /integrations/social-connect/{integration}": "needs a state",
	"POST /public/v1/upload":                          "the body is no form",
	"POST /settings/delete-account":                   "the password is wrong, so that the account stays",
	"POST /settings/delete-organization":              "the password is wrong, so that the organization stays",
	"POST /user/change-email":                         "the password is wrong, so that the next log-in works",
	"POST /user/change-password":                      "the password is wrong, so that the next log-in works",
	"POST /user/mfa/begin":                            "the password is wrong, so that the next log-in works",
	"POST /user/mfa/confirm":                          "no second factor was begun",
	"POST /user/mfa/disable":                          "the password is wrong",
	"POST /user/mfa/recovery-codes":                   "there is no second factor",
	"POST /user/restore-organization":                 "the organization is not deleted",
	"GET /oauth/authorize":                            "needs a client",
	"POST /oauth/authorize":                           "needs a client",
	"POST /oauth/introspect":                          "needs a token",
	"POST /oauth/register":                            "needs a redirect URI",
	"POST /oauth/revoke":                              "needs a client",
	"POST /oauth/token":                               "needs a client",
	"GET /oauth/userinfo":                             "needs a token after Bearer",
	"GET /oauth/callback":                             "needs a state",
	"POST /oauth/sign-in/{page}":                      "the body is no form",
	"GET /oauth/sign-in/{page}/{provider}":            "there is no such page",
	"POST /oauth/apps":                                "the body is no form",
	"POST /device":                                    "the body is no form",
	"POST /device/token":                              "needs a code",
	"GET /user/oauth-app":                             "there is no application yet",
}

// difference returns the lines that are in only one of two texts.
func difference(before, after string) string {
	var out []string
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	for _, line := range old {
		if !slices.Contains(now, line) {
			out = append(out, "- "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(old, line) {
			out = append(out, "+ "+line)
		}
	}
	return strings.Join(out, "\n")
}
