package admission_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tests/edgetest"
)

// shared counts the windows of several processes. Take returns broken if it is set.
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

func TestSession_IsThrottled(t *testing.T) {
	t.Parallel()
	h := edgetest.NewClock()
	s := edgetest.New(t, map[string]string{"APP_LIMIT": "2"}, func(d *edge.Deps) { d.Clock = h })
	get := func() edgetest.Answer {
		return s.Call(t, "GET", "/integrations/list", "", "auth", edgetest.UserSession)
	}
	edgetest.Want(t, get(), 501)
	edgetest.Want(t, get(), 501)
	edgetest.Want(t, get(), 429, `"retryAfter":60`)
	h.Forward(time.Minute)
	edgetest.Want(t, get(), 501)
}

func TestSession_IsThrottledAcrossProcesses(t *testing.T) {
	t.Parallel()
	h := edgetest.NewClock()
	both := newShared(h.Now)
	process := func() *edgetest.Service {
		return edgetest.New(t, map[string]string{"APP_LIMIT": "3"}, func(d *edge.Deps) {
			d.Clock, d.Windows, d.AccountKey = h, both, []byte("the same in both")
		})
	}
	first, second := process(), process()
	get := func(r *edgetest.Service) edgetest.Answer {
		return r.Call(t, "GET", "/user/self", "", "auth", edgetest.UserSession)
	}
	for i, r := range []*edgetest.Service{first, second, first} {
		a := get(r)
		if left := a.Header.Get("X-RateLimit-Remaining"); a.Status != 200 || left != fmt.Sprint(2-i) || a.Header.Get("X-RateLimit-Limit") != "3" {
			t.Errorf("request %d: got %d with %s left, want 200 with %d", i+1, a.Status, left, 2-i)
		}
	}
	a := get(second)
	edgetest.Want(t, a, 429, `"retryAfter":60`)
	if a.Header.Get("X-RateLimit-Remaining") != "0" || a.Header.Get("X-RateLimit-Reset") != fmt.Sprint(edgetest.Day.Add(time.Minute).Unix()) {
		t.Errorf("the refusal has the headers %v, want none left until the end of the window", a.Header)
	}
	edgetest.Want(t, second.Call(t, "GET", "/user/self", "", "auth", edgetest.AdminSession), 200)
	for key := range both.counts {
		if strings.Contains(key, edgetest.UserSession) {
			t.Errorf("the key %q has the token", key)
		}
	}
}

// TestWindows_ErrorsAreCountedLocally: after a failure, the shared count is tried again some
// seconds later, and each failed attempt is logged once.
func TestWindows_ErrorsAreCountedLocally(t *testing.T) {
	t.Parallel()
	h := edgetest.NewClock()
	both := newShared(h.Now)
	both.breaks(errors.New("no answer"))
	s := edgetest.New(t, map[string]string{"APP_LIMIT": "3"}, func(d *edge.Deps) { d.Clock, d.Windows = h, both })
	get := func() int { return s.Call(t, "GET", "/user/self", "", "auth", edgetest.UserSession).Status }
	for i, status := range []int{200, 200, 200, 429} {
		if got := get(); got != status {
			t.Errorf("request %d: got %d, want %d", i+1, got, status)
		}
	}
	if both.calls != 1 || strings.Count(s.Log.String(), "this process counts its own") != 1 {
		t.Errorf("the shared count was asked %d times, want once and one warning: %s", both.calls, s.Log)
	}
	both.breaks(nil)
	h.Forward(5 * time.Second)
	if got := get(); got != 200 || both.calls != 2 {
		t.Errorf("after it works again: got %d and %d calls, want 200 and 2", got, both.calls)
	}
}

// limits are requests without a session, with the number of requests that one client may send and
// the length of the window. Bodies have %d for a number, so that no limit of an address or a token
// applies.
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
		d := edgetest.NewBehindProxy(t)
		n := 0
		do := func(from string) edgetest.Answer {
			n++
			body := c.body
			if body != "" {
				body = fmt.Sprintf(c.body, n)
			}
			return d.Call(t, c.method, c.path, body, "Content-Type", "application/json", "X-Forwarded-For", from)
		}
		for range c.passing {
			if a := do(edgetest.Home); a.Status >= 300 {
				t.Fatalf("%s, request %d: answered %d %s", name, n, a.Status, a.Body)
			}
		}
		if a := do(edgetest.Home); a.Status != 429 || a.Header.Get("Retry-After") != fmt.Sprint(int(c.window.Seconds())) {
			t.Errorf("%s: answered %d, Retry-After %s after %d requests, want 429 and %v", name, a.Status, a.Header.Get("Retry-After"), n, c.window)
		}
		if a := do("203.0.113.10"); a.Status >= 300 {
			t.Errorf("%s of another client: answered %d", name, a.Status)
		}
		d.Forward(c.window)
		if a := do(edgetest.Home); a.Status >= 300 {
			t.Errorf("%s in the next window: answered %d", name, a.Status)
		}
	}
}

// TestLimits_OfLink: the guests of an office share an address, but each has a separate link.
func TestLimits_OfLink(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	use := func(token, from string) edgetest.Answer {
		return d.Call(t, "POST", "/auth/unsubscribe?token="+token, "", "X-Forwarded-For", from)
	}
	for n := range 60 {
		if a := use("mail-token", edgetest.Home); a.Status != 201 {
			t.Fatalf("use %d of a link: answered %d %s", n+1, a.Status, a.Body)
		}
	}
	for _, from := range []string{edgetest.Home, "203.0.113.10"} {
		if a := use("mail-token", from); a.Status != 429 || a.Header.Get("Retry-After") != "300" {
			t.Errorf("from %s after 60 uses: answered %d, Retry-After %s, want 429 and 300", from, a.Status, a.Header.Get("Retry-After"))
		}
	}
	for n := range 200 {
		if a := use(fmt.Sprintf("another-%d", n), edgetest.Home); a.Status == 429 {
			t.Fatalf("another link of the same address, use %d: answered 429", n+1)
		}
	}
	d.Forward(5 * time.Minute)
	if a := use("mail-token", edgetest.Home); a.Status != 201 {
		t.Errorf("in the next window: answered %d", a.Status)
	}
}

// TestLimits_OfSite sends from the networks of one IPv6 subscriber.
func TestLimits_OfSite(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	register := func(n int, from string) int {
		return d.Call(t, "POST", "/auth/register", fmt.Sprintf(`{"email":"p%d@example.org","password":"correct horse","company":"Acme"}`, n),
			"Content-Type", "application/json", "X-Forwarded-For", from).Status
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
	d := edgetest.NewBehindProxy(t)
	send := func(n int, path, body string) edgetest.Answer {
		return d.Call(t, "POST", path, body, "Content-Type", "application/json", "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n))
	}
	for range 5 {
		edgetest.Want(t, send(1, "/auth/register", edgetest.RegistrationBody), 201)
	}
	edgetest.Want(t, send(1, "/auth/register", edgetest.RegistrationBody), 429)
	for n := range 15 {
		edgetest.Want(t, send(2+n%3, "/auth/register", edgetest.RegistrationBody), 201)
	}
	edgetest.Want(t, send(9, "/auth/register", edgetest.RegistrationBody), 429)
	d.TakeCalls()
	for range 7 { // further requests get the same response
		edgetest.Want(t, send(11, "/auth/forgot", `{"email":"bob@example.org"}`), 201, `{"forgot":true}`)
		edgetest.Want(t, send(11, "/auth/resend-activation", `{"email":"Carl@example.org"}`), 201, `{"success":true}`)
	}
	if calls := d.TakeCalls(); len(calls) != 10 {
		t.Errorf("%d mails were asked for, want 5 of each kind: %q", len(calls), calls)
	}
	for n := range 20 {
		edgetest.Want(t, send(20+n, "/auth/forgot", `{"email":"BOB@example.org"}`), 201, `{"forgot":true}`)
	}
	if calls := d.TakeCalls(); len(calls) != 15 {
		t.Errorf("%d mails were asked for by others, want 15, so that there are 20 in all: %q", len(calls), calls)
	}
	d.Clock.Forward(tenancy.ResetLife)
	edgetest.Want(t, send(60, "/auth/forgot", `{"email":"bob@example.org"}`), 201, `{"forgot":true}`)
	if calls := d.TakeCalls(); len(calls) != 1 {
		t.Errorf("%d mails were asked for when the first links are over, want 1: %q", len(calls), calls)
	}
	session := func(path, body string) edgetest.Answer {
		return d.Call(t, "POST", path, body, "Content-Type", "application/json", "auth", edgetest.AdminSession)
	}
	for range 5 {
		edgetest.Want(t, session("/settings/team", `{"email":"dora@example.org","role":"USER","sendEmail":true}`), 201)
	}
	edgetest.Want(t, session("/settings/team", `{"email":"dora@example.org","role":"USER","sendEmail":true}`), 429)
	edgetest.Want(t, session("/settings/team", `{"email":"dora@example.org","role":"USER","sendEmail":false}`), 201)
	for n := range 94 {
		edgetest.Want(t, session("/settings/team", fmt.Sprintf(`{"email":"p%d@example.org","role":"USER","sendEmail":true}`, n)), 201)
	}
	edgetest.Want(t, session("/settings/team", `{"email":"another@example.org","role":"USER","sendEmail":true}`), 429)
	for range 6 { // the limit on all kinds together
		edgetest.Want(t, session("/user/change-email", `{"email":"eve@example.org","password":"right"}`), 201)
	}
	edgetest.Want(t, session("/user/change-email", `{"email":"eve@example.org","password":"right"}`), 429)
}

// TestLimits_OfAllMailsToAnAddress requests every kind of mail that others can cause, for one
// address and from several networks.
func TestLimits_OfAllMailsToAnAddress(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	send := func(network int, path, device string) int {
		body := fmt.Sprintf(`{"email":%q,"password":"correct horse","company":"Acme"}`, edgetest.Ada)
		if path == "/auth/forgot" || path == "/auth/resend-activation" {
			body = fmt.Sprintf(`{"email":%q}`, edgetest.Ada)
		}
		return d.Call(t, "POST", path, body, "Content-Type", "application/json", "Origin", edgetest.BaseURL, "Cookie", "device="+device,
			"X-Forwarded-For", fmt.Sprintf("198.51.100.%d", network)).Status
	}
	wantMails := func(when string, want int) {
		t.Helper()
		if calls := d.TakeCalls(); len(calls) != want {
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
	d.Forward(time.Hour)
	send(1, "/auth/forgot", "")
	wantMails("the next hour", 1)
}

// TestLimits_TaggedAddressesAreOneMailbox requests mails to tagged addresses of one mailbox.
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
		d := edgetest.NewBehindProxy(t)
		n := 0
		send := func() edgetest.Answer {
			n++
			headers := []string{"Content-Type", "application/json", "Authorization", edgetest.APIKey}
			if !strings.HasPrefix(c.path, "/auth/") {
				headers = append(headers, "auth", edgetest.AdminSession)
			}
			return d.Call(t, "POST", c.path, fmt.Sprintf(c.body, tagged(n)), headers...)
		}
		for range c.passing {
			if a := send(); a.Status != 201 {
				t.Fatalf("%s, request %d: answered %d %s", name, n, a.Status, a.Body)
			}
		}
		if a := send(); a.Status != c.status {
			t.Errorf("%s beyond the limit of the mailbox: answered %d %s, want %d", name, a.Status, a.Body, c.status)
		}
		if calls := d.TakeCalls(); len(calls) != c.calls {
			t.Errorf("%s: %d calls, want %d: %q", name, len(calls), c.calls, calls)
		}
	}
}

// TestLimits_OfSender: all organizations of one creator together may send no more mails than one
// organization may, whoever sends them.
func TestLimits_OfSender(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	d.Creator = id.New[tenancy.PersonTag]()
	n := 0
	invite := func() edgetest.Answer {
		n++
		return d.Call(t, "POST", "/settings/team", fmt.Sprintf(`{"email":"p%d@d%d.example","role":"USER","sendEmail":true}`, n, n),
			"Content-Type", "application/json", "auth", edgetest.AdminSession)
	}
	review := func() edgetest.Answer {
		n++
		return d.Call(t, "POST", "/public/v1/posts/p/request-approval", fmt.Sprintf(`{"reviewerEmail":"p%d@d%d.example"}`, n, n),
			"Content-Type", "application/json", "Authorization", edgetest.APIKey)
	}
	for range 60 {
		edgetest.Want(t, invite(), 201)
	}
	for range 40 {
		edgetest.Want(t, review(), 201)
	}
	a := invite()
	edgetest.Want(t, a, 429, "sent too many emails")
	if a.Header.Get("Retry-After") != "3600" {
		t.Errorf("Retry-After is %q, want the rest of the hour", a.Header.Get("Retry-After"))
	}
	edgetest.Want(t, review(), 429, "sent too many emails")
	// Another organization of the same creator, with the same person as a member.
	d.Org = id.New[tenancy.OrgTag]()
	edgetest.Want(t, invite(), 429)
	edgetest.Want(t, review(), 429)
	d.Creator = id.New[tenancy.PersonTag]()
	edgetest.Want(t, review(), 201)
	for range 40 {
		edgetest.Want(t, invite(), 201)
	}
	edgetest.Want(t, invite(), 429) // the person's 101st mail, in organizations of two creators
	edgetest.Want(t, review(), 201)
	d.Forward(time.Hour)
	edgetest.Want(t, invite(), 201)
}

// TestRegister_ManyAtOnceNeverFail sends a thousand registrations from one client.
func TestRegister_ManyAtOnceNeverFail(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	d.SetSignIn(tenancy.SignIn{Step: tenancy.StepConfirm})
	var all sync.WaitGroup
	statuses := make(chan int, 1000)
	for worker := range 20 {
		all.Go(func() {
			for n := range 50 {
				body := fmt.Sprintf(`{"email":"p%d-%d@example.org","password":"correct horse","company":"Acme"}`, worker, n)
				statuses <- d.Call(t, "POST", "/auth/register", body, "Content-Type", "application/json", "X-Forwarded-For", edgetest.Home).Status
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
