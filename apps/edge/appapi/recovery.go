package appapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// ForgotPasswordDto is the body of POST /auth/forgot.
type ForgotPasswordDto struct {
	Email string `json:"email" maxLength:"254" example:"ada@example.org"`
}

type forgotInput struct{ Body ForgotPasswordDto }

// ForgotAnswer is the answer of POST /auth/forgot.
type ForgotAnswer struct {
	Forgot bool `json:"forgot" doc:"Always true, whether or not the address has an account."`
}

type forgotOutput struct{ Body ForgotAnswer }

// Forgot returns the endpoint that sends the link for a new password.
func (a *API) Forgot() route.Endpoint {
	return route.JSON(created(tagSignIn, "Send a link for a new password", 400, 403, 413, 429), a.forgot)
}

func (a *API) forgot(ctx context.Context, in *forgotInput) (*forgotOutput, error) {
	err := a.mailTo(ctx, a.buckets.resetAddress, a.admitDevice, in.Body.Email, a.deps.Accounts.Forgot)
	if err != nil {
		return nil, err
	}
	return &forgotOutput{Body: ForgotAnswer{Forgot: true}}, nil
}

// ForgotReturnPasswordDto is the body of POST /auth/forgot-return.
type ForgotReturnPasswordDto struct {
	Password       string `json:"password" maxLength:"128" doc:"8 to 128 characters."`
	RepeatPassword string `json:"repeatPassword" maxLength:"128" doc:"The same again."`
	Token          string `json:"token" minLength:"5" maxLength:"512" doc:"Of the link in the mail."`
}

type forgotReturnInput struct{ Body ForgotReturnPasswordDto }

// ForgotReturnAnswer is the answer of POST /auth/forgot-return.
type ForgotReturnAnswer struct {
	Reset bool `json:"reset" doc:"Whether the password is changed; false for a link that is over or was used."`
}

type forgotReturnOutput struct{ Body ForgotReturnAnswer }

// ForgotReturn returns the endpoint that sets a new password with the link of a mail, and ends all sessions.
func (a *API) ForgotReturn() route.Endpoint {
	return route.JSON(described(created(tagSignIn, "Set a new password with the link of a mail", 400, 403, 413, 429),
		"The link works for 20 minutes. Ends all sessions of the person."), a.forgotReturn)
}

func (a *API) forgotReturn(ctx context.Context, in *forgotReturnInput) (*forgotReturnOutput, error) {
	if err := a.admitLink(ctx, in.Body.Token); err != nil {
		return nil, err
	}
	var faults tenancy.Inputs
	faults.Password("password", in.Body.Password)
	faults.Check(in.Body.Password == in.Body.RepeatPassword, "repeatPassword", "must be the same as password")
	if err := faults.Err("appapi.forgotReturn"); err != nil {
		return nil, err
	}
	reset, err := a.deps.Accounts.ResetPassword(ctx, in.Body.Token, in.Body.Password, request.From(ctx).From)
	if err != nil {
		return nil, err
	}
	return &forgotReturnOutput{Body: ForgotReturnAnswer{Reset: reset}}, nil
}

// TokenRequest is the body of routes that use a token, of a link or of a step of a sign-in.
type TokenRequest struct {
	Token string `json:"token" minLength:"1" maxLength:"512"`
}

type tokenInput struct{ Body TokenRequest }

// ConfirmAnswer is the answer of POST /auth/confirm-email.
type ConfirmAnswer struct {
	Confirmed bool `json:"confirmed" doc:"Always true."`
	Changed   bool `json:"changed" doc:"Whether the address has changed; false until both links were followed."`
}

type confirmOutput struct{ Body ConfirmAnswer }

// ConfirmAddress returns the endpoint that follows one of the two links of a change of address.
func (a *API) ConfirmAddress() route.Endpoint {
	return route.JSON(described(created(tagSignIn, "Confirm a change of address", 400, 403, 404, 409, 413, 429),
		"The address changes when the links in the mails to the old and to the new address were followed."), a.confirm)
}

func (a *API) confirm(ctx context.Context, in *tokenInput) (*confirmOutput, error) {
	if err := a.admitLink(ctx, in.Body.Token); err != nil {
		return nil, err
	}
	changed, err := a.deps.Accounts.ConfirmAddress(ctx, in.Body.Token, request.From(ctx).From)
	if err != nil {
		return nil, err
	}
	return &confirmOutput{Body: ConfirmAnswer{Confirmed: true, Changed: changed}}, nil
}

type restoreInput struct {
	BrowserCookies
	Body TokenRequest
}

// Restore returns the endpoint that undoes the deletion of an account and completes the sign-in.
func (a *API) Restore() route.Endpoint {
	return route.JSON(described(created(tagSignIn, "Undo the deletion of the account", 400, 401, 403, 410, 413, 429),
		"Needs the restoreToken of a sign-in. Organizations whose only member the person is are restored too."),
		a.restore)
}

func (a *API) restore(ctx context.Context, in *restoreInput) (*loginOutput, error) {
	if err := a.admitLink(ctx, in.Body.Token); err != nil {
		return nil, err
	}
	signIn, err := a.deps.Accounts.Restore(ctx, in.Body.Token, request.From(ctx).From)
	if err != nil {
		return nil, err
	}
	return a.loginAnswer(ctx, signIn, in.BrowserCookies)
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
	d := describe(tagSignIn, summary, errors...)
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
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " and " + all[last]
	}
	return strings.Join(all, "")
}

func sendPage(c *fiber.Ctx, page string) error {
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	c.Set(fiber.HeaderContentSecurityPolicy,
		"default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	return c.SendString(page)
}

func (a *API) unsubscribe(c *fiber.Ctx) error {
	if err := a.admitPage(c, c.Query("token")); err != nil {
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
