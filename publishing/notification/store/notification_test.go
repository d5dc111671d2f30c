package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	notificationstore "crier/publishing/notification/store"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// The database refuses a second open incident of a kind, whatever the statement is.
func TestNotification_ChannelHasOneOpenIncidentOfAKind(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	c := r.Channel()
	add := func(n publishing.Notification) error {
		return r.InOrg(func(tx *db.Tx) error { return notificationstore.AddNotification(r.Context(), tx, n) })
	}
	closed := fixture.Incident(c, time.Now())
	closed.ClosedAt = &closed.LastAt
	r.OK(add(closed))
	r.OK(add(fixture.Incident(c, time.Now())))
	r.OK(add(fixture.Incident(r.Channel(), time.Now())))
	if err := add(fixture.Incident(c, time.Now())); err == nil {
		t.Error("a second open incident is stored, want it refused")
	}
}

// bell has the notifications that a member of the organization reads.
type bell struct {
	*publishtest.StoreRig
	person   tenancy.PersonID
	database string
}

func newBell(t *testing.T) bell {
	t.Helper()
	r := publishtest.NewStoreRig(t)
	b := bell{StoreRig: r}
	r.OK(r.DB.InOrg(t.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select person_id, current_database()::text from member`).Scan(&b.person, &b.database)
	}))
	return b
}

// adds adds a notification in a transaction that commits after then returns.
func (b bell) adds(at time.Time, then func()) error {
	n := fixture.Incident(b.Channel(), time.Now())
	n.LastAt = at
	return b.InOrg(func(tx *db.Tx) error {
		err := notificationstore.AddNotification(b.Context(), tx, n)
		then()
		return err
	})
}

// reads marks all notifications as read and returns how many there are.
func (b bell) reads() int {
	b.Helper()
	list, _, err := notificationstore.ReadNotifications(b.Context(), b.Store, b.Org, notificationstore.NotificationsRead{
		Person: b.person, Limit: 100, Mark: true,
	})
	b.OK(err)
	return len(list)
}

func (b bell) wantUnread(when string, want int) {
	b.Helper()
	n, err := notificationstore.UnreadNotifications(b.Context(), b.Store, b.Org, b.person, nil)
	if err != nil || n != want {
		b.Errorf("%s: got %d unread, %v, want %d", when, n, err, want)
	}
}

// A notification that commits after a later one was read still counts as unread.
func TestNotification_IsUnreadUntilShown(t *testing.T) {
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
			b.OK(err)
			committed = true
		default:
			b.OK(super.QueryRow(t.Context(), `select exists (select from pg_locks where locktype = 'advisory' and not granted
				and database = (select oid from pg_database where datname = $1))`, b.database).Scan(&waits))
		}
	}
	shown := b.reads()
	close(release)
	b.OK(<-first)
	if !committed {
		b.OK(<-second)
	}
	b.wantUnread("both are there", 2-shown)
	if n := b.reads(); n != 2 {
		t.Errorf("got %d notifications, want 2", n)
	}
	b.wantUnread("both were read", 0)
}

// A notification from a process whose clock is behind counts as unread too.
func TestNotification_FromSlowClockIsUnread(t *testing.T) {
	t.Parallel()
	b, now := newBell(t), time.Now().Add(time.Minute)
	b.OK(b.adds(now, func() {}))
	b.reads()
	b.OK(b.adds(now.Add(-10*time.Second), func() {}))
	b.wantUnread("a notification with an earlier time", 1)
}
