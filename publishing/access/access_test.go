package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/access"
	accessstore "crier/publishing/access/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// rotating is a platform whose refresh tokens work once. Its credential holds the number of
// refreshes, such as {"n":1}.
type rotating struct {
	connector.Connector
	mu    sync.Mutex
	valid string // the credential that the next refresh must present
	calls atomic.Int64
	// before, if set, is called when a refresh begins.
	before func(ctx context.Context)
	// fail, if set, is returned after the rotation.
	fail error
	// silent, if set, is returned before the rotation.
	silent error
	// names has the names that a refresh returns.
	names connector.Refreshed
}

func (p *rotating) Describe() connector.Descriptor {
	return connector.Descriptor{ID: "sandbox", Name: "Sandbox", Grade: publishing.GradeMarked, RefreshLead: time.Minute}
}

func (p *rotating) Refresh(ctx context.Context, s *connector.Session) (connector.Refreshed, error) {
	if p.before != nil {
		p.before(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent != nil {
		return connector.Refreshed{}, p.silent
	}
	if p.valid == "" {
		p.valid = string(s.Credential)
	}
	if string(s.Credential) != p.valid {
		return connector.Refreshed{}, &connector.Error{Kind: connector.KindReauth, Public: "The refresh token was used before; reconnect."}
	}
	p.valid = fmt.Sprintf(`{"n":%d}`, p.calls.Add(1))
	if p.fail != nil {
		return connector.Refreshed{}, p.fail
	}
	fresh := p.names
	fresh.Credential, fresh.ExpiresAt = json.RawMessage(p.valid), time.Now().Add(time.Hour)
	return fresh, nil
}

// rig is one channel of a rotating platform.
type rig struct {
	*publishtest.Base
	platform *rotating
	keeper   *access.Refresher
	org      tenancy.Principal
	channel  publishing.ChannelID
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Base: publishtest.New(t), platform: &rotating{}}
	r.keeper = r.Access(r.Registry(r.platform), nil, nil)
	r.org = r.Organization()
	r.channel = r.Connect(r.org.Org)
	return r
}

// stored returns the channel as it is stored.
func (r *rig) stored() db.Access {
	r.Helper()
	a, err := accessstore.ChannelAccess(r.Context(), r.Store, r.org.Org, r.channel)
	r.OK(err)
	return a
}

func (r *rig) open() *access.Channel {
	r.Helper()
	c, err := r.keeper.Open(r.stored())
	r.OK(err)
	return c
}

// TestRefresh_RenewsNames covers an account that was renamed on its platform.
func TestRefresh_RenewsNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.stored().Channel
	names := []connector.Refreshed{{}, {Name: "New", Profile: "new.test", Picture: "https://new.test/a.png"}, {Profile: "newer.test"}}
	want := []string{before.Name + before.Profile + before.Picture, "Newnew.testhttps://new.test/a.png", "Newnewer.testhttps://new.test/a.png"}
	for i, shown := range names {
		r.platform.names = shown
		_, err := r.keeper.Refresh(t.Context(), r.open())
		r.OK(err)
		if c := r.stored().Channel; c.Name+c.Profile+c.Picture != want[i] {
			t.Errorf("after %+v: got %s, %s and %s; want %s", shown, c.Name, c.Profile, c.Picture, want[i])
		}
	}
}

func TestRefresh_ParallelCallsRotateOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const callers = 8
	channels := make([]*access.Channel, callers)
	for i := range channels {
		channels[i] = r.open()
	}
	begun := make(chan struct{}, 1)
	release := make(chan struct{})
	r.platform.before = func(context.Context) {
		begun <- struct{}{}
		<-release
	}
	second := r.Access(r.Registry(r.platform), nil, nil) // another process
	var wg sync.WaitGroup
	for i, c := range channels {
		keeper := []*access.Refresher{r.keeper, second}[i%2]
		wg.Go(func() {
			if _, err := keeper.Refresh(t.Context(), c); err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	<-begun
	close(release)
	wg.Wait()
	if n := r.platform.calls.Load(); n != 1 {
		t.Errorf("the platform has rotated %d times, want once", n)
	}
	for i, c := range channels {
		if string(c.Session.Credential) != `{"n":1}` || string(c.Sealed) != string(r.stored().Credential) {
			t.Errorf("caller %d has the credential %s, want the stored one", i, c.Session.Credential)
		}
	}
}

// A process that dies between the rotation and its own commit leaves a refresh that never ended.
// The next refresh tries once. If the platform refuses it, the channel is flagged with the reason
// and waits for somebody to reconnect it.
func TestRefresh_InterruptedAfterRotationEndsAsRefreshNeeded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open()
	// This process dies during its refresh.
	_, err := accessstore.BeginRefresh(t.Context(), r.Store, r.org.Org, r.channel, c.Sealed, 0)
	r.OK(err)
	r.platform.valid = `{"n":"lost"}` // the platform has already rotated
	_, err = r.keeper.Refresh(t.Context(), c)
	var refused *connector.Error
	if !errors.As(err, &refused) || refused.Kind != connector.KindReauth || !strings.Contains(refused.Public, "interrupted") {
		t.Fatalf("got %v, want a refusal that names the interruption", err)
	}
	r.keeper.Flag(t.Context(), c, err)
	if got := r.stored().Channel; !got.RefreshNeeded || got.RefreshReason != refused.Public {
		t.Errorf("the channel is %v %q, want it flagged with the reason", got.RefreshNeeded, got.RefreshReason)
	}
	before := r.platform.calls.Load()
	for range 3 {
		if _, err := r.keeper.Refresh(t.Context(), r.open()); connector.KindOf(err, false) != connector.KindReauth {
			t.Errorf("a further refresh returned %v, want reauth", err)
		}
	}
	r.platform.silent = errors.New("it must not be called")
	err = r.keeper.Use(t.Context(), r.stored(), func(context.Context, *access.Channel) error {
		t.Error("the platform is called for a flagged channel")
		return nil
	})
	if connector.KindOf(err, false) != connector.KindReauth || r.platform.calls.Load() != before {
		t.Errorf("use returned %v, want reauth without a call", err)
	}
}

// If the process died before the platform got the request, the old credential still works.
func TestRefresh_InterruptedBeforeRotationSucceeds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open()
	_, err := accessstore.BeginRefresh(t.Context(), r.Store, r.org.Org, r.channel, c.Sealed, 0)
	r.OK(err)
	if _, err := r.keeper.Refresh(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := r.stored().Channel; got.RefreshNeeded {
		t.Errorf("the channel is flagged: %s", got.RefreshReason)
	}
}

// A refresh that outlasted its hold must not end a refresh that began later.
func TestEndRefresh_LeavesLaterRefresh(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open()
	begin := func(hold time.Duration) accessstore.RefreshState {
		t.Helper()
		state, err := accessstore.BeginRefresh(t.Context(), r.Store, r.org.Org, r.channel, c.Sealed, hold)
		r.OK(err)
		return state
	}
	slow, later := begin(0), begin(time.Hour)
	r.OK(accessstore.EndRefresh(t.Context(), r.Store, r.org.Org, r.channel, slow.Run, c.Sealed, false))
	if again := begin(time.Hour); !later.Begun || again.Begun {
		t.Errorf("a third refresh began: %t, want the second one, which began: %t, to keep it off", again.Begun, later.Begun)
	}
	r.OK(accessstore.EndRefresh(t.Context(), r.Store, r.org.Org, r.channel, later.Run, c.Sealed, false))
	if !begin(0).Begun {
		t.Error("no refresh begins after the last one has ended")
	}
}

func TestRefresh_LostAnswerCountsAsInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open()
	r.platform.fail = &connector.Error{Kind: connector.KindTransient, Public: "The platform could not be reached."}
	if _, err := r.keeper.Refresh(t.Context(), c); connector.KindOf(err, false) != connector.KindTransient {
		t.Fatalf("got %v, want transient", err)
	}
	r.platform.fail = nil
	_, err := r.keeper.Refresh(t.Context(), c)
	var refused *connector.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Public, "interrupted") {
		t.Errorf("got %v, want a refusal that names the interruption", err)
	}
}

// A refresh continues after its caller has left, because the platform may already have rotated the
// token.
func TestRefresh_CanceledCallerStoresCredential(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open()
	ctx, cancel := context.WithCancel(t.Context())
	r.platform.before = func(context.Context) { cancel() }
	if _, err := r.keeper.Refresh(ctx, c); err != nil {
		t.Fatal(err)
	}
	if got := r.open().Session.Credential; string(got) != `{"n":1}` {
		t.Errorf("the stored credential is %s, want the new one", got)
	}
}

// A send that is refused during a refresh flags the channel. Its posts then wait, so people must
// still see the reason.
func TestRefresh_ChannelFlaggedDuringRefreshStaysFlagged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open()
	r.platform.before = func(ctx context.Context) {
		r.keeper.Flag(ctx, r.open(), &connector.Error{Kind: connector.KindReauth, Public: "Reconnect the channel."})
	}
	if _, err := r.keeper.Refresh(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got := r.stored()
	if string(got.Credential) != string(c.Sealed) || !got.Channel.RefreshNeeded || got.Channel.RefreshReason != "Reconnect the channel." {
		t.Errorf("the channel is %v %q, want the new access and the flag", got.Channel.RefreshNeeded, got.Channel.RefreshReason)
	}
}

func TestUse_RefreshesOnceAndRepeats(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	refusal := &connector.Error{Kind: connector.KindReauth, Public: "Reconnect the channel."}
	calls := 0
	err := r.keeper.Use(t.Context(), r.stored(), func(_ context.Context, c *access.Channel) error {
		calls++
		if string(c.Session.Credential) != `{"n":1}` {
			return refusal
		}
		return nil
	})
	if err != nil || calls != 2 {
		t.Errorf("got %v after %d calls, want success after 2", err, calls)
	}
	calls = 0
	err = r.keeper.Use(t.Context(), r.stored(), func(context.Context, *access.Channel) error {
		calls++
		return refusal
	})
	if connector.KindOf(err, false) != connector.KindReauth || calls != 2 || !r.stored().Channel.RefreshNeeded {
		t.Errorf("got %v after %d calls, want a refusal after 2 that flags the channel", err, calls)
	}
}

func TestSweep_RefreshesOnlyDueChannels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	later := r.Connect(r.org.Org)
	r.Tenant(r.org.Org, `update channel set refresh_at = case when id = $1 then now() - interval '1 second' else now() + interval '1 hour' end`, r.channel)
	for want := range 2 { // the second sweep finds nothing to refresh
		n, err := r.keeper.Sweep(t.Context())
		if err != nil || n != 1-want {
			t.Errorf("sweep %d refreshed %d channels (%v), want %d", want, n, err, 1-want)
		}
	}
	if got := r.open().Session.Credential; string(got) != `{"n":1}` {
		t.Errorf("the stored credential is %s, want the new one", got)
	}
	a, err := accessstore.ChannelAccess(t.Context(), r.Store, r.org.Org, later)
	r.OK(err)
	if c, err := r.keeper.Open(a); err != nil || string(c.Session.Credential) != `{}` {
		t.Errorf("a channel that is not due has %v (%v), want its old credential", c, err)
	}
}

// After a few failures, a sweep leaves a platform and all its channels alone for a while.
func TestSweep_LeavesFailingPlatformAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 30 {
		r.Connect(r.org.Org)
	}
	r.Tenant(r.org.Org, `update channel set refresh_at = now() - interval '1 second'`)
	var calls atomic.Int64
	r.platform.before = func(context.Context) { calls.Add(1) }
	r.platform.silent = &connector.Error{Kind: connector.KindTransient, Public: "It is down."}
	for range 2 {
		if n, err := r.keeper.Sweep(t.Context()); err != nil || n != 0 {
			t.Fatalf("the sweep returned %d, %v, want nothing", n, err)
		}
	}
	if n := calls.Load(); n < 8 || n > 12 {
		t.Errorf("the platform was called %d times, want about 8", n)
	}
}

// An organization whose own application is not accepted must not stop the refreshes of others.
func TestSweep_RefusedChannelsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 29 {
		r.Connect(r.org.Org)
	}
	r.Tenant(r.org.Org, `update channel set refresh_at = now() - interval '1 second'`)
	var calls atomic.Int64
	r.platform.before = func(context.Context) { calls.Add(1) }
	r.platform.silent = &connector.Error{Kind: connector.KindOperator, Public: "The application is not accepted."}
	if _, err := r.keeper.Sweep(t.Context()); err != nil || calls.Load() != 30 {
		t.Errorf("the platform was called for %d channels, want all 30; error %v", calls.Load(), err)
	}
}

func TestRefreshAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		lead, life, want time.Duration
		never            bool
	}{
		"a lead before the end":            {lead: 5 * time.Minute, life: time.Hour, want: 55 * time.Minute},
		"a short access after its half":    {lead: 5 * time.Minute, life: time.Minute, want: 30 * time.Second},
		"an access that has ended at once": {lead: time.Minute, life: -time.Hour, want: 0},
		"without a lead never":             {life: time.Hour, never: true},
	} {
		got := access.RefreshAt(tc.lead, now, now.Add(tc.life))
		if tc.never != (got == nil) || got != nil && !got.Equal(now.Add(tc.want)) {
			t.Errorf("%s: got %v, want %v", name, got, now.Add(tc.want))
		}
	}
	if got := access.RefreshAt(time.Minute, now, time.Time{}); got != nil {
		t.Errorf("an unknown end: got %v, want never", got)
	}
}

// A platform that does not respond blocks at most two calls of an organization, and none of
// another.
func TestUse_HangingPlatformBlocksTwoCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	entered, hang := make(chan struct{}), make(chan struct{})
	var hanging sync.WaitGroup
	mine := r.stored()
	for range 2 {
		hanging.Go(func() {
			err := r.keeper.Use(t.Context(), mine, func(context.Context, *access.Channel) error {
				entered <- struct{}{}
				<-hang
				return nil
			})
			if err != nil {
				t.Errorf("a call that was answered late: got %v, want nil", err)
			}
		})
		<-entered
	}
	nothing := func(context.Context, *access.Channel) error { return nil }
	var refused *fault.Error
	if err := r.keeper.Use(t.Context(), mine, nothing); !errors.As(err, &refused) || refused.Kind != fault.RateLimited || refused.RetryAfter == 0 {
		t.Errorf("the third call: got %v, want RateLimited with RetryAfter", err)
	}
	r.org = r.Organization()
	r.channel = r.Connect(r.org.Org)
	r.OK(r.keeper.Use(t.Context(), r.stored(), nothing))
	close(hang)
	hanging.Wait()
	r.OK(r.keeper.Use(t.Context(), mine, nothing))
}
