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

// ApprovalTag distinguishes the ids of approvals (platform/id).
type ApprovalTag struct{}

// ApprovalID is the id of one request for approval. A later request has a later id.
type ApprovalID = id.ID[ApprovalTag]

// ApprovalStatus is the status of a request for approval. A CHECK constraint of the table has the
// same list, without ApprovalNone.
type ApprovalStatus string

// The statuses.
const (
	// ApprovalNone is what clients see for a post without a request, or with a void one. It is not
	// stored.
	ApprovalNone     ApprovalStatus = "NONE"
	ApprovalPending  ApprovalStatus = "PENDING"
	ApprovalApproved ApprovalStatus = "APPROVED"
	ApprovalRejected ApprovalStatus = "REJECTED"
	// ApprovalExpired means that nobody answered within ApprovalLife.
	ApprovalExpired ApprovalStatus = "EXPIRED"
	// ApprovalVoid means that the request was withdrawn, or that its post was changed or scheduled.
	// Clients see ApprovalNone.
	ApprovalVoid ApprovalStatus = "VOID"
)

// ApprovalStatuses returns the statuses that can be stored.
func ApprovalStatuses() []ApprovalStatus {
	return []ApprovalStatus{ApprovalPending, ApprovalApproved, ApprovalRejected, ApprovalExpired, ApprovalVoid}
}

// The limits of approvals.
const (
	// ApprovalLife is how long a request can be answered.
	ApprovalLife = 7 * 24 * time.Hour
	// MaxApprovalNote and MaxReviewerName are in characters.
	MaxApprovalNote = 2000
	MaxReviewerName = 128
	// MaxApprovalPage is the largest number of approvals in one response.
	MaxApprovalPage     = 100
	DefaultApprovalPage = 20
	// MaxReviewMails is how many requests with a reviewer's address an organization may make per
	// hour.
	MaxReviewMails = 100
)

// Approval is a request for the approval of a draft, together with its answer.
type Approval struct {
	ID ApprovalID
	// Post is the first post of the thread.
	Post   PostID
	Status ApprovalStatus
	// AutoSchedule means that an approval also schedules the post.
	AutoSchedule bool
	// Note is what the requester wrote to the reviewer.
	Note *string
	// ReviewerEmail is the address that the link is mailed to, nil if no mail is sent.
	ReviewerEmail *string
	// Person and Key made the request. Person is the person of the session or the creator of the
	// key.
	Person tenancy.PersonID
	Key    tenancy.KeyID
	// Behind is the administrator of the instance who impersonated Person to make the request, zero
	// if nobody did.
	Behind tenancy.PersonID
	// PersonEmail is the address of Person, nil if Person is no longer a member.
	PersonEmail  *string
	RequestedAt  time.Time
	ExpiresAt    time.Time
	ReviewerNote *string
	ReviewerName *string
	// ResolvedBy is the member who answered, zero for a guest.
	ResolvedBy tenancy.PersonID
	// ResolvedAt is nil while the request is pending.
	ResolvedAt *time.Time
	// ReviewURL is the review link of the member who reads the approval, to pass on to a guest, who
	// can answer with it. It is "" for readers who may not see it.
	// Example: https://crier.example/review/{token}
	ReviewURL string
}

// At returns the approval as it stands at the given time: a pending request has expired once
// ExpiresAt is reached, even if the service has not stored that yet.
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

// Requested reports whether the principal made the request: with the same key, as the same person
// (also with one of their keys, or while impersonating somebody), from another account with the
// same mailbox, or as the administrator of the instance who impersonated a member to make it.
func (a Approval) Requested(p tenancy.Principal) bool {
	return !a.Key.IsZero() && a.Key == p.Key ||
		!a.Person.IsZero() && (a.Person == p.Person || a.Person == p.Behind) ||
		a.PersonEmail != nil && p.Via == tenancy.ViaSession && tenancy.Mailbox(*a.PersonEmail) == tenancy.Mailbox(p.Name) ||
		!a.Behind.IsZero() && (a.Behind == p.Person || a.Behind == p.Behind)
}

// ShowsLink reports whether the principal may see the review link: any person except the requester,
// while the request is pending. An administrator of the instance who impersonates a member does not
// see it.
func (a Approval) ShowsLink(p tenancy.Principal) bool {
	return a.Status == ApprovalPending && p.Via == tenancy.ViaSession && p.Behind.IsZero() && !a.Requested(p)
}

// Open returns nil if the request can be answered. It returns Conflict if the request was already
// answered, and Gone if it has expired or is void.
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

// Readable returns nil while the review link shows the post, which is until the request expires,
// even if it has been answered. Otherwise it returns Gone.
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

// MayResolve returns nil if the person may answer the request. It returns Forbidden for keys,
// agents, impersonating instance administrators, and people who would answer their own request.
func (a Approval) MayResolve(p tenancy.Principal) error {
	const op = "publishing.ResolveApproval"
	if p.Via != tenancy.ViaSession {
		return fault.New(fault.Forbidden, op, "Only people can answer an approval request.")
	}
	if !p.Behind.IsZero() {
		return fault.New(fault.Forbidden, op, "Only the person themselves can answer, not an operator on their behalf.")
	}
	if a.Requested(p) {
		return fault.New(fault.Forbidden, op, "You requested this approval, so somebody else must answer it.")
	}
	return nil
}

// MayWithdraw returns nil for the requester and for administrators; a key acts as an administrator.
// Everyone else gets Forbidden.
func (a Approval) MayWithdraw(p tenancy.Principal) error {
	if p.Role.Manages() || a.Requested(p) {
		return nil
	}
	return fault.New(fault.Forbidden, "publishing.WithdrawApproval",
		"Only the person who asked for the approval, or an administrator, can withdraw the request.")
}

// MaySchedule returns Conflict if the request keeps the principal from scheduling the post: while
// it is pending, only administrators may.
func (a Approval) MaySchedule(p tenancy.Principal, now time.Time) error {
	if a.At(now).Status != ApprovalPending || p.Role.Manages() {
		return nil
	}
	return fault.New(fault.Conflict, "publishing.ChangeStatus",
		"The post is waiting for approval: withdraw the request, or ask an administrator.")
}

// ApprovalEffect is what a change of a post does to its approval.
type ApprovalEffect struct {
	// Void means that the post was approved but no longer is, because its content has changed.
	Void bool
	// Draft means that the post would have stayed in the queue, but became a draft because nobody
	// has approved the new content.
	Draft bool
	// OverriddenBy is the address of the administrator in whose name the approval was overridden,
	// "" if it was not.
	OverriddenBy string
}

// MayOverride returns nil if the principal may publish content that differs from what was approved:
// an administrator, or a key, which acts as one. Everyone else gets Forbidden, including
// impersonating instance administrators.
//
// Refusing keys would protect nothing, because the holder of a key can also withdraw an approval or
// create the post again. But somebody must answer for an override, so the creator of the key must
// still be an administrator; the caller checks this.
func MayOverride(p tenancy.Principal) error {
	const op = "publishing.Override"
	if !p.Behind.IsZero() {
		return fault.New(fault.Forbidden, op,
			"Only the person themselves can override an approval, not an operator on their behalf.")
	}
	if !p.Role.Manages() {
		return fault.New(fault.Forbidden, op, "Only an administrator can override an approval.")
	}
	return nil
}

// RequestApproval asks for the approval of a draft.
type RequestApproval struct {
	// Note is for the reviewer, nil if there is none.
	Note *string
	// ReviewerEmail is the address that the link is mailed to, nil to send no mail.
	ReviewerEmail *string
	AutoSchedule  bool
	// Admit is called before a mail is queued and may refuse it. If Admit is nil, every mail is
	// admitted.
	Admit func(ctx context.Context, email string) error
}

// Cleaned returns the command as it is stored, and Invalid with every problem.
func (c RequestApproval) Cleaned() (RequestApproval, error) {
	var faults fault.List
	c.Note = cleanNote(&faults, c.Note)
	if c.ReviewerEmail != nil && strings.TrimSpace(*c.ReviewerEmail) == "" {
		c.ReviewerEmail = nil
	}
	if c.ReviewerEmail != nil {
		email, ok := tenancy.CleanEmail(*c.ReviewerEmail)
		if !ok {
			faults.Add("reviewerEmail", "must be an e-mail address")
		}
		c.ReviewerEmail = &email
	}
	return c, faults.Err("publishing.RequestApproval", "The request is not valid.")
}

// cleanNote returns a note without surrounding white space, or nil for an empty one.
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

// Status returns the status that the action gives to a request.
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
	// Name is what a guest calls themselves, nil if they gave no name. It is ignored for a member.
	Name *string
}

// Cleaned returns the command as it is stored, and Invalid with every problem.
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

// DraftAnswer is the answer to a request, as applied to the draft.
type DraftAnswer struct {
	Approval
	// By is who answered, as the timeline shows it.
	By string
	// Draft is the draft as it was read and checked before the answer. It is set only if the
	// approval schedules the draft.
	Draft PostDetail
	// Problem is why the draft cannot be scheduled, nil if it can.
	Problem error
}

// Schedules reports whether the answer schedules the draft.
func (a DraftAnswer) Schedules() bool { return a.Status == ApprovalApproved && a.AutoSchedule }

// ListApprovals asks for the newest requests of an organization whose posts exist.
type ListApprovals struct {
	// Status is one of the statuses that clients see, or empty for all.
	Status string
	// Before is the id of an approval as the client sent it. Only older approvals are returned; ""
	// starts with the newest.
	Before string
	// Limit is from 1 to MaxApprovalPage.
	Limit int
}

// Review is what a guest sees of a request.
type Review struct {
	Approval
	// Organization is the name of the organization.
	Organization string
	Thread       Thread
	// Org and Sharer are for the audit log. Sharer is the address of the member who passed the link
	// on, "" for a mailed link.
	Org    tenancy.OrgID
	Sharer string
}
