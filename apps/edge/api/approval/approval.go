// Package approval provides the endpoints for approving drafts with an API key, a session or a
// review link.
package approval

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/admission"
	"crier/apps/edge/page"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// Deps holds an API's dependencies.
type Deps struct {
	// BaseURL is the service's URL, without a trailing slash. Example: https://crier.example.com
	BaseURL   string
	Approvals Approvals
	Reviews   Reviews
	Reviewers Reviewers
	Gate      *admission.Gate
	Clock     clock.Clock
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct {
	deps Deps
	page *page.Page
}

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d, page: newReviewPage()} }

// Approvals manages requests to approve drafts. Methods return NotFound if the post or the request
// does not exist or belongs to another organization, or if its id does not parse.
type Approvals interface {
	// Request requests approval of a draft. It returns Invalid if cmd is invalid, and Conflict if
	// the post is not a draft or is already waiting for approval. It returns RateLimited if the
	// limit on emails to reviewers has been reached.
	Request(
		ctx context.Context, p tenancy.Principal, post string, cmd publishing.RequestApproval,
	) (publishing.Approval, error)
	// Status returns a post's pending request or, if none is pending, its newest request. If the
	// post has no request or the newest one is void, Status returns the zero Approval, which
	// clients see as NONE.
	Status(ctx context.Context, p tenancy.Principal, post string) (publishing.Approval, error)
	// List returns requests, newest first, or Invalid if the query is invalid.
	List(ctx context.Context, p tenancy.Principal, q publishing.ListApprovals) ([]publishing.Approval, error)
	// Withdraw withdraws a request and returns it. It returns Forbidden if the principal may not
	// withdraw the request, and Conflict if the request is being answered or its post is being
	// published.
	Withdraw(ctx context.Context, p tenancy.Principal, approval string) (publishing.Approval, error)
	// Resolve records a member's answer to a request and returns the request. It returns Invalid if
	// cmd is invalid, and Forbidden if the member is the requester. It returns Conflict if the
	// request has already been answered, and Gone if the request can no longer be answered.
	Resolve(
		ctx context.Context, p tenancy.Principal, approval string, cmd publishing.ResolveApproval,
	) (publishing.Approval, error)
}

// ApprovalRecord is a request to approve a post, with its answer.
type ApprovalRecord struct {
	ID           string     `json:"id" doc:"Id of the request."`
	PostID       string     `json:"postId" doc:"Id of the draft to approve."`
	Status       string     `json:"status" enum:"NONE,PENDING,APPROVED,REJECTED,EXPIRED" doc:"Status of the request. NONE if the request was withdrawn, or if its post was edited or scheduled."`
	Note         *string    `json:"note" nullable:"true" doc:"The requester's note."`
	ReviewerNote *string    `json:"reviewerNote" nullable:"true" doc:"The reviewer's note."`
	ReviewerName *string    `json:"reviewerName" nullable:"true" doc:"The name that a guest entered, or a member's email address."`
	Guest        bool       `json:"guest,omitempty" doc:"true if a guest answered through a review link; absent otherwise. A guest's reviewerName is not verified."`
	RequestedBy  *Requester `json:"requestedBy"`
	RequestedAt  string     `json:"requestedAt" format:"date-time" doc:"When approval was requested."`
	ResolvedAt   *string    `json:"resolvedAt" nullable:"true" format:"date-time" doc:"When the request was answered or ended; null while it is pending."`
	ExpiresAt    string     `json:"expiresAt" format:"date-time" doc:"When the request expires. After that, it can no longer be answered."`
	AutoSchedule bool       `json:"autoSchedule" doc:"Whether approving the post also schedules it."`
	ReviewURL    *string    `json:"reviewUrl" nullable:"true" doc:"URL of the review page. Anyone with this URL can answer, so it is shown only to members other than the requester, and only while the request can be answered. Each member sees a different URL. A member's URL works only while they are a member."`
}

// Requester is the person who requested approval: the signed-in person, the creator of the API key,
// or the person on whose behalf an agent requested it.
type Requester struct {
	ID       string       `json:"id"`
	Email    *string      `json:"email"`
	Operator bool         `json:"operator,omitempty"`
	Agent    *record.Name `json:"agent,omitempty"`
}

// Schema returns a schema that allows a requester or null, because huma has no nullable references.
func (Requester) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Nullable: true, Required: []string{"id", "email"},
		Description: "The requester: the person who was signed in, the creator of the API key, or the person on whose " +
			"behalf an agent made the request. It is null if the key has no creator.",
		Properties: map[string]*huma.Schema{
			"id": {Type: huma.TypeString, Description: "Id of the person."},
			"email": {Type: huma.TypeString, Nullable: true, Description: "Email address of the person; null for " +
				"former members."},
			"operator": {
				Type:        huma.TypeBoolean,
				Description: "true if an instance administrator impersonated the person; absent otherwise.",
			},
			"agent": {
				Type: huma.TypeObject, Required: []string{"id", "name"},
				Description: "The agent that made the request on behalf of the person; absent otherwise.",
				Properties: map[string]*huma.Schema{
					"id":   {Type: huma.TypeString, Description: "Id of the agent."},
					"name": {Type: huma.TypeString, Description: "Name of the agent at the time of the request."},
				},
			},
		},
	}
}

func approvalRecord(a publishing.Approval) ApprovalRecord {
	out := ApprovalRecord{
		ID: a.ID.String(), PostID: a.Post.String(), Status: string(a.Shown()), Note: a.Note,
		ReviewerNote: a.ReviewerNote,
		ReviewerName: a.ReviewerName, Guest: a.ByGuest(), RequestedAt: record.FormatTime(a.RequestedAt),
		ResolvedAt: record.OptionalTime(a.ResolvedAt),
		ExpiresAt:  record.FormatTime(a.ExpiresAt), AutoSchedule: a.AutoSchedule,
	}
	if !a.Person.IsZero() {
		out.RequestedBy = &Requester{ID: a.Person.String(), Email: a.PersonEmail, Operator: !a.Impersonator.IsZero()}
		if !a.Agent.IsZero() {
			out.RequestedBy.Agent = &record.Name{ID: a.Agent.String(), Name: a.AgentName}
		}
	}
	if a.ReviewURL != "" {
		out.ReviewURL = &a.ReviewURL
	}
	return out
}

// Reviewers limits how often reviewers are emailed.
type Reviewers interface {
	// ReviewerAdmission returns admit, which counts an email that ctx's principal sends to a
	// reviewer. admit returns RateLimited if a limit has been reached. It can be called in a
	// transaction.
	ReviewerAdmission(ctx context.Context) (admit func(ctx context.Context, email string) error, err error)
}

// RequestApprovalRequest is the optional body of POST /posts/{id}/request-approval.
type RequestApprovalRequest struct {
	Note          *string `json:"note,omitempty" nullable:"true" maxLength:"8000" doc:"A note to the reviewer, at most 2000 characters."`
	ReviewerEmail *string `json:"reviewerEmail,omitempty" nullable:"true" maxLength:"320" doc:"Email address to which the link to the review page and a reminder are sent. It must not be the requester's own address."`
	AutoSchedule  bool    `json:"autoSchedule,omitempty" doc:"Whether approving the post also schedules it for its date. If the date has passed, the post is published immediately."`
}

type requestApprovalInput struct {
	ID   string `path:"id" doc:"Post id."`
	Body *RequestApprovalRequest
}

type approvalOutput struct{ Body ApprovalRecord }

// RequestApproval returns the endpoint that requests approval of a draft.
func (a *API) RequestApproval() route.Endpoint {
	d := route.Describe("Approvals", "Request approval of a draft", 400, 404, 409, 413, 429)
	d.Description = "The request can be answered for 7 days. Editing the post ends the request. While the request is " +
		"pending, only administrators can schedule the post. Scheduling the post also ends the request. 409: the " +
		"post is not a draft, or is already waiting for approval."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.requestApproval)
}

func (a *API) requestApproval(ctx context.Context, in *requestApprovalInput) (*approvalOutput, error) {
	var cmd publishing.RequestApproval
	if in.Body != nil {
		cmd = publishing.RequestApproval{
			Note: in.Body.Note, ReviewerEmail: in.Body.ReviewerEmail, AutoSchedule: in.Body.AutoSchedule,
		}
	}
	if cmd.ReviewerEmail != nil {
		admit, err := a.deps.Reviewers.ReviewerAdmission(ctx)
		if err != nil {
			return nil, err
		}
		cmd.Admit = admit
	}
	made, err := a.deps.Approvals.Request(ctx, request.Principal(ctx), in.ID, cmd)
	if err != nil {
		return nil, err
	}
	return &approvalOutput{Body: approvalRecord(made)}, nil
}

// NoApproval is the response if a post has no request or its newest request is void.
type NoApproval struct {
	Status string `json:"status" enum:"NONE" doc:"Always NONE: there is no valid request."`
}

type approvalStatusOutput struct{ Body any }

// GetApproval returns the endpoint that gets a post's newest request.
func (a *API) GetApproval() route.Endpoint {
	d := route.Describe("Approvals", "Get a post's latest approval request", 404)
	d.Description = `The response is {"status":"NONE"} if the post has no request or the latest request is void.`
	return route.JSON(d, a.getApproval, route.AnswerEither[ApprovalRecord, NoApproval](http.StatusOK, "OK"))
}

type approvalOfInput struct {
	ID string `path:"id" doc:"Post id."`
}

func (a *API) getApproval(ctx context.Context, in *approvalOfInput) (*approvalStatusOutput, error) {
	found, err := a.deps.Approvals.Status(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	if found.Shown() == publishing.ApprovalNone {
		return &approvalStatusOutput{Body: NoApproval{Status: string(publishing.ApprovalNone)}}, nil
	}
	return &approvalStatusOutput{Body: approvalRecord(found)}, nil
}

// ApprovalList is the response that lists requests.
type ApprovalList struct {
	Approvals []ApprovalRecord `json:"approvals" doc:"The requests, newest first."`
}

type listApprovalsInput struct {
	Status string            `query:"status" enum:"PENDING,APPROVED,REJECTED,EXPIRED,NONE" doc:"Only requests with this status."`
	Before string            `query:"before" maxLength:"64" doc:"Id of a request. Only older requests are listed."`
	Limit  route.OptionalInt `query:"limit" doc:"Maximum number of requests, 1 to 100 (default 20)."`
}

type approvalsOutput struct{ Body ApprovalList }

// ListApprovals returns the endpoint that lists the organization's requests.
func (a *API) ListApprovals() route.Endpoint {
	d := route.Describe("Approvals", "List approval requests, newest first", 400)
	d.Description = "Without status, requests with any status are listed. To list older requests, set before to the " +
		"id of the last listed request."
	d.SkipValidateParams = true // see route.OptionalInt
	return route.JSON(d, a.listApprovals)
}

func (a *API) listApprovals(ctx context.Context, in *listApprovalsInput) (*approvalsOutput, error) {
	limit, wrong := in.Limit.Between("limit", 1, publishing.MaxApprovalPage, publishing.DefaultApprovalPage)
	if len(wrong) > 0 {
		return nil, &fault.Error{
			Kind: fault.Invalid, Op: "approval.listApprovals", Message: "The query is not valid.", Fields: wrong,
		}
	}
	all, err := a.deps.Approvals.List(ctx, request.Principal(ctx), publishing.ListApprovals{
		Status: in.Status, Before: in.Before, Limit: limit,
	})
	if err != nil {
		return nil, err
	}
	out := &approvalsOutput{Body: ApprovalList{Approvals: make([]ApprovalRecord, 0, len(all))}}
	for _, x := range all {
		out.Body.Approvals = append(out.Body.Approvals, approvalRecord(x))
	}
	return out, nil
}

// DeleteApproval returns the endpoint that withdraws a request.
func (a *API) DeleteApproval() route.Endpoint {
	d := route.Describe("Approvals", "Withdraw an approval request", 403, 404, 409)
	d.Description = "The review link stops working, and an approval that was already given is void. Members can " +
		"withdraw their own requests; administrators and API keys can withdraw any. 409: the request has already " +
		"ended."
	return route.JSON(d, a.deleteApproval)
}

type approvalInput struct {
	ID string `path:"id" doc:"Id of the request."`
}

func (a *API) deleteApproval(ctx context.Context, in *approvalInput) (*approvalOutput, error) {
	ended, err := a.deps.Approvals.Withdraw(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return &approvalOutput{Body: approvalRecord(ended)}, nil
}

// ResolveApprovalRequest is a member's answer to a request.
type ResolveApprovalRequest struct {
	Action string  `json:"action,omitempty" maxLength:"100" doc:"approve or reject; required."`
	Note   *string `json:"note,omitempty" nullable:"true" maxLength:"8000" doc:"At most 2000 characters."`
}

type resolveApprovalInput struct {
	ID   string `path:"id" doc:"Id of the request."`
	Body ResolveApprovalRequest
}

// ResolveApproval returns the endpoint that lets a member answer a request. It cannot be called
// with an API key, because only people answer requests.
func (a *API) ResolveApproval() route.Endpoint {
	d := route.Describe("Approvals", "Approve or reject a post", 400, 403, 404, 409, 410, 413)
	d.Description = "You cannot answer your own request, or one made with an API key that you created. You can answer " +
		"a request that an agent made on your behalf."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.resolveApproval)
}

func (a *API) resolveApproval(ctx context.Context, in *resolveApprovalInput) (*approvalOutput, error) {
	resolved, err := a.deps.Approvals.Resolve(ctx, request.Principal(ctx), in.ID, publishing.ResolveApproval{
		Action: publishing.ApprovalAction(in.Body.Action), Note: in.Body.Note,
	})
	if err != nil {
		return nil, err
	}
	return &approvalOutput{Body: approvalRecord(resolved)}, nil
}
