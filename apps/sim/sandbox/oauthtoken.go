package sandbox

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"crier/platform/id"
)

// tokenView is a response from the token endpoint (RFC 6749, section 5.1).
type tokenView struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
}

// tokenError returns an error response from the token endpoint (RFC 6749, section 5.2).
func tokenError(status int, code, description string) answer {
	return answer{status: status, body: map[string]string{"error": code, "error_description": description}}
}

func invalidGrant(description string) answer {
	return tokenError(http.StatusBadRequest, "invalid_grant", description)
}

// exchange implements the token endpoint for codes and refresh tokens. The application
// authenticates with client_id and client_secret in the body.
func (p oauth) exchange(c *call) (answer, error) {
	form, err := url.ParseQuery(string(c.body))
	if err != nil {
		return tokenError(http.StatusBadRequest, "invalid_request", "The form cannot be read."), nil
	}
	for _, v := range form {
		if len(v) > 1 {
			return tokenError(http.StatusBadRequest, "invalid_request", "A parameter is repeated."), nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	app, known := p.apps[form.Get("client_id")]
	if !known || subtle.ConstantTimeCompare([]byte(app.Secret), []byte(form.Get("client_secret"))) != 1 {
		return tokenError(http.StatusUnauthorized, "invalid_client", "The client id or the secret is wrong."), nil
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		return p.redeem(app, form)
	case "refresh_token":
		return p.rotate(app, form)
	}
	return tokenError(http.StatusBadRequest, "unsupported_grant_type", "Only codes and refresh tokens are accepted."), nil
}

// redeem exchanges a code. If the code was used before, redeem revokes the grant from its first
// use. The caller must hold p.mu.
func (p oauth) redeem(app App, form url.Values) (answer, error) {
	code, ok := p.codes[form.Get("code")]
	if !ok || code.request.App.ClientID != app.ClientID || !p.opts.Clock.Now().Before(code.expires) {
		return invalidGrant("The code is unknown or expired."), nil
	}
	if code.redeemed != nil {
		return invalidGrant("The code has already been used."), p.revoke(code.redeemed)
	}
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	verified := base64.RawURLEncoding.EncodeToString(sum[:]) == code.request.Challenge
	if !verified || form.Get("redirect_uri") != code.request.RedirectURI {
		return invalidGrant("The code verifier or the redirect address does not match."), nil
	}
	made := &grant{ID: id.New[grant](), Client: app.ClientID, User: code.user, Scopes: code.scopes}
	if err := p.commit(record{Op: opGrant, Grant: made}); err != nil {
		return answer{}, err
	}
	code.redeemed = made
	return p.issue(app, made, "")
}

// rotate exchanges a refresh token. If the token was exchanged before, rotate revokes the grant,
// because one of the token's two users must have stolen it (RFC 9700, section 4.14.2). The caller
// must hold p.mu.
func (p oauth) rotate(app App, form url.Values) (answer, error) {
	hash := hashToken(form.Get("refresh_token"))
	if used := p.state.grants[p.state.rotated[hash]]; used != nil && used.Client == app.ClientID {
		return invalidGrant("The refresh token has already been used; the access is revoked."), p.revoke(used)
	}
	old := p.state.refresh[hash]
	if old == nil || old.Grant.IsZero() || !p.opts.Clock.Now().Before(old.RefreshUntil) {
		return invalidGrant("The refresh token is unknown or expired."), nil
	}
	g := p.state.grants[old.Grant]
	if g == nil || g.revoked || g.Client != app.ClientID {
		return invalidGrant("The access was revoked."), nil
	}
	return p.issue(app, g, hash)
}

// issue creates a pair of tokens for a grant. The caller must hold p.mu.
func (p oauth) issue(app App, g *grant, replaces string) (answer, error) {
	now := p.opts.Clock.Now()
	p.state.sweep(now)
	access, refresh := "soat_"+rand.Text(), "sort_"+rand.Text()
	s := &session{
		Grant: g.ID, Access: hashToken(access), Refresh: hashToken(refresh), Replaces: replaces,
		Until:        now.Add(time.Duration(app.TokenSeconds) * time.Second),
		RefreshUntil: now.Add(time.Duration(app.RefreshSeconds) * time.Second),
	}
	if err := p.commit(record{Op: opSession, Session: s}); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: tokenView{
		AccessToken: access, TokenType: "bearer", ExpiresIn: app.TokenSeconds, RefreshToken: refresh,
		Scope: strings.Join(g.Scopes, " "),
	}}, nil
}

// revoke ends a grant and invalidates all its tokens. The caller must hold p.mu.
func (p oauth) revoke(g *grant) error {
	if g.revoked {
		return nil
	}
	return p.commit(record{Op: opRevoke, Ref: g.ID.String()})
}

// authenticateGrant sets the account of a request whose token belongs to a grant. The caller must
// hold p.mu.
func (p oauth) authenticateGrant(c *call, s *session, e endpoint) error {
	g := p.state.grants[s.Grant]
	if g == nil || g.revoked {
		return refuse(http.StatusUnauthorized, "token_revoked", "The access was revoked.")
	}
	c.grant, c.account = g, p.state.byID[g.Page]
	if c.account == nil && !e.user {
		return refuse(http.StatusForbidden, "page_missing", "Choose a page first.")
	}
	if e.scope != "" && !slices.Contains(g.Scopes, e.scope) {
		return refuse(http.StatusForbidden, "scope_missing", "The permission %s was not granted.", e.scope)
	}
	return nil
}

func (p oauth) listPages(c *call) (answer, error) {
	if _, err := query(c.r); err != nil {
		return answer{}, err
	}
	if c.grant == nil {
		return answer{}, refuse(http.StatusForbidden, "no_user", "Only users who have signed in with OAuth have pages.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	views := []accountView{}
	for _, a := range p.state.pages[c.grant.User] {
		views = append(views, accounts(p).viewAccount(c.r, a))
	}
	return answer{status: http.StatusOK, body: map[string]any{"pages": views}}, nil
}

// choosePage sets a grant's account to a page. The same page can be chosen again, but a different
// one cannot.
func (p oauth) choosePage(c *call) (answer, error) {
	var in struct {
		Page string `json:"page"`
	}
	if err := decode(c.body, &in, "page"); err != nil {
		return answer{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted, _ := id.Parse[account](in.Page)
	page := p.state.byID[wanted]
	if c.grant == nil || page == nil || page.Owner != c.grant.User {
		return answer{}, refuse(422, "page_not_found", "This user has no such page.")
	}
	if !c.grant.Page.IsZero() && c.grant.Page != page.ID {
		return answer{}, refuse(http.StatusConflict, "page_chosen", "Another page has already been chosen.")
	}
	if c.grant.Page.IsZero() {
		if err := p.commit(record{Op: opBind, Ref: c.grant.ID.String(), Page: page.ID}); err != nil {
			return answer{}, err
		}
	}
	return answer{status: http.StatusOK, body: accounts(p).viewAccount(c.r, page)}, nil
}

// addApp, addUser and revokeUser are control routes for tests.
func (p oauth) addApp(c *call) (answer, error) {
	var in struct {
		ClientID       string   `json:"clientId"`
		Secret         string   `json:"secret"`
		Name           string   `json:"name"`
		Redirects      []string `json:"redirects"`
		TokenSeconds   int      `json:"tokenSeconds"`
		RefreshSeconds int      `json:"refreshSeconds"`
	}
	err := decode(c.body, &in, "clientId", "secret", "name", "redirects", "tokenSeconds", "refreshSeconds")
	if err != nil {
		return answer{}, err
	}
	if in.TokenSeconds < 0 || in.RefreshSeconds < 0 || p.AddApp(App(in)) != nil {
		return answer{}, refuse(422, "bad_app", "An app needs a client id, a secret and a redirect address.")
	}
	return answer{status: http.StatusNoContent}, nil
}

func (p oauth) addUser(c *call) (answer, error) {
	var in struct {
		User  string   `json:"user"`
		Pages []string `json:"pages"`
	}
	if err := decode(c.body, &in, "user", "pages"); err != nil {
		return answer{}, err
	}
	bad := slices.ContainsFunc(in.Pages, func(name string) bool { return !nameForm.MatchString(name) })
	if !userForm.MatchString(in.User) || len(in.Pages) > 100 || bad {
		return answer{}, refuse(422, "bad_user", "A user needs a name, and up to 100 page names.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return answer{status: http.StatusNoContent}, p.addPages(in.User, in.Pages, true)
}

func (p oauth) revokeUser(c *call) (answer, error) {
	var in struct {
		User string `json:"user"`
	}
	if err := decode(c.body, &in, "user"); err != nil {
		return answer{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.state.grants {
		if g.User == in.User {
			if err := p.revoke(g); err != nil {
				return answer{}, err
			}
		}
	}
	return answer{status: http.StatusNoContent}, nil
}
