package publishing

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
)

// ApprovalTag distinguishes approval ids (platform/id).
type ApprovalTag struct{}

// ApprovalID is the id of an approval request. A later request has a greater id.
type ApprovalID = id.ID[ApprovalTag]

// ApprovalStatus is the status of an approval request. A CHECK constraint on the table lists the
// same values, except ApprovalNone.
type ApprovalStatus string

// The statuses.
const (
	// ApprovalNone is the status shown to clients if a post has no request, or only a void one. It
	// is not stored.
	ApprovalNone     ApprovalStatus = "NONE"
	ApprovalPending  ApprovalStatus = "PENDING"
	ApprovalApproved ApprovalStatus = "APPROVED"
	ApprovalRejected ApprovalStatus = "REJECTED"
	// ApprovalExpired means that nobody answered within ApprovalLife.
	ApprovalExpired ApprovalStatus = "EXPIRED"
	// ApprovalVoid means that the request was withdrawn, or that its post was changed or scheduled.
	// To clients, a void request appears as ApprovalNone.
	ApprovalVoid ApprovalStatus = "VOID"
)

// ApprovalStatuses returns the statuses that can be stored.
func ApprovalStatuses() []ApprovalStatus {
	return []ApprovalStatus{ApprovalPending, ApprovalApproved, ApprovalRejected, ApprovalExpired, ApprovalVoid}
}

// The limits of approvals.
const (
	// ApprovalLife is how long a request stays open for an answer.
	ApprovalLife = 7 * 24 * time.Hour
	// MaxApprovalNote and MaxReviewerName are in characters.
	MaxApprovalNote = 2000
	MaxReviewerName = 128
	// MaxApprovalPage is the largest number of approvals in one response.
	MaxApprovalPage     = 100
	DefaultApprovalPage = 20
	// MaxReviewMails is the maximum number of review emails that an organization can request per
	// hour.
	MaxReviewMails = 100
)

// Approval is a request to approve a draft, together with its answer.
type Approval struct {
	ID ApprovalID
	// Post is the thread's first post.
	Post   PostID
	Status ApprovalStatus
	// AutoSchedule means that approving the request also schedules the post.
	AutoSchedule bool
	// Note is the requester's message to the reviewer.
	Note *string
	// ReviewerEmail is the address to which the review link is emailed, or nil if no email is sent.
	ReviewerEmail *string
	// Person and Key identify the requester. Person is the person who was signed in or, if the
	// request was made with an API key, the key's creator.
	Person tenancy.PersonID
	Key    tenancy.KeyID
	// Impersonator is the instance administrator who made the request while impersonating Person,
	// or zero if the request was made without impersonation.
	Impersonator tenancy.PersonID
	// Agent is the agent that made the request on behalf of Person, or zero if no agent did. Grant
	// is the agent's grant, which may have been revoked since. AgentName is the agent's name at the
	// time of the request.
	Agent     tenancy.AgentID
	Grant     tenancy.GrantID
	AgentName string
	// PersonEmail is Person's email address, or nil if Person is no longer a member.
	PersonEmail  *string
	RequestedAt  time.Time
	ExpiresAt    time.Time
	ReviewerNote *string
	ReviewerName *string
	// ResolvedBy is the member who answered, or zero if a guest did.
	ResolvedBy tenancy.PersonID
	// ResolvedAt is nil while the request is pending.
	ResolvedAt *time.Time
	// ReviewURL is a review link for the member who reads the approval. The member can pass it on
	// to a guest, who can then answer the request. ReviewURL is "" if the member may not see a
	// link. Example: https://crier.example/review/{token}
	ReviewURL string
}

// At returns the approval as of the given time. A pending request counts as expired once ExpiresAt
// is reached, even if the expiry has not been stored yet.
func (a Approval) At(now time.Time) Approval {
	if a.Status == ApprovalPending && !now.Before(a.ExpiresAt) {
		end := a.ExpiresAt
		a.Status, a.ResolvedAt = ApprovalExpired, &end
	}
	return a
}

// ByGuest reports whether a guest answered. A guest's name is not verified.
func (a Approval) ByGuest() bool {
	answered := a.Status == ApprovalApproved || a.Status == ApprovalRejected || a.ReviewerName != nil
	return answered && a.ResolvedBy.IsZero()
}

// Shown returns the status that clients see.
func (a Approval) Shown() ApprovalStatus {
	if a.Status == ApprovalVoid || a.Status == "" {
		return ApprovalNone
	}
	return a.Status
}

// Requester returns the agent that made the request, as a principal without its current role and
// limits. Call it only if Agent is set.
func (a Approval) Requester(org tenancy.OrgID) tenancy.Principal {
	agent := tenancy.Agent{ID: a.Agent, Grant: a.Grant, Name: a.AgentName}
	return tenancy.Principal{Org: org, Person: a.Person, Via: tenancy.ViaAgent, Agent: agent}
}

// Requested reports whether the request was made by the principal, or by an agent on the
// principal's behalf. It returns true for:
//
//   - the API key that made the request,
//   - the person who made the request, directly or through one of their API keys, even while
//     that person is impersonating someone else,
//   - a person whose email address belongs to the same mailbox as the requester's, and
//   - the instance administrator who impersonated a member to make the request.
func (a Approval) Requested(p tenancy.Principal) bool {
	return !a.Key.IsZero() && a.Key == p.Key ||
		!a.Person.IsZero() && (a.Person == p.Person || a.Person == p.Impersonator) ||
		a.PersonEmail != nil && p.Via == tenancy.ViaSession && tenancy.Mailbox(*a.PersonEmail) == tenancy.Mailbox(p.Name) ||
		!a.Impersonator.IsZero() && (a.Impersonator == p.Person || a.Impersonator == p.Impersonator)
}

// ShowsLink reports whether the principal may see the review link. The link is shown only while the
// request is pending, and only to people who are signed in. The requester and impersonating
// instance administrators cannot see it.
func (a Approval) ShowsLink(p tenancy.Principal) bool {
	return a.Status == ApprovalPending && p.Via == tenancy.ViaSession && p.Impersonator.IsZero() && !a.Requested(p)
}

// Open returns nil if the request can still be answered. It returns Conflict if the request has
// already been answered, and Gone if the request has expired or is void.
func (a Approval) Open(now time.Time) error {
	const op = "publishing.Approval"
	switch a.At(now).Status {
	case ApprovalPending:
		return nil
	case ApprovalApproved, ApprovalRejected:
		return fault.New(fault.Conflict, op, "This request has already been answered.")
	case ApprovalExpired:
		return fault.New(fault.Gone, op, "This request has expired. Ask for a new one.")
	}
	return fault.New(fault.Gone, op, "This request was withdrawn, or its post has changed. Ask for a new one.")
}

// Readable returns nil as long as the review link may show the post. The link works until the
// request expires or becomes void, even if the request is answered before that. Once the link no
// longer works, Readable returns Gone.
func (a Approval) Readable(now time.Time) error {
	err := a.Open(now)
	if fault.Is(err, fault.Conflict) && now.Before(a.ExpiresAt) {
		return nil
	}
	if fault.Is(err, fault.Conflict) {
		return fault.New(fault.Gone, "publishing.Approval", "This link is no longer valid.")
	}
	return err
}

// MayResolve returns nil if the principal may answer the request. It returns Forbidden for keys,
// agents, impersonating instance administrators, and people who would be answering their own
// request. A person may answer a request that an agent made on their behalf.
func (a Approval) MayResolve(p tenancy.Principal) error {
	const op = "publishing.ResolveApproval"
	if p.Via != tenancy.ViaSession {
		return fault.New(fault.Forbidden, op, "Only people can answer an approval request.")
	}
	if !p.Impersonator.IsZero() {
		return fault.New(fault.Forbidden, op, "Only the person themselves can answer, not an operator on their behalf.")
	}
	if a.Agent.IsZero() && a.Requested(p) {
		return fault.New(fault.Forbidden, op, "You requested this approval, so somebody else must answer it.")
	}
	return nil
}

// MayWithdraw returns nil for the requester and for administrators, including API keys, which have
// administrator rights. It returns Forbidden for everyone else.
//
// An agent that may change only drafts may withdraw only requests that it made itself and that
// nobody has approved, because the post of an approved request may be in the queue.
func (a Approval) MayWithdraw(p tenancy.Principal) error {
	const op = "publishing.WithdrawApproval"
	switch {
	case !MustAsk(p):
	case a.Status == ApprovalApproved:
		return onlyDrafts(op)
	case a.Agent != p.Agent.ID:
		return fault.New(fault.Forbidden, op, "This agent may withdraw only its own requests. Leave this one to a person.")
	}
	if p.Role.Manages() || a.Requested(p) {
		return nil
	}
	return fault.New(fault.Forbidden, op,
		"Only the person who asked for the approval, or an administrator, can withdraw the request.")
}

// MaySchedule returns Conflict if a pending request prevents the principal from scheduling the
// post. While the request is pending, only administrators may schedule the post.
func (a Approval) MaySchedule(p tenancy.Principal, now time.Time) error {
	if a.At(now).Status != ApprovalPending || p.Role.Manages() {
		return nil
	}
	return fault.New(fault.Conflict, "publishing.ChangeStatus",
		"The post is waiting for approval: withdraw the request, or ask an administrator.")
}

// ApprovalEffect describes how a change to a post affects the post's approval.
type ApprovalEffect struct {
	// Void means that the post's approval ended because the content changed.
	Void bool
	// Draft means that the post became a draft instead of being queued, because the new content is
	// not approved.
	Draft bool
	// OverriddenBy is the email address of the administrator responsible for overriding the
	// approval, or "" if the approval was not overridden.
	OverriddenBy string
}

// MayOverride returns nil if the principal may publish content that differs from the approved
// content. Administrators may do so. So may API keys, because they have administrator rights.
// MayOverride returns Forbidden for everyone else, including impersonating instance administrators.
//
// Rejecting keys would gain nothing, because the holder of a key can also withdraw an approval or
// create the post again. However, someone must be accountable for an override, so the key's creator
// must still be an administrator. The caller checks this.
func MayOverride(p tenancy.Principal) error {
	const op = "publishing.Override"
	if !p.Impersonator.IsZero() {
		return fault.New(fault.Forbidden, op,
			"Only the person themselves can override an approval, not an operator on their behalf.")
	}
	if !p.Role.Manages() {
		return fault.New(fault.Forbidden, op, "Only an administrator can override an approval.")
	}
	return nil
}

// RequestApproval requests approval of a draft.
type RequestApproval struct {
	// Note is the message to the reviewer, or nil if there is none.
	Note *string
	// ReviewerEmail is the address to which the review link is emailed, or nil to send no email.
	ReviewerEmail *string
	AutoSchedule  bool
	// Admit is called before an email is queued. If Admit returns an error, the email is not queued
	// and the request fails with that error. If Admit is nil, every email is allowed.
	Admit func(ctx context.Context, email string) error
}

// Cleaned returns the command in the form in which it will be stored. If the command is not valid,
// Cleaned returns an Invalid fault that lists every problem.
func (c RequestApproval) Cleaned() (RequestApproval, error) {
	var faults fault.List
	c.Note = cleanNote(&faults, c.Note)
	if c.ReviewerEmail != nil && strings.TrimSpace(*c.ReviewerEmail) == "" {
		c.ReviewerEmail = nil
	}
	if c.ReviewerEmail != nil {
		email, ok := tenancy.CleanEmail(*c.ReviewerEmail)
		if !ok {
			faults.Add("reviewerEmail", "must be an email address")
		}
		c.ReviewerEmail = &email
	}
	return c, faults.Err("publishing.RequestApproval", "The request is not valid.")
}

// cleanNote returns the note without leading and trailing white space, or nil if the result is
// empty.
func cleanNote(faults *fault.List, note *string) *string {
	if note == nil {
		return nil
	}
	clean := strings.TrimSpace(*note)
	if !Storable(clean) || utf8.RuneCountInString(clean) > MaxApprovalNote {
		faults.Add("note", fmt.Sprintf("must be at most %d characters of valid text", MaxApprovalNote))
	}
	if clean == "" {
		return nil
	}
	return &clean
}

// ApprovalAction is the answer to a request.
type ApprovalAction string

// The answers.
const (
	ActionApprove ApprovalAction = "approve"
	ActionReject  ApprovalAction = "reject"
)

// Status returns the status of a request after the action.
func (a ApprovalAction) Status() ApprovalStatus {
	if a == ActionApprove {
		return ApprovalApproved
	}
	return ApprovalRejected
}

// ResolveApproval answers a request.
type ResolveApproval struct {
	Action ApprovalAction
	Note   *string
	// Name is the name entered by a guest, or nil. It is ignored for members.
	Name *string
}

// Cleaned returns the command in the form in which it will be stored. If the command is not valid,
// Cleaned returns an Invalid fault that lists every problem.
func (c ResolveApproval) Cleaned() (ResolveApproval, error) {
	var faults fault.List
	if c.Action != ActionApprove && c.Action != ActionReject {
		faults.Add("action", "must be one of: approve, reject")
	}
	c.Note = cleanNote(&faults, c.Note)
	if c.Name != nil {
		name, rule := tenancy.CleanName(*c.Name, 0, MaxReviewerName)
		if rule != "" {
			faults.Add("reviewerName", rule)
		}
		c.Name = &name
		if name == "" {
			c.Name = nil
		}
	}
	return c, faults.Err("publishing.ResolveApproval", "The answer is not valid.")
}

// DraftAnswer is the answer to an approval request, together with the data needed to apply the
// answer to the draft.
type DraftAnswer struct {
	Approval
	// By identifies who answered, as shown in the timeline.
	By string
	// Draft is the draft as it was read and checked before the answer. It is set only if the answer
	// schedules the draft.
	Draft PostDetail
	// Problem explains why the draft cannot be scheduled. It is nil if the draft can be scheduled.
	Problem error
}

// Schedules reports whether the answer schedules the draft.
func (a DraftAnswer) Schedules() bool { return a.Status == ApprovalApproved && a.AutoSchedule }

// ListApprovals requests an organization's approval requests, newest first. Requests for deleted
// posts are not listed.
type ListApprovals struct {
	// Status is one of the statuses that clients see, or "" for all of them.
	Status string
	// Before is an approval id as sent by the client. Only older approvals are returned. If Before
	// is "", the list starts with the newest approval.
	Before string
	// Limit is from 1 to MaxApprovalPage.
	Limit int
}

// Review is a guest's view of an approval request.
type Review struct {
	Approval
	// Organization is the organization's name.
	Organization string
	Thread       Thread
	// Org and Sharer are for the audit log. Sharer is the email address of the member who passed on
	// the link, or "" if the link was emailed.
	Org    tenancy.OrgID
	Sharer string
}
