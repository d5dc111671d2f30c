package person

import (
	"context"

	"crier/tenancy"
	"crier/tenancy/db"
)

// Notifications returns the notification settings of the principal's person.
func (s *People) Notifications(ctx context.Context, p tenancy.Principal) (out tenancy.Notifications, err error) {
	const op = "tenancy.Notifications"
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, err = db.ReadNotifications(ctx, tx, p.Person)
		return err
	})
	return out, err
}

// SetNotifications replaces the notification settings of the principal's person.
func (s *People) SetNotifications(ctx context.Context, p tenancy.Principal, n tenancy.Notifications) error {
	const op = "tenancy.SetNotifications"
	var in tenancy.Inputs
	deliveries := []struct {
		name string
		sent tenancy.Delivery
	}{
		{name: "events.approval", sent: n.Approval}, {name: "events.comment", sent: n.Comment},
		{name: "events.channel", sent: n.Channel}, {name: "events.billing", sent: n.Billing},
		{name: "events.team", sent: n.Team},
	}
	for _, d := range deliveries {
		in.Check(d.sent.Valid(), d.name, "must be mail, bell or off")
	}
	if err := in.Err(op); err != nil {
		return err
	}
	return s.db.InPerson(ctx, op, p, func(tx *db.GateTx, _ tenancy.Person) error {
		if err := db.SetNotifications(ctx, tx, p.Person, n); err != nil {
			return err
		}
		return s.db.AuditActed(ctx, tx, p, tenancy.ActionNotificationsChanged)
	})
}
