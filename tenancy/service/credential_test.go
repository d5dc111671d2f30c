package service_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/tenancy"
	tenancyservice "crier/tenancy/service"
	"crier/tests/dbtest"
)

// ownerOf returns a connection of the database's owner, with the organization as its tenant.
func ownerOf(t *testing.T, address string, org tenancy.OrgID) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	exec(t, c, "select set_config('app.org_id', $1, false)", org.String())
	return c
}

func exec(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// expire sets the expiry of a key.
func expire(t *testing.T, owner *pgx.Conn, key tenancy.KeyID, at time.Time) {
	t.Helper()
	exec(t, owner, "set role crier_tenant")
	tag, err := owner.Exec(t.Context(), "update api_key set expires_at = $2 where id = $1", key, at)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d keys were updated with error %v, want 1", tag.RowsAffected(), err)
	}
	exec(t, owner, "reset role")
}

// The cache must not hide the expiry of a key.
func TestAuthenticate_KeyEndsAtItsExpiry(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	begin := time.Now().Truncate(time.Microsecond)
	var now atomic.Int64
	a := accountsOf(t, tenancyservice.Deps{
		DB: dbtest.OpenURL(t, address), Revocations: &processes{healthy: true},
		Clock: clock.Func(func() time.Time { return begin.Add(time.Duration(now.Load())) }),
	})
	person := owner(t, a, "a@example.com")
	db := ownerOf(t, address, person.Org)
	full, key := newKey(t, a, person)
	const life = 20 * time.Second
	expire(t, db, key.ID, begin.Add(life))
	for _, at := range []struct {
		age time.Duration
		ok  bool
	}{
		{age: 0, ok: true},
		{age: life - time.Millisecond, ok: true},
		{age: life, ok: false},
		{age: life + time.Millisecond, ok: false},
		{age: time.Hour, ok: false},
	} {
		now.Store(int64(at.age))
		p, err := a.Authenticate(t.Context(), full)
		if at.ok && (err != nil || p.Org != person.Org) {
			t.Errorf("a key that ends after %s is refused after %s: %v", life, at.age, err)
		}
		if !at.ok && !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("a key that ends after %s is answered with %v after %s, want Unauthenticated", life, err, at.age)
		}
	}
}

// A look-up may read a key before it is revoked and end after that. Its result must not be cached.
func TestAuthenticate_LookUpDuringRevocationIsNotCached(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]func(a, other *tenancyservice.Accounts, p tenancy.Principal, key tenancy.KeyID) error{
		"revoked here": func(a, _ *tenancyservice.Accounts, p tenancy.Principal, key tenancy.KeyID) error {
			return a.DeleteKey(t.Context(), p, key.String())
		},
		"revoked by another process, all forgotten": func(a, other *tenancyservice.Accounts, p tenancy.Principal, key tenancy.KeyID) error {
			defer a.ForgetAll()
			return other.DeleteKey(t.Context(), p, key.String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := dbtest.URL(t)
			a := accountsOf(t, tenancyservice.Deps{
				DB: dbtest.OpenURL(t, address), Clock: clock.System{}, Revocations: &processes{healthy: true},
			})
			other := accounts(t, dbtest.OpenURL(t, address))
			person := owner(t, other, "a@example.com")
			full, key := newKey(t, other, person)
			db := ownerOf(t, address, person.Org)
			// The policy makes the look-up wait for a lock of the test while it reads the key.
			exec(t, db, `create function pass() returns boolean language plpgsql volatile as $$
				begin perform pg_advisory_xact_lock_shared(1); return true; end $$`)
			exec(t, db, `create policy pass on api_key as restrictive for select to crier_gate using (pass())`)
			exec(t, db, `select pg_advisory_lock(1)`)
			found := make(chan error, 1)
			go func() {
				_, err := a.Authenticate(t.Context(), full)
				found <- err
			}()
			for waits := false; !waits; time.Sleep(time.Millisecond) {
				select {
				case err := <-found:
					t.Fatalf("the look-up did not wait: %v", err)
				default:
				}
				if err := db.QueryRow(t.Context(), `select exists (select from pg_locks where locktype = 'advisory' and not granted
					and database = (select oid from pg_database where datname = current_database()))`).Scan(&waits); err != nil {
					t.Fatal(err)
				}
			}
			if err := revoke(a, other, person, key.ID); err != nil {
				t.Fatal(err)
			}
			exec(t, db, `select pg_advisory_unlock(1)`)
			if err := <-found; err != nil {
				t.Fatalf("the look-up that had read the key before: %v", err)
			}
			if _, err := a.Authenticate(t.Context(), full); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("the next request with the key: %v, want Unauthenticated", err)
			}
		})
	}
}

func TestDeleteKey_IsRefusedInThisProcessAtOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	at := time.Now() // the clock stands still, so that no cache entry expires
	a := accountsOf(t, tenancyservice.Deps{DB: db, Clock: clock.Func(func() time.Time { return at })})
	person := owner(t, a, "a@example.com")
	kept, _ := newKey(t, a, person)
	full, key := newKey(t, a, person)
	for _, k := range []string{full, kept} {
		if _, err := a.Authenticate(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.DeleteKey(t.Context(), person, key.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(t.Context(), full); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("the revoked key: %v, want Unauthenticated", err)
	}
	if _, err := a.Authenticate(t.Context(), kept); err != nil {
		t.Errorf("another key of the organization: %v", err)
	}
}

// outbox is a Mailer that keeps the messages.
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

// A person who has not followed the link may not be the owner of the address.
func TestLogin_NeedsAConfirmedAddress(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	var sent outbox
	a := accountsOf(t, tenancyservice.Deps{DB: db, Clock: clock.System{}, Mail: &sent})
	signIn, err := a.Register(t.Context(), tenancy.Registration{
		Email: "a@example.com", Name: "N", Password: password, Organization: "Organization", From: here,
	})
	if err != nil || signIn.Step != tenancy.StepConfirm || signIn.Session != "" {
		t.Fatalf("a registration is answered with %+v, %v, want the step %s", signIn, err, tenancy.StepConfirm)
	}
	logins := func() (right, wrong, unknown error) {
		_, right = a.Login(t.Context(), "a@example.com", password, here)
		_, wrong = a.Login(t.Context(), "a@example.com", "wrong horse", here)
		_, unknown = a.Login(t.Context(), "nobody@example.com", password, here)
		return right, wrong, unknown
	}
	// The answers must not reveal that the address is not confirmed, or that it is unknown.
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
	if _, ok, err := a.Activate(t.Context(), link[1], password, here); err != nil || !ok {
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

func TestCreateOwner_PasswordHas8To128Characters(t *testing.T) {
	t.Parallel()
	a := accounts(t, dbtest.Open(t))
	for name, c := range map[string]struct {
		password string
		ok       bool
	}{
		"none":                          {password: "", ok: false},
		"1 character":                   {password: "x", ok: false},
		"7 characters":                  {password: "1234567", ok: false},
		"7 characters of two bytes":     {password: strings.Repeat("é", 7), ok: false},
		"7 characters and a space":      {password: "v7k!q2z ", ok: false},
		"8 characters":                  {password: "v7k!q2zm", ok: true},
		"8 characters that are common":  {password: "12345678", ok: false},
		"128 characters":                {password: strings.Repeat("x", 128), ok: true},
		"128 characters of three bytes": {password: strings.Repeat("字", 128), ok: true},
		"129 characters":                {password: strings.Repeat("x", 129), ok: false},
		"a million characters":          {password: strings.Repeat("x", 1<<20), ok: false},
	} {
		email := strings.ReplaceAll(name, " ", "-") + "@example.com"
		_, err := a.CreateOwner(t.Context(), tenancyservice.NewOwner{
			Email: email, Name: "N", Password: c.password, Organization: "O",
		})
		if c.ok && err != nil || !c.ok && !fault.Is(err, fault.Invalid) {
			t.Errorf("a password of %s: %v, accepted should be %t", name, err, c.ok)
		}
		signIn, err := a.Login(t.Context(), email, c.password, here)
		if (err == nil) != c.ok || (signIn.Session != "") != c.ok {
			t.Errorf("a log-in with a password of %s: %+v, %v, want a session: %t", name, signIn, err, c.ok)
		}
	}
}
