package wall

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
)

// addNotifications adds an open incident and a day of published posts whose mails are due, and an event.
func (e *tenantFixture) addNotifications(t *testing.T, db *pg.DB, s *publishingstore.Store) {
	t.Helper()
	e.notification = id.New[publishing.NotificationTag]()
	must(t, s.InOrg(t.Context(), e.org, func(tx *publishingstore.Tx) error {
		day := e.incident(id.New[publishing.NotificationTag]())
		day.Kind, e.day = publishing.NotifyPublished, day.ID
		return publishingstore.SaveIncidents(t.Context(), tx, publishing.IncidentChanges{
			Begun:     []publishing.Notification{e.incident(e.notification), day},
			Published: []publishing.ChannelPosts{{Notification: day.ID, Channel: e.channel.ID, Posts: 1}},
		})
	}))
	must(t, db.InOrg(t.Context(), e.org.UUID(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `insert into notification_read values ($1, $2, now())`, e.org, e.person); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `insert into notification_seen values ($1, $2, $3, now())`, e.org, e.person, e.notification); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `insert into incident_event (org_id, kind, channel_id, post_id, reason)
			values ($1, 'failed', $2, $3, 'secret words') returning id`, e.org, e.channel.ID, e.post.ID).Scan(&e.event)
	}))
}

// manyPosts is more posts, and more notifications, than the questions give to the asking organization.
const manyPosts = 777

// addManyNotifications adds many notifications after the member has read, and makes the published posts many.
func (e tenantFixture) addManyNotifications(t *testing.T, db *pg.DB) {
	t.Helper()
	must(t, db.InOrg(t.Context(), e.org.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into notification (org_id, id, kind, channel_id, created_at, last_at, closed_at)
			select $1, gen_random_uuid(), 'failed', $2, now(), now(), now() from generate_series(1, $3::int)`,
			e.org, e.channel.ID, manyPosts)
		if err != nil {
			return err
		}
		_, err = tx.Exec(t.Context(), `update notification set posts = $1 where kind = 'published'`, manyPosts)
		return err
	}))
}

// read returns the question of the member for a page.
func (e tenantFixture) read(mark bool) publishingstore.NotificationsRead {
	return publishingstore.NotificationsRead{Person: e.person, Limit: 100, Mark: mark}
}

func (e tenantFixture) incident(n publishing.NotificationID) publishing.Notification {
	reason := "secret words"
	return publishing.Notification{
		ID: n, Kind: publishing.NotifyFailed, Channel: e.channel.ID, Post: e.post.ID, Reason: &reason, Posts: 1,
		CreatedAt: now, LastAt: now, MailAt: &now,
	}
}

// hasIncident reports whether the notification of an organization is among some, or what it says.
func (e tenantFixture) hasIncident(list []publishing.ListedNotification) bool {
	return slices.ContainsFunc(list, func(n publishing.ListedNotification) bool {
		return n.ID == e.notification || n.Channel == e.channel.ID
	})
}

// notificationQuestions returns the questions about notifications and the events that they count.
func notificationQuestions(s *publishingstore.Store) map[string]question {
	later := time.Now().Add(time.Hour)
	all := map[string]question{
		"Store.Notifications": func(t *testing.T, m, th tenantFixture) bool {
			page, err := publishingstore.Notifications(t.Context(), s, m.org, th.person, 0, 100)
			return err == nil && !th.hasIncident(page.Notifications)
		},
		"Store.UnreadNotifications": func(t *testing.T, m, th tenantFixture) bool {
			n, err := publishingstore.UnreadNotifications(t.Context(), s, m.org, th.person, nil)
			return err == nil && n < manyPosts
		},
		"Store.ReadNotifications": func(t *testing.T, m, th tenantFixture) bool {
			list, _, err := publishingstore.ReadNotifications(t.Context(), s, m.org, th.read(true))
			return refused(err, foreign) || err == nil && !th.hasIncident(list)
		},
		"Store.IncidentMails": func(t *testing.T, m, th tenantFixture) bool {
			list, err := publishingstore.IncidentMails(t.Context(), s, m.org, later, 100)
			return err == nil && !th.hasIncident(list)
		},
		"Store.PublishedMails": func(t *testing.T, m, th tenantFixture) bool {
			list, err := publishingstore.PublishedMails(t.Context(), s, m.org, later, 100)
			return err == nil && (len(list) == 0 || list[0].AllPosts < manyPosts)
		},
		"Store.MailsQueued": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.MailsQueued(t.Context(), s, m.org, []publishing.ListedNotification{{Notification: th.incident(th.notification)}}, now) == nil
		},
		"Store.PublishedQueued": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.PublishedQueued(t.Context(), s, m.org, th.day, now) == nil
		},
	}
	for name, ask := range notificationTxQuestions() {
		all[name] = inOrg(s, ask)
	}
	return all
}

func notificationTxQuestions() map[string]txQuestion {
	return map[string]txQuestion{
		"Tx.IncidentEvents": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			list, err := publishingstore.IncidentEvents(t.Context(), tx, 100)
			return !slices.ContainsFunc(list, func(e publishing.IncidentEvent) bool { return e.ID == th.event }), err
		},
		"Tx.DeleteIncidentEvents": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			deleted, err := publishingstore.DeleteIncidentEvents(t.Context(), tx, []int64{th.event})
			return len(deleted) == 0, err
		},
		"Tx.OpenIncidents": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			list, err := publishingstore.OpenIncidents(t.Context(), tx, []publishing.ChannelID{th.channel.ID}, now, now)
			return !slices.ContainsFunc(list, func(n publishing.Notification) bool {
				return n.ID == th.notification || n.ID == th.day
			}), err
		},
		"Tx.SaveIncidents": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			n := th.incident(th.notification)
			n.Posts = 99
			return true, publishingstore.SaveIncidents(t.Context(), tx, publishing.IncidentChanges{Changed: []publishing.Notification{n}})
		},
		"Tx.AddNotification": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			n := th.incident(id.New[publishing.NotificationTag]())
			n.Kind = publishing.NotifyUnknown
			return true, publishingstore.AddNotification(t.Context(), tx, n)
		},
	}
}
