package boot

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"crier/platform/pg"
	"crier/tenancy"
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

// TestMails_StallingDomainDelaysNoOther queues more mails to a domain whose server does not answer than there are workers.
func TestMails_StallingDomainDelaysNoOther(t *testing.T) {
	t.Parallel()
	server := smtptest.Start(t, smtptest.Plain(), smtptest.Hold("@stalls.example"))
	s := serveMail(t, server, &syncbuffer.Buffer{})
	const stalled = 3 * mailWorkers
	for n := range stalled {
		s.invite(t, fmt.Sprintf("p%d@stalls.example", n))
	}
	for range 4 { // three first attempts, and one that was put off
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

func TestMails_GivenUpOneIsLoggedAndCounted(t *testing.T) {
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
			if strings.Contains(line, "level=WARN") && strings.Contains(line, "a mail was given up") &&
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
