package person

import (
	"context"
	"slices"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/notice"
	personstore "crier/tenancy/person/store"
)

// Identities returns the identities that the principal's person can sign in with.
func (s *People) Identities(ctx context.Context, p tenancy.Principal) (out []tenancy.Identity, err error) {
	const op = "tenancy.Identities"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, err = personstore.Identities(ctx, tx, p.Person)
		return err
	})
	return out, err
}

// UnlinkIdentity deletes an identity of the principal's person. It returns fault.NotFound if there
// is no such identity. It returns fault.Conflict if the person has no other identity and no
// password, because the person could then no longer sign in.
func (s *People) UnlinkIdentity(ctx context.Context, p tenancy.Principal, identity string) error {
	const op = "tenancy.UnlinkIdentity"
	if err := db.RejectImpersonator(op, p); err != nil {
		return err
	}
	one, _ := id.Parse[tenancy.IdentityTag](identity)
	err := s.db.InPerson(ctx, op, p, func(tx *db.GateTx, person tenancy.Person) error {
		all, err := personstore.Identities(ctx, tx, p.Person)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(i tenancy.Identity) bool { return i.ID == one })
		if i < 0 {
			return fault.New(fault.NotFound, op, "There is no such identity.")
		}
		if len(all) == 1 && person.PasswordHash == "" {
			return fault.New(fault.Conflict, op, "You would no longer be able to sign in: set a password first.")
		}
		if err := personstore.DeleteIdentity(ctx, tx, p.Person, one); err != nil {
			return err
		}
		if err := db.AuditPerson(ctx, tx, p.Person, p.Event(tenancy.ActionIdentityUnlinked, all[i].Provider), s.clock.Now()); err != nil {
			return err
		}
		return s.notices.Notify(ctx, tx, notice.IdentityUnlinked, person.Email, notice.Notice{
			Name: all[i].Provider, Address: p.From.Client,
		})
	})
	return err
}
