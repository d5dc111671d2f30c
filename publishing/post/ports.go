package post

import (
	"context"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// Approvals gives access to approval requests and to the approvals in force, because changes to
// posts affect both. Methods that take a transaction return its Postgres errors.
type Approvals interface {
	// StatusOf returns the status of a post's newest approval request, as clients see it. It
	// returns pg.ErrOrgBusy or a Postgres error.
	StatusOf(ctx context.Context, org tenancy.OrgID, post publishing.PostID) (publishing.ApprovalStatus, error)
	// VoidPending ends the pending approval request, if any, of a post that is about to change.
	// schedule is set if the change also queues the post. While a request is pending, only
	// administrators may queue the post; for anyone else, VoidPending returns Conflict.
	VoidPending(
		ctx context.Context, tx *db.Tx, p tenancy.Principal, post publishing.PostID, reason string, schedule bool,
	) error
	// InForce returns the approval under which a post is published, or the zero id if there is
	// none.
	InForce(ctx context.Context, tx *db.Tx, post publishing.PostID) (publishing.ApprovalID, error)
	// EndInForce ends the approval under which a post is published and returns it, or nil if there
	// is none. An approval given to another occurrence of the same series stays in force for the
	// other occurrences. It ends only for this post, and only if the post was in the queue.
	EndInForce(
		ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, inQueue bool, reason string,
	) (*publishing.Approval, error)
	// MayOverride returns the email address of the administrator responsible for an override by the
	// principal: the person, or the creator of the API key. It returns Forbidden if there is no
	// such administrator.
	MayOverride(ctx context.Context, tx *db.Tx, p tenancy.Principal) (email string, err error)
	// NotifyEnded tells the requester and the member who approved that an approval has ended. It
	// does nothing if ended is nil. Call it last in a transaction, because it locks the
	// organization's notifications.
	NotifyEnded(ctx context.Context, tx *db.Tx, ended *publishing.Approval, reason string) error
}
