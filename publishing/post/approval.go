package post

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// Approvals are the use cases of the approval of drafts. It is safe for concurrent use.
type Approvals struct {
	*Posts
	// mailer is nil on an instance without mail.
	mailer publishing.ReviewMailer
	sweep  approvalSweep
}

// NewApprovals returns the use cases of approvals. mailer is nil on an instance that sends no mail: reviewers are not
// mailed then.
func NewApprovals(posts *Posts, mailer publishing.ReviewMailer) *Approvals {
	s := &Approvals{Posts: posts, mailer: mailer}
	s.sweep = s.newSweep()
	return s
}

// Request asks for the approval of a draft. In one transaction it stores the request, its events for the timeline and
// for webhooks, and the mail to the reviewer. It returns NotFound, Invalid, Conflict for a post that is no draft or
// waits already, and RateLimited when too many reviewers were mailed within an hour.
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
		if _, found := s.Get(ctx, p, post); found != nil {
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
			if err := poststore.LockReviewMails(ctx, tx); err != nil {
				return err
			}
		}
		root, err := lockDraft(ctx, tx, parsed)
		if err != nil {
			return err
		}
		now := s.deps.Clock.Now()
		if err := s.expireBefore(ctx, tx, root.ID, now); err != nil {
			return err
		}
		made = publishing.Approval{
			ID: id.New[publishing.ApprovalTag](), Post: root.ID, Status: publishing.ApprovalPending,
			AutoSchedule: cmd.AutoSchedule, Note: cmd.Note, ReviewerEmail: cmd.ReviewerEmail, Person: p.Person,
			Key: p.Key, Behind: p.Behind,
			RequestedAt: now, ExpiresAt: now.Add(publishing.ApprovalLife),
		}
		reviewers, err := s.checkReviewer(ctx, tx, &made)
		if err != nil {
			return err
		}
		remind := publishing.RemindAt(now, root.PublishDate)
		if err := poststore.AddApproval(ctx, tx, made, link.hash, link.sealed, remind, reviewers); err != nil {
			return err
		}
		if err := poststore.MarkTemplate(ctx, tx, root.ID, poststore.TemplateAsked); err != nil {
			return err
		}
		if err := poststore.AddApprovalEvent(
			ctx, tx, root.ID, publishing.EventApprovalRequested, publishing.ActorOf(p), "",
		); err != nil {
			return err
		}
		if err := s.deps.Events.AddEvent(
			ctx, tx, publishing.WebhookApprovalRequested, root.ID, approvalData(made),
		); err != nil {
			return err
		}
		if made.ReviewerEmail != nil && s.deps.ReviewMails != nil {
			if cmd.Admit != nil {
				if err := cmd.Admit(ctx, *made.ReviewerEmail); err != nil {
					return err
				}
			}
			if err := poststore.AddReviewTask(ctx, tx, s.deps.ReviewMails, ReviewMailTask, made.ID); err != nil {
				return err
			}
		}
		err = s.db.Audit(ctx, tx, p, tenancy.ActionApprovalRequested, "post "+made.Post.String())
		if err != nil {
			return err
		}
		return notifyApproval(ctx, tx, s.deps.Notices, made) // last, because it locks the incidents of the organization
	})
	if errors.Is(err, poststore.ErrApprovalPending) {
		return publishing.Approval{}, fault.New(fault.Conflict, op, "This post waits for its approval already.")
	}
	return made, publicFault(op, err)
}

// lockDraft locks the group of a post and returns its root. It returns NotFound, and Conflict unless it is a draft.
func lockDraft(
	ctx context.Context, tx *db.Tx, post publishing.PostID,
) (root poststore.PostStatus, err error) {
	group, _, err := groupOf(ctx, tx, post)
	if err != nil {
		return root, err
	}
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return root, err
	}
	if len(posts) == 0 {
		return root, publishing.NoPost("publishing.lockDraft")
	}
	root = rootOf(posts) // the parts with a delay wait for it
	if root.State != publishing.StateDraft {
		return root, fault.New(fault.Conflict, "publishing.lockDraft", "Only a draft can be sent for approval.")
	}
	return root, nil
}

// expireBefore ends a request of a post that has expired and is stored as pending still, so that a new one can be made.
func (s *Posts) expireBefore(
	ctx context.Context, tx *db.Tx, post publishing.PostID, now time.Time,
) error {
	last, err := poststore.ApprovalOf(ctx, tx, post)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil || last.Status != publishing.ApprovalPending || last.At(now).Status != publishing.ApprovalExpired {
		return err
	}
	_, err = s.endApproval(ctx, tx, last.At(now), publishing.ApprovalPending, publishing.EventApprovalExpired, "", "")
	return err
}

// endApproval stores the new status of a request with its events, if it still has the status from. ended is false when
// another transaction was first.
func (s *Posts) endApproval(
	ctx context.Context, tx *db.Tx, a publishing.Approval, from publishing.ApprovalStatus,
	event publishing.EventKind, by, reason string,
) (ended bool, err error) {
	ended, err = poststore.EndApproval(ctx, tx, a, from)
	if err != nil || !ended {
		return false, err
	}
	if err := poststore.AddApprovalEvent(ctx, tx, a.Post, event, by, reason); err != nil {
		return false, err
	}
	if from != publishing.ApprovalPending { // its event was written with its answer
		return true, nil
	}
	if err := notifyApproval(ctx, tx, s.deps.Notices, a); err != nil {
		return false, err
	}
	return true, s.deps.Events.AddEvent(ctx, tx, publishing.WebhookApprovalResolved, a.Post, approvalData(a))
}

// checkReviewer returns the members whose mailbox the link will be mailed to, and sets the requester's
// address. It returns Invalid if the requester is the reviewer, or is no longer a member, so that the
// mailed link would not work, and RateLimited if too many reviewers were mailed.
func (s *Posts) checkReviewer(
	ctx context.Context, tx *db.Tx, a *publishing.Approval,
) ([]tenancy.PersonID, error) {
	const op = "publishing.RequestApproval"
	email, err := poststore.MemberEmail(ctx, tx, a.Person)
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
		faults.Add("reviewerEmail", "must be the address of somebody else")
		return nil, faults.Err(op, "Nobody can review a post of their own.")
	case email == "" && !a.Person.IsZero():
		faults.Add("reviewerEmail", "must not be sent with the API key of a former member: its link would not work")
		return nil, faults.Err(op, "A review link works only while the person who asked is a member.")
	}
	n, err := poststore.ReviewMails(ctx, tx, a.RequestedAt.Add(-time.Hour))
	if err != nil {
		return nil, err
	}
	if n >= publishing.MaxReviewMails {
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: op, RetryAfter: time.Hour,
			Message: fmt.Sprintf(
				"Your organization has mailed %d reviewers within an hour; wait before the next one.", n,
			),
		}
	}
	return poststore.MailboxMembers(ctx, tx, mailbox)
}

// Status returns the newest request of a post, as one with the status NONE when none counts. It returns NotFound.
func (s *Approvals) Status(ctx context.Context, p tenancy.Principal, post string) (publishing.Approval, error) {
	const op = "publishing.ApprovalStatus"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return publishing.Approval{}, publishing.NoPost(op)
	}
	roots, err := s.rootsOf(ctx, p.Org, parsed)
	if err != nil {
		return publishing.Approval{}, pg.Fault(op, err)
	}
	if len(roots) == 0 {
		return publishing.Approval{}, publishing.NoPost(op)
	}
	stored, err := poststore.FindApprovalOf(ctx, s.db, p.Org, roots[0].ID)
	if pg.IsNoRows(err) || err == nil && stored.Shown() == publishing.ApprovalNone {
		return publishing.Approval{}, nil
	}
	if err != nil {
		return publishing.Approval{}, pg.Fault(op, err)
	}
	return s.shown(p, stored), nil
}

// shown returns an approval as a principal may see it.
func (s *Approvals) shown(p tenancy.Principal, stored poststore.StoredApproval) publishing.Approval {
	a := stored.At(s.deps.Clock.Now())
	if !a.ShowsLink(p) {
		return a
	}
	link, err := s.sharedURL(p, stored)
	if err != nil {
		s.deps.Log.Error(
			"the link of a request for approval cannot be shown", "org", p.Org, "approval", a.ID, "error", err,
		)
	}
	a.ReviewURL = link
	return a
}

// approvalStatus returns the status of the newest request of a post, as clients see it.
func (s *Posts) approvalStatus(
	ctx context.Context, org tenancy.OrgID, post publishing.PostID,
) (publishing.ApprovalStatus, error) {
	stored, err := poststore.FindApprovalOf(ctx, s.db, org, post)
	if pg.IsNoRows(err) {
		return publishing.ApprovalNone, nil
	}
	return stored.At(s.deps.Clock.Now()).Shown(), err
}

// List returns requests of the organization, the newest first. It returns Invalid for a status that does not exist and
// a Before that is no id.
func (s *Approvals) List(
	ctx context.Context, p tenancy.Principal, q publishing.ListApprovals,
) ([]publishing.Approval, error) {
	const op = "publishing.ListApprovals"
	before, ok := id.Parse[publishing.ApprovalTag](q.Before)
	var faults fault.List
	if !ok && q.Before != "" {
		faults.Add("before", "must be the id of an approval")
	}
	status := publishing.ApprovalStatus(q.Status)
	switch status {
	case "", publishing.ApprovalNone, publishing.ApprovalPending, publishing.ApprovalApproved,
		publishing.ApprovalRejected, publishing.ApprovalExpired:
	default:
		faults.Add("status", "must be one of: PENDING, APPROVED, REJECTED, EXPIRED, NONE")
	}
	if err := faults.Err(op, "The query is not valid."); err != nil {
		return nil, err
	}
	limit := min(max(q.Limit, 1), publishing.MaxApprovalPage)
	all, err := poststore.Approvals(ctx, s.db, p.Org, before, string(status), s.deps.Clock.Now(), limit)
	if err != nil {
		return nil, pg.Fault(op, err)
	}
	out := make([]publishing.Approval, 0, len(all))
	for _, stored := range all {
		out = append(out, s.shown(p, stored))
	}
	return out, nil
}

// Withdraw ends a request: its link stops working and any approval is void, so a post that was
// queued by the approval becomes a draft. It returns the request. It returns NotFound for a void
// request, Forbidden, and Conflict while the post is being published.
func (s *Approvals) Withdraw(ctx context.Context, p tenancy.Principal, approval string) (publishing.Approval, error) {
	const op = "publishing.WithdrawApproval"
	var out publishing.Approval
	stored, err := s.find(ctx, op, p.Org, approval)
	if err != nil {
		return out, err
	}
	if stored.Status == publishing.ApprovalVoid {
		return out, noApproval(op)
	}
	if err := stored.MayWithdraw(p); err != nil {
		return out, err
	}
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		err := s.db.Audit(ctx, tx, p, tenancy.ActionApprovalWithdrawn, "post "+stored.Post.String())
		if err != nil {
			return err
		}
		now := s.deps.Clock.Now()
		out = stored.Approval
		out.Status, out.ResolvedAt = publishing.ApprovalVoid, &now
		ended, err := s.withdraw(ctx, tx, p, out, stored.Status)
		if err == nil && !ended {
			err = fault.New(fault.Conflict, op, "The request was answered in this moment; look at it again.")
		}
		return err
	})
	return out, publicFault(op, err)
}

// withdraw ends a request that has the status from, or the approval that resulted from it. ended is
// false if another transaction was first.
func (s *Approvals) withdraw(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, a publishing.Approval, from publishing.ApprovalStatus,
) (ended bool, err error) {
	if from == publishing.ApprovalApproved {
		gone, err := s.withdrawApproved(ctx, tx, p, a.Post, a.ID)
		if err != nil {
			return false, err
		}
		return gone != nil, s.notifyEnded(ctx, tx, gone, withdrawn)
	}
	if err := poststore.MarkTemplate(ctx, tx, a.Post, poststore.TemplateFree); err != nil {
		return false, err
	}
	return s.endApproval(ctx, tx, a, from, publishing.EventApprovalVoid, publishing.ActorOf(p), withdrawn)
}

// find returns a request by its id as a client sent it, and NotFound.
func (s *Approvals) find(
	ctx context.Context, op string, org tenancy.OrgID, approval string,
) (poststore.StoredApproval, error) {
	parsed, ok := id.Parse[publishing.ApprovalTag](approval)
	if !ok {
		return poststore.StoredApproval{}, noApproval(op)
	}
	stored, err := poststore.Approval(ctx, s.db, org, parsed)
	if pg.IsNoRows(err) {
		return stored, noApproval(op)
	}
	return stored, pg.Fault(op, err)
}

func noApproval(op string) error {
	return fault.New(fault.NotFound, op, "There is no such request for approval.")
}

// voidPending ends the pending request of a post that is about to change, in the transaction of the
// change. With schedule the change also queues the post, which only administrators may do while a
// request is pending; others get Conflict.
func (s *Posts) voidPending(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, post publishing.PostID, reason string, schedule bool,
) error {
	a, err := poststore.ApprovalOf(ctx, tx, post)
	if pg.IsNoRows(err) || err == nil && a.Status != publishing.ApprovalPending {
		return nil
	}
	if err != nil {
		return err
	}
	now := s.deps.Clock.Now()
	if schedule {
		if err := a.MaySchedule(p, now); err != nil {
			return err
		}
	}
	a.Status, a.ResolvedAt = publishing.ApprovalVoid, &now
	_, err = s.endApproval(
		ctx, tx, a, publishing.ApprovalPending, publishing.EventApprovalVoid, publishing.ActorOf(p), reason,
	)
	return err
}

// MailedBy returns the requests for approval of a person whose mailed link ends with the membership. It runs in the
// transaction of q, and returns the error of Postgres.
func (s *Approvals) MailedBy(
	ctx context.Context, q pg.Querier, person tenancy.PersonID,
) ([]tenancy.EndedReview, error) {
	return poststore.ReviewsMailed(ctx, q, person, s.deps.Clock.Now().Add(-publishing.ApprovalLife))
}
