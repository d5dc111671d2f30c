package accounts

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/mail"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/deletion"
	"crier/tenancy/registration"
	"crier/tests/dbtest"
	"crier/tests/syncbuffer"
)

const (
	password = "correct horse battery"
	// cheapHash is a hash of password that costs less work than the service's own hashes.
	cheapHash = "$argon2id$v=19$m=64,t=1,p=1$DhFYily2Dr2E/CUAdnqlXA$tsLKQw0ZYKMScD6hNXL6XHn7EaURtYlyfqOaS/FNBYk"
	client    = "203.0.113.9"

	enterpriseKey = "0123456789abcdef0123456789abcdef"
)

// rig is a database with an Accounts and its dependencies.
type rig struct {
	*boot.Accounts
	t       *testing.T
	address string
	db      *pg.DB
	super   *pgx.Conn
	// watch is only for blocked: within a transaction of super, the statistics do not change.
	watch *pgx.Conn
	cfg   boot.AccountsConfig
	deps  boot.AccountsDeps

	box        *mailBox
	publishing *publishing
	log        *syncbuffer.Buffer

	mu  sync.Mutex
	now time.Time
}

// open returns an Accounts on a new database. change may be nil.
func open(t *testing.T, change func(w *rig)) *rig {
	t.Helper()
	address := dbtest.URL(t)
	db, err := pg.Open(context.WithoutCancel(t.Context()), pg.Config{URL: address, MaxConns: 48})
	must(t, err)
	t.Cleanup(db.Close)
	w := &rig{
		t: t, address: address, db: db, box: &mailBox{}, log: &syncbuffer.Buffer{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		cfg: boot.AccountsConfig{
			Registration: registration.Config{Registration: registration.RegisterOpen},
			Deletion:     deletion.Config{DeleteGrace: 7 * 24 * time.Hour},
			Enterprise:   registration.EnterpriseConfig{EnterpriseSecret: enterpriseKey}, BaseURL: "https://crier.example", FrontendURL: "https://crier.example/app",
		},
		publishing: &publishing{failing: map[tenancy.OrgID]error{}},
	}
	key, err := secret.GenerateKey()
	must(t, err)
	keyring, err := secret.NewKeyring([]string{key})
	must(t, err)
	w.deps = boot.AccountsDeps{
		DB: db, Clock: clock.Func(w.time), Keyring: keyring, Mail: w.box, Publishing: w.publishing,
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	w.super = dbtest.SuperIn(t, address)
	if change != nil {
		change(w)
	}
	w.Accounts = w.instance()
	return w
}

// openAtOnce is open for tests whose transactions must overlap. While connections of the role
// pg.Gate are being opened, no two of its transactions overlap, so openAtOnce opens all of them
// beforehand.
func openAtOnce(t *testing.T, change func(w *rig)) *rig {
	t.Helper()
	w := open(t, change)
	must(t, w.db.Plan(t.Context(), pg.Gate, "select 1"))
	return w
}

// withoutMail is a change for open: the Accounts cannot send mail.
func withoutMail(w *rig) { w.deps.Mail = nil }

// instance returns another Accounts on the same database, as a second process would have.
func (w *rig) instance() *boot.Accounts {
	w.t.Helper()
	a, err := boot.NewAccounts(w.cfg, w.deps)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *rig) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *rig) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// exec executes a statement as the superuser.
func (w *rig) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.super.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// count returns the number that a query of the superuser returns.
func (w *rig) count(sql string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.super.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// wantCount checks the number of rows that "select count(*) from" finds with the rest of the query.
func (w *rig) wantCount(want int, from string, args ...any) {
	w.t.Helper()
	if got := w.count("select count(*) from "+from, args...); got != want {
		w.t.Errorf("got %d rows of %s %v, want %d", got, from, args, want)
	}
}

// wantAudit checks the number of entries with an action in an organization's audit log.
func (w *rig) wantAudit(org tenancy.OrgID, action tenancy.Action, want int) {
	w.t.Helper()
	w.wantCount(want, "audit where org_id = $1 and action = $2", org, action)
}

// from returns the source of a request from a browser with a device cookie, which may be empty.
func from(device string) tenancy.Source {
	return tenancy.NewSource(client, client, "Firefox", device)
}

// site returns the source of a request from a browser in a separate network.
func site(n int) tenancy.Source {
	address := fmt.Sprintf("198.51.%d.%d", n/256, n%256)
	return tenancy.NewSource(address, address, "Firefox", "")
}

// person inserts a verified person with the password and returns the id.
func (w *rig) person(email string) tenancy.PersonID {
	w.t.Helper()
	person := id.New[tenancy.PersonTag]()
	w.exec("insert into person (id, email, name, password_hash, verified, created_at) values ($1, $2, 'Ada', $3, true, $4)",
		person, email, cheapHash, w.time())
	return person
}

// owner inserts a person with an organization and returns the principal of a session.
func (w *rig) owner(email string) tenancy.Principal {
	w.t.Helper()
	person := w.person(email)
	_, err := w.CreateOrganization(w.t.Context(), tenancy.Principal{Person: person, Name: email, Via: tenancy.ViaSession}, "Organization of "+email)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.enter(email, "")
}

// member inserts a person who is a member of an organization and returns the principal of a
// session.
func (w *rig) member(org tenancy.OrgID, email string, role tenancy.Role) tenancy.Principal {
	w.t.Helper()
	w.join(org, w.person(email), role)
	return w.enter(email, org.String())
}

// rotate replaces a key with a new one.
func (w *rig) rotate(p tenancy.Principal, key string, overlap int) (tenancy.Rotation, error) {
	w.t.Helper()
	return w.RotateKey(w.t.Context(), p, key, overlap, tenancy.Proof{Password: password})
}

// setRole changes the role of a member.
func (w *rig) setRole(p tenancy.Principal, member string, role tenancy.Role, proof tenancy.Proof) error {
	_, err := w.SetRole(w.t.Context(), p, member, tenancy.RoleChange{Role: role, Proof: proof})
	return err
}

func (w *rig) join(org tenancy.OrgID, person tenancy.PersonID, role tenancy.Role) {
	w.t.Helper()
	w.exec("insert into member (org_id, person_id, role, created_at) values ($1, $2, $3, $4)", org, person, role, w.time())
}

// login logs in and fails the test unless the result has the step.
func (w *rig) login(email string, step tenancy.Step) tenancy.SignIn {
	w.t.Helper()
	in, err := w.Login(w.t.Context(), email, password, from(""))
	if err != nil || in.Step != step {
		w.t.Fatalf("log-in of %s: got the step %q, %v, want %q", email, in.Step, err, step)
	}
	return in
}

// enter logs in and returns the principal in the organization.
func (w *rig) enter(email, org string) tenancy.Principal {
	w.t.Helper()
	return w.principal(w.login(email, tenancy.StepDone).Session, org)
}

func (w *rig) principal(session, org string) tenancy.Principal {
	w.t.Helper()
	p, err := w.Session(w.t.Context(), session, org, "", from(""))
	if err != nil {
		w.t.Fatalf("a session: %v", err)
	}
	if org != "" && p.Org.String() != org {
		w.t.Fatalf("got the organization %s, want %s", p.Org, org)
	}
	return p
}

// wantEnded fails the test unless the session has ended, in another process as well.
func (w *rig) wantEnded(name, session string) {
	w.t.Helper()
	for _, a := range []*boot.Accounts{w.Accounts, w.instance()} {
		_, err := a.Session(w.t.Context(), session, "", "", from(""))
		if !fault.Is(err, fault.Unauthenticated) {
			w.t.Errorf("%s: got %v, want Unauthenticated", name, err)
		}
	}
}

func (w *rig) wantAlive(name, session string) {
	w.t.Helper()
	if _, err := w.Session(w.t.Context(), session, "", "", from("")); err != nil {
		w.t.Errorf("%s: got %v, want a session", name, err)
	}
}

func wantFault(t *testing.T, name string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: got the error %v, want %s", name, err, kind)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// deliver sends all queued mails as their tasks do, including those queued along the way.
func (w *rig) deliver() {
	w.t.Helper()
	for range 20 {
		queued := w.queued()
		if len(queued) == 0 {
			return
		}
		for _, mail := range queued {
			if err := w.SendMail(w.t.Context(), mail, true); err != nil {
				w.t.Fatalf("send a mail: %v", err)
			}
		}
	}
	w.t.Fatal("there are still mails after 20 rounds")
}

// queued returns the ids of the queued mails, oldest first.
func (w *rig) queued() []tenancy.MailID {
	w.t.Helper()
	rows, err := w.super.Query(w.t.Context(), "select id from mail order by id")
	must(w.t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	must(w.t, err)
	out := make([]tenancy.MailID, len(ids))
	for i, raw := range ids {
		out[i] = id.FromUUID[tenancy.MailTag](raw)
	}
	return out
}

// mailTo delivers all mails and returns the newest one to an address.
func (w *rig) mailTo(email string) mail.Message {
	w.t.Helper()
	w.deliver()
	email = strings.ToLower(email)
	all := w.box.to(email)
	if len(all) == 0 {
		w.t.Fatalf("there is no mail to %s", email)
	}
	return all[len(all)-1]
}

// link returns the token of the link in the newest mail to an address.
func (w *rig) link(email string) string {
	w.t.Helper()
	m := w.mailTo(email)
	token := tokenOf(m)
	if token == "" {
		w.t.Fatalf("the mail %q to %s has no link:\n%s", m.Subject, email, m.Text)
	}
	return token
}

var linkForm = regexp.MustCompile(`#(?:code|token|org)=([0-9A-Za-z]{43})`)

// tokenOf returns the token of the link in a mail, or "".
func tokenOf(m mail.Message) string {
	if found := linkForm.FindStringSubmatch(m.Text); found != nil {
		return found[1]
	}
	return ""
}

// blocked returns how many transactions wait for a lock.
func (w *rig) blocked() (n int) {
	if w.watch == nil {
		w.watch = dbtest.SuperIn(w.t, w.address)
	}
	const waiting = `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
	if err := w.watch.QueryRow(w.t.Context(), waiting).Scan(&n); err != nil {
		w.t.Errorf("count the waiting transactions: %v", err)
	}
	return n
}

// awaitBlocked waits until at least n transactions wait for a lock.
func (w *rig) awaitBlocked(n int) {
	for range 1000 {
		if w.blocked() >= n {
			return
		}
		if err := clock.Sleep(w.t.Context(), 2*time.Millisecond); err != nil {
			return
		}
	}
	w.t.Errorf("no %d transactions wait for a lock", n)
}
