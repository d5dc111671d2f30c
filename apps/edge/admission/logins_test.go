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
	"crier/tests/edgetest"
)

func TestLogin_DelayGrowsWithFailuresOfAddress(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	for range 30 {
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201)
	}
	for range 5 {
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "wrong", 400)
	}
	for _, wait := range []int{60, 120, 240, 480, 900, 900} {
		d.TryLogin(t, edgetest.Home, " ADA@example.org", "right", wait)
		d.Forward(time.Duration(wait)*time.Second - time.Second)
		// A refused log-in does not restart the delay.
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 1)
		d.Forward(time.Second)
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "wrong", 400)
	}
	d.Forward(15 * time.Minute)
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201)
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201)
	d.Forward(16*time.Minute + time.Hour)
	for range 5 { // the account starts from zero
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "wrong", 400)
	}
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "wrong", 60)
}

func TestLogin_AddressesOfOneNetworkCountAsOne(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	for i := range 40 {
		want := 400
		if i >= 5 {
			want = 60
		}
		d.TryLogin(t, fmt.Sprintf("2001:db8:1:2::%x", i), edgetest.Ada, "wrong", want)
	}
	d.TryLogin(t, "2001:db8:2:2::1", edgetest.Ada, "wrong", 400)
}

// TestLogin_NetworksOfSubscriberShareDelayOfAccount: one subscriber may have a /48, which contains
// 65,536 networks of size /64.
func TestLogin_NetworksOfSubscriberShareDelayOfAccount(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	for i := range 40 {
		want := 400
		if i >= 5 {
			want = 60
		}
		d.TryLogin(t, fmt.Sprintf("2001:db8:1:%x::1", i), edgetest.Ada, "wrong", want)
	}
	d.TryLogin(t, "2001:db8:1:ffff::1", "person@example.org", "guess", 400)
	for i := range 2 { // the account itself has no delay: its owner can log in from elsewhere
		d.TryLogin(t, fmt.Sprintf("2001:db8:2:%x::1", i), edgetest.Ada, "right", 201)
	}
}

func TestLogin_HeadersOfClientChangeNothing(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	refused := 0
	for i := range 40 {
		a := d.Call(t, "POST", "/auth/login", edgetest.WrongLoginBody, "Content-Type", "application/json",
			"X-Forwarded-For", fmt.Sprintf("10.0.0.%d", i), "X-Forwarded-For", edgetest.Home)
		if a.Status == 429 {
			refused++
		}
	}
	if refused != 35 {
		t.Errorf("%d of 40 were refused, want 35", refused)
	}
}

func TestLogin_OthersCannotLockAccount(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	attempt := 0
	attack := func() {
		t.Helper()
		for range 30 {
			attempt++
			d.TryLogin(t, fmt.Sprintf("198.51.%d.%d", attempt/250, attempt%250), edgetest.Ada, "guess", 400)
		}
	}
	attack()
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201)
	for range 2 { // the owner mistypes, too
		d.TryLogin(t, "192.0.2.1", edgetest.Ada, "mistyped", 400)
	}
	d.TryLogin(t, "192.0.2.1", edgetest.Ada, "right", 201)
	d.TryLogin(t, "192.0.2.2", edgetest.Ada, "mistyped", 400)
	for _, from := range []string{"198.51.0.1", "198.51.0.30"} {
		for range 2 {
			d.TryLogin(t, from, edgetest.Ada, "guess", 400)
		}
		d.TryLogin(t, from, edgetest.Ada, "guess", 900) // after the third guess from this address
	}
	for range 2 {
		d.TryLogin(t, "192.0.2.2", edgetest.Ada, "mistyped", 400)
	}
	d.TryLogin(t, "192.0.2.2", edgetest.Ada, "right", 900)
	for range 3 {
		d.Forward(5 * time.Minute)
		attack() // does not lengthen the owner's delay
	}
	d.TryLogin(t, "192.0.2.2", edgetest.Ada, "right", 201)
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201)
}

func TestLogin_AddressCannotTryManyAccounts(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	account := 0
	try := func(want int) {
		t.Helper()
		account++
		d.TryLogin(t, edgetest.Home, fmt.Sprintf("person%d@example.org", account), "guess", want)
	}
	for range 20 {
		try(400)
	}
	for _, wait := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		try(wait)
		d.Forward(time.Duration(wait) * time.Second)
		try(400)
	}
	d.TryLogin(t, "203.0.113.10", edgetest.Ada, "right", 201)
	d.Forward(time.Minute)
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201)
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201) // a successful log-in leaves no delay
}

func TestLogin_ParallelAttemptsKeepLimit(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	var all sync.WaitGroup
	statuses := make(chan int, 40)
	for range 40 {
		all.Go(func() {
			statuses <- d.Call(t, "POST", "/auth/login", edgetest.WrongLoginBody, "Content-Type", "application/json", "X-Forwarded-For", edgetest.Home).Status
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
	d := edgetest.NewBehindProxy(t)
	d.Entering, d.Release = make(chan string, 10), make(chan struct{})
	slow := make(chan edgetest.Answer, 1)
	login := func(from, email, password string) edgetest.Answer {
		return d.Call(t, "POST", "/auth/login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password), "Content-Type", "application/json", "X-Forwarded-For", from)
	}
	go func() { slow <- login("2001:db8:1:2::1", "first@example.org", "slow") }()
	<-d.Entering
	d.TryLogin(t, "2001:db8:1:3::1", edgetest.Ada, "right", 201) // another network
	d.TryLogin(t, "2001:db8:1:2::2", edgetest.Ada, "right", 3)   // another account, same network
	close(d.Release)
	if a := <-slow; a.Status != 400 {
		t.Errorf("the slow log-in ends with %d: %s", a.Status, a.Body)
	}
	d.TryLogin(t, "2001:db8:1:2::2", edgetest.Ada, "right", 201)
}

func TestLogin_InternalErrorIsNotCounted(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	for range 30 {
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "unavailable", 503)
	}
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201)
}

// silent counts attempts, but its methods return an error, as if Redis answered too late.
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
	d := edgetest.NewBehindProxy(t, func(d *edge.Deps) { d.Attempts = shared })
	for range 30 {
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 201)
	}
	for key, n := range shared.counts {
		if n != 0 {
			t.Errorf("%d successful log-ins stay in the shared count of %q, want 0", n, key)
		}
	}
	for range 5 {
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "wrong", 400)
	}
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 60)
	if !strings.Contains(d.Log.String(), "no answer") {
		t.Error("the log has no warning about the shared count")
	}
}

func TestLogin_KnownBrowserPassesWhileOthersAttack(t *testing.T) {
	t.Parallel()
	d := edgetest.NewBehindProxy(t)
	login := func(device, password string) edgetest.Answer {
		return d.Call(t, "POST", "/auth/login", fmt.Sprintf(`{"email":%q,"password":%q}`, edgetest.Ada, password),
			"Content-Type", "application/json", "Origin", edgetest.BaseURL, "X-Forwarded-For", edgetest.Home, "Cookie", "device="+device)
	}
	for range 5 { // from her own network
		d.TryLogin(t, edgetest.Home, edgetest.Ada, "guess", 400)
	}
	d.TryLogin(t, edgetest.Home, edgetest.Ada, "right", 60)
	edgetest.Want(t, login("unknown-device", "right"), 429)
	edgetest.Want(t, login("broken-device", "right"), 429)
	edgetest.Want(t, login("known-device", "right"), 201)
	for range 5 { // a thief of the cookie gets the same delays
		edgetest.Want(t, login("known-device", "guess"), 400)
	}
	edgetest.Want(t, login("known-device", "right"), 429, `"retryAfter":60`)
	d.Forward(time.Minute)
	edgetest.Want(t, login("known-device", "right"), 201)
	if !strings.Contains(d.Log.String(), "a browser cannot be recognized") {
		t.Error("the log has no warning about the browser that could not be looked up")
	}
}
