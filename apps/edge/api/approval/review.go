package approval

import (
	"context"
	"net/http"
	"time"

	"crier/apps/edge/page"
	"crier/apps/edge/record"
	"crier/apps/edge/route"
	"crier/publishing"
)

// Reviews lets a guest with a review link see and answer a request. Methods return NotFound if the
// token is invalid, and Gone if the request can no longer be answered.
type Reviews interface {
	// Review returns the post and the request. It succeeds until the request expires, even if the
	// request has already been answered.
	Review(ctx context.Context, token string) (publishing.Review, error)
	// ResolveByToken answers a request. It returns Invalid if cmd is invalid, and Conflict if the
	// request has already been answered.
	ResolveByToken(ctx context.Context, token string, cmd publishing.ResolveApproval) (publishing.Review, error)
}

// ReviewResponse is what a guest sees of an approval request.
type ReviewResponse struct {
	Status       string             `json:"status" enum:"PENDING,APPROVED,REJECTED"`
	Organization ReviewOrganization `json:"organization"`
	Post         ReviewPost         `json:"post"`
	Note         *string            `json:"note" nullable:"true" doc:"The requester's note."`
	RequestedAt  string             `json:"requestedAt" format:"date-time"`
	ExpiresAt    string             `json:"expiresAt" format:"date-time"`
}

// ReviewOrganization is the organization that requests the approval.
type ReviewOrganization struct {
	Name string `json:"name"`
}

// ReviewPost is the post to approve.
type ReviewPost struct {
	PublishDate string         `json:"publishDate" format:"date-time"`
	Content     string         `json:"content"`
	ContentType string         `json:"contentType" enum:"text,html" doc:"Format of content. text is plain text and must be escaped before it is used in HTML. html is sanitized HTML."`
	Image       []record.Image `json:"image"`
	Thread      []ReviewPart   `json:"thread" doc:"The parts after the first part."`
	Channel     ReviewChannel  `json:"channel"`
}

// ReviewPart is a part of a post, other than the first part.
type ReviewPart struct {
	Content     string         `json:"content"`
	ContentType string         `json:"contentType" enum:"text,html"`
	Image       []record.Image `json:"image"`
	Delay       int            `json:"delay" doc:"Minutes after the previous part."`
}

// ReviewChannel is the account that publishes the post.
type ReviewChannel struct {
	Name               string `json:"name"`
	Picture            string `json:"picture"`
	ProviderIdentifier string `json:"providerIdentifier"`
	Profile            string `json:"profile"`
}

func (a *API) reviewAnswer(r publishing.Review) ReviewResponse {
	out := ReviewResponse{
		Status: string(r.Shown()), Organization: ReviewOrganization{Name: r.Organization}, Note: r.Note,
		RequestedAt: record.FormatTime(r.RequestedAt), ExpiresAt: record.FormatTime(r.ExpiresAt),
		Post: ReviewPost{
			PublishDate: record.FormatTime(r.Thread.Root.PublishDate), ContentType: string(publishing.ContentText),
			Image: []record.Image{}, Thread: []ReviewPart{},
			Channel: ReviewChannel{
				Name: r.Thread.Channel.Name, Picture: r.Thread.Channel.Picture,
				ProviderIdentifier: r.Thread.Channel.Connector, Profile: r.Thread.Channel.Profile,
			},
		},
	}
	for i, part := range r.Thread.Root.Parts {
		p := ReviewPart{
			Content: part.Content.Text, ContentType: string(part.Content.Type()), Image: []record.Image{},
			Delay: int(part.Delay / time.Minute),
		}
		for _, at := range part.Media {
			p.Image = append(p.Image, record.ImageRecord(a.deps.BaseURL, at, r.Thread.Media))
		}
		if i > 0 {
			out.Post.Thread = append(out.Post.Thread, p)
			continue
		}
		out.Post.Content, out.Post.ContentType, out.Post.Image = p.Content, p.ContentType, p.Image
	}
	return out
}

// Review returns the endpoint that shows an approval request to a guest.
func (a *API) Review() route.Endpoint {
	return route.JSON(route.Describe("Approvals", "Get the post behind a review link", 404, 410, 429), a.review)
}

type reviewInput struct {
	Token string `path:"token" doc:"Token from the review link."`
}

type reviewOutput struct {
	Robots string `header:"X-Robots-Tag"`
	Body   ReviewResponse
}

func (a *API) review(ctx context.Context, in *reviewInput) (*reviewOutput, error) {
	if err := a.deps.Gate.AdmitLink(ctx, in.Token); err != nil {
		return nil, err
	}
	r, err := a.deps.Reviews.Review(ctx, in.Token)
	if err != nil {
		return nil, err
	}
	return &reviewOutput{Robots: page.NoIndex, Body: a.reviewAnswer(r)}, nil
}

// ReviewRequest is a guest's answer to a request.
type ReviewRequest struct {
	Action       string  `json:"action,omitempty" maxLength:"100" doc:"approve or reject; required."`
	Note         *string `json:"note,omitempty" nullable:"true" maxLength:"8000" doc:"At most 2000 characters."`
	ReviewerName *string `json:"reviewerName,omitempty" nullable:"true" maxLength:"1000" doc:"At most 128 characters."`
}

// ReviewResolved is the response to a guest's answer.
type ReviewResolved struct {
	Status     string `json:"status" enum:"APPROVED,REJECTED"`
	ResolvedAt string `json:"resolvedAt" format:"date-time"`
}

// ResolveReview returns the endpoint that lets a guest answer a request. It requires neither a
// session nor an Origin header, because the token is the credential.
func (a *API) ResolveReview() route.Endpoint {
	d := route.Describe("Approvals", "Approve or reject the post behind a review link", 400, 404, 409, 410, 413, 429)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.resolveReview)
}

type resolveReviewInput struct {
	Token string `path:"token" doc:"Token from the review link."`
	Body  ReviewRequest
}

type resolveReviewOutput struct{ Body ReviewResolved }

func (a *API) resolveReview(ctx context.Context, in *resolveReviewInput) (*resolveReviewOutput, error) {
	if err := a.deps.Gate.AdmitLink(ctx, in.Token); err != nil {
		return nil, err
	}
	r, err := a.deps.Reviews.ResolveByToken(ctx, in.Token, publishing.ResolveApproval{
		Action: publishing.ApprovalAction(in.Body.Action), Note: in.Body.Note, Name: in.Body.ReviewerName,
	})
	if err != nil {
		return nil, err
	}
	out := &resolveReviewOutput{Body: ReviewResolved{Status: string(r.Shown())}}
	if r.ResolvedAt != nil {
		out.Body.ResolvedAt = record.FormatTime(*r.ResolvedAt)
	}
	return out, nil
}
