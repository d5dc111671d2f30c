package oauth

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/oidc"
	"crier/tenancy"
)

// Error codes that only authorization responses have.
const (
	loginRequired          oidc.Code = "login_required"
	consentRequired        oidc.Code = "consent_required"
	requestNotSupported    oidc.Code = "request_not_supported"
	requestURINotSupported oidc.Code = "request_uri_not_supported"
)

// Authorize returns the endpoint at which clients request access. Browsers get the sign-in page or
// the consent page. Programs get a description of the client.
func (a *consents) Authorize() route.Endpoint {
	d := route.Described(route.Describe("OAuth server", "Ask a person for access", 400, 403, 429, 502),
		"Browsers, which accept text/html, get the consent page, after the sign-in page if there is no session. Other "+
			"programs get JSON. If the client or its redirect URI is invalid, the response is an error. Any other "+
			"invalid parameter is reported to the redirect URI with error, state and iss. A program gets 400 with that "+
			"URI. A browser gets a page that links to it, or is redirected if the person has approved the client before. "+
			"PKCE with S256 is required, except for an organization's own confidential application.")
	for _, name := range known[:len(known)-3] {
		d.Parameters = append(d.Parameters, page.QueryParam(name, ""))
	}
	return route.Raw(d, a.authorize,
		route.Answer[AuthorizationRecord](http.StatusOK, "The client, for programs. Browsers get a page."),
		route.Content(http.StatusFound, "The error, at the client's redirect URI.", "", nil))
}

// AuthorizationRecord describes the client of an authorization request.
type AuthorizationRecord struct {
	App   AuthorizeApp `json:"app"`
	State string       `json:"state,omitempty"`
	Scope string       `json:"scope" doc:"The scopes that the client would get."`
}

// AuthorizeApp describes a client to the person.
type AuthorizeApp struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Picture     *string `json:"picture" nullable:"true"`
	ClientID    string  `json:"clientId"`
	RedirectURL string  `json:"redirectUrl"`
	// Verified is the host of the document that describes the client.
	Verified string `json:"verifiedHost,omitempty" doc:"Host of the document that describes the client; absent if there is none."`
}

// Redirected is an error that is reported to the client's redirect URI.
type Redirected struct {
	Failure
	Redirect string `json:"redirect" doc:"The redirect URI with the error."`
}

func (a *consents) authorize(c *fiber.Ctx) error {
	c.Vary(fiber.HeaderAccept)
	if err := available("oauth.authorize", a.deps.Clients); err != nil {
		return err
	}
	if err := a.deps.Gate.AdmitClient(contextOf(c), a.deps.Gate.Buckets.Authorize); err != nil {
		return a.refuse(c, err)
	}
	q, ok := parseQuery(string(c.Context().URI().QueryString()))
	if !ok {
		return a.refuse(c, tooLong())
	}
	r, err := a.check(c, q, a.deps.Clients.Find)
	if err != nil {
		return a.refuse(c, err)
	}
	if !wantsPage(c) {
		return c.JSON(describeRequest(r))
	}
	p, live, err := signedIn(c)
	if err != nil {
		return a.refuse(c, err)
	}
	switch {
	case q.prompts("none"):
		return a.refuse(c, a.redirected(r, silentError(live)))
	case !live, q.prompts("login"), q.prompts("select_account"):
		to := target{page: pageAuthorize, query: q.without("prompt")}
		return a.showSignIn(c, http.StatusOK, signInView{to: to, Client: displayName(r.Client)})
	}
	return a.showConsent(c, http.StatusOK, p, consentForm{
		request: r, query: q, organization: q.get(organizationParameter),
	})
}

// silentError returns the error for a client that forbids interaction. Access always requires the
// person's consent. live reports whether somebody is signed in.
func silentError(live bool) *oidc.Error {
	if live {
		return oidc.Fail(consentRequired, "People are asked for consent every time.")
	}
	return oidc.Fail(loginRequired, "Nobody is signed in.")
}

func tooLong() error {
	return oidc.Fail(oidc.InvalidRequest, "The query is malformed or too long.")
}

// refusal is an error to report to the client's redirect URI.
type refusal struct {
	cause   *oidc.Error
	request oidc.AuthorizationRequest
	// address is the redirect URI with the error.
	address string
}

func (r *refusal) Error() string { return r.cause.Error() }

// redirected returns a refusal for a request whose redirect URI has already been checked.
func (a *consents) redirected(r oidc.AuthorizationRequest, cause *oidc.Error) *refusal {
	v := url.Values{"error": {string(cause.Code)}, "error_description": {cause.Message}}
	return &refusal{cause: cause, request: r, address: a.answerAt(r, v)}
}

// answerAt returns the redirect URI with the parameters in v, and with state and iss (RFC 9207).
func (a *consents) answerAt(r oidc.AuthorizationRequest, v url.Values) string {
	if r.State != "" {
		v.Set("state", r.State)
	}
	v.Set("iss", a.deps.BaseURL)
	return withParameters(r.RedirectURI, v)
}

// findClient is Clients.Find or Clients.Refetch.
type findClient func(ctx context.Context, clientID string, from tenancy.Source) (oidc.Client, error)

// check checks an authorization request, whose client it looks up with find. The error is a
// *refusal if it may be reported to the client's redirect URI. After any other error, the browser
// must stay on this service.
func (a *consents) check(c *fiber.Ctx, q query, find findClient) (r oidc.AuthorizationRequest, err error) {
	r, err = checkClient(c, q, find)
	if err != nil {
		return r, err
	}
	r.State, r.Scopes, r.Resource = q.get("state"), grantable(r.Client, q.get("scope")), a.audienceURL()
	r.Challenge = q.get("code_challenge")
	if cause := a.checkParameters(r, q); cause != nil {
		return r, a.redirected(r, cause)
	}
	return r, nil
}

// checkClient finds the client and checks the redirect URI.
func checkClient(c *fiber.Ctx, q query, find findClient) (r oidc.AuthorizationRequest, err error) {
	if q.twice == "client_id" || q.twice == "redirect_uri" {
		return r, oidc.Fail(oidc.InvalidRequest, "The parameter "+q.twice+" was sent twice.")
	}
	id := q.get("client_id")
	if id == "" {
		return r, oidc.Fail(oidc.InvalidRequest, "The parameter client_id is missing.")
	}
	r.Client, err = find(contextOf(c), id, request.From(c.Context()).From)
	if err != nil {
		return r, err
	}
	r.RedirectURI = q.get("redirect_uri")
	r.RedirectSent = r.RedirectURI != ""
	switch {
	case !r.RedirectSent && r.Client.Kind == oidc.ClientStatic && len(r.Client.RedirectURIs) == 1:
		r.RedirectURI = r.Client.RedirectURIs[0]
	case !r.RedirectSent:
		return r, oidc.Fail(oidc.InvalidRequest, "The parameter redirect_uri is missing.")
	case !r.Client.MatchRedirect(r.RedirectURI):
		return r, oidc.Fail(oidc.InvalidRequest, "The redirect_uri is not one that the client has registered.")
	}
	// Check the URI here, because the pages link to it without another check.
	return r, oidc.CheckRedirectURI(r.RedirectURI)
}

// checkParameters checks everything except the client and its redirect URI. It returns the first
// fault, or nil.
func (a *consents) checkParameters(r oidc.AuthorizationRequest, q query) *oidc.Error {
	mayOmit := r.Client.Kind == oidc.ClientStatic && !r.Client.Public()
	method := q.get("code_challenge_method")
	switch {
	case q.twice != "":
		return oidc.Fail(oidc.InvalidRequest, "The parameter "+q.twice+" was sent twice.")
	case q.get("response_type") == "":
		return oidc.Fail(oidc.InvalidRequest, "The parameter response_type is missing.")
	case q.get("response_type") != "code":
		return oidc.Fail(oidc.UnsupportedResponseType, "The response_type must be code.")
	case q.get("response_mode") != "" && q.get("response_mode") != "query":
		return oidc.Fail(oidc.InvalidRequest, "The response_mode must be query.")
	case r.Challenge == "" && method == "" && mayOmit:
	case r.Challenge == "":
		return oidc.Fail(oidc.InvalidRequest, "PKCE is required: send code_challenge.")
	case method != "S256":
		return oidc.Fail(oidc.InvalidRequest, "The code_challenge_method must be S256.")
	case !oidc.IsChallenge(r.Challenge):
		return oidc.Fail(oidc.InvalidRequest, "The code_challenge is not the SHA-256 of a verifier in base64url.")
	}
	if !r.Scopes.Reads() {
		return oidc.Fail(oidc.InvalidScope, "The client has not registered these scopes.")
	}
	_, err := oidc.CheckResource(a.deps.BaseURL, q.values["resource"]...)
	if foreign, ok := asOAuth(err); ok {
		return foreign
	}
	switch {
	case q.prompts("none") && len(q.get("prompt")) > len("none"):
		return oidc.Fail(oidc.InvalidRequest, "The prompt none cannot be combined with others.")
	case q.get("request") != "":
		return oidc.Fail(requestNotSupported, "Request objects are not supported.")
	case q.get("request_uri") != "":
		return oidc.Fail(requestURINotSupported, "Request objects are not supported.")
	}
	return nil
}

// refuse responds to a failed request. If err is a *refusal and the person has approved the client
// before, a browser is redirected to the client's redirect URI. Otherwise, a browser gets a page.
// Programs get JSON.
func (a *consents) refuse(c *fiber.Ctx, err error) error {
	if !wantsPage(c) {
		return a.refuseJSON(c, err)
	}
	var r *refusal
	if !errors.As(err, &r) {
		return a.showRefusal(c, err)
	}
	request.From(c.Context()).Err = err
	if !a.hasApproved(c, r.request.Client) {
		return a.showLeaving(c, r)
	}
	a.messagePage.SetHeaders(c)
	return c.Redirect(r.address, http.StatusFound)
}

// hasApproved reports whether the request's session belongs to a person who has approved the client
// for any organization.
func (a *consents) hasApproved(c *fiber.Ctx, client oidc.Client) bool {
	p, live, err := signedIn(c)
	if err != nil || !live || a.deps.Grants == nil {
		return false
	}
	list, err := a.deps.Grants.List(contextOf(c), p)
	return err == nil && slices.ContainsFunc(list, func(g oidc.Grant) bool {
		return g.Client.ClientID == client.ClientID
	})
}

// showLeaving responds with a page that explains an error and links to the client. It does not
// redirect. Otherwise, links to this service could lead to any site, because anyone can register a
// client.
func (a *consents) showLeaving(c *fiber.Ctx, r *refusal) error {
	to := destination(r.request.RedirectURI)
	return a.send(c, a.messagePage, http.StatusBadRequest, messageView{
		frame: frame{Title: "This app cannot connect", Problem: problemOf(r.cause)},
		Text: "Nothing was shared with the app. The link below reports the problem to " + to +
			". Follow it only if you trust the app.",
		Link: template.URL(r.address), LinkText: "Continue to " + to, // oidc.CheckRedirectURI has checked it
	})
}

func problemOf(err *oidc.Error) string {
	return "The app sent a request that this service does not accept: " + err.Message
}

// refuseJSON responds to a program's failed request. It returns err if err is not an OAuth error.
func (a *consents) refuseJSON(c *fiber.Ctx, err error) error {
	var body any
	var toClient *refusal
	var own *oidc.Error
	switch {
	case errors.As(err, &toClient):
		failure := Failure{Error: string(toClient.cause.Code), Description: toClient.cause.Message}
		body = Redirected{Failure: failure, Redirect: toClient.address}
	case errors.As(err, &own):
		body = Failure{Error: string(own.Code), Description: own.Message}
	default:
		return err
	}
	request.From(c.Context()).Err = err
	noStore(c)
	return c.Status(http.StatusBadRequest).JSON(body)
}

// showRefusal responds with a page that explains an error.
func (a *site) showRefusal(c *fiber.Ctx, err error) error {
	var own *oidc.Error
	view := messageView{frame: frame{Title: "This app cannot connect"}}
	if !errors.As(err, &own) {
		status, message := page.Problem(c, err)
		view.Problem = message
		return a.send(c, a.messagePage, status, view)
	}
	request.From(c.Context()).Err = err
	view.Problem = problemOf(own)
	view.Text = "Nothing was shared with the app. Start again in the app. If this happens again, contact the app's developer."
	if own.Code == oidc.InvalidClient {
		view.Problem = cmp.Or(own.Message, "This service does not know the app.")
	}
	return a.send(c, a.messagePage, http.StatusBadRequest, view)
}

func describeRequest(r oidc.AuthorizationRequest) AuthorizationRecord {
	out := AuthorizationRecord{State: r.State, Scope: r.Scopes.String(), App: AuthorizeApp{
		Name: displayName(r.Client), ClientID: r.Client.ClientID, RedirectURL: r.RedirectURI,
	}}
	out.App.Verified = verifiedHost(r.Client)
	return out
}

// formBody describes the body of a page's form.
func formBody(names ...string) *huma.RequestBody {
	properties := map[string]*huma.Schema{}
	for _, name := range names {
		properties[name] = &huma.Schema{Type: huma.TypeString}
	}
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		fiber.MIMEApplicationForm: {Schema: &huma.Schema{Type: huma.TypeObject, Properties: properties}},
	}}
}
