package oauth

import (
	"context"
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/account/signin"
	"crier/apps/edge/admission"
	"crier/apps/edge/page"
	"crier/apps/edge/request"
	"crier/apps/edge/session"
	"crier/oidc"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	Ports
	// BaseURL is BASE_URL, without a trailing slash. It is the issuer of all tokens.
	BaseURL       string
	SignIn        signin.Steps
	Sessions      session.Sessions
	Organizations Organizations
	Channels      Channels
	Gate          *admission.Gate
	Cookies       session.Cookies
	Clock         clock.Clock
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct {
	*consents
	*signIns
	*devices
	*clients
	*grants
	*apps
}

// site holds what the endpoints share.
type site struct {
	deps Deps

	messagePage, signInPage, consentPage, devicePage, appsPage *page.Page
}

// Each of these types provides the endpoints for one noun.
type (
	consents struct{ *site }
	signIns  struct{ *site }
	devices  struct {
		*site
		consents *consents
	}
	clients struct{ *site }
	grants  struct{ *site }
	apps    struct{ *site }
)

// New returns an API that uses d.
func New(d Deps) *API {
	message := page.New(files, "message.html", page.Style(style), page.Forms(page.Self))
	s := &site{
		deps: d, messagePage: message, signInPage: message.Named("signin.html"),
		consentPage: message.Named("consent.html"), devicePage: message.Named("device.html"),
		appsPage: message.Named("apps.html"),
	}
	c := &consents{site: s}
	return &API{
		consents: c, signIns: &signIns{site: s}, devices: &devices{site: s, consents: c}, clients: &clients{site: s},
		grants: &grants{site: s}, apps: &apps{site: s},
	}
}

// The paths of pages and endpoints that other files refer to.
const (
	authorizePath = "/oauth/authorize"
	signInPath    = "/oauth/sign-in"
	callbackPath  = "/oauth/callback"
	appsPath      = "/oauth/apps"
	devicePath    = "/device"
)

// audienceURL returns the audience of all tokens.
func (a *site) audienceURL() string { return oidc.Resource(a.deps.BaseURL) }

// asOAuth returns the OAuth error in err, if there is one.
func asOAuth(err error) (own *oidc.Error, ok bool) { return own, errors.As(err, &own) }

// contextOf returns the request's user context with the request's Info attached.
func contextOf(c *fiber.Ctx) context.Context {
	return request.Attach(c.UserContext(), request.From(c.Context()))
}

// wantsPage reports whether the client accepts HTML, as browsers do.
func wantsPage(c *fiber.Ctx) bool {
	return strings.Contains(strings.ToLower(c.Get(fiber.HeaderAccept)), fiber.MIMETextHTML)
}

// available returns NotBuilt if any of the ports is nil.
func available(op string, ports ...any) error {
	for _, p := range ports {
		if p == nil {
			return fault.New(fault.NotBuilt, op, "This instance has no OAuth server.")
		}
	}
	return nil
}

// signedIn returns the request's principal. ok is false if there is no live session. signedIn
// returns Forbidden during impersonation, because only the person can use the OAuth server's pages.
func signedIn(c *fiber.Ctx) (p tenancy.Principal, ok bool, err error) {
	p = request.Principal(c.Context())
	if !p.Impersonator.IsZero() {
		return p, true, fault.New(fault.Forbidden, "oauth.signedIn",
			"Only the person themselves can do this. Stop impersonating first.")
	}
	return p, !p.Session.IsZero(), nil
}

// inOrganization returns the session's principal in the given organization, or in the current
// organization if org is empty. It returns Forbidden if the person may not use the organization.
func (a *site) inOrganization(c *fiber.Ctx, org string) (tenancy.Principal, error) {
	const op = "oauth.inOrganization"
	info := request.From(c.Context())
	p := info.Principal
	if org != "" && !strings.EqualFold(org, p.Org.String()) {
		var err error
		token := c.Get(session.CookieAuth, c.Cookies(session.CookieAuth))
		p, err = a.deps.Sessions.Session(c.UserContext(), token, org, "", info.From)
		if err != nil {
			return p, err
		}
		p.From = info.From
		if !strings.EqualFold(org, p.Org.String()) {
			return p, fault.New(fault.Forbidden, op, "You are not a member of this organization.")
		}
	}
	switch p.Access {
	case tenancy.AccessFull:
		return p, nil
	case tenancy.AccessNone:
		return p, fault.New(fault.Forbidden, op, "You are not a member of any organization.")
	case tenancy.AccessSuspended:
		return p, fault.New(fault.Forbidden, op, "The operator of this service has suspended the organization.")
	case tenancy.AccessEnroll:
		return p, &fault.Error{Kind: fault.Forbidden, Op: op, Remedy: fault.RemedyEnroll,
			Message: "The organization requires a second factor. Sign in again to set one up."}
	}
	return p, fault.New(fault.Forbidden, op, "You may not use this organization.")
}
