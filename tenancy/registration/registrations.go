// Package registration creates accounts. People register and then follow an emailed link. Accounts
// can also be created by the instance operator and by the company that runs the instance.
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

// Organizations creates organizations for new accounts.
type Organizations interface {
	// CheckCreations returns an error if a person may not create another organization. The caller
	// must have locked the person.
	CheckCreations(ctx context.Context, tx *db.GateTx, op string, person tenancy.PersonID) error
	// MakeOrganization creates an organization that the principal owns. The organization counts
	// toward creator's limits. creator may be zero.
	MakeOrganization(ctx context.Context, tx *db.GateTx, by tenancy.Principal, creator tenancy.PersonID, name string) (
		tenancy.OrgID, error)
}

// Invitations adds new accounts to organizations.
type Invitations interface {
	// InvitedAddress returns the email address that the invitation behind a link is for, or "" if
	// anybody can use the invitation. It returns pgx.ErrNoRows if the invitation cannot be used
	// now.
	InvitedAddress(ctx context.Context, tx *db.GateTx, hash []byte) (string, error)
	// UseInvitation makes a person a member of the inviting organization. It returns pgx.ErrNoRows
	// if the invitation can no longer be used.
	UseInvitation(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person, hash []byte, from tenancy.Source) (
		tenancy.OrgID, error)
}

// Keys creates the first API key of an organization that was created by a signed request.
type Keys interface {
	// FirstKey creates an API key for a new organization and returns the full key.
	FirstKey(ctx context.Context, tx *db.GateTx, op string, p tenancy.Principal) (string, error)
}

// Deps holds the dependencies of New.
type Deps struct {
	DB      *db.DB
	Clock   clock.Clock
	Notices *notice.Queue
	Proofs  *proof.Proofs
	Entry   *entry.Entry
	// What a new account starts with.
	Organizations Organizations
	Invitations   Invitations
	Keys          Keys
}

// Registrations creates accounts. It is safe for concurrent use.
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

// New returns a new Registrations.
func New(cfg Config, enterprise EnterpriseConfig, d Deps) *Registrations {
	return &Registrations{
		cfg: cfg, enterprise: enterprise, db: d.DB, clock: d.Clock, notices: d.Notices, proofs: d.Proofs,
		entry:         d.Entry,
		organizations: d.Organizations, invitations: d.Invitations, keys: d.Keys,
	}
}
