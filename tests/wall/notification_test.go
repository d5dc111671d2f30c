package wall

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	publishingdb "crier/publishing/db"
	notificationstore "crier/publishing/notification/store"
)

// addNotifications adds an open incident, a day of published posts whose mails are due, and an
// event.
func (e *tenantFixture) addNotifications(t *testing.T, db *pg.DB, s *publishingdb.DB) {
	t.Helper()
	e.notification = id.New[publishing.NotificationTag]()
	must(t, s.InOrg(t.Context(), e.org, func(tx *publishingdb.Tx) error {
		day := e.incident(id.New[publishing.NotificationTag]())
		day.Kind, e.day = publishing.NotifyPublished, day.ID
		return notificationstore.SaveIncidents(t.Context(), tx, notificationstore.IncidentChanges{
			Begun:     []publishing.Notification{e.incident(e.notification), day},
			Published: []notificationstore.ChannelPosts{{Notification: day.ID, Channel: e.channel.ID, Posts: 1}},
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

// manyPosts exceeds the number of posts, and of notifications, that the questions give to the
// asking organization.
const manyPosts = 777

// addManyNotifications adds many notifications after the member has read, and makes the number of
// published posts large.
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

// read returns the member's request for a page.
func (e tenantFixture) read(mark bool) notificationstore.NotificationsRead {
	return notificationstore.NotificationsRead{Person: e.person, Limit: 100, Mark: mark}
}

func (e tenantFixture) incident(n publishing.NotificationID) publishing.Notification {
	reason := "secret words"
	return publishing.Notification{
		ID: n, Kind: publishing.NotifyFailed, Channel: e.channel.ID, Post: e.post.ID, Reason: &reason, Posts: 1,
		CreatedAt: now, LastAt: now, MailAt: &now,
	}
}

// hasIncident reports whether a list contains the organization's notification or names its channel.
func (e tenantFixture) hasIncident(list []publishing.ListedNotification) bool {
	return slices.ContainsFunc(list, func(n publishing.ListedNotification) bool {
		return n.ID == e.notification || n.Channel == e.channel.ID
	})
}

// notificationQuestions returns the questions about notifications and the events that they count.
func notificationQuestions(s *publishingdb.DB) map[string]question {
	later := time.Now().Add(time.Hour)
	all := map[string]question{
		"notification.Notifications": func(t *testing.T, m, th tenantFixture) bool {
			page, err := notificationstore.Notifications(t.Context(), s, m.org, th.person, 0, 100)
			return err == nil && !th.hasIncident(page.Notifications)
		},
		"notification.UnreadNotifications": func(t *testing.T, m, th tenantFixture) bool {
			n, err := notificationstore.UnreadNotifications(t.Context(), s, m.org, th.person, nil)
			return err == nil && n < manyPosts
		},
		"notification.ReadNotifications": func(t *testing.T, m, th tenantFixture) bool {
			list, _, err := notificationstore.ReadNotifications(t.Context(), s, m.org, th.read(true))
			return refused(err, foreign) || err == nil && !th.hasIncident(list)
		},
		"notification.IncidentMails": func(t *testing.T, m, th tenantFixture) bool {
			list, err := notificationstore.IncidentMails(t.Context(), s, m.org, later, 100)
			return err == nil && !th.hasIncident(list)
		},
		"notification.PublishedMails": func(t *testing.T, m, th tenantFixture) bool {
			list, err := notificationstore.PublishedMails(t.Context(), s, m.org, later, 100)
			return err == nil && (len(list) == 0 || list[0].AllPosts < manyPosts)
		},
		"notification.MailsQueued": func(t *testing.T, m, th tenantFixture) bool {
			return notificationstore.MailsQueued(t.Context(), s, m.org, []publishing.ListedNotification{{Notification: th.incident(th.notification)}}, now) == nil
		},
		"notification.PublishedQueued": func(t *testing.T, m, th tenantFixture) bool {
			return notificationstore.PublishedQueued(t.Context(), s, m.org, th.day, now) == nil
		},
	}
	for name, ask := range notificationTxQuestions() {
		all[name] = inOrg(s, ask)
	}
	return all
}

func notificationTxQuestions() map[string]txQuestion {
	return map[string]txQuestion{
		"notification.IncidentEvents": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			list, err := notificationstore.IncidentEvents(t.Context(), tx, 100)
			return !slices.ContainsFunc(list, func(e notificationstore.IncidentEvent) bool { return e.ID == th.event }), err
		},
		"notification.DeleteIncidentEvents": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			deleted, err := notificationstore.DeleteIncidentEvents(t.Context(), tx, []int64{th.event})
			return len(deleted) == 0, err
		},
		"notification.OpenIncidents": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			list, err := notificationstore.OpenIncidents(t.Context(), tx, []publishing.ChannelID{th.channel.ID}, now, now)
			return !slices.ContainsFunc(list, func(n publishing.Notification) bool {
				return n.ID == th.notification || n.ID == th.day
			}), err
		},
		"notification.SaveIncidents": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			n := th.incident(th.notification)
			n.Posts = 99
			return true, notificationstore.SaveIncidents(t.Context(), tx, notificationstore.IncidentChanges{Changed: []publishing.Notification{n}})
		},
		"notification.AddNotification": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			n := th.incident(id.New[publishing.NotificationTag]())
			n.Kind = publishing.NotifyUnknown
			return true, notificationstore.AddNotification(t.Context(), tx, n)
		},
	}
}
