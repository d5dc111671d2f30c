package appapi

import (
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
)

// callbackPage is the page to which platforms send the browser back. It works without JavaScript.
const callbackPage = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><meta name="color-scheme" content="light dark"><title>{{.Title}} - Crier</title></head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{- range .Pages}}
<form method="post" action="?{{.Query}}"><button>{{.Name}}</button></form>
{{- end}}
{{- with .Back}}
<p><a href="{{.}}">Go on</a></p>
{{- end}}
</main>
</body>
</html>
`

type callbackView struct {
	Title, Text string
	Pages       []callbackChoice
	Back        string
}

type callbackChoice struct {
	Name string
	// Query is the query of the address that chooses the page.
	Query template.URL
}

// ConnectCallback returns the endpoint of the page that redeems the code of a platform, and then shows what happened or
// shows the pages to choose from.
func (a *API) ConnectCallback() route.Endpoint {
	d := describe("Channels", "Finish connecting a channel in the browser", 400, 402, 409, 429, 502)
	d.Description = "Platforms redirect to this address. It is registered with them as <base URL>/connect/<platform>."
	d.Parameters = []*huma.Param{
		pathParam("integration", "Platform."), queryParam("state", "Of the address that was opened."),
		queryParam("code", "Of the platform."), queryParam("error", "Instead of a code, when the access is not allowed."),
	}
	return route.Raw(d, a.connectCallback, htmlAnswer("The page."))
}

// ConnectChoice returns the endpoint that chooses the account of a connect with the form of the page. It reads no body.
func (a *API) ConnectChoice() route.Endpoint {
	d := describe("Channels", "Choose the account of a new channel in the browser", 400, 402, 409, 429, 502)
	d.Parameters = []*huma.Param{
		pathParam("integration", "Platform."), queryParam("state", "Of the address that was opened."),
		queryParam("page", "Id of one of the pages."),
	}
	return route.Raw(d, a.connectChoice, htmlAnswer("The page."))
}

func htmlAnswer(description string) route.Detail {
	return route.Content(http.StatusOK, description, fiber.MIMETextHTML, &huma.Schema{Type: huma.TypeString})
}

func pathParam(name, description string) *huma.Param {
	return &huma.Param{
		Name: name, In: "path", Required: true, Description: description, Schema: &huma.Schema{Type: huma.TypeString},
	}
}

func queryParam(name, description string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

func (a *API) connectCallback(c *fiber.Ctx) error {
	if err := a.admitPage(c, c.Query("state")); err != nil {
		return a.sendCallback(c, err, publishing.ChannelConnected{})
	}
	platform, state := c.Params("integration"), c.Query("state")
	cmd := publishing.FinishConnect{Connector: platform, State: state, Code: c.Query("code"), Denied: c.Query("error")}
	if !a.byOAuth(platform) {
		err := fault.New(fault.Invalid, "appapi.connectCallback", "This platform is not connected in this way.")
		return a.sendCallback(c, err, publishing.ChannelConnected{})
	}
	done, err := a.deps.Channels.Finish(c.UserContext(), cmd)
	return a.sendCallback(c, err, done)
}

func (a *API) connectChoice(c *fiber.Ctx) error {
	if err := a.admitPage(c, c.Query("state")); err != nil {
		return a.sendCallback(c, err, publishing.ChannelConnected{})
	}
	done, err := a.deps.Connects.ChooseByState(c.UserContext(), c.Params("integration"), publishing.ChooseAccount{
		State: c.Query("state"), Candidate: c.Query("page"),
	})
	if err == nil {
		return a.sendCallback(c, nil, done)
	}
	// The choice can be made again while the state lives.
	done.Candidates, _ = a.deps.Connects.Candidates(c.UserContext(), c.Params("integration"), c.Query("state"))
	return a.sendCallback(c, err, done)
}

// byOAuth returns whether a platform of this instance is connected by OAuth, so that it has no form.
func (a *API) byOAuth(platform string) bool {
	for _, d := range a.deps.Channels.Catalogue() {
		if d.ID == platform {
			return len(d.Fields) == 0
		}
	}
	return false
}

// sendCallback answers with the page, or redirects the browser to where it began once the channel is connected.
func (a *API) sendCallback(c *fiber.Ctx, err error, done publishing.ChannelConnected) error {
	view := callbackView{Back: done.ReturnURL}
	status := http.StatusOK
	for _, page := range done.Candidates {
		q := url.Values{"state": {c.Query("state")}, "page": {page.ID}}
		view.Pages = append(view.Pages, callbackChoice{Name: page.Name, Query: template.URL(q.Encode())})
	}
	switch {
	case err != nil:
		request.From(c.Context()).Err = err
		p := problem.Of(err, "")
		status, view.Title, view.Text = p.StatusCode, "The account was not connected", p.Msg
	case len(view.Pages) > 0:
		view.Title, view.Text = "Choose an account", "This sign-in gives access to several accounts. Which one do you want to connect?"
	case done.ReturnURL != "":
		return c.Redirect(done.ReturnURL, http.StatusSeeOther)
	default:
		view.Title, view.Text = "The account is connected", done.Channel.Name+" can publish now. You can close this page."
	}
	var b strings.Builder
	page, err := template.New("callback").Parse(callbackPage)
	if err == nil {
		err = page.Execute(&b, view)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, "appapi.sendCallback", "", err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; form-action 'self' "+strings.Join(a.cfg.Origins, " ")+
		"; base-uri 'none'; frame-ancestors 'none'")
	return c.Status(status).SendString(b.String())
}
