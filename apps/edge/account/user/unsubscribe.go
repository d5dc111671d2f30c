package user

import (
	"context"
	"embed"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/route"
	"crier/platform/text"
	"crier/tenancy"
)

// Unsubscribers handles unsubscribe links.
type Unsubscribers interface {
	// UnsubscribeTopics returns the kinds of email that Unsubscribe would turn off. It changes
	// nothing. It returns NotFound if the token is invalid.
	UnsubscribeTopics(token string) ([]tenancy.MailTopic, error)
	// Unsubscribe turns off the kinds of email named in the token, which comes from a
	// List-Unsubscribe link. It returns NotFound if the token is invalid.
	Unsubscribe(ctx context.Context, token string) error
}

// UnsubscribeResponse is the response to a POST /auth/unsubscribe request from a program. Browsers
// get a page instead.
type UnsubscribeResponse struct {
	Unsubscribed bool `json:"unsubscribed" doc:"Always true."`
}

// UnsubscribePage returns the endpoint for the page that an unsubscribe link opens. Opening the
// page does not unsubscribe the person, because some programs check emails by opening their links.
// Submitting the page's form does.
func (a *API) UnsubscribePage() route.Endpoint {
	return route.Raw(describeUnsubscribe("Get the unsubscribe page", 404), a.unsubscribePage,
		page.Answer("The page."))
}

// Unsubscribe returns the endpoint that turns off the kinds of email named in the link (RFC 8058).
// The endpoint does not read the request body.
func (a *API) Unsubscribe() route.Endpoint {
	return route.Raw(describeUnsubscribe("Unsubscribe from some kinds of email", 404, 429), a.unsubscribe,
		route.Answer[UnsubscribeResponse](http.StatusCreated, "No more emails of these kinds are sent. The response to "+
			"a browser is a page."))
}

func describeUnsubscribe(summary string, errors ...int) huma.Operation {
	d := route.Describe("Sign-in", summary, errors...)
	d.Parameters = []*huma.Param{{
		Name: "token", In: "query", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		Description: "Token from the link in the email.",
	}}
	return d
}

//go:embed unsubscribe.html
var unsubscribeFiles embed.FS

// newUnsubscribePage returns the page that is shown before and after unsubscribing. Its form posts
// to the page's own URL.
func newUnsubscribePage() *page.Page {
	return page.New(unsubscribeFiles, "unsubscribe.html", page.Forms(page.Self))
}

type unsubscribeView struct {
	// About says what the emails are about.
	About string
	// Done is set if the emails have been turned off.
	Done bool
}

func (a *API) unsubscribePage(c *fiber.Ctx) error {
	topics, err := a.deps.Accounts.UnsubscribeTopics(c.Query("token"))
	if err != nil {
		return err
	}
	return a.page.Send(c, http.StatusOK, unsubscribeView{About: about(topics)})
}

// about returns a human-readable list of the topics.
func about(topics []tenancy.MailTopic) string {
	var all []string
	for _, t := range topics {
		all = append(all, t.About())
	}
	return text.List(all)
}

func (a *API) unsubscribe(c *fiber.Ctx) error {
	if err := a.deps.Gate.AdmitPage(c, c.Query("token")); err != nil {
		return err
	}
	topics, err := a.deps.Accounts.UnsubscribeTopics(c.Query("token"))
	if err != nil {
		return err
	}
	if err := a.deps.Accounts.Unsubscribe(c.UserContext(), c.Query("token")); err != nil {
		return err
	}
	if c.Accepts(fiber.MIMEApplicationJSON, fiber.MIMETextHTML) == fiber.MIMETextHTML {
		return a.page.Send(c, http.StatusCreated, unsubscribeView{About: about(topics), Done: true})
	}
	return c.Status(http.StatusCreated).JSON(UnsubscribeResponse{Unsubscribed: true})
}
