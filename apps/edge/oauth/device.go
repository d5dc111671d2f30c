package oauth

import (
	"html/template"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/oidc"
	"crier/platform/fault"
	"crier/platform/text"
	"crier/tenancy"
)

// DeviceCodeRequest is the body of POST /device/code. The body may be empty.
type DeviceCodeRequest struct {
	ClientID string `json:"client_id,omitempty" doc:"If absent, the client is called Command line."`
	Scope    string `json:"scope,omitempty"`
}

// DeviceCodeResponse is the response to POST /device/code (RFC 8628).
type DeviceCodeResponse struct {
	DeviceCode      string `json:"device_code" doc:"Secret with which the device requests its token."`
	UserCode        string `json:"user_code" doc:"The code that the person types." example:"BCDF-GHJK"`
	VerificationURI string `json:"verification_uri" doc:"The page on which the person types the code."`
	ExpiresIn       int    `json:"expires_in" doc:"Seconds."`
	Interval        int    `json:"interval" doc:"Minimum number of seconds between requests for the token."`
}

// DeviceCode returns the endpoint at which a device starts to log in.
func (a *devices) DeviceCode() route.Endpoint {
	return route.Raw(route.Describe("OAuth server", "Start a device log-in"), a.deviceCode,
		route.RequestBody[DeviceCodeRequest](), alsoForm[DeviceCodeRequest](), optionalBody,
		route.Answer[DeviceCodeResponse](http.StatusOK, "The codes."), failures(400, 401, 413, 429))
}

func (a *devices) deviceCode(c *fiber.Ctx) error {
	form, err := a.deviceForm(c)
	if err != nil {
		return err
	}
	client, err := a.deviceClient(c, form["client_id"])
	if err != nil {
		return err
	}
	d, err := a.deps.Devices.StartDevice(contextOf(c), client, oidc.ParseScopes(form["scope"]), request.From(c.Context()).From)
	if err != nil {
		return err
	}
	noStore(c)
	return c.JSON(DeviceCodeResponse{
		DeviceCode: d.Code, UserCode: d.UserCode, VerificationURI: a.deps.BaseURL + devicePath,
		ExpiresIn: int(d.Expires.Seconds()), Interval: int(d.Interval.Seconds()),
	})
}

// deviceClient returns sent, the id of the client that starts a log-in. If sent is empty, as with
// the stock command line, deviceClient returns the id of a public client with fixed metadata. That
// id is always the same.
func (a *devices) deviceClient(c *fiber.Ctx, sent string) (string, error) {
	if sent != "" {
		return sent, nil
	}
	if err := available("oauth.deviceClient", a.deps.Clients); err != nil {
		return "", err
	}
	made, err := a.deps.Clients.Register(contextOf(c), oidc.Metadata{
		Name: "Command line", RedirectURIs: []string{"http://127.0.0.1/"}, Auth: string(oidc.AuthNone),
	}, request.From(c.Context()).From)
	return made.ClientID, err
}

// DeviceTokenRequest is the body of POST /device/token.
type DeviceTokenRequest struct {
	DeviceCode string `json:"device_code"`
}

// DeviceTokenResponse is the response to POST /device/token once the person has approved the
// log-in.
type DeviceTokenResponse struct {
	AccessToken    string `json:"access_token"`
	TokenType      string `json:"token_type"`
	ExpiresIn      int    `json:"expires_in"`
	RefreshToken   string `json:"refresh_token,omitempty"`
	Scope          string `json:"scope"`
	APIURL         string `json:"api_url" doc:"Base URL of the service."`
	OrganizationID string `json:"organization_id"`
}

// DeviceToken returns the endpoint that a device polls for its token.
func (a *devices) DeviceToken() route.Endpoint {
	d := route.Described(route.Describe("OAuth server", "Get the token of a device log-in"),
		"400 authorization_pending means that the person has not answered yet, and slow_down that the device polls too "+
			"often.")
	return route.Raw(d, a.deviceToken, route.RequestBody[DeviceTokenRequest](), alsoForm[DeviceTokenRequest](),
		route.Answer[DeviceTokenResponse](http.StatusOK, "The token."), failures(400, 401, 413, 429))
}

func (a *devices) deviceToken(c *fiber.Ctx) error {
	form, err := a.deviceForm(c)
	if err != nil {
		return err
	}
	if form["device_code"] == "" {
		return oidc.Fail(oidc.InvalidRequest, "The parameter device_code is missing.")
	}
	t, err := a.deps.Devices.PollDevice(contextOf(c), form["device_code"])
	if err != nil {
		return err
	}
	noStore(c)
	return c.JSON(DeviceTokenResponse{
		AccessToken: t.Access, TokenType: "bearer", ExpiresIn: int(t.ExpiresIn.Seconds()), RefreshToken: t.Refresh,
		Scope: t.Scopes.String(), APIURL: a.deps.BaseURL, OrganizationID: t.Org.String(),
	})
}

// deviceForm returns the parameters of a device's request, whose body may be empty.
func (a *devices) deviceForm(c *fiber.Ctx) (map[string]string, error) {
	if err := available("oauth.device", a.deps.Devices); err != nil {
		return nil, err
	}
	if err := a.deps.Gate.AdmitClient(contextOf(c), a.deps.Gate.Buckets.Token); err != nil {
		return nil, err
	}
	out := map[string]string{}
	if len(request.From(c.Context()).Body.Loaded()) == 0 {
		return out, nil
	}
	form, err := clientForm(c)
	if err != nil {
		return nil, err
	}
	for name := range form {
		out[name] = form.Get(name)
	}
	return out, nil
}

// deviceView is the data for the page on which a person types a device's code.
type deviceView struct {
	frame
	Person, UserCode string
	Action           template.URL
	Organizations    []choice
	Errors           map[string]string
}

// DevicePage returns the endpoint for the page on which a person types a device's code.
func (a *devices) DevicePage() route.Endpoint {
	return route.Raw(route.Describe("OAuth server", "Get the page for a device's code", 403, 429), a.getDevice,
		page.Answer("The page, or the sign-in page."))
}

// AnswerDevicePage returns the endpoint for the device page's forms. The first form submits the
// code, and the second submits the person's answer.
func (a *devices) AnswerDevicePage() route.Endpoint {
	d := route.Describe("OAuth server", "Approve or deny a device log-in", 400, 403, 404, 409, 413, 429)
	d.RequestBody = formBody("userCode", "organization", "action", "ticket")
	return route.Raw(d, a.answerDevice, page.Answer("The consent page, or the result."))
}

func (a *devices) getDevice(c *fiber.Ctx) error {
	p, done, err := a.pageVisitor(c, pageDevice)
	if done || err != nil {
		return err
	}
	return a.showDevice(c, http.StatusOK, p, deviceView{})
}

// pageVisitor returns the principal of the person who opens a page. If nobody is signed in, or if
// the principal is rejected, pageVisitor responds to the request, and done is true.
func (a *site) pageVisitor(c *fiber.Ctx, name string) (p tenancy.Principal, done bool, err error) {
	p, live, err := signedIn(c)
	switch {
	case err != nil:
		return p, true, a.showRefusal(c, err)
	case !live:
		return p, true, a.showSignIn(c, http.StatusOK, signInView{to: target{page: name}})
	}
	return p, false, nil
}

func (a *devices) showDevice(c *fiber.Ctx, status int, p tenancy.Principal, view deviceView) error {
	all, err := a.deps.Organizations.Organizations(contextOf(c), p)
	if err != nil {
		return a.showRefusal(c, err)
	}
	for _, o := range all {
		if len(all) > 1 && o.SuspendedAt == nil && o.DeletedAt == nil && !o.Disabled {
			view.Organizations = append(view.Organizations, choice{ID: o.ID.String(), Name: o.Name, Checked: o.ID == p.Org})
		}
	}
	view.Title, view.Person, view.Action = "Connect a device", p.Name, a.link(devicePath, query{})
	return a.send(c, a.devicePage, status, view)
}

func (a *devices) answerDevice(c *fiber.Ctx) error {
	if err := available("oauth.answerDevice", a.deps.Devices); err != nil {
		return a.showRefusal(c, err)
	}
	p, done, err := a.pageVisitor(c, pageDevice)
	if done || err != nil {
		return err
	}
	form, err := readForm(c)
	if err != nil {
		return a.showDevice(c, http.StatusBadRequest, p, deviceView{frame: frame{Problem: "The form could not be read. Try again."}})
	}
	code := cleanUserCode(form.Get("userCode"))
	own, err := a.inOrganization(c, form.Get("organization"))
	if err != nil {
		return a.retryDevice(c, p, code, err)
	}
	r, err := a.deps.Devices.DeviceRequest(contextOf(c), own, code)
	if err != nil {
		return a.retryDevice(c, p, code, err)
	}
	r.Resource = a.audienceURL()
	given := answerOf(form)
	shown := consentForm{request: r, device: code, organization: own.Org.String()}
	switch given.action {
	case actionDeny:
		err = a.deps.Devices.AnswerDevice(contextOf(c), own, code, nil)
	case actionApprove:
		shown.answer = &given
		var consent oidc.Consent
		if consent, err = a.consents.consentOf(c, own, r, given, code); err == nil {
			err = a.deps.Devices.AnswerDevice(contextOf(c), own, code, &consent)
		}
	default:
		return a.consents.showConsent(c, http.StatusOK, p, shown)
	}
	switch {
	case fault.Is(err, fault.Conflict):
		return a.consents.showUsed(c, err)
	case err != nil:
		return a.consents.askAgain(c, p, shown, err)
	}
	return a.showAnswered(c, r, given.action)
}

func (a *devices) showAnswered(c *fiber.Ctx, r oidc.AuthorizationRequest, action string) error {
	view := messageView{frame: frame{Title: "You have denied access"}, Text: "You can close this page."}
	if action == actionApprove {
		view.Title = "You have approved " + displayName(r.Client)
		view.Text = "You can close this page and go back to your device."
	}
	return a.send(c, a.messagePage, http.StatusOK, view)
}

// retryDevice shows the page again, with the error next to the code.
func (a *devices) retryDevice(c *fiber.Ctx, p tenancy.Principal, code string, err error) error {
	status, message := page.Problem(c, err)
	view := deviceView{UserCode: code}
	if fault.Is(err, fault.NotFound) {
		view.Errors = map[string]string{
			"userCode": "This code is wrong or has expired. Check it, or start again on the device.",
		}
	} else {
		view.Problem = message
	}
	return a.showDevice(c, status, p, view)
}

// cleanUserCode returns a code in the form that the device shows. The person may omit the hyphen,
// and may type spaces and lowercase letters. Example: "bcdf ghjk" becomes BCDF-GHJK
func cleanUserCode(typed string) string {
	letters := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToUpper(text.Cut(typed, 32)))
	if len(letters) == 8 {
		return letters[:4] + "-" + letters[4:]
	}
	return letters
}

// optionalBody makes the request body optional.
func optionalBody(_ huma.Registry, op *huma.Operation) { op.RequestBody.Required = false }
