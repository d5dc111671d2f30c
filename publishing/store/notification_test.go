package store_test

import (
	"testing"
	"time"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/sender"
	publishingstore "crier/publishing/store"
)

// incidentOf returns an open incident of a channel whose last event was some time ago.
func incidentOf(channel publishing.ChannelID, ago time.Duration) publishing.Notification {
	at := time.Now().Add(-ago)
	return publishing.Notification{
		ID: id.New[publishing.NotificationTag](), Kind: publishing.NotifyFailed, Channel: channel, Posts: 1,
		CreatedAt: at, LastAt: at,
	}
}

func TestPrune_NotificationsByTheirLastEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	add := func(ago time.Duration) {
		r.ok(r.inOrg(func(tx *publishingstore.Tx) error {
			return tx.AddNotification(r.Context(), incidentOf(r.channel(), ago))
		}))
	}
	for range 3 {
		add(91 * day)
	}
	add(89 * day)
	pruner := sender.NewPruner(sender.Retention{Notifications: 90 * day}, r.db)
	n, err := pruner.Prune(t.Context(), publishingstore.PruneNotifications)
	r.ok(err)
	if left := r.countOf("notification", "true"); n != 3 || left != 1 {
		t.Errorf("%d notifications were deleted and %d are left, want 3 and 1", n, left)
	}
}

// A second open incident of a kind is refused, whatever a statement asks for.
func TestNotification_ChannelHasOneOpenIncidentOfAKind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.channel()
	add := func(n publishing.Notification) error {
		return r.inOrg(func(tx *publishingstore.Tx) error { return tx.AddNotification(r.Context(), n) })
	}
	closed := incidentOf(c, 0)
	closed.ClosedAt = &closed.LastAt
	r.ok(add(closed))
	r.ok(add(incidentOf(c, 0)))
	r.ok(add(incidentOf(r.channel(), 0)))
	if err := add(incidentOf(c, 0)); err == nil {
		t.Error("a second open incident is stored, want it refused")
	}
}
