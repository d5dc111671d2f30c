package github

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// token is a valid access token.
type token struct {
	clientID string
	userID   int64
	scopes   []string
}

type tokenKey struct {
	clientID string
	userID   int64
	scope    string
}

type issue struct {
	token string
	at    time.Time
}

const (
	tokensKept    = 10
	tokensPerHour = 10
)

// accessToken implements POST /login/oauth/access_token for the web application flow in
// "Authorizing OAuth apps", step 2. Errors have the status 200 unless tokenError names another one,
// and are in the format that the Accept header asks for.
func (p *Platform) accessToken(w http.ResponseWriter, r *http.Request) {
	params, err := readParams(w, r)
	if err != nil {
		sendToken(w, r, errRequest.answer())
		return
	}
	p.mu.Lock()
	out := p.exchange(params)
	p.mu.Unlock()
	sendToken(w, r, out)
}

// exchange checks the app and the grant type. Basic authentication is not in the list of
// parameters, so only client_id and client_secret identify the app. grant_type is not in the list
// for the web application flow either; the name from RFC 6749 is accepted.
func (p *Platform) exchange(params map[string]string) tokenAnswer {
	app, ok := p.apps[params["client_id"]]
	if !ok || subtle.ConstantTimeCompare([]byte(app.Secret), []byte(params["client_secret"])) != 1 || app.Suspended {
		return errCredentials.answer() // it is an assumption that a suspended app gets this error
	}
	switch params["grant_type"] {
	case "", "authorization_code":
		return p.redeem(app, params)
	case "refresh_token":
		return errRefresh.answer() // no refresh token was ever issued
	case "urn:ietf:params:oauth:grant-type:device_code":
		return errDevice.answer()
	}
	return errGrantType.answer()
}

// redeem exchanges a code. RFC 6749, section 4.1.2: a code can be used once, and by the app that
// requested it. It is an assumption that an attempt with a wrong redirect_uri or verifier uses the
// code up.
func (p *Platform) redeem(app App, params map[string]string) tokenAnswer {
	code, ok := p.codes[params["code"]]
	if !ok || code.clientID != app.ClientID {
		return errCode.answer()
	}
	delete(p.codes, params["code"])
	if !p.opts.Clock.Now().Before(code.expires) {
		return errCode.answer()
	}
	// "Authorizing OAuth apps": redirect_uri is optional here and must match the URI in the first
	// request.
	if redirect, sent := params["redirect_uri"]; sent && redirect != code.redirect {
		return errTokenMismatch.answer()
	}
	if problem := checkVerifier(code.challenge, params); problem != nil {
		return problem.answer()
	}
	if user := p.users[code.userID]; !user.IgnoreEmailCheck && !user.hasVerifiedPrimary() {
		return errEmail.answer()
	}
	return p.issue(code)
}

func (u User) hasVerifiedPrimary() bool {
	return slices.ContainsFunc(u.Emails, func(e Email) bool { return e.Primary && e.Verified })
}

var verifierForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

// checkVerifier implements code_verifier in "Authorizing OAuth apps": it is required if
// code_challenge was sent, and must be the value from which the challenge was generated. Its form
// is from RFC 7636, which the page names. A verifier without a challenge is refused, as RFC 9700,
// section 2.1.1, asks; it is an assumption that GitHub does so.
func checkVerifier(challenge string, params map[string]string) *tokenError {
	verifier, sent := params["code_verifier"]
	if challenge == "" && sent {
		return &errVerifier
	}
	if challenge == "" {
		return nil
	}
	if !sent || verifier == "" {
		return &errNoVerifier
	}
	sum := sha256.Sum256([]byte(verifier))
	if !verifierForm.MatchString(verifier) || base64.RawURLEncoding.EncodeToString(sum[:]) != challenge {
		return &errVerifier
	}
	return nil
}

// issue creates a token. "Authorizing OAuth apps", section "Creating multiple tokens": at most ten
// tokens an hour are created per user, app and scope, and an eleventh one revokes the oldest. The
// page does not show the error.
func (p *Platform) issue(code grantedCode) tokenAnswer {
	now := p.opts.Clock.Now()
	key := tokenKey{clientID: code.clientID, userID: code.userID, scope: strings.Join(code.scopes, ",")}
	list := p.issued[key]
	if !p.opts.UnlimitedTokens && len(list) >= tokensPerHour {
		if again := list[len(list)-tokensPerHour].at.Add(time.Hour); now.Before(again) {
			out := errTooMany.answer()
			out.retryAfter = seconds(again.Sub(now))
			return out
		}
	}
	if len(list) >= tokensKept {
		delete(p.tokens, list[0].token)
		list = list[1:]
	}
	value := "gho_" + (rand.Text() + rand.Text())[:36]
	p.tokens[value] = token{clientID: code.clientID, userID: code.userID, scopes: code.scopes}
	p.issued[key] = append(slices.Clone(list), issue{token: value, at: now})
	return tokenAnswer{status: http.StatusOK, fields: map[string]string{
		"access_token": value, "scope": key.scope, "token_type": "bearer",
	}}
}

// newCode returns an unguessable code of 20 lower-case characters.
func newCode() string { return strings.ToLower(rand.Text()[:20]) }

// seconds formats a duration as seconds, rounded up so that a client that waits is never early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// tokenError is an error of the token endpoint. A status of 0 means 200: the documentation shows
// the bodies without a status, and clients report 200.
type tokenError struct {
	code, description, uri string
	status                 int
}

const (
	tokenErrorURI = docsSite + "/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors/#"
	flowURI       = docsSite + "/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#"
)

// The errors in "Troubleshooting OAuth app access token request errors". The page shows error_uri
// without a host; its readers report that the documentation's host is sent.
var (
	errCredentials = tokenError{
		code:        "incorrect_client_credentials",
		description: "The client_id and/or client_secret passed are incorrect.",
		uri:         tokenErrorURI + "incorrect-client-credentials",
	}
	errTokenMismatch = tokenError{
		code:        "redirect_uri_mismatch",
		description: "The redirect_uri MUST match the registered callback URL for this application.",
		uri: docsSite + "/apps/managing-oauth-apps/troubleshooting-authorization-request-errors/" +
			"#redirect-uri-mismatch2",
	}
	errCode = tokenError{
		code:        "bad_verification_code",
		description: "The code passed is incorrect or expired.",
		uri:         tokenErrorURI + "bad-verification-code",
	}
	errEmail = tokenError{
		code:        "unverified_user_email",
		description: "The user must have a verified primary email.",
		uri:         tokenErrorURI + "unverified_user_email",
	}
)

// The errors that "Authorizing OAuth apps" names without a body. The descriptions are assumptions.
var (
	errRefresh = tokenError{
		code: "bad_refresh_token", description: "The refresh token passed is incorrect or expired.",
		uri: flowURI + "refreshing-an-access-token-with-a-refresh-token",
	}
	errDevice = tokenError{
		code: "device_flow_disabled", description: "Device flow must be enabled for this app.",
		uri: flowURI + "error-codes-for-the-device-flow",
	}
	errGrantType = tokenError{
		code: "unsupported_grant_type", description: "The grant_type is not supported.",
		uri: flowURI + "error-codes-for-the-device-flow",
	}
)

// Errors that the documentation does not show. Clients report the code invalid_grant, the status
// 400 and the text of errNoVerifier. The others follow RFC 6749, section 5.2, which is an
// assumption.
var (
	errNoVerifier = tokenError{
		code: "invalid_grant", status: http.StatusBadRequest,
		description: "A code_verifier was not included, but the authorization request included a code_challenge. " +
			"Codes requested with a code_challenge MUST be redeemed with a code_verifier.",
	}
	errVerifier = tokenError{
		code: "invalid_grant", status: http.StatusBadRequest,
		description: "The code_verifier does not match the code_challenge of the authorization request.",
	}
	errRequest = tokenError{
		code: "invalid_request", status: http.StatusBadRequest,
		description: "The body must be a form or a JSON object of strings, with each parameter once.",
	}
	errTooMany = tokenError{
		code: "too_many_tokens", status: http.StatusTooManyRequests,
		description: "Ten tokens were created for this user, app and scope in the last hour.",
	}
)

func (e tokenError) answer() tokenAnswer {
	fields := map[string]string{"error": e.code, "error_description": e.description, "error_uri": e.uri}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	status := e.status
	if status == 0 {
		status = http.StatusOK
	}
	return tokenAnswer{status: status, fields: fields}
}
