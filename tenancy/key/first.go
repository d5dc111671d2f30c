package key

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
)

// FirstKey creates the first API key of a new organization and returns the full key. It also adds
// an instance event with ActionEnterpriseCreated.
func (s *Keys) FirstKey(ctx context.Context, tx *db.GateTx, op string, p tenancy.Principal) (
	string, error) {
	entered, err := tx.Enter(ctx, p.Org)
	if err != nil {
		return "", err
	}
	full, k, err := s.makeKey(ctx, entered, op, p, tenancy.NewKey{Name: "default"}, false)
	if err != nil {
		return "", err
	}
	if err := db.Audit(ctx, entered, p.Event(tenancy.ActionKeyCreated, k.Label()), s.clock.Now()); err != nil {
		return "", err
	}
	gate, err := entered.Leave(ctx)
	if err != nil {
		return "", err
	}
	return full, db.AddInstanceEvent(ctx, gate, tenancy.InstanceEvent{
		At: s.clock.Now(), Actor: "enterprise", Action: tenancy.ActionEnterpriseCreated, Subject: p.Name,
	})
}
