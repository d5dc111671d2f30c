// Package member manages an organization's members: it lists and removes them, changes their roles,
// and handles invitations.
package member

import (
	"context"

	"crier/platform/clock"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/mails"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// Keys revokes the API keys that a member created.
type Keys interface {
	// TakeMade locks and returns the keys that a person created. If m.Revoke is set, it deletes the
	// keys and also returns their hashes.
	TakeMade(ctx context.Context, tx *db.OrgTx, m tenancy.Maker) (keys []tenancy.APIKey, revoked [][]byte, err error)
	// ForgetRevoked makes this process reject the keys with these hashes immediately. err is the
	// result of the transaction that deleted the keys. If err shows that the keys still exist,
	// ForgetRevoked does nothing.
	ForgetRevoked(err error, revoked [][]byte)
}

// Publishing finds the webhooks, provider credentials and approval requests connected with a
// member.
type Publishing interface {
	// TakeMade returns everything that a person created in q's organization, except for API keys
	// and invitations. If m.Revoke is set, it deletes the person's webhooks. It runs in q's
	// transaction and returns Postgres errors unchanged.
	TakeMade(ctx context.Context, q pg.Querier, m tenancy.Maker) (tenancy.CreatedBy, error)
}

// Quota returns what an organization's plan allows.
type Quota interface {
	// Limits returns the limits of the organization's plan. It is called while the organization is
	// locked, in the transaction that adds a member or an invitation. It reads with q and returns
	// Postgres errors unchanged.
	Limits(ctx context.Context, q pg.Querier, org tenancy.OrgID) (tenancy.Limits, error)
}

// Deps holds the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
	Proofs  *proof.Proofs
	Mails   mails.Instance
	Keys    Keys
	// Publishing is nil in programs that publish nothing.
	Publishing Publishing
	// Quota is nil on an instance without limits.
	Quota Quota
}

// Members manages members and invitations. It is safe for concurrent use.
type Members struct {
	db         *db.DB
	clock      clock.Clock
	notices    *notice.Queue
	proofs     *proof.Proofs
	mails      mails.Instance
	keys       Keys
	publishing Publishing
	quota      Quota
}

// New returns a new Members.
func New(d Deps) *Members {
	return &Members{
		db: d.DB, clock: d.Clock, notices: d.Notices, proofs: d.Proofs, mails: d.Mails, keys: d.Keys,
		publishing: d.Publishing, quota: d.Quota,
	}
}
