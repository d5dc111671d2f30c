package github

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"
)

const (
	codeLife   = 10 * time.Minute // "Authorizing OAuth apps": codes expire after 10 minutes
	maxPending = 10_000           // of codes, and of open forms
)

// authorization is a valid authorization request.
type authorization struct {
	clientID  string
	appName   string
	redirect  string // where a successful authorization goes
	refusal   string // where a refusal goes
	state     string
	hasState  bool
	challenge string
	login     string
	scopes    []string
	hasScope  bool
	picker    bool
}

type grantKey struct {
	clientID string
	userID   int64
}

// grantedCode is a code that has not been redeemed yet.
type grantedCode struct {
	authorization
	userID  int64
	expires time.Time
}

// authorize implements GET /login/oauth/authorize. It redirects at once if the signed-in user has
// authorized the scopes before or SetConsent says so; otherwise it shows a form. Refusals that name
// a registered app are redirects with error, error_description, error_uri and state. Other refusals
// are pages.
func (p *Platform) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	out := p.begin(r.URL.RawQuery)
	p.mu.Unlock()
	out.send(w)
}

func (p *Platform) begin(rawQuery string) webAnswer {
	req, refused := p.readAuthorization(rawQuery)
	if refused != nil {
		return *refused
	}
	userID, ok := p.account(req.login)
	if !ok || req.picker {
		return p.ask(req, userID)
	}
	granted, before := p.grants[grantKey{clientID: req.clientID, userID: userID}]
	if before && !req.hasScope {
		req.scopes = granted
	}
	if before && covers(granted, req.scopes) {
		return p.complete(req, userID, req.scopes)
	}
	switch p.consent.Answer {
	case AnswerAccept:
		return p.complete(req, userID, without(req.scopes, p.consent.Withhold))
	case AnswerDeny:
		return req.refuse(errAccessDenied)
	}
	return p.ask(req, userID)
}

// account returns the user who authorizes: the user that the parameter login suggests if the
// browser is signed in as that user, otherwise the active user.
func (p *Platform) account(login string) (userID int64, ok bool) {
	for _, id := range p.signedIn {
		if p.users[id].Login == login {
			return id, true
		}
	}
	if len(p.signedIn) == 0 {
		return 0, false
	}
	return p.signedIn[0], true
}

func covers(granted, requested []string) bool {
	return !slices.ContainsFunc(requested, func(s string) bool { return !hasScope(granted, s) })
}

func without(list, withheld []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(withheld, s) })
}

// complete records the authorization and redirects with a code: "Authorizing OAuth apps", step 2.
// It also implements the default of the parameter scope: a later request without it gets the scopes
// authorized so far.
func (p *Platform) complete(req authorization, userID int64, granted []string) webAnswer {
	now := p.opts.Clock.Now()
	for code, c := range p.codes {
		if !now.Before(c.expires) {
			delete(p.codes, code)
		}
	}
	if len(p.codes) >= maxPending {
		return page(http.StatusServiceUnavailable, "Too many codes are open.")
	}
	key := grantKey{clientID: req.clientID, userID: userID}
	p.grants[key] = normalizeScopes(slices.Concat(p.grants[key], granted))
	req.scopes = granted
	code := newCode()
	p.codes[code] = grantedCode{authorization: req, userID: userID, expires: now.Add(codeLife)}
	values := map[string]string{"code": code}
	if req.hasState {
		values["state"] = req.state
	}
	return webAnswer{status: http.StatusFound, location: withQuery(req.redirect, values)}
}

// webError is a refusal of an authorization request.
type webError struct {
	code, description, anchor string
}

// The errors documented in "Troubleshooting authorization request errors", and errors of RFC 6749,
// section 4.1.2.1, for what the documentation forbids without naming an error. It is an assumption
// that GitHub sends the latter.
var (
	errSuspended = webError{
		"application_suspended", "Your application has been suspended. Contact support@github.com.",
		"application-suspended",
	}
	errMismatch = webError{
		"redirect_uri_mismatch", "The redirect_uri MUST match the registered callback URL for this application.",
		"redirect-uri-mismatch",
	}
	errAccessDenied = webError{"access_denied", "The user has denied your application access.", "access-denied"}

	errResponseType = webError{"unsupported_response_type", "Only the authorization code grant is supported.", ""}
	errScope        = webError{"invalid_scope", "The requested scope is unknown.", ""}
	errChallenge    = webError{
		"invalid_request", "code_challenge must be 43 characters and code_challenge_method must be S256.", "",
	}
)

const webErrorURI = docsSite + "/apps/building-integrations/setting-up-and-registering-oauth-apps/" +
	"troubleshooting-authorization-request-errors/#"

// refuse redirects to the registered callback URL with the parameters in "Troubleshooting
// authorization request errors". The page shows error_uri without a host; the documentation's host
// is an assumption.
func (a authorization) refuse(e webError) webAnswer {
	values := map[string]string{"error": e.code, "error_description": e.description}
	if e.anchor != "" {
		values["error_uri"] = webErrorURI + e.anchor
	}
	if a.hasState {
		values["state"] = a.state
	}
	return webAnswer{status: http.StatusFound, location: withQuery(a.refusal, values)}
}

// readAuthorization checks the parameters in "Authorizing OAuth apps", step 1. It ignores unknown
// parameters, as RFC 6749, section 3.1, requires. An unknown client_id gets a 404 page, which the
// documentation does not describe but users report.
func (p *Platform) readAuthorization(rawQuery string) (authorization, *webAnswer) {
	query, ok := single(rawQuery)
	if !ok {
		out := page(http.StatusBadRequest, "A parameter is malformed or repeated.")
		return authorization{}, &out
	}
	app, ok := p.apps[query["client_id"]]
	if !ok {
		out := page(http.StatusNotFound, "There is no app with this client_id.")
		return authorization{}, &out
	}
	req := authorization{
		clientID: app.ClientID, appName: app.Name, refusal: app.Callbacks[0].URL, state: query["state"],
		challenge: query["code_challenge"], login: query["login"], picker: query["prompt"] == "select_account",
	}
	_, req.hasState = query["state"]
	_, req.hasScope = query["scope"]
	if app.Suspended {
		out := req.refuse(errSuspended)
		return authorization{}, &out
	}
	redirect, refusal, ok := app.matchRedirect(query["redirect_uri"])
	if !ok {
		out := p.mismatch(req)
		return authorization{}, &out
	}
	req.redirect, req.refusal = redirect, refusal
	if problem := req.check(query); problem != nil {
		out := req.refuse(*problem)
		return authorization{}, &out
	}
	return req, nil
}

func (p *Platform) mismatch(req authorization) webAnswer {
	if p.opts.MismatchPage {
		return page(http.StatusOK, "The redirect_uri is not associated with this application.")
	}
	return req.refuse(errMismatch)
}

// single parses a query in which each parameter occurs once, as RFC 6749, section 3.1, requires.
func single(rawQuery string) (map[string]string, bool) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, false
	}
	out := map[string]string{}
	for name, list := range values {
		if len(list) != 1 {
			return nil, false
		}
		out[name] = list[0]
	}
	return out, true
}

var challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// check reads response_type, the PKCE parameters and the scope. "Authorizing OAuth apps" says: the
// implicit grant type is not supported; code_challenge and code_challenge_method require each
// other; the challenge has 43 characters; the method must be S256. The page does not list
// response_type, so it may be absent.
func (a *authorization) check(query map[string]string) *webError {
	if kind, ok := query["response_type"]; ok && kind != "code" {
		return &errResponseType
	}
	method, hasMethod := query["code_challenge_method"]
	_, hasChallenge := query["code_challenge"]
	if (hasMethod || hasChallenge) && (method != "S256" || !challengeForm.MatchString(a.challenge)) {
		return &errChallenge
	}
	list, ok := parseScopes(query["scope"])
	if !ok {
		return &errScope
	}
	a.scopes = list
	return nil
}
