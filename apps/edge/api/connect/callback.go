package connect

import (
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
)

//go:embed callback.html
var callbackFiles embed.FS

// newCallbackPage returns the page that platforms redirect the browser to. The page works without
// JavaScript. After a form is submitted, the browser may be redirected only to the page's own
// origin and to the given origins.
func newCallbackPage(origins []string) *page.Page {
	return page.New(callbackFiles, "callback.html", page.Forms(append([]string{page.Self}, origins...)...))
}

type callbackView struct {
	Title, Text string
	// Asked says who started the connection attempt. Warning says what a person can do if they did
	// not intend to connect the account.
	Asked, Warning string
	Buttons        []callbackButton
	// Back is the URL of a page on the dashboard or on this service.
	Back string
}

type callbackButton struct {
	Name string
	// Query is the query string of the form's URL.
	Query template.URL
}

func newButton(name string, query url.Values) callbackButton {
	return callbackButton{Name: name, Query: template.URL(query.Encode())}
}

// ConnectCallback returns the endpoint for the page that platforms redirect the browser to. If a
// member of the organization is signed in, the endpoint redeems the platform's code. It then shows
// the result or the accounts to choose from.
//
// Anyone else must consent first. The platform's own page says that Crier wants access, but does
// not name the organization.
func (a *API) ConnectCallback() route.Endpoint {
	d := route.Describe("Connecting channels", "Finish connecting a channel in the browser", 400, 402, 409, 429, 502)
	d.Description = "Platforms redirect the browser to this URL. It is registered with each platform as <base " +
		"URL>/connect/<platform>. The page names the organization and who requested access. If the browser does not " +
		"have the session of a member of the organization, the code is not used until the person presses a button on " +
		"the page."
	d.Parameters = []*huma.Param{
		page.PathParam("integration", "Platform."), page.QueryParam("state", "State from the URL that was opened."),
		page.QueryParam("code", "Code from the platform."),
		page.QueryParam("error", "Sent instead of a code if access was denied."),
	}
	return route.Raw(d, a.connectCallback, page.Answer("The page."))
}

// ConnectAnswer returns the endpoint to which the page's forms are submitted. The endpoint does not
// read the body. Each form's URL contains a secret token, so a page on another site cannot submit
// the form.
func (a *API) ConnectAnswer() route.Endpoint {
	d := route.Describe("Connecting channels", "Submit a form on the connection page", 400, 402, 409, 410, 429, 502)
	d.Parameters = []*huma.Param{
		page.PathParam("integration", "Platform."),
		page.QueryParam("confirm", "Token from the consent form. Submitting the form approves and completes the "+
			"connection."),
		page.QueryParam("state", "State from the form for choosing an account. Requires page."),
		page.QueryParam("page", "Id of the chosen account."),
		page.QueryParam("disown", "Token from the form for undoing an unintended connection. Submitting the form "+
			"disconnects the channel."),
	}
	return route.Raw(d, a.connectAnswer, page.Answer("The page."))
}

func (a *API) connectCallback(c *fiber.Ctx) error {
	platform, state := c.Params("integration"), c.Query("state")
	if err := a.deps.Gate.AdmitPage(c, state); err != nil {
		return a.sendRefusal(c, err, nil)
	}
	if !a.byOAuth(platform) {
		err := fault.New(fault.Invalid, "connect.connectCallback", "This platform cannot be connected this way.")
		return a.sendRefusal(c, err, nil)
	}
	cmd := publishing.FinishConnect{
		Connector: platform, State: state, Code: c.Query("code"), Denied: c.Query("error"), OwnState: true,
	}
	if cmd.Code == "" || cmd.Denied != "" { // there is nothing to connect
		done, err := a.deps.Channels.Finish(c.UserContext(), cmd)
		return a.sendRefusal(c, err, &callbackView{Back: done.ReturnURL})
	}
	asked, err := a.deps.Connects.Started(c.UserContext(), platform, state)
	if err != nil {
		return a.sendRefusal(c, err, nil)
	}
	member, err := a.deps.Guard.IsMember(c, asked.Org)
	if err != nil {
		return a.sendRefusal(c, err, nil)
	}
	if !member || c.Method() != http.MethodGet {
		return a.askConsent(c, asked, cmd)
	}
	return a.finishInBrowser(c, asked, cmd, member)
}

// askConsent responds with a page that names the organization and has a button for consent. The
// code is redeemed only after the person presses the button.
func (a *API) askConsent(c *fiber.Ctx, asked publishing.ConnectRequest, cmd publishing.FinishConnect) error {
	token, err := a.deps.Connects.HoldCode(cmd)
	if err != nil {
		return a.sendRefusal(c, err, nil)
	}
	return a.page.Send(c, http.StatusOK, callbackView{
		Title: "Connect this account to “" + asked.Organization + "”?",
		Text: "The organization “" + asked.Organization + "” wants to publish through your account " +
			"on " + asked.Platform +
			". It could then post on your behalf.",
		Asked:   askedBy(asked),
		Warning: "If you did not expect this, close this page. Nothing is connected until you press the button.",
		Buttons: []callbackButton{newButton("Connect to “"+asked.Organization+"”", url.Values{"confirm": {token}})},
	})
}

// askedBy returns a sentence saying who started the connection attempt.
func askedBy(r publishing.ConnectRequest) string {
	who := cmp.Or(r.By.Name, "A member")
	if !r.By.Key.IsZero() {
		who = "The API key “" + r.KeyName + "”"
		if r.KeyCreator != "" {
			who += ", created by " + r.KeyCreator + ","
		}
	}
	if r.By.ImpersonatorName != "" {
		who = r.By.ImpersonatorName + ", an administrator of this service impersonating " + who + ","
	}
	return who + " requested this."
}

func (a *API) connectAnswer(c *fiber.Ctx) error {
	confirm, state, disown := c.Query("confirm"), c.Query("state"), c.Query("disown")
	if err := a.deps.Gate.AdmitPage(c, cmp.Or(confirm, disown, state)); err != nil {
		return a.sendRefusal(c, err, nil)
	}
	switch {
	case confirm != "":
		return a.confirmConnect(c, confirm)
	case disown != "":
		return a.disown(c, disown)
	}
	return a.chooseInBrowser(c, state)
}

// confirmConnect finishes a connection attempt to which the person has consented.
func (a *API) confirmConnect(c *fiber.Ctx, token string) error {
	cmd, err := a.deps.Connects.ReleaseCode(c.Params("integration"), token)
	if err != nil {
		return a.sendRefusal(c, err, nil)
	}
	asked, err := a.deps.Connects.Started(c.UserContext(), cmd.Connector, cmd.State)
	if err != nil {
		return a.sendRefusal(c, err, nil)
	}
	cmd.OwnState = true
	return a.finishInBrowser(c, asked, cmd, false)
}

// finishInBrowser redeems the code and responds with the result. member is true if a member of the
// organization is signed in.
func (a *API) finishInBrowser(
	c *fiber.Ctx, asked publishing.ConnectRequest, cmd publishing.FinishConnect, member bool,
) error {
	done, err := a.deps.Channels.Finish(c.UserContext(), cmd)
	if fault.Is(err, fault.RateLimited) && !member { // the code can still be used
		return a.retryConsent(c, err, cmd)
	}
	if err != nil {
		return a.sendRefusal(c, err, &callbackView{Back: done.ReturnURL})
	}
	if len(done.Candidates) > 0 {
		asked.Candidates = done.Candidates
		return a.page.Send(c, http.StatusOK, choiceView(asked, done.State))
	}
	return a.sendConnected(c, asked, done, member)
}

// retryConsent responds to a failure that may be temporary. The page explains the error and has a
// button to try again.
func (a *API) retryConsent(c *fiber.Ctx, refused error, cmd publishing.FinishConnect) error {
	token, err := a.deps.Connects.HoldCode(cmd)
	if err != nil {
		return a.sendRefusal(c, err, nil)
	}
	return a.sendRefusal(c, refused, &callbackView{
		Buttons: []callbackButton{newButton("Try again", url.Values{"confirm": {token}})},
	})
}

// choiceView returns the view that lists the accounts to choose from.
func choiceView(asked publishing.ConnectRequest, state string) callbackView {
	view := callbackView{
		Title: "Choose an account", Asked: askedBy(asked),
		Text: "This sign-in gives access to several accounts. Which one do you want to connect to the organization “" +
			asked.Organization + "”?",
	}
	for _, page := range asked.Candidates {
		view.Buttons = append(view.Buttons, newButton(page.Name, url.Values{"state": {state}, "page": {page.ID}}))
	}
	return view
}

func (a *API) chooseInBrowser(c *fiber.Ctx, state string) error {
	ctx, platform := c.UserContext(), c.Params("integration")
	asked, err := a.deps.Connects.Started(ctx, platform, state)
	if err != nil {
		return a.sendRefusal(c, err, nil)
	}
	member, err := a.deps.Guard.IsMember(c, asked.Org)
	if err != nil {
		return a.sendRefusal(c, err, nil)
	}
	done, err := a.deps.Connects.ChooseByState(ctx, platform, publishing.ChooseAccount{
		State: state, Candidate: c.Query("page"),
	})
	if err != nil { // the choice can be repeated while the state is valid
		view := choiceView(asked, state)
		return a.sendRefusal(c, err, &callbackView{Buttons: view.Buttons, Back: done.ReturnURL})
	}
	return a.sendConnected(c, asked, done, member)
}

// sendConnected redirects a member to the return URL, if there is one. Otherwise, it responds with
// a page that names the connected account.
func (a *API) sendConnected(
	c *fiber.Ctx, asked publishing.ConnectRequest, done publishing.ChannelConnected, member bool,
) error {
	if member && done.ReturnURL != "" {
		return c.Redirect(done.ReturnURL, http.StatusSeeOther)
	}
	return a.page.Send(c, http.StatusOK, callbackView{
		Title: "The account was connected",
		Text: "The organization “" + asked.Organization + "” can now publish as " + done.Channel.Name +
			". You can close this page.",
		Asked: askedBy(asked),
		Warning: "If this was not you, or if you did not intend to give this organization access, you can disconnect " +
			"the account here until " + done.DisownUntil.Format(page.Time) + ".",
		Buttons: []callbackButton{newButton("This was not me", url.Values{"disown": {done.Disown}})},
		Back:    done.ReturnURL,
	})
}

// disown disconnects a channel at the request of the person who granted access.
func (a *API) disown(c *fiber.Ctx, token string) error {
	out, err := a.deps.Connects.Disown(c.UserContext(), token)
	if err != nil {
		return a.sendRefusal(c, err, &callbackView{Title: "The account was not disconnected"})
	}
	view := callbackView{
		Title: "The account is disconnected",
		Text: "The organization “" + out.Organization + "” can no longer publish as " + out.Channel +
			". Its administrators have been notified.",
		Warning: "You can also remove Crier from the list of apps in your account settings on the platform.",
	}
	if !out.Disconnected {
		view.Title = "Nothing was changed"
		view.Text = "The account " + out.Channel + " was already disconnected, or it has since been connected to “" +
			out.Organization + "” again."
	}
	return a.page.Send(c, http.StatusOK, view)
}

// byOAuth reports whether a platform is connected by OAuth rather than with a form. It returns
// false if this instance does not have the platform.
func (a *API) byOAuth(platform string) bool {
	for _, d := range a.deps.Channels.Catalogue() {
		if d.ID == platform {
			return len(d.Fields) == 0
		}
	}
	return false
}

// sendRefusal responds with a page that explains why the request was rejected. view may be nil;
// otherwise, it sets the title, the buttons and the back link.
func (a *API) sendRefusal(c *fiber.Ctx, err error, view *callbackView) error {
	if view == nil {
		view = &callbackView{}
	}
	status, message := page.Problem(c, err)
	shown := callbackView{
		Title: cmp.Or(view.Title, "The account was not connected"), Text: message, Buttons: view.Buttons,
		Back: view.Back,
	}
	return a.page.Send(c, status, shown)
}
