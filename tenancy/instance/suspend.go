package instance

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	instancestore "crier/tenancy/instance/store"
)

// Suspend suspends an organization or, if suspended is false, ends its suspension. While an
// organization is suspended, its members and keys have no access and it does not publish. When the
// suspension ends, posts that became due in the meantime are handled in the same way as after a
// pause.
//
// Suspend is an operator command and may be called repeatedly. It returns fault.NotFound if there
// is no organization with the given id.
func (s *Instance) Suspend(ctx context.Context, org string, suspended bool) error {
	const op = "tenancy.Suspend"
	parsed, _ := id.Parse[tenancy.OrgTag](org)
	now := s.clock.Now()
	at, event, logged := &now, tenancy.ActionOrgSuspended, tenancy.ActionSuspended
	if !suspended {
		at, event, logged = nil, tenancy.ActionOrgResumed, tenancy.ActionResumed
	}
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if err := instancestore.SetSuspended(ctx, tx, parsed, at); err != nil {
			return err
		}
		if err := db.AuditOrg(ctx, tx, parsed, db.InstanceEvent(db.Operator, logged, ""), now); err != nil {
			return err
		}
		return s.db.AddInstanceEvent(ctx, tx, event, org)
	})
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "There is no such organization.")
	}
	if err != nil {
		return err
	}
	return s.AccessChanged(ctx, parsed)
}
