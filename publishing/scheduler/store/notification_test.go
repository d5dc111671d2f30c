package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	notificationstore "crier/publishing/notification/store"
	"crier/publishing/purge"
	purgestore "crier/publishing/purge/store"
	"crier/tenancy"
	"crier/tests/dbtest"
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
		r.ok(r.inOrg(func(tx *db.Tx) error {
			return notificationstore.AddNotification(r.Context(), tx, incidentOf(r.channel(), ago))
		}))
	}
	for range 3 {
		add(91 * day)
	}
	add(89 * day)
	pruner := purge.NewPruner(purge.Retention{Notifications: 90 * day}, db.New(r.db))
	n, err := pruner.Prune(t.Context(), purgestore.PruneNotifications)
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
		return r.inOrg(func(tx *db.Tx) error { return notificationstore.AddNotification(r.Context(), tx, n) })
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

// bell is what a member of the organization reads.
type bell struct {
	*rig
	person   tenancy.PersonID
	database string
}

func newBell(t *testing.T) bell {
	t.Helper()
	r := newRig(t)
	b := bell{rig: r}
	r.ok(r.db.InOrg(t.Context(), r.org.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select person_id, current_database()::text from member`).Scan(&b.person, &b.database)
	}))
	return b
}

// adds adds a notification in a transaction that commits after then has returned.
func (b bell) adds(at time.Time, then func()) error {
	n := incidentOf(b.channel(), 0)
	n.LastAt = at
	return b.inOrg(func(tx *db.Tx) error {
		err := notificationstore.AddNotification(b.Context(), tx, n)
		then()
		return err
	})
}

// reads marks all that is there as read, and returns how many notifications these are.
func (b bell) reads() int {
	b.Helper()
	list, _, err := notificationstore.ReadNotifications(b.Context(), b.store, b.org, notificationstore.NotificationsRead{
		Person: b.person, Limit: 100, Mark: true,
	})
	b.ok(err)
	return len(list)
}

func (b bell) wantUnread(when string, want int) {
	b.Helper()
	n, err := notificationstore.UnreadNotifications(b.Context(), b.store, b.org, b.person, nil)
	if err != nil || n != want {
		b.Errorf("%s: got %d unread, %v, want %d", when, n, err, want)
	}
}

// A notification that commits after a later one was read is unread.
func TestNotification_IsUnreadUntilItWasShown(t *testing.T) {
	t.Parallel()
	b, now := newBell(t), time.Now().Add(time.Minute)
	added, release := make(chan struct{}), make(chan struct{})
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- b.adds(now, func() { close(added); <-release }) }()
	<-added
	go func() { second <- b.adds(now.Add(time.Second), func() {}) }()
	super := dbtest.Super(t)
	committed := false
	for waits := false; !waits && !committed; {
		select {
		case err := <-second:
			b.ok(err)
			committed = true
		default:
			b.ok(super.QueryRow(t.Context(), `select exists (select from pg_locks where locktype = 'advisory' and not granted
				and database = (select oid from pg_database where datname = $1))`, b.database).Scan(&waits))
		}
	}
	shown := b.reads()
	close(release)
	b.ok(<-first)
	if !committed {
		b.ok(<-second)
	}
	b.wantUnread("both are there", 2-shown)
	if n := b.reads(); n != 2 {
		t.Errorf("got %d notifications, want 2", n)
	}
	b.wantUnread("both were read", 0)
}

// A process whose clock is behind adds a notification that is unread too.
func TestNotification_OfClockThatIsBehindIsUnread(t *testing.T) {
	t.Parallel()
	b, now := newBell(t), time.Now().Add(time.Minute)
	b.ok(b.adds(now, func() {}))
	b.reads()
	b.ok(b.adds(now.Add(-10*time.Second), func() {}))
	b.wantUnread("a notification with an earlier time", 1)
}
