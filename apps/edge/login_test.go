package edge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
)

// door is a running edge that trusts the addresses in X-Forwarded-For, with a clock that the test sets.
type door struct {
	*running
	*hand
}

func openDoor(t *testing.T, change ...func(*edge.Deps)) door {
	t.Helper()
	h := &hand{now: day}
	s := start(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1"}, append(change, func(d *edge.Deps) { d.Clock = h })...)
	return door{running: s, hand: h}
}

// try logs in from an address and fails the test unless it gets want: the status, or for a 429 the seconds to wait.
func (d door) try(t *testing.T, from, email, password string, want int) {
	t.Helper()
	a := d.call(t, "POST", "/auth/login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password), "Content-Type", "application/json", "X-Forwarded-For", from)
	got := a.status
	if a.status == 429 {
		got = decode[struct{ RetryAfter int }](t, a).RetryAfter
		if a.header.Get("Retry-After") != fmt.Sprint(got) {
			t.Errorf("Retry-After is %q, want %d as in the body", a.header.Get("Retry-After"), got)
		}
	}
	if got != want {
		t.Fatalf("%s of %s from %s: got %d, want %d: %s", password, email, from, got, want, a.body)
	}
}

const (
	ada  = "ada@example.org" // her password is right
	home = "203.0.113.9"
)

func TestLogin_DelayGrowsWithFailuresOfAddress(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	for range 30 {
		d.try(t, home, ada, "right", 201)
	}
	for range 5 {
		d.try(t, home, ada, "wrong", 400)
	}
	for _, wait := range []int{60, 120, 240, 480, 900, 900} {
		d.try(t, home, " ADA@example.org", "right", wait)
		d.forward(time.Duration(wait)*time.Second - time.Second)
		d.try(t, home, ada, "right", 1) // a refused log-in does not begin the delay anew
		d.forward(time.Second)
		d.try(t, home, ada, "wrong", 400)
	}
	d.forward(15 * time.Minute)
	d.try(t, home, ada, "right", 201)
	d.try(t, home, ada, "right", 201)
	d.forward(16*time.Minute + time.Hour)
	for range 5 { // all is forgotten
		d.try(t, home, ada, "wrong", 400)
	}
	d.try(t, home, ada, "wrong", 60)
}

func TestLogin_AddressesOfOneNetworkCountAsOne(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	for i := range 40 {
		want := 400
		if i >= 5 {
			want = 60
		}
		d.try(t, fmt.Sprintf("2001:db8:1:2::%x", i), ada, "wrong", want)
	}
	d.try(t, "2001:db8:2:2::1", ada, "wrong", 400)
}

// TestLogin_NetworksOfSubscriberShareDelayOfAccount: one subscriber may have a /48, and with it 65,536 networks of /64.
func TestLogin_NetworksOfSubscriberShareDelayOfAccount(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	for i := range 40 {
		want := 400
		if i >= 5 {
			want = 60
		}
		d.try(t, fmt.Sprintf("2001:db8:1:%x::1", i), ada, "wrong", want)
	}
	d.try(t, "2001:db8:1:ffff::1", "person@example.org", "guess", 400)
	for i := range 2 { // the account itself does not wait: an owner elsewhere gets in
		d.try(t, fmt.Sprintf("2001:db8:2:%x::1", i), ada, "right", 201)
	}
}

func TestLogin_HeadersOfClientChangeNothing(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	refused := 0
	for i := range 40 {
		a := d.call(t, "POST", "/auth/login", wrongLogin, "Content-Type", "application/json",
			"X-Forwarded-For", fmt.Sprintf("10.0.0.%d", i), "X-Forwarded-For", home)
		if a.status == 429 {
			refused++
		}
	}
	if refused != 35 {
		t.Errorf("%d of 40 were refused, want 35", refused)
	}
}

func TestLogin_OthersCannotLockAccount(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	attempt := 0
	attack := func() {
		t.Helper()
		for range 30 {
			attempt++
			d.try(t, fmt.Sprintf("198.51.%d.%d", attempt/250, attempt%250), ada, "guess", 400)
		}
	}
	attack()
	d.try(t, home, ada, "right", 201)
	for range 2 { // hers, too
		d.try(t, "192.0.2.1", ada, "mistyped", 400)
	}
	d.try(t, "192.0.2.1", ada, "right", 201)
	d.try(t, "192.0.2.2", ada, "mistyped", 400)
	for _, from := range []string{"198.51.0.1", "198.51.0.30"} {
		for range 2 {
			d.try(t, from, ada, "guess", 400)
		}
		d.try(t, from, ada, "guess", 900) // after its third
	}
	for range 2 {
		d.try(t, "192.0.2.2", ada, "mistyped", 400)
	}
	d.try(t, "192.0.2.2", ada, "right", 900)
	for range 3 {
		d.forward(5 * time.Minute)
		attack() // does not lengthen what others wait
	}
	d.try(t, "192.0.2.2", ada, "right", 201)
	d.try(t, home, ada, "right", 201)
}

func TestLogin_AddressCannotTryManyAccounts(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	account := 0
	try := func(want int) {
		t.Helper()
		account++
		d.try(t, home, fmt.Sprintf("person%d@example.org", account), "guess", want)
	}
	for range 20 {
		try(400)
	}
	for _, wait := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		try(wait)
		d.forward(time.Duration(wait) * time.Second)
		try(400)
	}
	d.try(t, "203.0.113.10", ada, "right", 201)
	d.forward(time.Minute)
	d.try(t, home, ada, "right", 201)
	d.try(t, home, ada, "right", 201) // a log-in that succeeds leaves no delay
}

func TestLogin_ParallelAttemptsKeepLimit(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	var all sync.WaitGroup
	statuses := make(chan int, 40)
	for range 40 {
		all.Go(func() {
			statuses <- d.call(t, "POST", "/auth/login", wrongLogin, "Content-Type", "application/json", "X-Forwarded-For", home).status
		})
	}
	all.Wait()
	close(statuses)
	tried := 0
	for status := range statuses {
		if status == 400 {
			tried++
		}
	}
	if tried != 5 {
		t.Errorf("%d of 40 parallel log-ins were tried, want 5", tried)
	}
}

func TestLogin_RunsOneAtATimePerNetwork(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	d.entering, d.release = make(chan string, 10), make(chan struct{})
	slow := make(chan answer, 1)
	login := func(from, email, password string) answer {
		return d.call(t, "POST", "/auth/login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password), "Content-Type", "application/json", "X-Forwarded-For", from)
	}
	go func() { slow <- login("2001:db8:1:2::1", "first@example.org", "slow") }()
	<-d.entering
	d.try(t, "2001:db8:1:3::1", ada, "right", 201) // another network
	d.try(t, "2001:db8:1:2::2", ada, "right", 3)   // another account, the same network
	close(d.release)
	if a := <-slow; a.status != 400 {
		t.Errorf("the slow log-in ends with %d: %s", a.status, a.body)
	}
	d.try(t, "2001:db8:1:2::2", ada, "right", 201)
}

func TestLogin_InternalErrorIsNoFailure(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	for range 30 {
		d.try(t, home, ada, "unavailable", 503)
	}
	d.try(t, home, ada, "right", 201)
}

// silent counts attempts, but its methods return an error, as when Redis answers too late.
type silent struct {
	mu     sync.Mutex
	counts map[string]int // by key
}

func (s *silent) Begin(_ context.Context, keys [3]string) (time.Duration, error) {
	s.add(keys, 1)
	return 0, errors.New("no answer")
}

func (s *silent) Forgive(_ context.Context, keys [3]string) error {
	s.add(keys, -1)
	return errors.New("no answer")
}

func (s *silent) add(keys [3]string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.counts[key] += n
	}
}

func TestLogin_IsCountedLocallyWithoutSharedCount(t *testing.T) {
	t.Parallel()
	shared := &silent{counts: map[string]int{}}
	d := openDoor(t, func(d *edge.Deps) { d.Attempts = shared })
	for range 30 {
		d.try(t, home, ada, "right", 201)
	}
	for key, n := range shared.counts {
		if n != 0 {
			t.Errorf("%d successful log-ins stay in the shared count of %q, want 0", n, key)
		}
	}
	for range 5 {
		d.try(t, home, ada, "wrong", 400)
	}
	d.try(t, home, ada, "right", 60)
	if !strings.Contains(d.log.String(), "no answer") {
		t.Error("the log has no warning about the shared count")
	}
}

func TestLogin_EndsPreviousSession(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	in := `{"provider":"LOCAL","email":"ada@example.org","password":"right"}`
	want(t, s.call(t, "POST", "/auth/login", in, "Content-Type", "application/json", "Cookie", "auth=an-old-one", "Origin", baseURL), 201)
	if want := []string{"logout an-old-one"}; !slices.Equal(s.ids, want) {
		t.Errorf("sessions ended: %q, want that of the cookie", s.ids)
	}
}

func TestMember_RefusesChangesInForeignOrganization(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, c := range map[string]struct {
		organization string
		status       int
	}{
		"none": {organization: "", status: 200}, "the person's": {organization: strings.ToUpper(organization.String()), status: 200}, "another": {organization: "nope", status: 403},
	} {
		a := s.call(t, "PUT", "/integrations/x/pause", `{"paused":true}`, "Content-Type", "application/json", "auth", goodSession, "showorg", c.organization)
		if a.status != c.status || (c.status == 403) != strings.Contains(a.body, "showorg") {
			t.Errorf("%s: answered %d %s, want %d", name, a.status, a.body, c.status)
		}
		if a := s.call(t, "GET", "/approvals", "", "auth", goodSession, "showorg", c.organization); a.status != 200 {
			t.Errorf("%s, reading: %d %s", name, a.status, a.body)
		}
		if a := s.call(t, "GET", "/integrations/social/sandbox", "", "auth", goodSession, "showorg", c.organization); a.status != c.status {
			t.Errorf("%s, beginning a connect: %d %s, want %d", name, a.status, a.body, c.status)
		}
	}
}

func TestMember_ClearsStaleOrganizationCookie(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const stale = "auth=" + goodSession + "; showorg=nope"
	post := func(path, cookies string) answer {
		t.Helper()
		return s.call(t, "POST", path, `{"id":"`+organization.String()+`"}`, "Content-Type", "application/json", "Origin", baseURL, "Cookie", cookies)
	}
	cleared := func(a answer) (names []string) {
		for _, line := range a.header.Values("Set-Cookie") {
			c, err := http.ParseSetCookie(line)
			if err != nil {
				t.Fatal(err)
			}
			if c.Value == "" && !c.Expires.After(day) {
				names = append(names, c.Name)
			}
		}
		slices.Sort(names)
		return names
	}
	a := s.call(t, "PUT", "/integrations/x/pause", `{"paused":true}`, "Content-Type", "application/json", "Origin", baseURL, "Cookie", stale)
	if got := cleared(a); a.status != 403 || !slices.Equal(got, []string{"showorg"}) {
		t.Errorf("a change: %d and cleared %q, want 403 and showorg: %s", a.status, got, a.body)
	}
	a = post("/user/logout", stale)
	if got := cleared(a); a.status != 201 || !slices.Equal(got, []string{"__Host-auth", "__Host-impersonate", "auth", "impersonate", "showorg"}) {
		t.Errorf("log-out: %d and cleared %q: %s", a.status, got, a.body)
	}
	if a := post("/user/change-org", stale); a.status != 201 {
		t.Errorf("the change to another organization: %s", a.body)
	}
	if a := post("/user/change-org", "showorg=nope"); a.status != 401 {
		t.Errorf("the change to another organization without a session: %d %s", a.status, a.body)
	}
}
