package approval

import (
	"context"
	"time"

	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/pictures"
	"crier/tenancy"
)

// Threads reads the posts that approvals are about.
type Threads interface {
	// Get returns a post with its timeline. It returns NotFound if the post does not exist.
	Get(ctx context.Context, p tenancy.Principal, post string) (publishing.PostDetail, error)
	// FindRoot returns the first post of the thread that a post belongs to. The given post may be a
	// later occurrence that is not stored yet. found is false if there is no such post. FindRoot
	// returns pg.ErrOrgBusy or a Postgres error.
	FindRoot(
		ctx context.Context, org tenancy.OrgID, post publishing.PostID,
	) (root publishing.PostID, found bool, err error)
	// FindThread returns the thread of a stored post. It returns the same errors as FindRoot.
	FindThread(
		ctx context.Context, org tenancy.OrgID, post publishing.PostID,
	) (thread publishing.Thread, found bool, err error)
}

// Drafts changes the posts that approvals are about. Methods that take a transaction return
// Postgres errors from it unchanged.
type Drafts interface {
	// Lock locks a draft's thread until the transaction ends, and returns the thread's first post
	// with its publish date. It returns NotFound if the post does not exist, and Conflict if the
	// post is not a draft.
	Lock(
		ctx context.Context, tx *db.Tx, post publishing.PostID,
	) (root publishing.PostID, publishDate time.Time, err error)
	// HoldSeries makes a locked draft's later occurrences with the same content wait for the
	// requested approval. It does nothing if the draft is not repeated.
	HoldSeries(ctx context.Context, tx *db.Tx, root publishing.PostID) error
	// FreeSeries undoes HoldSeries, so that the later occurrences need no approval. It must not be
	// called for an agent's request, because the series may already have been held before that
	// request.
	FreeSeries(ctx context.Context, tx *db.Tx, root publishing.PostID) error
	// Recheck checks the post against its platform's rules as if the post were new, and returns the
	// post. It returns NotFound if the post does not exist, and Invalid if the post breaks a rule.
	Recheck(ctx context.Context, p tenancy.Principal, post string) (publishing.PostDetail, error)
	// Answer applies the answer to an approval request. It locks the draft and, if scheduling was
	// requested, checks whether the draft can be scheduled. It then calls store, passing the reason
	// why the draft cannot be scheduled, or nil. Finally, it stores what was approved and, if
	// scheduling was requested and is possible, moves the draft to the queue.
	//
	// Answer returns the time at which the draft is due, or nil if the draft was not scheduled. It
	// also returns the pictures to create after the commit. If the post no longer exists, it
	// returns NotFound. If store returns an error, Answer returns that error.
	Answer(
		ctx context.Context, tx *db.Tx, a publishing.DraftAnswer, store func(problem error) error,
	) (due *time.Time, pictures []pictures.Key, err error)
	// Unschedule removes a post from the queue, together with all other occurrences of its series
	// that are published under the same approval. It returns Conflict if any of these posts is
	// being published.
	Unschedule(
		ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, approval publishing.ApprovalID,
	) error
}

// Notices stores notifications in the same transaction as the change they report.
type Notices interface {
	// Add stores a notification, which is then listed and emailed. It returns any Postgres error.
	Add(ctx context.Context, tx *db.Tx, n publishing.Notification) error
}

// WebhookEvents stores events in the same transaction as the change they report.
type WebhookEvents interface {
	// AddEvent records an event about a thread, to be sent to the organization's endpoints. post is
	// the thread's first post. data is encoded as JSON and becomes the body's "approval" field.
	// AddEvent returns any Postgres error.
	AddEvent(
		ctx context.Context, tx *db.Tx, event publishing.WebhookEvent, post publishing.PostID, data any,
	) error
}

// ReviewMailer sends emails to reviewers.
type ReviewMailer interface {
	// SendReview returns nil if the email was accepted or permanently rejected. It returns
	// jobs.ErrLater if the process has no mail server.
	SendReview(ctx context.Context, m ReviewMail) error
}
