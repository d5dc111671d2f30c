package approval

import (
	"embed"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
)

//go:embed page.html
var reviewFiles embed.FS

// reviewStyle is the page's entire style sheet.
const reviewStyle = `main{max-width:40rem;margin:2rem auto;padding:0 1rem;font-family:sans-serif;line-height:1.5}` +
	`article{border:1px solid;border-radius:.5rem;padding:1rem;margin:1rem 0}.text{white-space:pre-wrap;overflow-wrap:anywhere}` +
	`img{max-width:100%;height:auto}input,textarea{width:100%;box-sizing:border-box;font:inherit}` +
	`button{font:inherit;padding:.6rem 1.2rem}.problem{border-left:.3rem solid;padding-left:.7rem}dt{font-weight:bold}dd{margin:0 0 .5rem}`

// reviewView holds what the page shows.
type reviewView struct {
	Title string
	// Problem explains why a request cannot be shown or an answer was not accepted.
	Problem string
	// Review is nil if there is no request to show.
	Review *reviewShown
	// Open reports whether the page shows the form. Name and Text hold what the guest entered in
	// the form.
	Open       bool
	Name, Text string
}

type reviewShown struct {
	Organization string
	Channel      publishing.Channel
	// Date and Expires are human-readable. DateTime and ExpiresTime are the same times in
	// machine-readable form.
	Date, DateTime, Expires, ExpiresTime string
	// Passed reports whether the post's date has passed.
	Passed       bool
	AutoSchedule bool
	Note         string
	Parts        []reviewShownPart
	// Answer states how the request was answered, followed by the reviewer's note.
	Answer string
}

type reviewShownPart struct {
	Text, Delay string
	Images      []reviewImage
}

type reviewImage struct {
	URL, Alt string
	Video    bool
}

func newReviewPage() *page.Page {
	return page.New(reviewFiles, "page.html", page.Images(page.Self), page.Style(reviewStyle), page.Forms(page.Self))
}

// ReviewPage returns the endpoint for the page that shows an approval request to a guest. The page
// works without JavaScript.
func (a *API) ReviewPage() route.Endpoint {
	d := route.Describe("Approvals", "Get the review page", 404, 410, 429)
	d.Parameters = []*huma.Param{page.PathParam("token", "Token from the review link.")}
	return route.Raw(d, a.reviewPage, page.Answer("The page."))
}

// AnswerReviewPage returns the endpoint that accepts the page's form. The token in the URL is the
// credential. A page on another site does not know the token, so it cannot submit the form.
func (a *API) AnswerReviewPage() route.Endpoint {
	d := route.Describe("Approvals", "Approve or reject a post with the form on the review "+
		"page", 400, 404, 409, 410, 413, 429)
	d.Parameters = []*huma.Param{page.PathParam("token", "Token from the review link.")}
	d.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		fiber.MIMEApplicationForm: {Schema: &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{
			"action": {Type: huma.TypeString, Enum: []any{"approve", "reject"}}, "note": {Type: huma.TypeString},
			"reviewerName": {Type: huma.TypeString},
		}}},
	}}
	return route.Raw(d, a.answerReviewPage,
		route.Content(http.StatusSeeOther, "The answer is stored, and the page shows it.", "", nil))
}

func (a *API) reviewPage(c *fiber.Ctx) error {
	if err := a.deps.Gate.AdmitPage(c, c.Params("token")); err != nil {
		return a.sendReview(c, publishing.Review{}, err, nil)
	}
	r, err := a.deps.Reviews.Review(c.UserContext(), c.Params("token"))
	return a.sendReview(c, r, err, nil)
}

func (a *API) answerReviewPage(c *fiber.Ctx) error {
	if err := a.deps.Gate.AdmitPage(c, c.Params("token")); err != nil {
		return a.sendReview(c, publishing.Review{}, err, nil)
	}
	form, err := url.ParseQuery(string(request.From(c.Context()).Body.Loaded()))
	if err != nil {
		err = fault.Wrap(fault.Invalid, "approval.answerReviewPage", "The form is not valid.", err)
		return a.answerRefused(c, err, form)
	}
	note, name := browserText(form.Get("note")), form.Get("reviewerName")
	cmd := publishing.ResolveApproval{Action: publishing.ApprovalAction(form.Get("action")), Note: &note, Name: &name}
	if cmd.Action == publishing.ActionReject && strings.TrimSpace(note) == "" {
		err := fault.New(fault.Invalid, "approval.answerReviewPage", "Explain in the note what should change.")
		return a.answerRefused(c, err, form)
	}
	if _, err := a.deps.Reviews.ResolveByToken(c.UserContext(), c.Params("token"), cmd); err != nil {
		return a.answerRefused(c, err, form)
	}
	a.page.SetHeaders(c)
	// The URL is relative, because the page's Content-Security-Policy lets a form submission
	// redirect only to the page's own origin.
	return c.Redirect(url.PathEscape(c.Params("token")), http.StatusSeeOther)
}

// browserText returns a textarea's text, with LF in place of the CR LF that browsers send.
func browserText(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// answerRefused responds to an answer that was not accepted. The page shows the request's current
// state, the reason, and what the guest entered.
func (a *API) answerRefused(c *fiber.Ctx, err error, form url.Values) error {
	r, shown := a.deps.Reviews.Review(c.UserContext(), c.Params("token"))
	if shown != nil {
		return a.sendReview(c, publishing.Review{}, shown, nil)
	}
	return a.sendReview(c, r, err, form)
}

// sendReview responds with the page. If r is not empty, the page shows r. If err is not nil, the
// page explains err.
func (a *API) sendReview(c *fiber.Ctx, r publishing.Review, err error, form url.Values) error {
	view := reviewView{Title: "Review a post", Name: form.Get("reviewerName"), Text: form.Get("note")}
	status, message := page.Problem(c, err)
	view.Problem = message
	if !r.ID.IsZero() {
		view.Review = a.reviewShown(r)
		view.Open = r.Status == publishing.ApprovalPending
	}
	return a.page.Send(c, status, view)
}

func (a *API) reviewShown(r publishing.Review) *reviewShown {
	date, ends := r.Thread.Root.PublishDate.UTC(), r.ExpiresAt.UTC()
	out := &reviewShown{
		Organization: r.Organization, Channel: r.Thread.Channel, AutoSchedule: r.AutoSchedule,
		Date: date.Format(page.Time), DateTime: record.FormatTime(date),
		Expires: ends.Format(page.Time), ExpiresTime: record.FormatTime(ends),
		Passed: !date.After(a.deps.Clock.Now()), Answer: reviewOutcome(r.Approval),
	}
	if r.Note != nil {
		out.Note = *r.Note
	}
	for _, part := range r.Thread.Root.Parts {
		p := reviewShownPart{Text: part.Content.Plain()}
		if part.Delay > 0 {
			p.Delay = fmt.Sprintf("%d minutes later:", int(part.Delay/time.Minute))
		}
		for _, at := range part.Media {
			i := record.ImageRecord("", at, r.Thread.Media)
			p.Images = append(p.Images, reviewImage{URL: i.URL, Alt: i.Alt, Video: i.Type == "video"})
		}
		out.Parts = append(out.Parts, p)
	}
	return out
}

// reviewOutcome states in words how a request was answered. It returns "" if the request has not
// been answered.
func reviewOutcome(a publishing.Approval) string {
	if a.ResolvedAt == nil {
		return ""
	}
	text := "This post was approved"
	if a.Status == publishing.ApprovalRejected {
		text = "This post was rejected"
	}
	text += " on " + a.ResolvedAt.UTC().Format(page.Time) + "."
	if a.ReviewerNote != nil {
		text += "\n\n" + *a.ReviewerNote
	}
	return text
}
