package notification

import (
	"context"
	"slices"

	"crier/platform/batch"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	notificationstore "crier/publishing/notification/store"
	"crier/tenancy"
)

const (
	// orgsPerRound and eventsPerOrg limit the work done in one round, so that organizations take
	// turns.
	orgsPerRound = 500
	eventsPerOrg = 500
)

// Count adds events to their organizations' incidents and deletes the events. It handles the
// organizations in this process's shards. more is true if there may be further events.
func (n *Notifier) Count(ctx context.Context) (more bool, err error) {
	return n.events.Page(ctx, func(ctx context.Context, after tenancy.OrgID, limit int) ([]tenancy.OrgID, error) {
		return notificationstore.IncidentOrgs(ctx, n.db, after, limit)
	}, n.countOrg)
}

// countOrg counts an organization's oldest events. An event that cannot be stored is logged and
// dropped, so that it does not block later events. countOrg does nothing while another process is
// counting the organization's events.
func (n *Notifier) countOrg(ctx context.Context, org tenancy.OrgID) (full bool, err error) {
	var seen int
	err = n.inOrg(ctx, org, func(tx *db.Tx) error {
		events, err := notificationstore.IncidentEvents(ctx, tx, eventsPerOrg)
		if err != nil {
			return err
		}
		seen = len(events)
		return n.add(ctx, tx, org, events)
	})
	if err == nil || !pg.IsRefused(err) {
		return seen == eventsPerOrg && err == nil, err
	}
	return true, n.dropRefused(ctx, org)
}

// inOrg runs fn in a transaction unless another transaction is counting the organization's events.
func (n *Notifier) inOrg(ctx context.Context, org tenancy.OrgID, fn func(tx *db.Tx) error) error {
	return n.db.InOrg(ctx, org, func(tx *db.Tx) error {
		got, err := notificationstore.TryLockIncidents(ctx, tx)
		if err != nil || !got {
			return err
		}
		return fn(tx)
	})
}

// add deletes the given events and adds them to their incidents. It skips events that another
// transaction has already deleted.
func (n *Notifier) add(
	ctx context.Context, tx *db.Tx, org tenancy.OrgID, events []notificationstore.IncidentEvent,
) error {
	if len(events) == 0 {
		return nil
	}
	ids := make([]int64, len(events))
	var channels []publishing.ChannelID
	since := events[0].At
	for i, e := range events {
		ids[i] = e.ID
		channels = append(channels, e.Channel)
		if e.At.Before(since) {
			since = e.At
		}
	}
	taken, err := notificationstore.DeleteIncidentEvents(ctx, tx, ids)
	if err != nil {
		return err
	}
	now := n.deps.Clock.Now()
	activity, err := notificationstore.ActivityTime(ctx, tx, now)
	if err != nil {
		return err
	}
	known, err := notificationstore.OpenIncidents(ctx, tx, slices.Compact(
		slices.SortedFunc(slices.Values(channels), compare),
	), since,
		now.Add(-publishing.IncidentReopening))
	if err != nil {
		return err
	}
	incidents := newIncidents(org, known, now, activity)
	for _, e := range events {
		if slices.Contains(taken, e.ID) {
			incidents.add(e)
		}
	}
	return notificationstore.SaveIncidents(ctx, tx, incidents.changes())
}

func compare(a, b publishing.ChannelID) int {
	x, y := a.UUID(), b.UUID()
	return slices.Compare(x[:], y[:])
}

// dropRefused counts the oldest events in smaller batches and drops any that the database rejects.
func (n *Notifier) dropRefused(ctx context.Context, org tenancy.OrgID) error {
	var events []notificationstore.IncidentEvent
	if err := n.inOrg(ctx, org, func(tx *db.Tx) (err error) {
		events, err = notificationstore.IncidentEvents(ctx, tx, eventsPerOrg)
		return err
	}); err != nil {
		return err
	}
	some := func(list []notificationstore.IncidentEvent) error {
		return n.inOrg(ctx, org, func(tx *db.Tx) error { return n.add(ctx, tx, org, list) })
	}
	var refused []int64
	_, err := batch.Isolate(events, some, pg.IsRefused, func(e notificationstore.IncidentEvent, cause error) {
		n.deps.Log.ErrorContext(ctx, "cannot store an incident event; it is dropped", "org", org,
			"event", e.Kind, "channel", e.Channel, "post", e.Post, "error", cause)
		refused = append(refused, e.ID)
	})
	if err != nil || len(refused) == 0 {
		return err
	}
	return n.db.InOrg(ctx, org, func(tx *db.Tx) error {
		_, err := notificationstore.DeleteIncidentEvents(ctx, tx, refused)
		return err
	})
}
