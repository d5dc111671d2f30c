package accounts

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"github.com/tidwall/gjson"

	"crier/platform/secret"
	"crier/tenancy"
	"crier/tests/call"
)

// agent is a client that a person has approved, with its tokens. A public client has no secret.
type agent struct{ id, secret, access, refresh string }

const (
	agentRedirect = "http://127.0.0.1:1/callback"
	agentVerifier = "a-verifier-of-at-least-43-characters-as-rfc-7636-asks"
)

var (
	formType    = []string{"Content-Type", "application/x-www-form-urlencoded"}
	hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	leadsOn     = regexp.MustCompile(`<meta http-equiv="refresh" content="0;url=([^"]*)">`)
)

// agentCases returns the cases of the OAuth and MCP routes.
func agentCases() map[string]prepare {
	all := map[string]prepare{}
	for _, some := range []map[string]prepare{
		consentCases(), tokenCases(), deviceCases(), grantCases(), appCases(), toolCases(),
	} {
		maps.Copy(all, some)
	}
	return all
}

func consentCases() map[string]prepare {
	return map[string]prepare{
		"POST /oauth/register, of a public client": func(o *owner) twice {
			return twice{as: o.visitor(o.t), body: metadata(o.name, "none"), holds: func(kept []call.Answer) {
				for _, id := range fields(kept, "client_id") {
					o.approve(agent{id: id})
				}
				o.wantOne("the answers have the client ids", fields(kept, "client_id"))
				o.wantValue(o.get("/user/approved-apps"), "#", "1")
			}}
		},
		"POST /oauth/register, of a client with a secret": func(o *owner) twice {
			return twice{as: o.visitor(o.t), body: metadata(o.name, "client_secret_post"), holds: func(kept []call.Answer) {
				ids, secrets := fields(kept, "client_id"), fields(kept, "client_secret")
				for i := range kept {
					o.wantAuthenticated(agent{id: ids[i], secret: secrets[i]}, true)
				}
				if len(ids) == 2 && ids[0] == ids[1] {
					o.t.Errorf("both answers have the client id %s, want two", ids[0])
				}
			}}
		},
		"POST /oauth/authorize, by a program": func(o *owner) twice {
			a := agent{id: o.registerClient()}
			return twice{body: consent(a.id), holds: func(kept []call.Answer) {
				for _, address := range fields(kept, "redirect") {
					o.tokens(a, o.codeRequest(a, o.codeIn(address)))
				}
				o.wantValue(o.get("/user/approved-apps"), "#", "1")
			}}
		},
		"POST /oauth/authorize, on the page": func(o *owner) twice {
			a := agent{id: o.registerClient()}
			query := "?" + authorization(a.id).Encode()
			form := o.fieldsOf(o.page(http.MethodGet, "/oauth/authorize"+query, nil))
			form.Set("action", "approve")
			return twice{query: query, headers: formType, body: form.Encode(), holds: func(kept []call.Answer) {
				if len(kept) != 1 {
					o.t.Errorf("%d answers approve, want one: the page counts once", len(kept))
				}
				for _, x := range kept {
					found := leadsOn.FindStringSubmatch(x.Body)
					if found == nil {
						o.t.Fatalf("the page leads nowhere: %s", x.Body)
					}
					o.tokens(a, o.codeRequest(a, o.codeIn(html.UnescapeString(found[1]))))
				}
				o.wantValue(o.get("/user/approved-apps"), "#", "1")
			}}
		},
		"POST /oauth/sign-in/{page}": func(o *owner) twice {
			form := url.Values{"step": {"password"}, "email": {o.email}, "password": {password}}
			return o.signingIn(form, nil)
		},
		"POST /oauth/sign-in/{page}, with a code": func(o *owner) twice {
			factor, _ := o.enroll()
			visitor := o.visitor(o.t)
			form := visitor.fieldsOf(visitor.page(http.MethodPost, "/oauth/sign-in/apps",
				url.Values{"step": {"password"}, "email": {o.email}, "password": {password}}))
			form.Set("step", "factor")
			form.Set("code", codeOf(o.t, factor, 1))
			return o.signingIn(form, []int{400, 401, 403})
		},
	}
}

// signingIn is a request that signs the person in on the page. Each session must work.
func (o *owner) signingIn(form url.Values, refused []int) twice {
	return twice{
		as: o.visitor(o.t), ids: []string{"apps"}, headers: formType, body: form.Encode(), refused: refused,
		holds: func(kept []call.Answer) {
			for _, a := range kept {
				if to := a.Header.Get("Location"); to != "/oauth/apps?signed_in=1" {
					o.t.Errorf("the sign-in leads to %q, want /oauth/apps?signed_in=1", to)
				}
				o.session = a.Cookie("auth")
				o.wantStatus(200, "GET", "/user/self")
			}
		},
	}
}

func tokenCases() map[string]prepare {
	return map[string]prepare{
		"POST /oauth/token, with a code": func(o *owner) twice {
			a := agent{id: o.registerClient()}
			back := o.session201("/oauth/authorize", consent(a.id)).Get("redirect").String()
			body := o.codeRequest(a, o.codeIn(back))
			return twice{as: o.visitor(o.t), body: body, refused: []int{400}, holds: func(kept []call.Answer) {
				if len(kept) != 1 {
					o.t.Errorf("%d answers have tokens, want one: the code counts once", len(kept))
				}
				for _, access := range fields(kept, "access_token") {
					o.wantRevoked(access)
				}
				for _, refresh := range fields(kept, "refresh_token") {
					o.wantNoTokens(refreshRequest(a, refresh))
				}
			}}
		},
		"POST /oauth/token, with a refresh token": func(o *owner) twice {
			a := o.connectAgent()
			body := refreshRequest(a, a.refresh)
			return twice{as: o.visitor(o.t), body: body, holds: func(kept []call.Answer) {
				o.wantWorking(append(fields(kept, "access_token"), a.access)...)
				live, voided := o.refreshTokens(fields(kept, "refresh_token"))
				if len(live) != 1 {
					o.t.Fatalf("%d of %d new refresh tokens work, want one", len(live), len(kept))
				}
				next := o.tokens(a, refreshRequest(a, live[0]))
				for _, refresh := range append(voided, a.refresh) {
					o.wantNoTokens(refreshRequest(a, refresh)) // ends the family: somebody else has the token
				}
				o.wantRevoked(append(fields(kept, "access_token"), next.access)...)
				o.wantNoTokens(refreshRequest(a, next.refresh))
			}}
		},
		"POST /oauth/revoke, of a refresh token": func(o *owner) twice {
			a := o.connectAgent()
			return twice{as: o.visitor(o.t), body: m{"token": a.refresh, "client_id": a.id}, holds: func([]call.Answer) {
				o.wantRevoked(a.access)
				o.wantNoTokens(refreshRequest(a, a.refresh))
			}}
		},
		"POST /oauth/revoke, of an access token": func(o *owner) twice {
			a := o.connectAgent()
			return twice{as: o.visitor(o.t), body: m{"token": a.access, "client_id": a.id}, holds: func([]call.Answer) {
				o.wantRevoked(a.access)
				o.tokens(a, refreshRequest(a, a.refresh))
			}}
		},
	}
}

func deviceCases() map[string]prepare {
	approved := func(o *owner, device string) {
		o.t.Helper()
		o.wantWorking(o.session201("/device/token", m{"device_code": device}).Get("access_token").String())
		o.wantValue(o.get("/user/approved-apps"), "#", "1")
	}
	return map[string]prepare{
		"POST /device/code": func(o *owner) twice {
			return twice{as: o.visitor(o.t), body: m{"client_id": o.registerClient()}, holds: func(kept []call.Answer) {
				for _, a := range kept {
					o.page(http.MethodPost, "/device", o.deviceForm(gjson.Get(a.Body, "user_code").String()))
					approved(o, gjson.Get(a.Body, "device_code").String())
				}
			}}
		},
		"POST /device, with the code": func(o *owner) twice {
			device, user := o.startDevice()
			return twice{headers: formType, body: url.Values{"userCode": {user}}.Encode(), holds: func(kept []call.Answer) {
				accepted := 0
				for i, a := range kept {
					form := o.fieldsOf(a.Body)
					form.Set("action", "approve")
					answer, err := o.send(i, http.MethodPost, "/device", form.Encode(), formType...)
					must(o.t, err)
					if answer.Status < 400 {
						accepted++
					}
				}
				if accepted != 1 {
					o.t.Errorf("%d of %d pages approve, want one: the code counts once", accepted, len(kept))
				}
				approved(o, device)
			}}
		},
		"POST /device, to approve": func(o *owner) twice {
			device, user := o.startDevice()
			return twice{headers: formType, body: o.deviceForm(user).Encode(), holds: func(kept []call.Answer) {
				if len(kept) != 1 {
					o.t.Errorf("%d answers approve, want one: the page counts once", len(kept))
				}
				approved(o, device)
			}}
		},
		"POST /device/token": func(o *owner) twice {
			device, user := o.startDevice()
			o.page(http.MethodPost, "/device", o.deviceForm(user))
			body := m{"device_code": device}
			return twice{as: o.visitor(o.t), body: body, refused: []int{400}, holds: func(kept []call.Answer) {
				if len(kept) != 1 {
					o.t.Errorf("%d answers have tokens, want one: the device code counts once", len(kept))
				}
				o.wantWorking(fields(kept, "access_token")...)
			}}
		},
	}
}

func grantCases() map[string]prepare {
	return map[string]prepare{
		"DELETE /user/approved-apps/{id}": func(o *owner) twice {
			a := o.connectAgent()
			grant := o.get("/user/approved-apps").Get("0.id").String()
			return twice{ids: []string{grant}, holds: func([]call.Answer) { o.wantNoGrant(a, grant) }}
		},
		"DELETE /settings/agents/{id}": func(o *owner) twice {
			a := o.member(tenancy.RoleUser).connectAgent()
			grant := o.get("/settings/agents").Get("0.id").String()
			return twice{ids: []string{grant}, holds: func([]call.Answer) { o.wantNoGrant(a, grant) }}
		},
		"POST /oauth/apps": func(o *owner) twice {
			a := o.connectAgent()
			form := o.fieldsOf(o.page(http.MethodGet, "/oauth/apps", nil))
			return twice{headers: formType, body: form.Encode(), holds: func([]call.Answer) {
				o.wantNoGrant(a, form.Get("grant"))
			}}
		},
	}
}

// wantNoGrant fails the test unless a grant and the tokens of its agent are gone.
func (o *owner) wantNoGrant(a agent, grant string) {
	o.t.Helper()
	if grant == "" {
		o.t.Fatal("the grant has no id")
	}
	o.wantGone(o.get("/settings/agents"), grant)
	o.wantRevoked(a.access)
	o.wantNoTokens(refreshRequest(a, a.refresh))
}

func appCases() map[string]prepare {
	described := func(name string) m { return m{"name": name, "redirectUrl": agentRedirect} }
	create := func(o *owner) agent {
		o.t.Helper()
		made := o.session201("/user/oauth-app", described("Newsroom"))
		return agent{id: made.Get("clientId").String(), secret: made.Get("clientSecret").String()}
	}
	return map[string]prepare{
		"POST /user/oauth-app": func(o *owner) twice {
			return twice{body: described("Newsroom"), holds: func(kept []call.Answer) {
				ids, secrets := fields(kept, "clientId"), fields(kept, "clientSecret")
				o.wantOne("the answers have the client ids", ids)
				o.wantValue(o.get("/user/oauth-app"), "clientId", ids[0])
				for i := range kept {
					o.approve(agent{id: ids[i], secret: secrets[i]})
				}
			}}
		},
		"PUT /user/oauth-app": func(o *owner) twice {
			a := create(o)
			return twice{body: described("Another Name"), holds: func([]call.Answer) {
				o.wantValue(o.get("/user/oauth-app"), "name", "Another Name")
				o.wantValue(o.get("/user/oauth-app"), "clientId", a.id)
				o.wantAuthenticated(a, true)
			}}
		},
		"POST /user/oauth-app/rotate-secret": func(o *owner) twice {
			a := create(o)
			return twice{body: m{}, holds: func(kept []call.Answer) {
				var working []string
				secrets := append(fields(kept, "clientSecret"), a.secret)
				for _, s := range secrets {
					if o.authenticates(0, agent{id: a.id, secret: s}) {
						working = append(working, s)
					}
				}
				if len(working) != 1 || working[0] == a.secret {
					o.t.Fatalf("%d of the secrets %v work, want only the newest", len(working), secrets)
				}
				for _, s := range secrets {
					o.wantAuthenticated(agent{id: a.id, secret: s}, s == working[0])
				}
				newest := o.session201("/user/oauth-app/rotate-secret", m{}).Get("clientSecret").String()
				o.wantAuthenticated(agent{id: a.id, secret: working[0]}, false)
				o.approve(agent{id: a.id, secret: newest})
			}}
		},
		"DELETE /user/oauth-app": func(o *owner) twice {
			a := o.approve(create(o))
			return twice{holds: func([]call.Answer) {
				o.wantStatus(404, "GET", "/user/oauth-app")
				o.wantValue(o.get("/settings/agents"), "#", "0")
				o.wantAuthenticated(a, false)
				o.wantRevoked(a.access)
			}}
		},
	}
}

func toolCases() map[string]prepare {
	created := func(key string) prepare {
		return func(o *owner) twice {
			arguments := m{"socialPost": []m{{
				"integrationId": o.channel(), "type": "schedule", "date": "2040-01-02T15:04:05Z",
				"postsAndComments": []m{{"content": "words"}},
			}}}
			if key != "" {
				arguments["idempotencyKey"] = key
			}
			body := m{
				"jsonrpc": "2.0", "id": 1, "method": "tools/call",
				"params": m{"name": "service_create_post", "arguments": arguments},
			}
			headers := []string{"Authorization", "Bearer " + o.connectAgent().access}
			return twice{as: o.visitor(o.t), body: body, headers: headers, holds: func(kept []call.Answer) {
				ids := fields(kept, "result.structuredContent.output.0.postId")
				o.wantOne("the answers have the posts", ids)
				o.wantListed(o.get("/public/v1/posts?page=0"), ids...)
				o.wantValue(o.get("/public/v1/posts?page=0"), "#", "1")
			}}
		}
	}
	return map[string]prepare{
		"POST /mcp, without a key": created(""),
		"POST /mcp, with a key":    created("one-call"),
	}
}

// wantOne fails the test unless all values are the same.
func (o *owner) wantOne(what string, values []string) {
	o.t.Helper()
	if got := slices.Compact(slices.Sorted(slices.Values(values))); len(got) != 1 || got[0] == "" {
		o.t.Errorf("%s %q, want one", what, values)
	}
}

// metadata describes a client for its registration.
func metadata(name, auth string) m {
	return m{"client_name": name, "redirect_uris": []string{agentRedirect}, "token_endpoint_auth_method": auth}
}

func (o *owner) registerClient() (id string) {
	o.t.Helper()
	return o.session201("/oauth/register", metadata(o.name, "none")).Get("client_id").String()
}

// authorization returns the parameters with which a client asks for access.
func authorization(client string) url.Values {
	sum := sha256.Sum256([]byte(agentVerifier))
	return url.Values{
		"client_id": {client}, "redirect_uri": {agentRedirect}, "response_type": {"code"}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"scope": {"mcp:read mcp:write offline_access"},
	}
}

// consent returns the body with which a program approves a client.
func consent(client string) m {
	out := m{"action": "approve"}
	for name, values := range authorization(client) {
		out[name] = values[0]
	}
	return out
}

// codeIn returns the code in a redirect to a client.
func (o *owner) codeIn(address string) string {
	o.t.Helper()
	to, err := url.Parse(address)
	must(o.t, err)
	if to.Query().Get("code") == "" {
		o.t.Fatalf("the redirect %q has no code", address)
	}
	return to.Query().Get("code")
}

func (o *owner) codeRequest(a agent, code string) m {
	out := m{
		"grant_type": "authorization_code", "code": code, "redirect_uri": agentRedirect, "code_verifier": agentVerifier,
		"client_id": a.id,
	}
	if a.secret != "" {
		out["client_secret"] = a.secret
	}
	return out
}

func refreshRequest(a agent, refresh string) m {
	return m{"grant_type": "refresh_token", "refresh_token": refresh, "client_id": a.id}
}

// connectAgent registers a public client and approves it.
func (o *owner) connectAgent() agent {
	o.t.Helper()
	return o.approve(agent{id: o.registerClient()})
}

// approve approves a client and returns it with its tokens.
func (o *owner) approve(a agent) agent {
	o.t.Helper()
	back := o.session201("/oauth/authorize", consent(a.id)).Get("redirect").String()
	return o.tokens(a, o.codeRequest(a, o.codeIn(back)))
}

// tokens returns the agent with the tokens that it gets for a request. Both processes have then
// cached the access token.
func (o *owner) tokens(a agent, request m) agent {
	o.t.Helper()
	got := o.session201("/oauth/token", request)
	a.access, a.refresh = got.Get("access_token").String(), got.Get("refresh_token").String()
	o.wantWorking(a.access)
	return a
}

// wantNoTokens fails the test unless both processes refuse a request for tokens.
func (o *owner) wantNoTokens(request m) {
	o.t.Helper()
	for node := range o.clients {
		a, err := o.send(node, http.MethodPost, "/oauth/token", request)
		if err != nil || a.Status != http.StatusBadRequest || gjson.Get(a.Body, "error").String() != "invalid_grant" {
			o.t.Errorf("tokens from process %d: got %v, %v; want 400 invalid_grant", node, a, err)
		}
	}
}

func (o *owner) wantWorking(access ...string) {
	o.t.Helper()
	for _, token := range access {
		o.wantStatus(200, "GET", "/public/v1/is-connected", "Authorization", token)
	}
}

// wantRevoked fails the test unless the access tokens stop working on both processes. A process
// that has cached one may accept it for another second.
func (o *owner) wantRevoked(access ...string) {
	o.t.Helper()
	for _, token := range access {
		for node := range o.clients {
			eventually(o.t, "the end of an access token", func() bool {
				a, err := o.send(node, "GET", "/public/v1/is-connected", nil, "Authorization", token)
				return err == nil && a.Status == http.StatusUnauthorized
			})
		}
	}
}

// refreshTokens divides refresh tokens into those that work and those that have been voided. It
// reads the database, because using a voided token ends the whole family.
func (o *owner) refreshTokens(all []string) (live, voided []string) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, token := range all {
		var isVoided bool
		must(o.t, o.super.QueryRow(o.t.Context(), `select voided from oauth_token where hash = $1`,
			secret.HashToken(token)).Scan(&isVoided))
		if isVoided {
			voided = append(voided, token)
		} else {
			live = append(live, token)
		}
	}
	return live, voided
}

// authenticates reports whether a process accepts the secret of a client.
func (o *owner) authenticates(node int, a agent) bool {
	o.t.Helper()
	body := m{"token": "unknown", "client_id": a.id, "client_secret": a.secret}
	answer, err := o.send(node, http.MethodPost, "/oauth/revoke", body)
	must(o.t, err)
	if answer.Status != http.StatusOK && answer.Status != http.StatusUnauthorized {
		o.t.Errorf("the client at process %d: got %v, want 200 or 401", node, answer)
	}
	return answer.Status == http.StatusOK
}

func (o *owner) wantAuthenticated(a agent, want bool) {
	o.t.Helper()
	for node := range o.clients {
		if got := o.authenticates(node, a); got != want {
			o.t.Errorf("process %d accepts the client's secret: %v, want %v", node, got, want)
		}
	}
}

// page opens a page, or submits a form if it is not nil, as a browser does.
func (o *owner) page(method, path string, form url.Values) string {
	o.t.Helper()
	body, headers := any(nil), []string{"Accept", "text/html"}
	if form != nil {
		body, headers = form.Encode(), append(headers, formType...)
	}
	o.reader = 1 - o.reader
	a, err := o.send(o.reader, method, path, body, headers...)
	must(o.t, err)
	if a.Status != http.StatusOK {
		o.t.Fatalf("%s %s: got %v, want a page", method, path, a)
	}
	return a.Body
}

// fieldsOf returns the hidden fields of a page.
func (o *owner) fieldsOf(page string) url.Values {
	o.t.Helper()
	out := url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		out.Set(html.UnescapeString(field[1]), html.UnescapeString(field[2]))
	}
	if len(out) == 0 {
		o.t.Fatalf("the page has no form with hidden fields: %s", page)
	}
	return out
}

// startDevice begins a log-in on a device and returns its code and the code that the person types.
func (o *owner) startDevice() (device, user string) {
	o.t.Helper()
	made := o.session201("/device/code", m{"client_id": o.registerClient()})
	return made.Get("device_code").String(), made.Get("user_code").String()
}

// deviceForm types a device's code and returns the form that approves it.
func (o *owner) deviceForm(user string) url.Values {
	o.t.Helper()
	form := o.fieldsOf(o.page(http.MethodPost, "/device", url.Values{"userCode": {user}}))
	form.Set("action", "approve")
	form.Set("write", "1")
	return form
}
