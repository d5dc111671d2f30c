package db

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
)

// Operator is the operator's name in audit logs and instance events.
const Operator = "the operator"

// AddInstanceEvent adds an instance event for an action taken by the operator.
func (d *DB) AddInstanceEvent(ctx context.Context, tx *GateTx, action tenancy.Action,
	subject string) error {
	return AddInstanceEvent(ctx, tx, tenancy.InstanceEvent{
		At: d.clock.Now(), Actor: Operator, Action: action, Subject: subject,
	})
}

// OfPerson locks the person with the given email address and then runs fn in the same transaction.
// It returns fault.NotFound if no account has the address.
func (d *DB) OfPerson(ctx context.Context, op, email string,
	fn func(tx *GateTx, person tenancy.Person) error) error {
	clean, _ := tenancy.CleanEmail(email)
	err := d.InGate(ctx, op, func(tx *GateTx) error {
		found, err := PersonByEmail(ctx, tx, clean)
		if err != nil {
			return err
		}
		person, err := LockPerson(ctx, tx, found.ID)
		if err != nil {
			return err
		}
		return fn(tx, person)
	})
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "There is no account with this address.")
	}
	return err
}
