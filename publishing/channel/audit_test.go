package channel_test

import (
	"context"
	"errors"
	"testing"

	"crier/platform/pg"
	"crier/publishing/db"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// auditor records the actions of audit entries, or refuses every entry.
type auditor struct {
	refuses error
	actions []tenancy.Action
}

func (a *auditor) AppendAudit(
	_ context.Context, _ pg.Querier, _ tenancy.Principal, action tenancy.Action, _ string,
) error {
	a.actions = append(a.actions, action)
	return a.refuses
}

// A command and its audit entry are one transaction: without the entry, nothing changes.
func TestDisconnect_IsUndoneWithoutItsAuditEntry(t *testing.T) {
	t.Parallel()
	m := publishtest.NewRig(t).Member()
	log := &auditor{refuses: errors.New("the log is full")}
	m.Deps.DB = &db.DB{DB: m.DB, Auditor: log}
	channels := m.Deps.Channels(publishtest.Limits)
	before, err := channels.List(t.Context(), m.Who, "")
	m.OK(err)
	if err := channels.Disconnect(t.Context(), m.Who, before[0].ID.String()); err == nil {
		t.Error("got no error, want that of the audit log")
	}
	if after, err := channels.List(t.Context(), m.Who, ""); err != nil || len(after) != len(before) {
		t.Errorf("got %d channels, %v, want the %d from before", len(after), err, len(before))
	}
	log.refuses = nil
	m.OK(channels.Disconnect(t.Context(), m.Who, before[0].ID.String()))
	if len(log.actions) != 2 || log.actions[1] != tenancy.ActionChannelDeleted {
		t.Errorf("got the actions %v, want the deletion twice", log.actions)
	}
}
