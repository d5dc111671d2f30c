package edge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
)

// shared counts the windows of several processes, and answers with an error while broken is set.
type shared struct {
	mu     sync.Mutex
	now    func() time.Time
	counts map[string]int
	broken error
	calls  int
}

func (s *shared) Take(_ context.Context, name, key string, limit int, window time.Duration) (int, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	ends := s.now().Add(window)
	if s.broken != nil {
		return 0, time.Time{}, s.broken
	}
	if s.counts[name+" "+key] >= limit {
		return -1, ends, nil
	}
	s.counts[name+" "+key]++
	return limit - s.counts[name+" "+key], ends, nil
}

func (s *shared) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

func newShared(now func() time.Time) *shared { return &shared{now: now, counts: map[string]int{}} }

func TestSession_IsThrottledAcrossProcesses(t *testing.T) {
	t.Parallel()
	h := &hand{now: day}
	both := newShared(h.Now)
	process := func() *running {
		return start(t, map[string]string{"APP_LIMIT": "3"}, func(d *edge.Deps) {
			d.Clock, d.Windows, d.AccountKey = h, both, []byte("the same in both")
		})
	}
	first, second := process(), process()
	get := func(r *running) answer { return r.call(t, "GET", "/user/self", "", "auth", goodSession) }
	for i, r := range []*running{first, second, first} {
		a := get(r)
		if left := a.header.Get("X-RateLimit-Remaining"); a.status != 200 || left != fmt.Sprint(2-i) || a.header.Get("X-RateLimit-Limit") != "3" {
			t.Errorf("request %d: got %d with %s left, want 200 with %d", i+1, a.status, left, 2-i)
		}
	}
	a := get(second)
	want(t, a, 429, `"retryAfter":60`)
	if a.header.Get("X-RateLimit-Remaining") != "0" || a.header.Get("X-RateLimit-Reset") != fmt.Sprint(day.Add(time.Minute).Unix()) {
		t.Errorf("the refusal has the headers %v, want none left until the end of the window", a.header)
	}
	want(t, second.call(t, "GET", "/user/self", "", "auth", adminSession), 200)
	for key := range both.counts {
		if strings.Contains(key, goodSession) {
			t.Errorf("the key %q has the token", key)
		}
	}
}

// TestWindows_ErrorsAreCountedLocally: the shared count is asked again after some seconds, and its failure is logged
// once for each time.
func TestWindows_ErrorsAreCountedLocally(t *testing.T) {
	t.Parallel()
	h := &hand{now: day}
	both := newShared(h.Now)
	both.breaks(errors.New("no answer"))
	s := start(t, map[string]string{"APP_LIMIT": "3"}, func(d *edge.Deps) { d.Clock, d.Windows = h, both })
	get := func() int { return s.call(t, "GET", "/user/self", "", "auth", goodSession).status }
	for i, status := range []int{200, 200, 200, 429} {
		if got := get(); got != status {
			t.Errorf("request %d: got %d, want %d", i+1, got, status)
		}
	}
	if both.calls != 1 || strings.Count(s.log.String(), "this one counts its own") != 1 {
		t.Errorf("the shared count was asked %d times, want once and one warning: %s", both.calls, s.log)
	}
	both.breaks(nil)
	h.forward(5 * time.Second)
	if got := get(); got != 200 || both.calls != 2 {
		t.Errorf("after it works again: got %d and %d calls, want 200 and 2", got, both.calls)
	}
}

// limits are requests without a session, with how many of one client pass and how long its window is. Bodies have %d for a
// number, so that no limit of an address or a token applies.
var limits = map[string]struct {
	method, path, body string
	passing            int
	window             time.Duration
}{
	"registration": {method: "POST", path: "/auth/register", body: `{"email":"p%d@example.org","password":"correct horse","company":"Acme"}`, passing: 10, window: time.Hour},
	"forgot":       {method: "POST", path: "/auth/forgot", body: `{"email":"p%d@example.org"}`, passing: 20, window: time.Hour},
	"resend":       {method: "POST", path: "/auth/resend-activation", body: `{"email":"p%d@example.org"}`, passing: 20, window: time.Hour},
	"verify":       {method: "POST", path: "/auth/mfa/verify", body: `{"mfaToken":"t%d","code":"1"}`, passing: 30, window: 5 * time.Minute},
	"enroll":       {method: "POST", path: "/auth/mfa/enroll/begin", body: `{"mfaToken":"t%d"}`, passing: 30, window: 5 * time.Minute},
	"confirm":      {method: "POST", path: "/auth/mfa/enroll/confirm", body: `{"mfaToken":"t%d","code":"1"}`, passing: 30, window: 5 * time.Minute},
	"activate":     {method: "POST", path: "/auth/activate", body: `{"code":"c%d"}`, passing: 600, window: 5 * time.Minute},
	"reset":        {method: "POST", path: "/auth/forgot-return", body: `{"token":"token%d","password":"correct horse","repeatPassword":"correct horse"}`, passing: 600, window: 5 * time.Minute},
	"address":      {method: "POST", path: "/auth/confirm-email", body: `{"token":"t%d"}`, passing: 600, window: 5 * time.Minute},
	"restore":      {method: "POST", path: "/auth/restore", body: `{"token":"t%d"}`, passing: 600, window: 5 * time.Minute},
	"provider":     {method: "GET", path: "/auth/oauth/GITHUB", body: "", passing: 60, window: 5 * time.Minute},
	"callback":     {method: "POST", path: "/auth/oauth/GITHUB/exists", body: `{"code":"c%d","state":"s"}`, passing: 60, window: 5 * time.Minute},
	"enterprise":   {method: "POST", path: "/enterprise/create-user", body: `{"params":"p%d"}`, passing: 60, window: time.Minute},
}

func TestLimits_OfClient(t *testing.T) {
	t.Parallel()
	for name, c := range limits {
		d := openDoor(t)
		n := 0
		do := func(from string) answer {
			n++
			body := c.body
			if body != "" {
				body = fmt.Sprintf(c.body, n)
			}
			return d.call(t, c.method, c.path, body, "Content-Type", "application/json", "X-Forwarded-For", from)
		}
		for range c.passing {
			if a := do(home); a.status >= 300 {
				t.Fatalf("%s, request %d: answered %d %s", name, n, a.status, a.body)
			}
		}
		if a := do(home); a.status != 429 || a.header.Get("Retry-After") != fmt.Sprint(int(c.window.Seconds())) {
			t.Errorf("%s: answered %d, Retry-After %s after %d requests, want 429 and %v", name, a.status, a.header.Get("Retry-After"), n, c.window)
		}
		if a := do("203.0.113.10"); a.status >= 300 {
			t.Errorf("%s of another client: answered %d", name, a.status)
		}
		d.forward(c.window)
		if a := do(home); a.status >= 300 {
			t.Errorf("%s in the next window: answered %d", name, a.status)
		}
	}
}

// TestLimits_OfLink: the guests of an office share an address, and each has their own link.
func TestLimits_OfLink(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	use := func(token, from string) answer {
		return d.call(t, "POST", "/auth/unsubscribe?token="+token, "", "X-Forwarded-For", from)
	}
	for n := range 60 {
		if a := use("mail-token", home); a.status != 201 {
			t.Fatalf("use %d of a link: answered %d %s", n+1, a.status, a.body)
		}
	}
	for _, from := range []string{home, "203.0.113.10"} {
		if a := use("mail-token", from); a.status != 429 || a.header.Get("Retry-After") != "300" {
			t.Errorf("from %s after 60 uses: answered %d, Retry-After %s, want 429 and 300", from, a.status, a.header.Get("Retry-After"))
		}
	}
	for n := range 200 {
		if a := use(fmt.Sprintf("another-%d", n), home); a.status == 429 {
			t.Fatalf("another link of the same address, use %d: answered 429", n+1)
		}
	}
	d.forward(5 * time.Minute)
	if a := use("mail-token", home); a.status != 201 {
		t.Errorf("in the next window: answered %d", a.status)
	}
}

// TestLimits_OfSite sends from the networks of one subscriber of IPv6.
func TestLimits_OfSite(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	register := func(n int, from string) int {
		return d.call(t, "POST", "/auth/register", fmt.Sprintf(`{"email":"p%d@example.org","password":"correct horse","company":"Acme"}`, n),
			"Content-Type", "application/json", "X-Forwarded-For", from).status
	}
	for n := range 40 {
		if got := register(n, fmt.Sprintf("2001:db8:1:%x::1", n)); got != 201 {
			t.Fatalf("registration %d: got %d, want 201", n+1, got)
		}
	}
	if got := register(40, "2001:db8:1:ffff::1"); got != 429 {
		t.Errorf("the 41st of the site: got %d, want 429", got)
	}
	if got := register(41, "2001:db8:2::1"); got != 201 {
		t.Errorf("another site: got %d, want 201", got)
	}
}

func TestLimits_OfAddress(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	send := func(n int, path, body string) answer {
		return d.call(t, "POST", path, body, "Content-Type", "application/json", "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n))
	}
	for range 5 {
		want(t, send(1, "/auth/register", goodRegistration), 201)
	}
	want(t, send(1, "/auth/register", goodRegistration), 429)
	for n := range 15 {
		want(t, send(2+n%3, "/auth/register", goodRegistration), 201)
	}
	want(t, send(9, "/auth/register", goodRegistration), 429)
	d.called()
	for range 7 { // answered the same
		want(t, send(11, "/auth/forgot", `{"email":"bob@example.org"}`), 201, `{"forgot":true}`)
		want(t, send(11, "/auth/resend-activation", `{"email":"Carl@example.org"}`), 201, `{"success":true}`)
	}
	if calls := d.called(); len(calls) != 10 {
		t.Errorf("%d mails were asked for, want 5 of each kind: %q", len(calls), calls)
	}
	for n := range 20 {
		want(t, send(20+n, "/auth/forgot", `{"email":"BOB@example.org"}`), 201, `{"forgot":true}`)
	}
	if calls := d.called(); len(calls) != 15 {
		t.Errorf("%d mails were asked for by others, want 15, so that there are 20 in all: %q", len(calls), calls)
	}
	d.hand.forward(tenancy.ResetLife)
	want(t, send(60, "/auth/forgot", `{"email":"bob@example.org"}`), 201, `{"forgot":true}`)
	if calls := d.called(); len(calls) != 1 {
		t.Errorf("%d mails were asked for when the first links are over, want 1: %q", len(calls), calls)
	}
	session := func(path, body string) answer {
		return d.call(t, "POST", path, body, "Content-Type", "application/json", "auth", adminSession)
	}
	for range 5 {
		want(t, session("/settings/team", `{"email":"dora@example.org","role":"USER","sendEmail":true}`), 201)
	}
	want(t, session("/settings/team", `{"email":"dora@example.org","role":"USER","sendEmail":true}`), 429)
	want(t, session("/settings/team", `{"email":"dora@example.org","role":"USER","sendEmail":false}`), 201)
	for n := range 94 {
		want(t, session("/settings/team", fmt.Sprintf(`{"email":"p%d@example.org","role":"USER","sendEmail":true}`, n)), 201)
	}
	want(t, session("/settings/team", `{"email":"another@example.org","role":"USER","sendEmail":true}`), 429)
	for range 6 { // the limit of all kinds together
		want(t, session("/user/change-email", `{"email":"eve@example.org","password":"right"}`), 201)
	}
	want(t, session("/user/change-email", `{"email":"eve@example.org","password":"right"}`), 429)
}

// TestLimits_OfAllMailsToAnAddress sends for one address from several networks, with all kinds of mail that others can
// cause.
func TestLimits_OfAllMailsToAnAddress(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	send := func(network int, path, device string) int {
		body := fmt.Sprintf(`{"email":%q,"password":"correct horse","company":"Acme"}`, ada)
		if path == "/auth/forgot" || path == "/auth/resend-activation" {
			body = fmt.Sprintf(`{"email":%q}`, ada)
		}
		return d.call(t, "POST", path, body, "Content-Type", "application/json", "Origin", baseURL, "Cookie", "device="+device,
			"X-Forwarded-For", fmt.Sprintf("198.51.100.%d", network)).status
	}
	wantMails := func(when string, want int) {
		t.Helper()
		if calls := d.called(); len(calls) != want {
			t.Errorf("%s: %d mails were asked for, want %d: %q", when, len(calls), want, calls)
		}
	}
	for range 4 {
		for _, path := range []string{"/auth/forgot", "/auth/resend-activation", "/auth/register"} {
			if got := send(1, path, ""); got != 201 && (got != 429 || path != "/auth/register") {
				t.Errorf("%s: got %d, want 201, or 429 for registrations beyond the limit", path, got)
			}
		}
	}
	wantMails("one network", 6)
	for network := range 9 {
		for range 6 {
			send(2+network, "/auth/resend-activation", "")
		}
		for range 6 {
			send(2+network, "/auth/forgot", "")
		}
	}
	wantMails("many networks", 18)
	for _, device := range []string{"", "unknown-device", "broken-device"} {
		if got := send(50, "/auth/forgot", device); got != 201 {
			t.Errorf("the browser %q: got %d, want 201", device, got)
		}
	}
	if got := send(50, "/auth/register", "known-device"); got != 429 {
		t.Errorf("a registration: got %d, want 429", got)
	}
	wantMails("beyond the limit", 0)
	for range 5 {
		if got := send(50, "/auth/forgot", "known-device"); got != 201 {
			t.Errorf("the owner's browser: got %d, want 201", got)
		}
	}
	wantMails("the owner's browser", 3)
	d.forward(time.Hour)
	send(1, "/auth/forgot", "")
	wantMails("the next hour", 1)
}

// TestLimits_TaggedAddressesAreOneMailbox asks for mails to the tags of one mailbox.
func TestLimits_TaggedAddressesAreOneMailbox(t *testing.T) {
	t.Parallel()
	tagged := func(n int) string { return fmt.Sprintf("Victim+%d@example.org", n) }
	for name, c := range map[string]struct {
		method, path, body string
		passing, status    int
		calls              int // of the use case
	}{
		"registration": {path: "/auth/register", body: `{"email":%q,"password":"correct horse","company":"Acme"}`, passing: 5, status: 429, calls: 5},
		"forgot":       {path: "/auth/forgot", body: `{"email":%q}`, passing: 5, status: 201, calls: 5},
		"resend":       {path: "/auth/resend-activation", body: `{"email":%q}`, passing: 5, status: 201, calls: 5},
		"invitation":   {path: "/settings/team", body: `{"email":%q,"role":"USER","sendEmail":true}`, passing: 5, status: 429, calls: 5},
		"new address":  {path: "/user/change-email", body: `{"email":%q,"password":"right"}`, passing: 6, status: 429, calls: 6},
		"review":       {path: "/public/v1/posts/p/request-approval", body: `{"reviewerEmail":%q}`, passing: 30, status: 429},
	} {
		d := openDoor(t)
		n := 0
		send := func() answer {
			n++
			headers := []string{"Content-Type", "application/json", "Authorization", goodKey}
			if !strings.HasPrefix(c.path, "/auth/") {
				headers = append(headers, "auth", adminSession)
			}
			return d.call(t, "POST", c.path, fmt.Sprintf(c.body, tagged(n)), headers...)
		}
		for range c.passing {
			if a := send(); a.status != 201 {
				t.Fatalf("%s, request %d: answered %d %s", name, n, a.status, a.body)
			}
		}
		if a := send(); a.status != c.status {
			t.Errorf("%s beyond the limit of the mailbox: answered %d %s, want %d", name, a.status, a.body, c.status)
		}
		if calls := d.called(); len(calls) != c.calls {
			t.Errorf("%s: %d calls, want %d: %q", name, len(calls), c.calls, calls)
		}
	}
}

// TestLimits_OfSender: all organizations of one creator together may send no more mails than one
// organization, whoever sends them.
func TestLimits_OfSender(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	d.creator = id.New[tenancy.PersonTag]()
	n := 0
	invite := func() answer {
		n++
		return d.call(t, "POST", "/settings/team", fmt.Sprintf(`{"email":"p%d@d%d.example","role":"USER","sendEmail":true}`, n, n),
			"Content-Type", "application/json", "auth", adminSession)
	}
	review := func() answer {
		n++
		return d.call(t, "POST", "/public/v1/posts/p/request-approval", fmt.Sprintf(`{"reviewerEmail":"p%d@d%d.example"}`, n, n),
			"Content-Type", "application/json", "Authorization", goodKey)
	}
	for range 60 {
		want(t, invite(), 201)
	}
	for range 40 {
		want(t, review(), 201)
	}
	a := invite()
	want(t, a, 429, "sent too many mails")
	if a.header.Get("Retry-After") != "3600" {
		t.Errorf("Retry-After is %q, want the rest of the hour", a.header.Get("Retry-After"))
	}
	want(t, review(), 429, "sent too many mails")
	d.org = id.New[tenancy.OrgTag]() // another organization of the same creator, in which the same person is
	want(t, invite(), 429)
	want(t, review(), 429)
	d.creator = id.New[tenancy.PersonTag]()
	want(t, review(), 201)
	for range 40 {
		want(t, invite(), 201)
	}
	want(t, invite(), 429) // the 101st of the person, in organizations of two creators
	want(t, review(), 201)
	d.forward(time.Hour)
	want(t, invite(), 201)
}

func (d door) proof(t *testing.T, from, path, password string, want int) {
	t.Helper()
	method := "POST"
	if strings.HasSuffix(path, "/role") {
		method = "PUT"
	}
	body := fmt.Sprintf(`{"oldPassword":%q,"password":%q,"newPassword":"correct horse","email":"new@example.org","confirm":"DELETE","role":"SUPERADMIN"}`, password, password)
	a := d.call(t, method, path, body, "Content-Type", "application/json", "auth", ownerSession, "X-Forwarded-For", from)
	if a.status != want {
		t.Fatalf("%s with %q from %s: answered %d %s, want %d", path, password, from, a.status, a.body, want)
	}
}

func TestProof_WrongOnesDelayLikeLogins(t *testing.T) {
	t.Parallel()
	for path, success := range map[string]int{
		"/user/change-password": 201, "/user/change-email": 201, "/user/mfa/begin": 201, "/user/mfa/disable": 201,
		"/settings/delete-account": 201, "/settings/delete-organization": 201, "/settings/team/x1/role": 200,
	} {
		d := openDoor(t)
		d.proof(t, home, path, "right", success)
		for range 4 {
			d.proof(t, home, path, "wrong", 400)
		}
		d.try(t, home, ada, "wrong", 400) // log-ins of the account count together with its proofs
		d.proof(t, home, path, "right", 429)
		d.try(t, home, ada, "right", 60)
		d.forward(time.Minute)
		d.proof(t, home, path, "right", success)
	}
}

func TestProof_OtherRefusalsAreNoFailures(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	for _, err := range []error{
		fault.New(fault.Conflict, "fake", "There is one."), fault.New(fault.Unavailable, "fake", "Later."),
		&fault.Error{Kind: fault.Invalid, Op: "fake", Fields: []fault.Field{{Name: "newPassword", Message: "is too common"}}},
	} {
		d.fail(err)
		for range 10 {
			if a := d.call(t, "POST", "/user/change-password", `{"oldPassword":"right","newPassword":"correct horse"}`,
				"Content-Type", "application/json", "auth", goodSession); a.status == 429 {
				t.Fatalf("%v: answered 429", err)
			}
		}
	}
	d.fail(nil)
	d.proof(t, home, "/user/change-password", "right", 201)
}

func TestLogin_KnownBrowserPassesWhileOthersAttack(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	login := func(device, password string) answer {
		return d.call(t, "POST", "/auth/login", fmt.Sprintf(`{"email":%q,"password":%q}`, ada, password),
			"Content-Type", "application/json", "Origin", baseURL, "X-Forwarded-For", home, "Cookie", "device="+device)
	}
	for range 5 { // from her own network
		d.try(t, home, ada, "guess", 400)
	}
	d.try(t, home, ada, "right", 60)
	want(t, login("unknown-device", "right"), 429)
	want(t, login("broken-device", "right"), 429)
	want(t, login("known-device", "right"), 201)
	for range 5 { // whoever has stolen the cookie has the same delays
		want(t, login("known-device", "guess"), 400)
	}
	want(t, login("known-device", "right"), 429, `"retryAfter":60`)
	d.forward(time.Minute)
	want(t, login("known-device", "right"), 201)
	if !strings.Contains(d.log.String(), "a browser cannot be recognized") {
		t.Error("the log has no warning about the browser that could not be looked up")
	}
}

// TestRegister_ManyAtOnceNeverFail sends a thousand registrations of one client.
func TestRegister_ManyAtOnceNeverFail(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	d.signsIn(tenancy.SignIn{Step: tenancy.StepConfirm})
	var all sync.WaitGroup
	statuses := make(chan int, 1000)
	for worker := range 20 {
		all.Go(func() {
			for n := range 50 {
				body := fmt.Sprintf(`{"email":"p%d-%d@example.org","password":"correct horse","company":"Acme"}`, worker, n)
				statuses <- d.call(t, "POST", "/auth/register", body, "Content-Type", "application/json", "X-Forwarded-For", home).status
			}
		})
	}
	all.Wait()
	close(statuses)
	counts := map[int]int{}
	for status := range statuses {
		counts[status]++
	}
	if counts[201] != 10 || counts[429] != 990 {
		t.Errorf("got %v, want 10 of 201 and the others 429", counts)
	}
}
