package boot

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/smtptest"
	"crier/tests/syncbuffer"
)

// serveMail serves with a mail server.
func serveMail(t *testing.T, server *smtptest.Server, log *syncbuffer.Buffer) *serving {
	t.Helper()
	return serveWith(t, map[string]string{"SMTP_URL": server.URL(), "MAIL_FROM": "crier@crier.test"}, func(a *App) {
		a.log = slog.New(slog.NewTextHandler(log, nil))
	})
}

func (s *serving) invite(t *testing.T, email string) {
	t.Helper()
	p := tenancy.Principal{
		Person: s.owner.Person, Org: s.owner.Org, Name: "owner@crier.test", Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaSession,
	}
	_, _, err := s.Accounts.Invite(t.Context(), p, tenancy.NewInvitation{Email: email, Role: tenancy.RoleUser, Send: true})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMails_StallingDomainDelaysNoOther queues more mails than there are workers, to a domain whose
// server does not respond.
func TestMails_StallingDomainDelaysNoOther(t *testing.T) {
	t.Parallel()
	server := smtptest.Start(t, smtptest.Plain(), smtptest.Hold("@stalls.example"))
	s := serveMail(t, server, &syncbuffer.Buffer{})
	const stalled = 3 * mailWorkers
	for n := range stalled {
		s.invite(t, fmt.Sprintf("p%d@stalls.example", n))
	}
	for range 4 { // three first attempts and one postponed mail
		<-server.Held()
	}
	for n := range 3 {
		s.invite(t, fmt.Sprintf("p%d@works.example", n))
	}
	for n := range 3 {
		server.Wait(t, fmt.Sprintf("p%d@works.example", n), "Invitation")
	}
	if got := s.jobs.TaskStats()["mail"]; got.Failed != 0 {
		t.Errorf("got %+v, want no failure: a mail that is put off is none", got)
	}
	server.Release()
	for n := range stalled {
		server.Wait(t, fmt.Sprintf("p%d@stalls.example", n), "Invitation")
	}
}

// TestMails_StallingOrganizationDelaysNoOther queues more reports of an organization than the
// second queue has workers, to domains that stall.
func TestMails_StallingOrganizationDelaysNoOther(t *testing.T) {
	t.Parallel()
	server := smtptest.Start(t, smtptest.Plain(), smtptest.Hold(".stalls"))
	s := serveMail(t, server, &syncbuffer.Buffer{})
	members := func(org tenancy.OrgID, address string, n int) {
		if err := s.db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `insert into person (id, email, name, password_hash, verified, created_at)
				select gen_random_uuid(), 'p@d' || n || '.' || $1, '', '', true, now() from generate_series(1, $2::int) n`, address, n)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		var people [][16]byte
		if err := s.db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) (err error) {
			rows, err := tx.Query(t.Context(), `select id from person where email like '%.' || $1`, address)
			if err != nil {
				return err
			}
			people, err = pgx.CollectRows(rows, pgx.RowTo[[16]byte])
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.db.InOrg(t.Context(), org.UUID(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `insert into member (org_id, person_id, role) select $1, unnest($2::uuid[]), 'USER'`, org, people)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	other, err := s.Accounts.CreateOwner(t.Context(), registration.NewOwner{
		Email: "other@works.example", Name: "Other", Password: "correct horse battery staple 7", Organization: "other",
	})
	if err != nil {
		t.Fatal(err)
	}
	members(s.owner.Org, "stalls", 3*mailWorkers)
	report := func(org tenancy.OrgID, name string) {
		r := tenancy.Report{ID: name, Org: org, Kind: tenancy.ReportFailed, Channel: "acme", Platform: "X", Posts: 1}
		if err := s.Accounts.QueueReports(t.Context(), org, []tenancy.Report{r}); err != nil {
			t.Fatal(err)
		}
	}
	report(s.owner.Org, "stalling")
	for range 2 {
		<-server.Held()
	}
	report(other.Org, "working")
	server.Wait(t, "other@works.example", "acme")
	server.Release()
}

func TestMails_GivingUpIsLoggedAndCounted(t *testing.T) {
	t.Parallel()
	server, log := smtptest.Start(t, smtptest.Plain(), smtptest.Refuse("stuck@busy.example", 451)), &syncbuffer.Buffer{}
	s := serveMail(t, server, log)
	rows, err := s.db.DirectPool(context.WithoutCancel(t.Context()), pg.Jobs, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rows.Close)
	s.invite(t, "stuck@busy.example")
	eventually(t, "the first attempt has failed and the last one is next", func() bool {
		tag, err := rows.Exec(t.Context(), `update jobs.river_job set attempt = $1, state = 'available', scheduled_at = now()
			where kind = 'mail' and queue = 'mail-later' and state in ('available', 'retryable')`, mailAttempts-1)
		if err != nil {
			t.Fatal(err)
		}
		return tag.RowsAffected() == 1
	})
	eventually(t, "the mail is given up", func() bool { return s.jobs.TaskStats()["mail"].GaveUp == 1 })
	eventually(t, "the log names it", func() bool {
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "level=WARN") && strings.Contains(line, "mail given up") &&
				strings.Contains(line, "to=stuck@busy.example kind=invitation") {
				return true
			}
		}
		return false
	})
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "crier_tasks_gave_up_total" && m.GetLabel()[0].GetValue() == "mail" {
				counted += m.GetCounter().GetValue()
			}
		}
	}
	if counted != 1 {
		t.Errorf("crier_tasks_gave_up_total of mails is %v, want 1", counted)
	}
}
