package registration_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

// outbox is a Mailer that records messages.
type outbox struct{ sent []mail.Message }

func (o *outbox) Send(_ context.Context, m mail.Message) error {
	o.sent = append(o.sent, m)
	return nil
}

// queued returns the ids of the mails that wait for their tasks.
func queued(t *testing.T, db *pg.DB) (ids []tenancy.MailID) {
	t.Helper()
	if err := db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), "select id from mail order by created_at, id")
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[tenancy.MailID])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}

var activationLink = regexp.MustCompile(`/auth/activate#code=(\w+)`)

// A person who has not followed the link may not own the address.
func TestLogin_NeedsAConfirmedAddress(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	var sent outbox
	a := tenancytest.With(t, boot.AccountsDeps{DB: db, Clock: clock.System{}, Mail: &sent})
	signIn, err := a.Register(t.Context(), tenancy.Registration{
		Email: "a@example.com", Name: "N", Password: tenancytest.Password, Organization: "Organization", From: tenancytest.Here,
	})
	if err != nil || signIn.Step != tenancy.StepConfirm || signIn.Session != "" {
		t.Fatalf("a registration is answered with %+v, %v, want the step %s", signIn, err, tenancy.StepConfirm)
	}
	logins := func() (right, wrong, unknown error) {
		_, right = a.Login(t.Context(), "a@example.com", tenancytest.Password, tenancytest.Here)
		_, wrong = a.Login(t.Context(), "a@example.com", "wrong horse", tenancytest.Here)
		_, unknown = a.Login(t.Context(), "nobody@example.com", tenancytest.Password, tenancytest.Here)
		return right, wrong, unknown
	}
	// The responses must not reveal that the address is unconfirmed or unknown.
	right, wrong, unknown := logins()
	for name, err := range map[string]error{"the right password": right, "a wrong password": wrong} {
		if !fault.Is(err, fault.Invalid) || err.Error() != fmt.Sprint(unknown) {
			t.Errorf("before the link is followed %s: %v, want the error of an unknown address: %v", name, err, unknown)
		}
	}
	for _, m := range queued(t, db) {
		if err := a.SendMail(t.Context(), m, true); err != nil {
			t.Fatal(err)
		}
	}
	if len(sent.sent) != 1 || sent.sent[0].To != "a@example.com" {
		t.Fatalf("got the mails %+v, want one to the address", sent.sent)
	}
	link := activationLink.FindStringSubmatch(sent.sent[0].Text)
	if link == nil {
		t.Fatalf("the mail has no link: %s", sent.sent[0].Text)
	}
	if _, ok, err := a.Activate(t.Context(), link[1], tenancytest.Password, tenancytest.Here); err != nil || !ok {
		t.Fatalf("the link is answered with %t, %v, want an account", ok, err)
	}
	right, wrong, unknown = logins()
	if right != nil {
		t.Errorf("a confirmed person is refused: %v", right)
	}
	if !fault.Is(wrong, fault.Invalid) || wrong.Error() != fmt.Sprint(unknown) {
		t.Errorf("a wrong password: %v; an unknown address: %v; want the same error", wrong, unknown)
	}
}
