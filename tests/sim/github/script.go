package github

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"crier/platform/fault"
)

// App is a registered OAuth app.
type App struct {
	ClientID string
	Secret   string
	Name     string
	// Callbacks are the 1 to 10 registered callback URLs. The first one is used if a request has no
	// redirect_uri.
	Callbacks []Callback
	// Suspended makes authorization requests end with application_suspended.
	Suspended bool
}

// Callback is a registered callback URL.
type Callback struct {
	URL string
	// Wildcard allows subdomains and subdirectories of URL. GitHub sets it for apps with one
	// callback URL that were registered before August 3, 2026.
	Wildcard bool
}

// Visibility is the visibility of an email address.
type Visibility string

// The values of Visibility. VisibilityNone is null in JSON.
const (
	VisibilityNone    Visibility = ""
	VisibilityPublic  Visibility = "public"
	VisibilityPrivate Visibility = "private"
)

// Email is an email address of a user.
type Email struct {
	Email      string
	Primary    bool
	Verified   bool
	Visibility Visibility
}

// User is an account. ID identifies it; Login can change.
type User struct {
	ID     int64
	Login  string
	Name   string // "" is null in JSON
	Emails []Email
	// IgnoreEmailCheck issues tokens even if the primary address is not verified. GitHub never
	// does; it exists to test a client's own check of GET /user/emails.
	IgnoreEmailCheck bool
}

var (
	loginForm = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?$`)
	// clientForm keeps ids and secrets free of characters that would need to be escaped.
	clientForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
)

// AddApp registers an app or replaces the app with the same ClientID. It returns fault.Invalid for
// an app that GitHub would not register.
func (p *Platform) AddApp(app App) error {
	if problem := app.problem(); problem != "" {
		return fault.New(fault.Invalid, "github.AddApp", problem)
	}
	app.Callbacks = slices.Clone(app.Callbacks)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apps[app.ClientID] = app
	return nil
}

func (a App) problem() string {
	switch {
	case !clientForm.MatchString(a.ClientID) || !clientForm.MatchString(a.Secret):
		return "ClientID and Secret must be 1 to 100 letters, digits, dots, dashes or underscores."
	case len(a.Callbacks) < 1 || len(a.Callbacks) > 10:
		return "An app has 1 to 10 callback URLs."
	}
	for _, c := range a.Callbacks {
		if u, err := url.Parse(c.URL); err != nil || !plainURL(u) {
			return "The callback URL must be an absolute http or https URL without user and fragment: " + c.URL
		}
	}
	return ""
}

// SetUser creates the user or replaces the user with the same ID, whose tokens and authorizations
// stay. It returns fault.Invalid for a user that GitHub could not have, and fault.Conflict if
// another user has the Login.
func (p *Platform) SetUser(user User) error {
	if problem := user.problem(); problem != "" {
		return fault.New(fault.Invalid, "github.SetUser", problem)
	}
	user.Emails = slices.Clone(user.Emails)
	p.mu.Lock()
	defer p.mu.Unlock()
	for other := range maps.Values(p.users) {
		if other.ID != user.ID && strings.EqualFold(other.Login, user.Login) {
			return fault.New(fault.Conflict, "github.SetUser", "Another user has this Login: "+user.Login)
		}
	}
	p.users[user.ID] = user
	return nil
}

func (u User) problem() string {
	if u.ID < 1 || !loginForm.MatchString(u.Login) {
		return "ID must be positive, and Login must be 1 to 39 letters, digits or inner dashes."
	}
	primaries, publics, seen := 0, 0, map[string]bool{}
	for _, e := range u.Emails {
		if !strings.Contains(e.Email, "@") || seen[strings.ToLower(e.Email)] {
			return "An email address is malformed or repeated: " + e.Email
		}
		seen[strings.ToLower(e.Email)] = true
		switch e.Visibility {
		case VisibilityPublic:
			publics++
		case VisibilityPrivate, VisibilityNone:
		default:
			return "Visibility must be public, private or empty."
		}
		if e.Primary {
			primaries++
		}
	}
	if primaries > 1 || publics > 1 {
		return "At most one email address is primary, and at most one is public."
	}
	return ""
}

// SignIn signs the browser in as these users, the first of which is active. Without ids, it signs
// the browser out. It returns fault.NotFound for an unknown id.
func (p *Platform) SignIn(ids ...int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if _, ok := p.users[id]; !ok {
			return fault.New(fault.NotFound, "github.SignIn", "There is no user with this ID. Call SetUser first.")
		}
	}
	p.signedIn = slices.Clone(ids)
	return nil
}

// Answer is what the signed-in user does with an authorization page.
type Answer string

// The values of Answer.
const (
	// AnswerAsk shows the page and waits for its form.
	AnswerAsk Answer = ""
	// AnswerAccept authorizes at once.
	AnswerAccept Answer = "accept"
	// AnswerDeny rejects at once.
	AnswerDeny Answer = "deny"
)

// Consent scripts the authorization page for users who are signed in and have not authorized the
// scopes before.
type Consent struct {
	Answer Answer
	// Withhold lists requested scopes that the user does not grant. "Scopes for OAuth apps",
	// section "Requested scopes and granted scopes": users can edit the scopes and grant less.
	Withhold []string
}

// SetConsent replaces the script of the authorization page.
func (p *Platform) SetConsent(c Consent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.consent = Consent{Answer: c.Answer, Withhold: slices.Clone(c.Withhold)}
}

// Revoke removes the user's authorizations of all apps, with their codes and tokens. The tokens are
// bad credentials from then on.
func (p *Platform) Revoke(userID int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.tokens, func(_ string, t token) bool { return t.userID == userID })
	maps.DeleteFunc(p.grants, func(k grantKey, _ []string) bool { return k.userID == userID })
	maps.DeleteFunc(p.codes, func(_ string, c grantedCode) bool { return c.userID == userID })
}
