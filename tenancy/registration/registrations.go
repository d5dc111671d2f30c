// Package registration implements the ways to get an account: registering and following the link,
// creation by the operator, and creation by the company that runs the instance.
package registration

import (
	"context"

	"crier/platform/clock"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/entry"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// Organizations creates the organization of a new account.
type Organizations interface {
	// CheckCreations returns an error if a locked person may not create another organization.
	CheckCreations(ctx context.Context, tx *db.GateTx, op string, person tenancy.PersonID) error
	// MakeOrganization creates an organization that the principal owns. It counts toward the limits
	// of the creator, who may be zero.
	MakeOrganization(ctx context.Context, tx *db.GateTx, by tenancy.Principal, creator tenancy.PersonID, name string) (
		tenancy.OrgID, error)
}

// Invitations makes a new account a member of an organization.
type Invitations interface {
	// InvitedAddress returns the address that a link's invitation is for, or "" if anybody can use
	// the invitation. It returns pgx.ErrNoRows if the invitation cannot be used now.
	InvitedAddress(ctx context.Context, tx *db.GateTx, hash []byte) (string, error)
	// UseInvitation makes a person a member. It returns pgx.ErrNoRows if the invitation can no
	// longer be used.
	UseInvitation(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person, hash []byte, from tenancy.Source) (
		tenancy.OrgID, error)
}

// Keys creates the API key of an organization that was created by a signed request.
type Keys interface {
	// FirstKey creates the API key of an organization that has just been created, and returns it in
	// full.
	FirstKey(ctx context.Context, tx *db.GateTx, op string, p tenancy.Principal) (string, error)
}

// Deps are the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
	Proofs  *proof.Proofs
	Entry   *entry.Entry
	// The nouns that a new account begins with.
	Organizations Organizations
	Invitations   Invitations
	Keys          Keys
}

// Registrations are the use cases of registrations. They are safe for concurrent use.
type Registrations struct {
	cfg           Config
	enterprise    EnterpriseConfig
	db            *db.DB
	clock         clock.Clock
	notices       *notice.Queue
	proofs        *proof.Proofs
	entry         *entry.Entry
	organizations Organizations
	invitations   Invitations
	keys          Keys
}

// New returns Registrations.
func New(cfg Config, enterprise EnterpriseConfig, d Deps) *Registrations {
	return &Registrations{
		cfg: cfg, enterprise: enterprise, db: d.DB, clock: d.Clock, notices: d.Notices, proofs: d.Proofs, entry: d.Entry,
		organizations: d.Organizations, invitations: d.Invitations, keys: d.Keys,
	}
}
