package edge

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"regexp"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/record"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/platform/mail"
)

//go:embed devmail.html
var devMailSource string

// devMailPolicy allows the page nothing but links.
const devMailPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// devMailView is the list of all mails, or one of them.
type devMailView struct {
	List []devMailLine
	One  *devMailLine
}

type devMailLine struct {
	ID, At, To, Subject string
	// Pieces are set for one mail only.
	Pieces []devMailPiece
}

// devMailPiece is a piece of the text of a mail. With Link the text is an address.
type devMailPiece struct {
	Text string
	Link bool
}

func (s *Server) getDevMails() route.Endpoint {
	return route.Raw(describeDevMail("Get the page that lists the mails of crier dev"), s.devMails, devMailAnswer())
}

func (s *Server) getDevMail() route.Endpoint {
	d := describeDevMail("Get the page of a mail of crier dev")
	d.Parameters = []*huma.Param{
		{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
	}
	return route.Raw(d, s.devMail, devMailAnswer())
}

func describeDevMail(summary string) huma.Operation {
	return huma.Operation{
		Summary: summary, Description: "Only for this machine, while crier dev runs. Elsewhere there is no such page.",
		Tags: []string{"Service"}, Errors: []int{404, 500},
	}
}

func devMailAnswer() route.Detail {
	return route.Content(http.StatusOK, "The page.", fiber.MIMETextHTML, &huma.Schema{Type: huma.TypeString})
}

// devMailbox returns the mails, and NotFound unless there is a mailbox and the request comes from this machine. A web
// page whose name resolves to this machine is refused by its host name (DNS rebinding), and so is what a proxy on this
// machine forwards.
func (s *Server) devMailbox(c *fiber.Ctx) ([]mail.Stored, error) {
	host := (&url.URL{Host: string(c.Request().Host())}).Hostname()
	forwarded := false
	for _, name := range forwarding {
		forwarded = forwarded || c.Request().Header.Peek(name) != nil
	}
	if s.deps.DevMail == nil || !peer(c).IsLoopback() || !Loopback(host) || forwarded {
		return nil, fiber.ErrNotFound
	}
	return s.deps.DevMail.Messages(), nil
}

func (s *Server) devMails(c *fiber.Ctx) error {
	box, err := s.devMailbox(c)
	if err != nil {
		return err
	}
	view := devMailView{List: make([]devMailLine, 0, len(box))}
	for _, m := range box {
		view.List = append(view.List, newDevMailLine(m))
	}
	return sendDevMail(c, view)
}

func (s *Server) devMail(c *fiber.Ctx) error {
	box, err := s.devMailbox(c)
	if err != nil {
		return err
	}
	for _, m := range box {
		if line := newDevMailLine(m); line.ID == c.Params("id") {
			line.Pieces = devMailPieces(m.Text)
			return sendDevMail(c, devMailView{One: &line})
		}
	}
	return fiber.ErrNotFound
}

// newDevMailLine returns a mail without its text. Equal mails of one moment have the same id.
func newDevMailLine(m mail.Stored) devMailLine {
	at := record.FormatTime(m.At)
	sum := sha256.Sum256([]byte(at + "\x00" + m.To + "\x00" + m.Subject + "\x00" + m.Text))
	return devMailLine{ID: hex.EncodeToString(sum[:8]), At: at, To: m.To, Subject: m.Subject}
}

var webAddress = regexp.MustCompile(`https?://[^\s<>"]+`)

// devMailPieces splits a text at its web addresses.
func devMailPieces(text string) (out []devMailPiece) {
	end := 0
	for _, at := range webAddress.FindAllStringIndex(text, -1) {
		out = append(out, devMailPiece{Text: text[end:at[0]]}, devMailPiece{Text: text[at[0]:at[1]], Link: true})
		end = at[1]
	}
	return append(out, devMailPiece{Text: text[end:]})
}

func sendDevMail(c *fiber.Ctx, view devMailView) error {
	t, err := template.New("mail").Parse(devMailSource)
	if err != nil {
		return fault.Wrap(fault.Internal, "edge.sendDevMail", "", err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	c.Set(fiber.HeaderContentSecurityPolicy, devMailPolicy)
	if err := t.Execute(c, view); err != nil {
		return fault.Wrap(fault.Internal, "edge.sendDevMail", "", err)
	}
	return nil
}
