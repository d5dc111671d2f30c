package approval

import (
	"context"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
	"crier/publishing/db"
	"crier/tenancy"
)

// RequestDeps holds the dependencies of NewRequests. Only Mails is optional.
type RequestDeps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices Notices
	Events  WebhookEvents
	// Mails is the queue of emails to reviewers. It is nil on an instance that sends no email.
	Mails *jobs.Queue
}

// Requests manages approval requests and the approvals that result from them. A change to a post
// can end its request or its approval. Requests is safe for concurrent use.
type Requests struct {
	deps RequestDeps
	db   *db.DB
}

// NewRequests returns a Requests that uses the given dependencies.
func NewRequests(deps RequestDeps) *Requests { return &Requests{deps: deps, db: deps.DB} }

// StatusOf implements post.Approvals.
func (r *Requests) StatusOf(
	ctx context.Context, org tenancy.OrgID, post publishing.PostID,
) (publishing.ApprovalStatus, error) {
	stored, err := approvalstore.FindApprovalOf(ctx, r.db, org, post)
	if pg.IsNoRows(err) {
		return publishing.ApprovalNone, nil
	}
	return stored.At(r.deps.Clock.Now()).Shown(), err
}

// VoidPending implements post.Approvals.
func (r *Requests) VoidPending(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, post publishing.PostID, reason string, schedule bool,
) error {
	a, err := approvalstore.ApprovalOf(ctx, tx, post)
	if pg.IsNoRows(err) || err == nil && a.Status != publishing.ApprovalPending {
		return nil
	}
	if err != nil {
		return err
	}
	now := r.deps.Clock.Now()
	if schedule {
		if err := a.MaySchedule(p, now); err != nil {
			return err
		}
	}
	a.Status, a.ResolvedAt = publishing.ApprovalVoid, &now
	_, err = r.end(
		ctx, tx, a, publishing.ApprovalPending, publishing.EventApprovalVoid, tenancy.ActorOf(p), reason,
	)
	return err
}

// InForce implements post.Approvals.
func (r *Requests) InForce(
	ctx context.Context, tx *db.Tx, post publishing.PostID,
) (publishing.ApprovalID, error) {
	a, err := approvalstore.ApprovalInForce(ctx, tx, post)
	if pg.IsNoRows(err) {
		return publishing.ApprovalID{}, nil
	}
	return a.ID, err
}

// EndInForce implements post.Approvals.
func (r *Requests) EndInForce(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, inQueue bool, reason string,
) (*publishing.Approval, error) {
	a, err := approvalstore.ApprovalInForce(ctx, tx, root)
	if pg.IsNoRows(err) || err == nil && a.Post != root && !inQueue {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now, isOwn := r.deps.Clock.Now(), a.Post == root
	a.Post, a.Status, a.ResolvedAt = root, publishing.ApprovalVoid, &now
	if isOwn {
		ended, err := approvalstore.EndApproval(ctx, tx, a, publishing.ApprovalApproved)
		if err != nil || !ended {
			return nil, err
		}
		if err := r.tellGuest(ctx, tx, a); err != nil {
			return nil, err
		}
	}
	if err := approvalstore.AddApprovalEvent(
		ctx, tx, root, publishing.EventApprovalVoid, tenancy.ActorOf(p), reason,
	); err != nil {
		return nil, err
	}
	return &a, r.deps.Events.AddEvent(ctx, tx, publishing.WebhookApprovalResolved, root, voidData(a))
}

// tellGuest queues an email to a guest whose approval has ended, because guests get no
// notifications.
func (r *Requests) tellGuest(ctx context.Context, tx *db.Tx, a publishing.Approval) error {
	if r.deps.Mails == nil || a.ReviewerEmail == nil || !a.ResolvedBy.IsZero() {
		return nil
	}
	return approvalstore.AddReviewTask(ctx, tx, r.deps.Mails, ReviewEndedTask, a.ID)
}

// MayOverride implements post.Approvals.
func (r *Requests) MayOverride(ctx context.Context, tx *db.Tx, p tenancy.Principal) (email string, err error) {
	if err := publishing.MayOverride(p); err != nil {
		return "", err
	}
	email, err = approvalstore.ManagerEmail(ctx, tx, p.Person)
	if pg.IsNoRows(err) {
		return "", fault.New(fault.Forbidden, "publishing.Override", "An approval can be overridden only on behalf of an "+
			"administrator, and the creator of this API key is not an administrator.")
	}
	return email, err
}

// NotifyEnded implements post.Approvals.
func (r *Requests) NotifyEnded(ctx context.Context, tx *db.Tx, ended *publishing.Approval, reason string) error {
	if ended == nil {
		return nil
	}
	for _, n := range endedNotifications(*ended, reason) {
		if err := r.deps.Notices.Add(ctx, tx, n); err != nil {
			return err
		}
	}
	return nil
}

// expireBefore ends a request that is stored as pending but has expired, so that a new request can
// be made for the post.
func (r *Requests) expireBefore(
	ctx context.Context, tx *db.Tx, post publishing.PostID, now time.Time,
) error {
	last, err := approvalstore.ApprovalOf(ctx, tx, post)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil || last.Status != publishing.ApprovalPending || last.At(now).Status != publishing.ApprovalExpired {
		return err
	}
	_, err = r.end(ctx, tx, last.At(now), publishing.ApprovalPending, publishing.EventApprovalExpired, "", "")
	return err
}

// end stores a request's new status and its events if the stored status still equals from. ended is
// false if another transaction has changed the status.
func (r *Requests) end(
	ctx context.Context, tx *db.Tx, a publishing.Approval, from publishing.ApprovalStatus,
	event publishing.EventKind, by, reason string,
) (ended bool, err error) {
	ended, err = approvalstore.EndApproval(ctx, tx, a, from)
	if err != nil || !ended {
		return false, err
	}
	if err := approvalstore.AddApprovalEvent(ctx, tx, a.Post, event, by, reason); err != nil {
		return false, err
	}
	if from != publishing.ApprovalPending { // the webhook event was stored with the answer
		return true, nil
	}
	if err := notifyApproval(ctx, tx, r.deps.Notices, a); err != nil {
		return false, err
	}
	return true, r.deps.Events.AddEvent(ctx, tx, publishing.WebhookApprovalResolved, a.Post, approvalData(a))
}
