package member

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	memberstore "crier/tenancy/member/store"
)

// Team returns the members of the principal's organization, oldest membership first.
func (s *Members) Team(ctx context.Context, p tenancy.Principal) (out []tenancy.Member, err error) {
	const op = "tenancy.Team"
	err = s.db.InOrg(ctx, op, p.Org, func(tx *db.OrgTx) error {
		out, err = db.Members(ctx, tx)
		return err
	})
	return out, err
}

// inMember locks a member and runs fn in the same transaction, using InOrgAlone. It returns
// NotFound if the member does not exist.
func (s *Members) inMember(ctx context.Context, op string, p tenancy.Principal, target tenancy.PersonID,
	fn func(tx *db.OrgTx, m tenancy.Membership) error) error {
	return s.db.InOrgAlone(ctx, op, p, func(tx *db.OrgTx) error {
		m, err := memberstore.LockMember(ctx, tx, target)
		if pg.IsNoRows(err) {
			return noMember(op)
		}
		if err != nil {
			return err
		}
		return fn(tx, m)
	})
}

func noMember(op string) error { return fault.New(fault.NotFound, op, "There is no such member.") }
