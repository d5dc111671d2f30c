package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/sandboxtest"
	"crier/tests/smtptest"
)

// failures is the number of posts on the dead channel that fail.
const failures = 1000

// crew is the service's organization with its owner, a member who wants all mails, and a member who
// wants mails about failures but not about channels.
type crew struct {
	*service
	org  tenancy.OrgID
	mail *smtptest.Server
	db   *pg.DB
}

const (
	wanting   = "bob@crier.test"
	onlyPosts = "carl@crier.test"
)

func newCrew(t *testing.T, s *service, server *smtptest.Server) crew {
	t.Helper()
	db, err := pg.Open(t.Context(), pg.Config{URL: s.database, MaxConns: 6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	c := crew{service: s, mail: server, db: db}
	c.read(t, "crier_gate", `select id from organization`, nil, &c.org)
	accounts := s.accounts(t)
	for _, address := range []string{wanting, onlyPosts} {
		p, err := accounts.CreateOwner(t.Context(), registration.NewOwner{
			Email: address, Name: "Member", Password: password, Organization: address,
		})
		if err != nil {
			t.Fatal(err)
		}
		c.change(t, `insert into member (org_id, person_id, role) values ($1, $2, 'USER')`, c.org, p.Person)
		if address != onlyPosts {
			continue
		}
		n := tenancy.DefaultNotifications()
		n.Channel = tenancy.DeliveryBell
		if err := accounts.SetNotifications(t.Context(), p, n); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// read scans the only row of a query that runs in a role. The role crier_tenant sees the
// organization.
func (c crew) read(t *testing.T, role, sql string, args []any, into ...any) {
	t.Helper()
	c.in(t, role, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), sql, args...).Scan(into...) })
}

// change executes a statement with the organization's role.
func (c crew) change(t *testing.T, sql string, args ...any) {
	t.Helper()
	c.in(t, "crier_tenant", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	})
}

func (c crew) in(t *testing.T, role string, do func(tx pgx.Tx) error) {
	t.Helper()
	var err error
	if role == "crier_tenant" {
		err = c.db.InOrg(t.Context(), c.org.UUID(), do)
	} else {
		err = c.db.InRole(t.Context(), pg.Role(strings.TrimPrefix(role, "crier_")), do)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// holds executes statements that lock tables or rows, and keeps the locks until release is called.
func (c crew) holds(t *testing.T, statements ...string) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.database)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range append([]string{"begin"}, statements...) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	// Closing the connection ends the transaction.
	release = sync.OnceFunc(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	t.Cleanup(release)
	return release
}

// failedPosts returns how many posts have failed.
func (c crew) failedPosts(t *testing.T) (n int) {
	t.Helper()
	c.read(t, "crier_clock", `select count(*) from post where state = 'ERROR'`, nil, &n)
	return n
}

// counted returns the number of notifications, the number of posts that they count, and the number
// of notifications whose mails are not recorded.
func (c crew) counted(t *testing.T) (notifications, posts, unrecorded int) {
	t.Helper()
	c.read(t, "crier_tenant", `select count(*), coalesce(sum(posts), 0), count(mail_at) from notification`, nil,
		&notifications, &posts, &unrecorded)
	return notifications, posts, unrecorded
}

// queuedMails returns how many mails are queued.
func (c crew) queuedMails(t *testing.T) (n int) {
	t.Helper()
	c.read(t, "crier_gate", `select count(*) from mail`, nil, &n)
	return n
}

// mailsTo returns the mails about the channel to an address.
func (c crew) mailsTo(address string) (out []smtptest.Received) {
	for _, m := range c.mail.Messages() {
		if m.To == address && strings.Contains(m.Subject(), "acme") {
			out = append(out, m)
		}
	}
	return out
}

// until waits until done returns true.
func (c crew) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	await(t, what, time.Now().Add(patience), done, func() string {
		notifications, posts, unrecorded := c.counted(t)
		return fmt.Sprintf("%d failed, %d notifications with %d posts, %d of them unrecorded, %d mails queued",
			c.failedPosts(t), notifications, posts, unrecorded, c.queuedMails(t))
	})
}

// TestNotifications_SurviveKills gives up 1,000 posts of a channel that must be reconnected. It
// kills the service before the failures are counted, before the mails about them are queued, and
// before the mails are recorded.
func TestNotifications_SurviveKills(t *testing.T) {
	t.Parallel()
	server := smtptest.Start(t, smtptest.Plain())
	a := newSandbox(sandboxtest.Start(t), gradeA)
	settings := a.service()
	settings["SMTP_URL"], settings["MAIL_FROM"] = server.URL(), "Crier <crier@crier.example>"
	settings["SWEEP_INTERVAL"], settings["LEASE_TTL"] = "200ms", "5s"
	c := newCrew(t, start(t, settings), server)
	connector, form := a.form()
	channel := c.connect(t, connector, form)
	channelID, _ := id.Parse[struct{}](channel)
	uncounted := c.holds(t, "lock table notification in exclusive mode")
	c.change(t, `update channel set refresh_needed = true, name = 'acme' where id = $1`, channelID)
	c.change(t, `with p as (
			insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date)
			select $1, gen_random_uuid(), gen_random_uuid(), $2, $3::int, 'QUEUE', now() - interval '25 hours', now() from generate_series(1, $4::int)
			returning org_id, id)
		insert into part (org_id, id, post_id, position, content) select org_id, id, id, 0, 'x' from p`,
		c.org, channelID, tenancy.Shard(c.org), failures)

	c.until(t, "all failures", func() bool { return c.failedPosts(t) == failures })
	c.kill()
	uncounted()
	if n, _, _ := c.counted(t); n != 0 {
		t.Fatalf("got %d notifications before the kill, want none", n)
	}
	c.restart(t)
	c.until(t, "the count", func() bool { _, posts, _ := c.counted(t); return posts == failures })

	watcher := c.dial(t, false)
	unqueued := c.holds(t, "lock table used_request in exclusive mode")
	c.change(t, `update notification set mail_at = now()`) // instead of waiting until it is due
	c.until(t, "the mailer", func() bool {
		var waiting bool
		err := watcher.QueryRow(t.Context(), `select exists (select from pg_stat_activity
			where datname = current_database() and query like '-- tenancy.RequestInsert%')`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		return waiting
	})
	c.kill()
	unqueued()
	if n := c.queuedMails(t); n != 0 || len(c.mailsTo(email)) != 0 {
		t.Fatalf("got %d queued mails before the kill, want none", n)
	}

	unrecorded := c.holds(t, "set local role crier_tenant", "set local app.org_id = '"+c.org.String()+"'",
		"select id from notification for update")
	c.restart(t)
	c.until(t, "the mails", func() bool {
		return len(c.mailsTo(email)) > 0 && len(c.mailsTo(wanting)) > 0 && len(c.mailsTo(onlyPosts)) > 0 &&
			c.queuedMails(t) == 0
	})
	c.kill()
	unrecorded()
	if _, _, n := c.counted(t); n != 1 {
		t.Fatalf("the mails of %d notifications are not recorded before the kill, want 1", n)
	}
	c.restart(t)
	c.until(t, "the record", func() bool { _, _, n := c.counted(t); return n == 0 && c.queuedMails(t) == 0 })
	for address, want := range map[string]int{email: 1, wanting: 1, onlyPosts: 1} {
		all := regexp.MustCompile(`1000 posts (from “[^”]*” )?could not be published`)
		if got := c.mailsTo(address); len(got) != want || want == 1 && !all.MatchString(got[0].Text) {
			t.Errorf("got %d mails to %s, want %d that names all posts: %+v", len(got), address, want, got)
		}
	}
	var page struct {
		Notifications []struct {
			Kind  string
			Count int
		}
		Total int
	}
	c.answer(t, &page, http.MethodGet, "/public/v1/notifications?page=0", nil)
	if page.Total != 1 || page.Notifications[0].Count != failures || page.Notifications[0].Kind != "reconnect" {
		t.Errorf("got %+v, want one notification of %d posts", page, failures)
	}
}
