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

// newMailPage returns the page that shows the list or one mail. Its policy allows nothing but
// links.
func newMailPage() *page.Page { return page.New(mailFiles, "mail.html") }

// mailView is the list of all mails, or one of them.
type mailView struct {
	List []mailLine
	One  *mailLine
}

type mailLine struct {
	ID, At, To, Subject string
	// Pieces are set for one mail only.
	Pieces []mailPiece
}

// mailPiece is a piece of a mail's text. If Link is set, the piece is a web address.
type mailPiece struct {
	Text string
	Link bool
}

// ListMails returns the endpoint of the page that lists the mails.
func (a *API) ListMails() route.Endpoint {
	return route.Raw(describeMail("Get the page that lists the mail of crier dev"), a.listMails, page.Answer("The page."))
}

// Mail returns the endpoint of the page that shows one mail.
func (a *API) Mail() route.Endpoint {
	d := describeMail("Get the page of one mail of crier dev")
	d.Parameters = []*huma.Param{
		{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
	}
	return route.Raw(d, a.getMail, page.Answer("The page."))
}

func describeMail(summary string) huma.Operation {
	return huma.Operation{
		Summary: summary, Description: "Only reachable from this machine while crier dev runs; 404 otherwise.",
		Tags: []string{"Service"}, Errors: []int{404, 500},
	}
}

// mailbox returns the mails, or NotFound unless there is a mailbox and the request comes from this
// machine. It also refuses a web page whose name resolves to this machine (DNS rebinding), by its
// host name, and requests that a proxy on this machine forwards.
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

// newMailLine returns a mail without its text. Identical mails sent at the same moment have the
// same id.
func newMailLine(m mail.Stored) mailLine {
	at := record.FormatTime(m.At)
	sum := sha256.Sum256([]byte(at + "\x00" + m.To + "\x00" + m.Subject + "\x00" + m.Text))
	return mailLine{ID: hex.EncodeToString(sum[:8]), At: at, To: m.To, Subject: m.Subject}
}

var webAddress = regexp.MustCompile(`https?://[^\s<>"]+`)

// splitAddresses splits a text into its web addresses and the text between them.
func splitAddresses(text string) (out []mailPiece) {
	end := 0
	for _, at := range webAddress.FindAllStringIndex(text, -1) {
		out = append(out, mailPiece{Text: text[end:at[0]]}, mailPiece{Text: text[at[0]:at[1]], Link: true})
		end = at[1]
	}
	return append(out, mailPiece{Text: text[end:]})
}
