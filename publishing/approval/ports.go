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
	// Get returns one post with its timeline. It returns NotFound for an id that names no post.
	Get(ctx context.Context, p tenancy.Principal, post string) (publishing.PostDetail, error)
	// FindRoot returns the first post of the thread of a post, which may be a later occurrence that
	// is not stored yet. found is false if there is no such post. It returns pg.ErrOrgBusy or the
	// Postgres error, as FindThread does.
	FindRoot(
		ctx context.Context, org tenancy.OrgID, post publishing.PostID,
	) (root publishing.PostID, found bool, err error)
	// FindThread returns the thread of a stored post.
	FindThread(
		ctx context.Context, org tenancy.OrgID, post publishing.PostID,
	) (thread publishing.Thread, found bool, err error)
}

// Drafts changes the posts that approvals are about. Methods that take a transaction return its
// Postgres error.
type Drafts interface {
	// Lock locks the thread of a draft until the transaction ends, and returns its first post with
	// the publish date. It returns NotFound, and Conflict for a post that is not a draft.
	Lock(
		ctx context.Context, tx *db.Tx, post publishing.PostID,
	) (root publishing.PostID, publishDate time.Time, err error)
	// HoldSeries makes the later occurrences of a locked draft with the same content wait for the
	// approval that was requested. It does nothing for a post that is not repeated.
	HoldSeries(ctx context.Context, tx *db.Tx, root publishing.PostID) error
	// FreeSeries undoes HoldSeries: the later occurrences need no approval after all.
	FreeSeries(ctx context.Context, tx *db.Tx, root publishing.PostID) error
	// Recheck applies the rules of the post's platform as if the post were new, and returns the
	// post. It returns NotFound, and Invalid if the post breaks a rule.
	Recheck(ctx context.Context, p tenancy.Principal, post string) (publishing.PostDetail, error)
	// Answer applies the answer to a request for approval. It locks the draft, finds out whether
	// the draft can be scheduled if that was requested, and calls store with the reason why not, or
	// nil. Then it stores what was approved and takes the draft into the queue.
	//
	// It returns when the draft is due, nil if it was not scheduled, and the pictures to make after
	// the commit. It returns NotFound if the post is gone, and the error of store.
	Answer(
		ctx context.Context, tx *db.Tx, a publishing.DraftAnswer, store func(problem error) error,
	) (due *time.Time, pictures []pictures.Key, err error)
	// Unschedule takes a post that is published under an approval out of the queue. The other
	// occurrences of its series that are published under the same approval are taken out too. It
	// returns Conflict while one of them is being published.
	Unschedule(
		ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, approval publishing.ApprovalID,
	) error
}

// Notices stores notifications in the transaction of the change that they report.
type Notices interface {
	// Add stores a notification for the bell and its mail. It returns the Postgres error.
	Add(ctx context.Context, tx *db.Tx, n publishing.Notification) error
}

// WebhookEvents stores events in the transaction of the change that they report.
type WebhookEvents interface {
	// AddEvent records an event about a thread for the organization's endpoints. post is the first
	// post of the thread. data is encoded as JSON and becomes the approval member of the body. It
	// returns the Postgres error.
	AddEvent(
		ctx context.Context, tx *db.Tx, event publishing.WebhookEvent, post publishing.PostID, data any,
	) error
}

// ReviewMailer sends mails to reviewers.
type ReviewMailer interface {
	// SendReview returns nil if the mail was accepted or refused for good, and jobs.ErrLater in a
	// process without a mail server.
	SendReview(ctx context.Context, m ReviewMail) error
}
