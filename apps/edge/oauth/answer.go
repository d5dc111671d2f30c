package oauth

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/oidc"
	"crier/platform/fault"
	"crier/platform/secret"
	"crier/tenancy"
)

// The two answers to a consent page.
const (
	actionApprove = "approve"
	actionDeny    = "deny"
)

// maxChosen is the maximum number of channels, and of customers, to which a grant can be limited.
const maxChosen = 1000

// ApproveOAuthDto is the body of POST /oauth/authorize: the authorization request and the person's
// answer.
type ApproveOAuthDto struct {
	ClientID        string `json:"client_id" doc:"Id of the client."`
	Action          string `json:"action" enum:"approve,deny"`
	State           string `json:"state,omitempty"`
	RedirectURI     string `json:"redirect_uri,omitempty" doc:"One of the client's redirect URIs. Only an organization's own application may omit it."`
	ResponseType    string `json:"response_type,omitempty" enum:"code"`
	Challenge       string `json:"code_challenge,omitempty"`
	ChallengeMethod string `json:"code_challenge_method,omitempty" enum:"S256"`
	Scope           string `json:"scope,omitempty" doc:"Scopes to grant, separated by spaces. If absent, mcp:read and mcp:write."`
	Resource        string `json:"resource,omitempty" doc:"URL of the MCP endpoint."`

	Organization string   `json:"organizationId,omitempty" doc:"If absent, the session's current organization."`
	Channels     []string `json:"channels,omitempty" doc:"Ids of the only channels that the client may use."`
	Customers    []string `json:"customers,omitempty" doc:"Ids of the groups whose channels the client may use."`
	MustAsk      bool     `json:"mustAsk,omitempty" doc:"Whether the client may only write drafts."`
	PostsPerDay  int      `json:"postsPerDay,omitempty" doc:"Maximum number of posts that the client may queue per day; 0 means no limit."`
	EndsAt       string   `json:"endsAt,omitempty" doc:"Last day of access, in the organization's time zone. Example: 2027-01-31"`
	// Ticket is optional in a JSON request, because pages on other sites cannot send JSON.
	Ticket string `json:"ticket,omitempty" doc:"Token from the consent page, if the page sends the request."`
}

// ApproveResponse is the response to POST /oauth/authorize.
type ApproveResponse struct {
	Redirect string `json:"redirect" doc:"Where to send the browser: the redirect URI with code, state and iss, or with error, state and iss."`
}

// answer is a person's answer to a consent page, as sent.
type answer struct {
	action, ticket, organization string
	write, mustAsk               bool
	channels, customers          []string
	postsPerDay, endsAt          string
	// byForm is set if the answer came from the page's form and therefore requires a ticket.
	byForm bool
}

// AnswerAuthorize returns the endpoint that accepts a person's answer to an authorization request.
func (a *consents) AnswerAuthorize() route.Endpoint {
	d := route.Described(route.Describe("OAuth server", "Approve or deny an authorization request",
		400, 401, 403, 409, 413, 429, 502),
		"Requires a session. The body is JSON or the form of the consent page. Everything in the request is checked "+
			"again, and if the answer is approve, the client's document is fetched again. The response to the form is a page that "+
			"leads to the client.")
	return route.Raw(d, a.answerAuthorize, route.RequestBody[ApproveOAuthDto](),
		route.Answer[ApproveResponse](http.StatusCreated, "The response to a JSON request."),
		page.Answer("The response to the page's form: a page that leads to the client."),
		route.Content(http.StatusSeeOther, "The session has ended. The browser is sent to the sign-in page.", "", nil))
}

func (a *consents) answerAuthorize(c *fiber.Ctx) error {
	if err := available("oauth.answerAuthorize", a.deps.Clients, a.deps.Grants); err != nil {
		return err
	}
	if err := a.deps.Gate.AdmitClient(contextOf(c), a.deps.Gate.Buckets.Authorize); err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if kind == fiber.MIMEApplicationJSON {
		return a.answerJSON(c)
	}
	return a.answerForm(c)
}

// answerJSON handles an answer from a program that shows its own consent page, such as the
// dashboard.
func (a *consents) answerJSON(c *fiber.Ctx) error {
	var in ApproveOAuthDto
	if err := json.Unmarshal(request.From(c.Context()).Body.Loaded(), &in); err != nil {
		return fault.Wrap(fault.Invalid, "oauth.answerJSON", "The body is not valid JSON of this type.", err)
	}
	q, ok := in.query()
	if !ok {
		return a.refuseJSON(c, tooLong())
	}
	r, err := a.check(c, q, a.deps.Clients.Find)
	if err != nil {
		return a.refuseJSON(c, err)
	}
	_, live, err := signedIn(c)
	if err != nil {
		return err
	}
	if !live {
		c.Set(session.HeaderLogout, "true")
		return fault.New(fault.Unauthenticated, "oauth.answerJSON", "Sign in first.")
	}
	given := in.answer()
	switch given.action {
	case actionDeny:
		return c.Status(http.StatusCreated).JSON(ApproveResponse{Redirect: a.denied(r)})
	case actionApprove:
	default:
		return invalidField("action", "must be approve or deny")
	}
	p, err := a.inOrganization(c, given.organization)
	if err != nil {
		return err
	}
	r, err = a.check(c, q, a.deps.Clients.Refetch)
	if err != nil {
		return a.refuseJSON(c, err)
	}
	address, err := a.approve(c, p, r, given)
	if err != nil {
		return a.refuseJSON(c, err)
	}
	noStore(c)
	return c.Status(http.StatusCreated).JSON(ApproveResponse{Redirect: address})
}

// answerForm handles a submission of the consent page's form.
func (a *consents) answerForm(c *fiber.Ctx) error {
	form, err := readForm(c)
	q, ok := parseQuery(string(c.Context().URI().QueryString()))
	if err != nil || !ok {
		return a.showRefusal(c, tooLong())
	}
	r, err := a.check(c, q, a.deps.Clients.Find)
	if err != nil {
		return a.refuseForm(c, err)
	}
	given := answerOf(form)
	if given.action == actionDeny {
		return a.leadOn(c, "You have denied access", a.denied(r))
	}
	p, live, err := signedIn(c)
	if err != nil {
		return a.showRefusal(c, err)
	}
	if !live {
		a.messagePage.SetHeaders(c)
		return c.Redirect(a.path(authorizePath, q), http.StatusSeeOther)
	}
	shown := consentForm{request: r, query: q, answer: &given, organization: given.organization}
	if given.action != actionApprove {
		return a.askAgain(c, p, shown, fault.New(fault.Invalid, "oauth.answerForm", "Choose Approve or Deny."))
	}
	own, err := a.inOrganization(c, given.organization)
	if err != nil {
		return a.askAgain(c, p, shown, err)
	}
	// Refetch the document only now, so that a request without a session cannot cause a refetch.
	r, err = a.check(c, q, a.deps.Clients.Refetch)
	if err != nil {
		return a.refuseForm(c, err)
	}
	shown.request = r
	address, err := a.approve(c, own, r, given)
	switch {
	case fault.Is(err, fault.Conflict):
		return a.showUsed(c, err)
	case err != nil:
		return a.askAgain(c, p, shown, err)
	}
	return a.leadOn(c, "You have approved "+displayName(r.Client), address)
}

// refuseForm responds to a form whose authorization request is no longer valid.
func (a *consents) refuseForm(c *fiber.Ctx, err error) error {
	var r *refusal
	if errors.As(err, &r) {
		request.From(c.Context()).Err = err
		return a.leadOn(c, "This app cannot connect", r.address)
	}
	return a.showRefusal(c, err)
}

// denied returns the redirect URI that tells the client that the person denied access.
func (a *consents) denied(r oidc.AuthorizationRequest) string {
	return a.redirected(r, oidc.Fail(oidc.AccessDenied, "The person denied access.")).address
}

// approve stores the person's consent and returns the redirect URI with the code.
func (a *consents) approve(c *fiber.Ctx, p tenancy.Principal, r oidc.AuthorizationRequest, given answer) (
	address string, err error) {
	consent, err := a.consentOf(c, p, r, given, "")
	if err != nil {
		return "", err
	}
	code, err := a.deps.Grants.Approve(contextOf(c), p, consent)
	if err != nil {
		return "", err
	}
	return a.answerAt(r, url.Values{"code": {code}}), nil
}

// consentOf returns the consent that an answer represents. It returns Invalid if the ticket or a
// limit is invalid. device is the code that the person typed, or "" if no device requests access.
func (a *consents) consentOf(
	c *fiber.Ctx, p tenancy.Principal, r oidc.AuthorizationRequest, given answer, device string,
) (out oidc.Consent, err error) {
	out = oidc.Consent{Request: r, Token: given.ticket, Scopes: r.Scopes}
	switch {
	case given.byForm || given.ticket != "":
		if err := a.checkTicket(given.ticket, p, r, device); err != nil {
			return out, err
		}
	default:
		if out.Token, err = secret.Token("", nonceLength); err != nil {
			return out, fault.Wrap(fault.Internal, "oauth.consentOf", "", err)
		}
	}
	if !given.write {
		out.Scopes = readOnly(r.Scopes)
	}
	out.Limits, err = a.limitsOf(c, p, given)
	return out, err
}

// readOnly returns the read scope and, if all contains it, the offline scope.
func readOnly(all oidc.Scopes) oidc.Scopes {
	out := oidc.Scopes{oidc.ScopeRead}
	for _, s := range all {
		if s == oidc.ScopeOffline {
			out = append(out, s)
		}
	}
	return out
}

// limitsOf returns the limits that an answer sets. If any of them are invalid, it returns an
// Invalid fault that names the fields.
func (a *consents) limitsOf(c *fiber.Ctx, p tenancy.Principal, given answer) (out oidc.Limits, err error) {
	var faults tenancy.Inputs
	out = oidc.Limits{Channels: given.channels, Customers: given.customers, MustAsk: given.mustAsk}
	faults.Check(len(out.Channels) <= maxChosen, "channels", "must be at most 1000 channels")
	faults.Check(len(out.Customers) <= maxChosen, "customers", "must be at most 1000 groups")
	if sent := strings.TrimSpace(given.postsPerDay); sent != "" {
		n, err := strconv.Atoi(sent)
		faults.Check(err == nil && n >= 1 && n <= maxPostsPerDay, "postsPerDay", "must be a number from 1 to 10000")
		out.PostsPerDay = n
	}
	if sent := strings.TrimSpace(given.endsAt); sent != "" {
		ends, err := a.endOf(c, p, sent)
		if err != nil {
			return out, err
		}
		faults.Check(!ends.IsZero() && ends.After(a.deps.Clock.Now()) && ends.Year() < 10_000, "endsAt",
			"must be today or a later day, such as 2027-01-31")
		out.EndsAt = &ends
	}
	return out, faults.Err("oauth.limitsOf")
}

const maxPostsPerDay = 10_000

// endOf returns the end of a day in the organization's time zone, or the zero time if day is not a
// date.
func (a *consents) endOf(c *fiber.Ctx, p tenancy.Principal, day string) (time.Time, error) {
	zone, err := a.zoneOf(c, p)
	if err != nil {
		return time.Time{}, err
	}
	date, err := time.ParseInLocation(time.DateOnly, day, zone)
	if err != nil {
		return time.Time{}, nil // the caller reports the field
	}
	return date.AddDate(0, 0, 1).UTC(), nil
}

// zoneOf returns the time zone of the principal's organization.
func (a *consents) zoneOf(c *fiber.Ctx, p tenancy.Principal) (*time.Location, error) {
	all, err := a.deps.Organizations.Organizations(contextOf(c), p)
	if err != nil {
		return nil, err
	}
	zone := time.UTC
	for _, o := range all {
		if loaded, err := tenancy.LoadZone(o.Timezone); o.ID == p.Org && err == nil {
			zone = loaded
		}
	}
	return zone, nil
}

// answerOf returns the answer from a submitted form.
func answerOf(form url.Values) answer {
	return answer{
		action: form.Get("action"), ticket: form.Get("ticket"), organization: form.Get("organization"),
		write: form.Get("write") != "", mustAsk: form.Get("mustAsk") != "", channels: form["channel"],
		customers: form["customer"], postsPerDay: form.Get("postsPerDay"), endsAt: form.Get("endsAt"), byForm: true,
	}
}

// answer returns the answer from a JSON request. The request's scope determines what to grant.
func (in ApproveOAuthDto) answer() answer {
	out := answer{
		action: in.Action, ticket: in.Ticket, organization: in.Organization, write: true, mustAsk: in.MustAsk,
		channels: in.Channels, customers: in.Customers, endsAt: in.EndsAt,
	}
	if in.PostsPerDay != 0 {
		out.postsPerDay = strconv.Itoa(in.PostsPerDay)
	}
	return out
}

func invalidField(name, rule string) error {
	return &fault.Error{Kind: fault.Invalid, Op: "oauth.answer", Message: "The request is not valid.",
		Fields: []fault.Field{{Name: name, Message: rule}}}
}
