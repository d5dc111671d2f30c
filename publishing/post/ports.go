package post

import (
	"context"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// Allowance limits how many posts an agent may queue per day.
type Allowance interface {
	// Take counts posts that an agent queues. If they exceed the daily limit of the agent's grant,
	// Take counts nothing and returns Forbidden.
	//
	// Take is called in the transaction that queues the posts and runs as pg.Tenant in the
	// principal's organization. If the transaction is rolled back, the posts are not counted.
	//
	// Take locks the grant's count for the day until the transaction ends, so that concurrent
	// transactions together cannot exceed the limit. It must lock nothing else. The transaction has
	// already locked channels, posts and, if the plan limits posts, the organization. Afterward, it
	// locks only notifications.
	//
	// Only the ID, Grant and Name of the principal's Agent are always set. If a person's approval
	// queues an agent's post, the principal is the agent that requested the approval, and its
	// Agent.Limits is nil. Take must therefore read the limit from the stored grant. It returns nil
	// if the grant has no limit or no longer exists.
	//
	// posts is the number of threads and is at least 1. day is the current day in the
	// organization's time zone. Example: 2027-03-01. The fault's message is one sentence that
	// states the limit and the day. The caller adds when the day ends. Take returns Postgres errors
	// unchanged.
	Take(ctx context.Context, q pg.Querier, p tenancy.Principal, posts int, day string) error
}

// Approvals gives access to approval requests and to approvals in force. Changes to posts affect
// both. Methods that take a transaction return its Postgres errors.
type Approvals interface {
	// StatusOf returns the status of a post's newest approval request, as shown to clients. It
	// returns pg.ErrOrgBusy or any Postgres error.
	StatusOf(ctx context.Context, org tenancy.OrgID, post publishing.PostID) (publishing.ApprovalStatus, error)
	// VoidPending ends any pending approval request for a post that is about to change. schedule is
	// set if the change also queues the post. While a request is pending, only administrators may
	// queue the post. If anyone else tries to queue it, VoidPending returns Conflict.
	VoidPending(
		ctx context.Context, tx *db.Tx, p tenancy.Principal, post publishing.PostID, reason string, schedule bool,
	) error
	// InForce returns the approval under which a post may be published, or the zero id if there is
	// none.
	InForce(ctx context.Context, tx *db.Tx, post publishing.PostID) (publishing.ApprovalID, error)
	// EndInForce ends the approval under which a post may be published. It returns that approval,
	// or nil if there is none.
	//
	// If the approval was given to a different occurrence of the same series, it stays in force for
	// the other occurrences. It ends for this post only if this post was in the queue.
	EndInForce(
		ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, inQueue bool, reason string,
	) (*publishing.Approval, error)
	// MayOverride returns the email address of the administrator who is responsible if the
	// principal overrides an approval: the person who is signed in or the API key's creator.
	// MayOverride returns Forbidden if the principal may not override approvals, or if this person
	// is not an administrator.
	MayOverride(ctx context.Context, tx *db.Tx, p tenancy.Principal) (email string, err error)
	// NotifyEnded tells the requester and the approving member that an approval has ended. It does
	// nothing if ended is nil. Call it at the end of a transaction, because it locks the
	// organization's notifications.
	NotifyEnded(ctx context.Context, tx *db.Tx, ended *publishing.Approval, reason string) error
}
