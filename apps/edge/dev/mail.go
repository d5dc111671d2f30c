package dev

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"regexp"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/mail"
)

//go:embed mail.html
var mailFiles embed.FS

// newMailPage returns the page that shows either the list of emails or a single email. Its content
// security policy allows nothing but links.
func newMailPage() *page.Page { return page.New(mailFiles, "mail.html") }

// mailView is either the list of all emails or a single email.
type mailView struct {
	List []mailLine
	One  *mailLine
}

type mailLine struct {
	ID, At, To, Subject string
	// Pieces is set only if a single email is shown.
	Pieces []mailPiece
}

// mailPiece is a piece of an email's text. If Link is set, the piece is a URL.
type mailPiece struct {
	Text string
	Link bool
}

// ListMails returns the endpoint for the page that lists the emails.
func (a *API) ListMails() route.Endpoint {
	return route.Raw(describeMail("Get the page that lists the emails of crier "+
		"dev"), a.listMails, page.Answer("The page."))
}

// Mail returns the endpoint for the page that shows one email.
func (a *API) Mail() route.Endpoint {
	d := describeMail("Get the page for one email of crier dev")
	d.Parameters = []*huma.Param{
		{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
	}
	return route.Raw(d, a.getMail, page.Answer("The page."))
}

func describeMail(summary string) huma.Operation {
	return huma.Operation{
		Summary: summary, Description: "Available only from the same machine while crier dev is running; otherwise " +
			"404.",
		Tags: []string{"Service"}, Errors: []int{404, 500},
	}
}

// mailbox returns the stored emails. It returns NotFound if there is no mailbox, if the request
// comes from another machine, or if a proxy forwarded it. The request's host must be localhost or a
// loopback address. Otherwise, a website whose name resolves to this machine could read the emails
// (DNS rebinding).
func (a *API) mailbox(c *fiber.Ctx) ([]mail.Stored, error) {
	local := request.Peer(c.Context()).IsLoopback() && request.IsLoopback(hostname(c))
	if a.deps.Mails == nil || !local || request.Forwarding(&c.Request().Header) != "" {
		return nil, fiber.ErrNotFound
	}
	return a.deps.Mails.Messages(), nil
}

func (a *API) listMails(c *fiber.Ctx) error {
	box, err := a.mailbox(c)
	if err != nil {
		return err
	}
	view := mailView{List: make([]mailLine, 0, len(box))}
	for _, m := range box {
		view.List = append(view.List, newMailLine(m))
	}
	return a.mailPage.Send(c, http.StatusOK, view)
}

func (a *API) getMail(c *fiber.Ctx) error {
	box, err := a.mailbox(c)
	if err != nil {
		return err
	}
	for _, m := range box {
		if line := newMailLine(m); line.ID == c.Params("id") {
			line.Pieces = splitAddresses(m.Text)
			return a.mailPage.Send(c, http.StatusOK, mailView{One: &line})
		}
	}
	return fiber.ErrNotFound
}

// newMailLine returns the line for an email, without the email's text. Identical emails sent at the
// same moment have the same id.
func newMailLine(m mail.Stored) mailLine {
	at := record.FormatTime(m.At)
	sum := sha256.Sum256([]byte(at + "\x00" + m.To + "\x00" + m.Subject + "\x00" + m.Text))
	return mailLine{ID: hex.EncodeToString(sum[:8]), At: at, To: m.To, Subject: m.Subject}
}

var webAddress = regexp.MustCompile(`https?://[^\s<>"]+`)

// splitAddresses splits a text into its URLs and the text between them.
func splitAddresses(text string) (out []mailPiece) {
	end := 0
	for _, at := range webAddress.FindAllStringIndex(text, -1) {
		out = append(out, mailPiece{Text: text[end:at[0]]}, mailPiece{Text: text[at[0]:at[1]], Link: true})
		end = at[1]
	}
	return append(out, mailPiece{Text: text[end:]})
}
