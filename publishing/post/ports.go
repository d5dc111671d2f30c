package post

import (
	"context"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// Approvals are the requests for approval of posts, and the approvals in force. Changes to posts
// affect both. A method that takes a transaction returns its Postgres error.
type Approvals interface {
	// StatusOf returns the status of the newest request of a post, as clients see it. It returns
	// pg.ErrOrgBusy or the Postgres error.
	StatusOf(ctx context.Context, org tenancy.OrgID, post publishing.PostID) (publishing.ApprovalStatus, error)
	// VoidPending ends the pending request of a post that is about to change, if there is one.
	// schedule means that the change also queues the post. While a request is pending only
	// administrators may do that; others get Conflict.
	VoidPending(
		ctx context.Context, tx *db.Tx, p tenancy.Principal, post publishing.PostID, reason string, schedule bool,
	) error
	// InForce returns the approval under which a post is published, or the zero id if there is
	// none.
	InForce(ctx context.Context, tx *db.Tx, post publishing.PostID) (publishing.ApprovalID, error)
	// EndInForce ends the approval under which a post is published and returns it, or nil if there
	// is none. The approval of a series remains in force for the other occurrences. It ends only
	// for this one, if this one was in the queue.
	EndInForce(
		ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, inQueue bool, reason string,
	) (*publishing.Approval, error)
	// MayOverride returns the address of the administrator who answers for an override by the
	// principal: the person, or the creator of the key. It returns Forbidden if there is no such
	// administrator.
	MayOverride(ctx context.Context, tx *db.Tx, p tenancy.Principal) (email string, err error)
	// NotifyEnded notifies the requester and the member who approved that an approval has ended. It
	// does nothing if ended is nil. It must come last in a transaction, because it locks the
	// organization's notifications.
	NotifyEnded(ctx context.Context, tx *db.Tx, ended *publishing.Approval, reason string) error
}
