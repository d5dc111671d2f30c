package sandbox

import (
	"crypto/rand"
	_ "embed"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
)

//go:embed consent.html
var consentSource string

// App is an application registered with the platform.
type App struct {
	ClientID string
	Secret   string
	Name     string
	// Redirects are the URLs that the platform may redirect to. They must match exactly.
	Redirects []string
	// TokenSeconds is the lifetime of an access token; 0 means one hour.
	TokenSeconds int
	// RefreshSeconds is the lifetime of a refresh token; 0 means 60 days.
	RefreshSeconds int
}

const (
	codeLife    = 10 * time.Minute
	maxCodes    = 10_000
	refreshDays = 60
)

// scopes maps each permission that an application can request to its text on the consent page.
var scopes = map[string]string{
	"publish":  "Publish to your pages",
	"insights": "Read the statistics of your pages",
}

type grantID = id.ID[grant]

// grant is what a user has allowed an application to do. Page is zero until the application has
// chosen one of the user's pages.
type grant struct {
	ID     grantID   `json:"id"`
	Client string    `json:"client"`
	User   string    `json:"user"`
	Scopes []string  `json:"scopes"`
	Page   accountID `json:"page"`
	// revoked means that none of the grant's tokens is valid. It is not part of the opGrant record.
	revoked bool
}

// grantedCode is a code that was issued after a user allowed an authorization. Codes are
// short-lived, so they are kept only in memory.
type grantedCode struct {
	request authorization
	user    string
	scopes  []string
	expires time.Time
	// redeemed is the grant that the code was exchanged for. Using the code again revokes the
	// grant.
	redeemed *grant
}

// authorization is a valid request for the consent page. The page's query and its form have the
// same fields.
type authorization struct {
	App         App
	RedirectURI string
	State       string
	Challenge   string
	Scopes      []string
}

// Explain returns the text for a permission. consent.html calls it.
func (authorization) Explain(scope string) string { return scopes[scope] }

// AddApp registers an application and replaces any application with the same ClientID. It returns
// fault.Invalid if the id, the secret or the redirect URLs are missing. Applications are lost when
// the process restarts.
func (p *Platform) AddApp(app App) error {
	if app.ClientID == "" || app.Secret == "" || len(app.Redirects) == 0 {
		return fault.New(fault.Invalid, "sandbox.AddApp", "An app needs a client id, a secret and a redirect address.")
	}
	if app.TokenSeconds == 0 {
		app.TokenSeconds = defaultToken
	}
	if app.RefreshSeconds == 0 {
		app.RefreshSeconds = refreshDays * 24 * 3600
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apps[app.ClientID] = app
	return nil
}

var (
	challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	userForm      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,19}$`)
)

// oauth provides the OAuth endpoints and the control routes through which tests add applications
// and users and revoke access.
type oauth struct{ *Platform }

// authorize serves the consent page. If the application is unknown or the redirect URL is not
// registered, it responds with an error and never redirects (RFC 6749, section 4.1.2.1).
func (p oauth) authorize(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		p.decide(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p.wrongMethod(w, "GET, HEAD, POST")
		return
	}
	req, ok := p.authorizationOf(w, r, r.URL.Query())
	if !ok {
		return
	}
	p.showConsent(w, req, "")
}

func (p oauth) showConsent(w http.ResponseWriter, req authorization, problem string) {
	page, err := template.New("consent").Parse(consentSource)
	var b strings.Builder
	if err == nil {
		err = page.Execute(&b, map[string]any{"Request": req, "Problem": problem})
	}
	if err != nil {
		p.failure(err).send(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(b.String())) // the client may have disconnected
}

// authorizationOf checks the parameters of an authorization request. If ok is false, it has already
// sent a response.
func (p oauth) authorizationOf(
	w http.ResponseWriter, r *http.Request, values url.Values,
) (req authorization, ok bool) {
	p.mu.Lock()
	app, known := p.apps[values.Get("client_id")]
	p.mu.Unlock()
	req = authorization{
		App: app, RedirectURI: values.Get("redirect_uri"), State: values.Get("state"),
		Challenge: values.Get("code_challenge"), Scopes: strings.Fields(values.Get("scope")),
	}
	if !known || !slices.Contains(app.Redirects, req.RedirectURI) {
		http.Error(w, "The application is unknown, or its redirect address is not registered.", http.StatusBadRequest)
		return req, false
	}
	unknown := slices.ContainsFunc(req.Scopes, func(s string) bool { return scopes[s] == "" })
	switch {
	case values.Get("response_type") != "code":
		req.redirect(w, r, url.Values{"error": {"unsupported_response_type"}})
	case !challengeForm.MatchString(req.Challenge) || values.Get("code_challenge_method") != "S256":
		req.redirect(w, r, url.Values{"error": {"invalid_request"}})
	case len(req.Scopes) == 0 || unknown:
		req.redirect(w, r, url.Values{"error": {"invalid_scope"}})
	default:
		return req, true
	}
	return req, false
}

// redirect sends the browser back to the application, with the request's state.
func (a authorization) redirect(w http.ResponseWriter, r *http.Request, values url.Values) {
	target, err := url.Parse(a.RedirectURI)
	if err != nil {
		http.Error(w, "The redirect address cannot be used.", http.StatusBadRequest)
		return
	}
	q := target.Query()
	maps.Copy(q, values)
	if a.State != "" {
		q.Set("state", a.State)
	}
	target.RawQuery = q.Encode()
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, target.String(), http.StatusSeeOther)
}

// decide handles the form on the consent page: the user, the permissions that are still checked,
// and the decision.
func (p oauth) decide(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form cannot be read.", http.StatusBadRequest)
		return
	}
	req, ok := p.authorizationOf(w, r, r.PostForm)
	if !ok {
		return
	}
	if r.PostForm.Get("decision") != "allow" {
		req.redirect(w, r, url.Values{"error": {"access_denied"}})
		return
	}
	user := r.PostForm.Get("user")
	if !userForm.MatchString(user) {
		p.showConsent(w, req, "A user name has 1 to 20 lowercase letters, digits or dashes.")
		return
	}
	allowed := slices.DeleteFunc(slices.Clone(req.Scopes), func(s string) bool {
		return !slices.Contains(r.PostForm["allow"], s)
	})
	code, err := p.grantCode(req, user, allowed)
	if err != nil {
		p.failure(err).send(w)
		return
	}
	req.redirect(w, r, url.Values{"code": {code}})
}

func (p oauth) grantCode(req authorization, user string, allowed []string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.addPages(user, []string{user + ".news", user + ".shop"}, false); err != nil {
		return "", err
	}
	now := p.opts.Clock.Now()
	maps.DeleteFunc(p.codes, func(_ string, c *grantedCode) bool { return !now.Before(c.expires) })
	if len(p.codes) >= maxCodes {
		return "", refuse(http.StatusServiceUnavailable, "too_many_codes", "Too many codes are open.")
	}
	code := "sac_" + rand.Text()
	p.codes[code] = &grantedCode{request: req, user: user, scopes: allowed, expires: now.Add(codeLife)}
	return code, nil
}

// addPages creates a user's pages, which are accounts without a password. If the user already has
// pages, it adds more only if again is true. The caller must hold p.mu.
func (p oauth) addPages(user string, names []string, again bool) error {
	if len(p.state.pages[user]) > 0 && !again {
		return nil
	}
	for _, name := range names {
		if p.state.accounts[name] != nil {
			continue
		}
		made := &account{
			ID: id.New[account](), Name: name, Owner: user, Grade: gradeA,
			MaxLength: defaultLength, TokenSeconds: defaultToken,
		}
		if err := p.commit(record{Op: opAccount, Account: made}); err != nil {
			return err
		}
	}
	return nil
}
