package contract

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/call"
)

// fuzzClients is how many organizations send requests concurrently.
const fuzzClients = 4

// fuzzed is an organization that sends generated requests one at a time, so that nothing else
// changes its rows.
type fuzzed struct {
	org
	maker
	session string
	db      *pgx.Conn
	count   string // the statement that counts the organization's rows
	tally   *tally
	refused bool // the last response was 401
}

// tally counts the responses of each route by status.
type tally struct {
	sync.Mutex
	statuses map[string]map[int]int
}

func (c *tally) add(op *operation, status int) {
	c.Lock()
	defer c.Unlock()
	name := op.method + " " + op.path
	if c.statuses[name] == nil {
		c.statuses[name] = map[int]int{}
	}
	c.statuses[name][status]++
}

// TestFuzz_RequestsFromTheDocument sends fuzzRequests requests that are generated from the OpenAPI
// document.
//
// No response may have a status of 500 or above, except 501 from a route that is not built and 502
// if the caller names another server. A refused request must not change the number of the
// organization's rows.
func TestFuzz_RequestsFromTheDocument(t *testing.T) {
	t.Parallel()
	// Nothing is published, so only requests change rows.
	r := start(t, map[string]string{
		"ROLES": "edge", "CLUSTER_LISTEN": "127.0.0.1:0", "APP_LIMIT": "1000000", "API_LIMIT": "1000000", "TRUSTED_PROXIES": "127.0.0.0/8", "REGISTRATION": "open",
	})
	d, all := readDocument(t, r)
	sums := &tally{statuses: map[string]map[int]int{}}
	var next atomic.Int64
	var wait sync.WaitGroup
	for n := range fuzzClients {
		wait.Go(func() {
			f := newFuzzed(t, r, d, n, sums)
			for sent := 0; ; sent++ {
				i := next.Add(1) - 1
				if i >= fuzzRequests || f == nil || t.Failed() {
					return
				}
				// The organization may have deleted its account, its key or its session.
				if sent%500 == 499 || !f.hasAccess(t) {
					f = newFuzzed(t, r, d, int(i)+fuzzClients, sums)
				}
				if f == nil {
					return
				}
				f.send(t, all[int(i)%len(all)], int(i))
			}
		})
	}
	wait.Wait()
	sums.report(t)
}

// whileBusy repeats do while there is no free slot to hash a password in. Each call waits a few
// seconds for one.
func whileBusy(do func() error) (err error) {
	for range 20 {
		err = do()
		if !fault.Is(err, fault.RateLimited) {
			break
		}
	}
	return err
}

// newFuzzed returns a new organization with a channel, a post and a tag, or nil after an error.
func newFuzzed(t *testing.T, r *rig, d document, n int, sums *tally) *fuzzed {
	email := fmt.Sprintf("fuzz-%d@crier.test", n)
	var who tenancy.Principal
	err := whileBusy(func() (err error) {
		who, err = r.app.Accounts.CreateOwner(t.Context(), registration.NewOwner{
			Email: email, Name: "Owner", Password: password, Organization: "Fuzz",
		})
		return err
	})
	if err != nil {
		t.Error(err)
		return nil
	}
	mine := *r
	mine.owner, mine.email = who, email
	key, _, err := r.app.Accounts.CreateKey(t.Context(), who, tenancy.NewKey{Name: "tests"})
	if err != nil {
		t.Error(err)
		return nil
	}
	var signIn tenancy.SignIn
	err = whileBusy(func() (err error) {
		signIn, err = r.app.Accounts.Login(t.Context(), email, password, tenancy.Source{Client: "203.0.113.9", Site: "203.0.113.9"})
		return err
	})
	if err != nil {
		t.Error(err)
		return nil
	}
	f := &fuzzed{
		org: org{rig: &mine, prefix: "/public/v1", key: key, who: who}, maker: maker{document: d, seen: map[string][]string{}},
		session: signIn.Session, tally: sums,
	}
	c := f.channel(t, "A")
	f.seen["integration"], f.channelID = []string{c.id}, c.id
	f.learn("post", f.do(t, http.MethodPost, "/posts", later(c.id, part("first"))).raw())
	f.learn("tag", f.do(t, http.MethodPost, "/tags", m{"name": "first", "color": "#123456"}).raw())
	if err := f.openDatabase(t); err != nil {
		t.Error(err)
		return nil
	}
	return f
}

// hasAccess returns whether the key and the session still work. It asks the service only after a
// 401.
func (f *fuzzed) hasAccess(t *testing.T) bool {
	if !f.refused {
		return true
	}
	f.refused = false
	as := func(who, path string) bool {
		a, err := call.Do(t.Context(), f.http, http.MethodGet, base+path, nil, f.headers(made{As: who}, 0)...)
		return err == nil && a.Status == http.StatusOK
	}
	return as("key", "/public/v1/is-connected") && as("session", "/user/self")
}

// openDatabase connects with the role that sees the rows of one organization.
func (f *fuzzed) openDatabase(t *testing.T) error {
	db, err := pgx.Connect(t.Context(), f.database)
	if err != nil {
		return err
	}
	t.Cleanup(func() { db.Close(context.WithoutCancel(t.Context())) })
	// Leave out the tables in which refused requests store rows on purpose, such as a refused
	// sign-in or an attempted connect.
	const list = `select string_agg(format('%L, (select count(*) from %I)', table_name, table_name), ', ' order by table_name)
		from information_schema.columns where column_name = 'org_id'
			and table_name not in ('audit', 'connect_state', 'idempotency', 'slot_hold') and has_any_column_privilege('crier_tenant', table_name, 'select')`
	var columns string
	if err := db.QueryRow(t.Context(), list).Scan(&columns); err != nil {
		return err
	}
	if _, err := db.Exec(t.Context(), "set role crier_tenant"); err != nil {
		return err
	}
	if _, err := db.Exec(t.Context(), "select set_config('app.org_id', $1, false)", f.who.Org.String()); err != nil {
		return err
	}
	f.db, f.count = db, "select json_build_object("+columns+")::text"
	return nil
}

func (f *fuzzed) rows(t *testing.T) (rows string) {
	if err := f.db.QueryRow(t.Context(), f.count).Scan(&rows); err != nil {
		t.Error(err)
	}
	return rows
}

// send sends one request and checks the response.
func (f *fuzzed) send(t *testing.T, op *operation, seed int) {
	req := f.request(op).Example(seed)
	before := ""
	if req.Method != http.MethodGet {
		before = f.rows(t)
	}
	a, err := call.Do(t.Context(), f.http, req.Method, base+req.Path, req.Body, f.headers(req, seed)...)
	if err != nil {
		t.Errorf("%s %s with %.300q: %v", req.Method, req.Path, req.Body, err)
		return
	}
	f.tally.add(op, a.Status)
	f.refused = f.refused || a.Status == http.StatusUnauthorized && req.As != "visitor"
	if a.Status >= 500 && a.Status != http.StatusNotImplemented && !(a.Status == http.StatusBadGateway && namesServer(op)) {
		t.Errorf("%s %s as %s with %.300q: the answer is %d %.300s", req.Method, req.Path, req.As, req.Body, a.Status, a.Body)
	}
	if a.Status < 400 {
		f.learn(kindOf(op.path), []byte(a.Body))
	} else if before != "" {
		if after := f.rows(t); after != before {
			t.Errorf("%s %s as %s with %.300q was refused with %d %.200s and changed the rows from %s to %s",
				req.Method, req.Path, req.As, req.Body, a.Status, a.Body, before, after)
		}
	}
}

// namesServer returns whether callers of the route name a server that the service calls.
func namesServer(op *operation) bool {
	return strings.HasSuffix(op.path, "/upload-from-url") || op.path == "/public/stream"
}

// headers returns the headers of a request. Each request comes from another address, because limits
// per address are not tested here.
func (f *fuzzed) headers(req made, seed int) []string {
	out := []string{"X-Forwarded-For", fmt.Sprintf("198.%d.%d.%d", 18+seed>>16&1, seed>>8&255, seed&255)}
	switch req.As {
	case "key":
		out = append(out, "Authorization", f.key)
	case "session":
		out = append(out, "auth", f.session, "showorg", f.who.Org.String())
	}
	for name, value := range req.Header {
		out = append(out, name, value)
	}
	return out
}

// report fails the test if too few routes accepted a request, because then the requests are not
// good enough.
func (c *tally) report(t *testing.T) {
	total, accepted := map[int]int{}, 0
	for _, name := range slices.Sorted(maps.Keys(c.statuses)) {
		done := false
		for status, n := range c.statuses[name] {
			total[status] += n
			done = done || status < 400
		}
		if done {
			accepted++
		} else {
			t.Logf("never accepted: %s %v", name, c.statuses[name])
		}
	}
	t.Logf("%d requests to %d routes, of which %d accepted some: %v", fuzzRequests, len(c.statuses), accepted, total)
	if accepted < len(c.statuses)/2 {
		t.Errorf("%d of %d routes accepted a request, want half", accepted, len(c.statuses))
	}
}
