package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/text"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
	"crier/publishing/db"
	"crier/tenancy"
)

// Request requests approval of a draft. In one transaction, it stores the request with its timeline
// and webhook events, and queues the email to the reviewer.
//
// Request returns NotFound if the post does not exist, and Invalid if cmd is invalid or the
// requester is not allowed to email the reviewer. It returns Conflict if the post is not a draft or
// is already waiting for approval. It returns RateLimited if too many reviewers were emailed within
// the last hour.
func (s *Approvals) Request(
	ctx context.Context, p tenancy.Principal, post string, cmd publishing.RequestApproval,
) (publishing.Approval, error) {
	const op = "publishing.RequestApproval"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return publishing.Approval{}, publishing.NoPost(op)
	}
	cmd, err := cmd.Cleaned()
	if err != nil {
		if _, found := s.deps.Threads.Get(ctx, p, post); found != nil {
			return publishing.Approval{}, found
		}
		return publishing.Approval{}, err
	}
	link, err := s.newReviewLink(p.Org)
	if err != nil {
		return publishing.Approval{}, pg.Fault(op, err)
	}
	var made publishing.Approval
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		if cmd.ReviewerEmail != nil {
			if err := approvalstore.LockReviewMails(ctx, tx); err != nil {
				return err
			}
		}
		root, date, err := s.deps.Drafts.Lock(ctx, tx, parsed)
		if err != nil {
			return err
		}
		now := s.requests.deps.Clock.Now()
		if err := s.requests.expireBefore(ctx, tx, root, now); err != nil {
			return err
		}
		made = publishing.Approval{
			ID: id.New[publishing.ApprovalTag](), Post: root, Status: publishing.ApprovalPending,
			AutoSchedule: cmd.AutoSchedule, Note: cmd.Note, ReviewerEmail: cmd.ReviewerEmail, Person: p.Person,
			Key: p.Key, Impersonator: p.Impersonator,
			Agent: p.Agent.ID, Grant: p.Agent.Grant, AgentName: text.Line(p.Agent.Name, maxAgentName),
			RequestedAt: now, ExpiresAt: now.Add(publishing.ApprovalLife),
		}
		reviewers, err := s.checkReviewer(ctx, tx, &made)
		if err != nil {
			return err
		}
		if made.ReviewerEmail != nil && len(reviewers) == 0 && publishing.MustAsk(p) {
			return notMember(op)
		}
		remind := remindAt(now, date)
		if err := approvalstore.AddApproval(ctx, tx, made, link.hash, link.sealed, remind, reviewers); err != nil {
			return err
		}
		if err := s.deps.Drafts.HoldSeries(ctx, tx, root); err != nil {
			return err
		}
		if err := approvalstore.AddApprovalEvent(
			ctx, tx, root, publishing.EventApprovalRequested, tenancy.ActorOf(p), "",
		); err != nil {
			return err
		}
		if err := s.requests.deps.Events.AddEvent(
			ctx, tx, publishing.WebhookApprovalRequested, root, approvalData(made),
		); err != nil {
			return err
		}
		if made.ReviewerEmail != nil && s.requests.deps.Mails != nil {
			if cmd.Admit != nil {
				if err := cmd.Admit(ctx, *made.ReviewerEmail); err != nil {
					return err
				}
			}
			if err := approvalstore.AddReviewTask(ctx, tx, s.requests.deps.Mails, ReviewMailTask, made.ID); err != nil {
				return err
			}
		}
		err = s.db.Audit(ctx, tx, p, tenancy.ActionApprovalRequested, "post "+made.Post.String())
		if err != nil {
			return err
		}
		// This must come last, because it locks the organization's incidents.
		return notifyApproval(ctx, tx, s.requests.deps.Notices, made)
	})
	if errors.Is(err, approvalstore.ErrApprovalPending) {
		return publishing.Approval{}, fault.New(fault.Conflict, op, "This post is already waiting for approval.")
	}
	return made, db.PostFault(op, err)
}

// notMember returns the fault for an agent that must ask but has named a reviewer outside the
// organization. Without this rule, the agent could email the link to an address that it can read.
func notMember(op string) error {
	var faults fault.List
	faults.Add("reviewerEmail", "must be the address of a member: this agent must ask somebody in the organization")
	return faults.Err(op, "The request is not valid.")
}

// maxAgentName is the maximum length of an agent's name as stored with a request, in bytes.
const maxAgentName = 200

// checkReviewer returns the members who use the mailbox to which the link will be emailed, and sets
// a.PersonEmail. It returns Invalid if the requester is the reviewer. It also returns Invalid if
// the requester is no longer a member, because the emailed link would not work. It returns
// RateLimited if too many reviewers were emailed within the last hour.
func (s *Approvals) checkReviewer(
	ctx context.Context, tx *db.Tx, a *publishing.Approval,
) ([]tenancy.PersonID, error) {
	const op = "publishing.RequestApproval"
	email, err := approvalstore.MemberEmail(ctx, tx, a.Person)
	if err != nil {
		return nil, err
	}
	if email != "" {
		a.PersonEmail = &email
	}
	if a.ReviewerEmail == nil {
		return nil, nil
	}
	mailbox := tenancy.Mailbox(*a.ReviewerEmail)
	var faults fault.List
	switch {
	case email != "" && tenancy.Mailbox(email) == mailbox:
		faults.Add("reviewerEmail", "must be somebody else's address")
		return nil, faults.Err(op, "Nobody can review their own post.")
	case email == "" && !a.Person.IsZero():
		faults.Add("reviewerEmail", "must not be sent with the API key of a former member: its link would not work")
		return nil, faults.Err(op, "A review link works only while the person who asked is a member.")
	}
	n, err := approvalstore.ReviewMails(ctx, tx, a.RequestedAt.Add(-time.Hour))
	if err != nil {
		return nil, err
	}
	if n >= publishing.MaxReviewMails {
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: op, RetryAfter: time.Hour,
			Message: fmt.Sprintf(
				"Your organization has mailed %d reviewers within an hour; wait before mailing the next one.", n,
			),
		}
	}
	return approvalstore.MailboxMembers(ctx, tx, mailbox)
}
