package user

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/route"
	"crier/platform/text"
	"crier/tenancy"
)

// Unsubscribers are the use cases of the links that end mails.
type Unsubscribers interface {
	// UnsubscribeTopics returns what mails Unsubscribe ends, and changes nothing. A token that is not valid is NotFound.
	UnsubscribeTopics(token string) ([]tenancy.MailTopic, error)
	// Unsubscribe switches the mails off that a link of List-Unsubscribe names. A token that is not valid is NotFound.
	Unsubscribe(ctx context.Context, token string) error
}

// UnsubscribeAnswer is the answer of POST /auth/unsubscribe to programs.
type UnsubscribeAnswer struct {
	Unsubscribed bool `json:"unsubscribed" doc:"Always true."`
}

// UnsubscribePage returns the endpoint of the page to which the link in a mail leads. The page changes nothing itself,
// because programs follow the links of mails to check them: its form does.
func (a *API) UnsubscribePage() route.Endpoint {
	return route.Raw(describeUnsubscribe("Get the page that ends mails of some kinds", 404), a.unsubscribePage,
		route.Content(http.StatusOK, "The page.", fiber.MIMETextHTML, &huma.Schema{Type: huma.TypeString}))
}

// Unsubscribe returns the endpoint that ends the mails which its link names (RFC 8058). It reads no body.
func (a *API) Unsubscribe() route.Endpoint {
	return route.Raw(describeUnsubscribe("End mails of some kinds", 404, 429), a.unsubscribe,
		route.Answer[UnsubscribeAnswer](http.StatusCreated, "No more such mails are sent. Browsers get a page."))
}

func describeUnsubscribe(summary string, errors ...int) huma.Operation {
	d := route.Describe("Sign-in", summary, errors...)
	d.Parameters = []*huma.Param{{
		Name: "token", In: "query", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		Description: "Of the link in the mail.",
	}}
	return d
}

// The pages of the two steps, for Sprintf with what the mails are about. The form posts to the address of the page itself.
const (
	unsubscribeHead = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>Mails of Crier</title></head>
<body>
<h1>Mails of Crier</h1>
`
	unsubscribeForm = unsubscribeHead + `<form method="post">
<p>Shall we stop sending you mails about %s?</p>
<button>Stop sending them</button>
</form>
</body>
</html>
`
	unsubscribeDone = unsubscribeHead + `<p>You will get no more mails about %s.
The settings of your account can switch them on again.</p>
</body>
</html>
`
)

func (a *API) unsubscribePage(c *fiber.Ctx) error {
	topics, err := a.deps.Accounts.UnsubscribeTopics(c.Query("token"))
	if err != nil {
		return err
	}
	return sendPage(c, fmt.Sprintf(unsubscribeForm, about(topics)))
}

// about returns what the mails of topics are about, in words of the service.
func about(topics []tenancy.MailTopic) string {
	var all []string
	for _, t := range topics {
		all = append(all, t.About())
	}
	return text.List(all)
}

func sendPage(c *fiber.Ctx, page string) error {
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	c.Set(fiber.HeaderContentSecurityPolicy,
		"default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	return c.SendString(page)
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
	c.Status(http.StatusCreated)
	if c.Accepts(fiber.MIMEApplicationJSON, fiber.MIMETextHTML) == fiber.MIMETextHTML {
		return sendPage(c, fmt.Sprintf(unsubscribeDone, about(topics)))
	}
	return c.JSON(UnsubscribeAnswer{Unsubscribed: true})
}
