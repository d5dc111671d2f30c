package channel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/channel"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// passwordPlatform is a platform that accepts one password and counts the attempts.
type passwordPlatform struct {
	*publishtest.Platform
	attempts atomic.Int32
}

func (d *passwordPlatform) Describe() connector.Descriptor {
	out := d.Platform.Describe()
	out.Fields = []connector.Field{{Key: "password", Label: "Password", Type: "password", Validation: ".+"}}
	return out
}

func (d *passwordPlatform) Connect(_ context.Context, _ connector.Env, fields map[string]string) (connector.Connected, error) {
	d.attempts.Add(1)
	if fields["password"] != "right" {
		return connector.Connected{}, &connector.Error{Kind: connector.KindReauth, Public: "The password is wrong."}
	}
	return connector.Connected{Account: connector.Account{ID: "account", Name: "A", Grade: publishing.GradeMarked}, Credential: []byte(`{}`)}, nil
}

// beginConnect begins a connect at a passwordPlatform and returns try, which finishes it with a
// password. A password with a NUL makes the form invalid.
func beginConnect(t *testing.T) (d *passwordPlatform, try func(password string) error) {
	t.Helper()
	r := publishtest.NewRig(t)
	d = &passwordPlatform{Platform: r.Platform}
	r.Register(d)
	return d, begin(r.Member(), publishtest.Limits)
}

// begin begins a connect with cfg and returns finish, which finishes it with a password. A password
// with a NUL makes the form invalid.
func begin(m publishtest.Member, cfg publishtest.Config) (finish func(password string) error) {
	m.Helper()
	channels := m.Deps.Channels(cfg)
	state, err := channels.Begin(m.Context(), m.Who, publishing.BeginConnect{Connector: "sandbox"})
	m.OK(err)
	return func(password string) error {
		_, err := channels.Finish(m.Context(), publishing.FinishConnect{
			Connector: "sandbox", State: state, Fields: map[string]string{"password": password},
			Zone: tenancy.ZoneRequest{IsOffset: true},
		})
		return err
	}
}

func TestFinishConnect_EndsAfterTenTries(t *testing.T) {
	t.Parallel()
	d, try := beginConnect(t)
	for range 10 {
		if err := try("wrong"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "password is wrong") {
			t.Fatalf("a wrong password: %v", err)
		}
	}
	for _, password := range []string{"wrong", "right"} {
		if err := try(password); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "start over") {
			t.Errorf("after ten tries, with a %s password: %v, want start over", password, err)
		}
	}
	if n := d.attempts.Load(); n != 10 {
		t.Errorf("the platform was asked %d times, want 10", n)
	}
}

func TestFinishConnect_AcceptsTheTenthTry(t *testing.T) {
	t.Parallel()
	d, try := beginConnect(t)
	for range 20 { // these never reach the platform
		if err := try("\x00"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "NUL") {
			t.Fatalf("a form with a NUL: got %v, want Invalid", err)
		}
	}
	for range 9 {
		if err := try("wrong"); err == nil {
			t.Fatal("a wrong password connects")
		}
	}
	if err := try("right"); err != nil {
		t.Errorf("the tenth try: %v", err)
	}
	if err := try("right"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "start over") {
		t.Errorf("the same again: %v", err)
	}
	if n := d.attempts.Load(); n != 10 {
		t.Errorf("the platform was asked %d times, want 10", n)
	}
}

// blockingPlatform is a platform whose Connect returns once opened is closed.
type blockingPlatform struct {
	*publishtest.Platform
	inside chan struct{} // receives a value for each connect that has begun
	opened chan struct{}
}

func (d *blockingPlatform) Connect(ctx context.Context, _ connector.Env, _ map[string]string) (connector.Connected, error) {
	d.inside <- struct{}{}
	select {
	case <-d.opened:
	case <-ctx.Done():
	}
	return connector.Connected{}, &connector.Error{Kind: connector.KindReauth, Public: "The password is wrong."}
}

func TestFinishConnect_LimitsConnectsInProgress(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	d := &blockingPlatform{Platform: r.Platform, inside: make(chan struct{}, 10), opened: make(chan struct{})}
	r.Register(d)
	channels := r.Deps.Channels(publishtest.Limits)
	var one, other string // states
	for _, state := range []*string{&one, &other} {
		begun, err := channels.Begin(t.Context(), r.Member().Who, publishing.BeginConnect{Connector: "sandbox"})
		r.OK(err)
		*state = begun
	}
	finish := func(state string) error {
		_, err := channels.Finish(t.Context(), publishing.FinishConnect{Connector: "sandbox", State: state})
		return err
	}
	begin := func(state string) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- finish(state) }()
		select {
		case <-d.inside:
		case err := <-ended:
			t.Fatalf("a connect that may begin ends with %v", err)
		}
		return ended
	}
	var begun []<-chan error
	for _, state := range []string{one, one, one, one, other} {
		begun = append(begun, begin(state))
	}
	var refused *fault.Error
	if err := finish(one); !errors.As(err, &refused) || refused.Kind != fault.RateLimited || refused.RetryAfter == 0 {
		t.Errorf("the fifth connect of an organization: %v, want RateLimited with RetryAfter", err)
	}
	close(d.opened)
	for _, ended := range begun {
		if err := <-ended; !fault.Is(err, fault.Invalid) {
			t.Errorf("a connect in progress ends with %v", err)
		}
	}
	if err := finish(one); !fault.Is(err, fault.Invalid) {
		t.Errorf("after them: %v", err)
	}
}

// ownerRecorder is a platform that records the owner of the connections that Connect uses.
type ownerRecorder struct {
	*publishtest.Platform
	owner string
}

func (d *ownerRecorder) Connect(ctx context.Context, _ connector.Env, _ map[string]string) (connector.Connected, error) {
	d.owner = outbound.Owner(ctx)
	return connector.Connected{}, &connector.Error{Kind: connector.KindReauth, Public: "The password is wrong."}
}

func TestFinishConnect_ConnectionsBelongToTheOrganization(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	d := &ownerRecorder{Platform: r.Platform}
	r.Register(d)
	m := r.Member()
	channels := r.Deps.Channels(publishtest.Limits)
	state, err := channels.Begin(t.Context(), m.Who, publishing.BeginConnect{Connector: "sandbox"})
	r.OK(err)
	_, err = channels.Finish(t.Context(), publishing.FinishConnect{Connector: "sandbox", State: state})
	if !fault.Is(err, fault.Invalid) || d.owner != m.Who.Org.String() {
		t.Errorf("the connections belong to %q, want the organization %s: %v", d.owner, m.Who.Org, err)
	}
}

func TestFinishConnect_RefusesTooManyChannels(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	r.Register(&passwordPlatform{Platform: r.Platform})
	m := r.Member() // with one channel
	cfg := publishtest.Limits
	cfg.MaxChannels = 1
	if err := begin(m, cfg)("right"); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "limit of 1 channels") {
		t.Errorf("one more channel than the limit: %v, want a conflict", err)
	}
	cfg.MaxChannels = 2
	for _, what := range []string{"as many channels as the limit", "the same account again"} {
		if err := begin(m, cfg)("right"); err != nil {
			t.Errorf("%s: got the error %v, want none", what, err)
		}
	}
}

func TestFinishConnect_EndsWhenItsMemberLosesAccess(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	d := &passwordPlatform{Platform: r.Platform}
	r.Register(d)
	for name, end := range map[string]func(m publishtest.Member){
		"removed": func(m publishtest.Member) {
			m.Tenant(m.Who.Org, "delete from member where person_id = $1", m.Who.Person)
		},
		"disabled": func(m publishtest.Member) { m.Tenant(m.Who.Org, "update member set disabled = true") },
		"suspended": func(m publishtest.Member) {
			m.Gate("update organization set suspended_at = now() where id = $1", m.Who.Org)
		},
		"to be deleted": func(m publishtest.Member) {
			m.Gate("update organization set deleted_at = now() where id = $1", m.Who.Org)
		},
	} {
		m := r.Member()
		try := begin(m, publishtest.Limits)
		end(m)
		tried := d.attempts.Load()
		if err := try("right"); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
		if d.attempts.Load() != tried {
			t.Errorf("%s: the platform was called", name)
		}
	}
}

func TestFinishConnect_EndsWithTheKeyThatBeganIt(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	d := &passwordPlatform{Platform: r.Platform}
	r.Register(d)
	for name, c := range map[string]struct {
		end     string
		refused bool
	}{
		"the creator leaves": {end: "delete from member"},
		"the key is revoked": {end: "delete from api_key", refused: true},
		"the key expires":    {end: "update api_key set expires_at = now()", refused: true},
		"the key is rotated": {end: "update api_key set expires_at = now() + interval '1 hour'"},
	} {
		m := r.Member()
		m.Who.Via, m.Who.Key = tenancy.ViaKey, id.New[tenancy.KeyTag]()
		m.Tenant(m.Who.Org, `insert into api_key (org_id, id, name, prefix, hash, created_by)
			values ($1, $2, 'key', 'crier_', $3, $4)`, m.Who.Org, m.Who.Key, secret.HashToken(m.Who.Key.String()), m.Who.Person)
		try := begin(m, publishtest.Limits)
		m.Tenant(m.Who.Org, c.end)
		if err := try("right"); fault.Is(err, fault.Invalid) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: got %v, want refused %t", name, err, c.refused)
		}
	}
}

// removingPlatform removes a member from the organization while the member connects a channel.
type removingPlatform struct {
	*passwordPlatform
	of publishtest.Member
}

func (d *removingPlatform) Connect(ctx context.Context, env connector.Env, fields map[string]string) (connector.Connected, error) {
	d.of.Tenant(d.of.Who.Org, "delete from member where person_id = $1", d.of.Who.Person)
	return d.passwordPlatform.Connect(ctx, env, fields)
}

func TestFinishConnect_MemberRemovedDuringConnectStoresNoChannel(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	m := r.Member()
	r.Register(&removingPlatform{passwordPlatform: &passwordPlatform{Platform: r.Platform}, of: m})
	if err := begin(m, publishtest.Limits)("right"); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
	channels, err := channelstore.Channels(t.Context(), m.Store, m.Who.Org, publishing.CustomerID{})
	if err != nil || len(channels) != 1 {
		t.Errorf("got %d channels, %v, want the one from before", len(channels), err)
	}
}

// blockingOAuth is an OAuth platform whose Exchange returns once opened is closed.
type blockingOAuth struct {
	*publishtest.Platform
	inside chan struct{} // receives a value for each call that has begun
	opened chan struct{}
}

func (*blockingOAuth) Family() connector.Family {
	return connector.Family{ID: "sandbox", Name: "Sandbox"}
}

func (*blockingOAuth) AuthorizeURL(a connector.Authorization) (string, error) {
	return "https://platform.example/?state=" + a.State, nil
}

func (d *blockingOAuth) Exchange(
	ctx context.Context, _ connector.Env, _ connector.App, _ connector.Code,
) (connector.Authorized, error) {
	d.inside <- struct{}{}
	select {
	case <-d.opened:
	case <-ctx.Done():
	}
	return connector.Authorized{}, &connector.Error{Kind: connector.KindContent, Public: "The code is refused."}
}

func (*blockingOAuth) Select(
	context.Context, connector.Env, connector.App, json.RawMessage, string,
) (connector.Connected, error) {
	return connector.Connected{}, errors.New("nothing is offered")
}

// The platform was not called, so the person may load the page again with the same code.
func TestFinishConnect_OAuthRefusedForLoadKeepsState(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	d := &blockingOAuth{Platform: r.Platform, inside: make(chan struct{}, 10), opened: make(chan struct{})}
	r.Register(d)
	r.Deps.Access = r.Access(r.Deps.Connectors, map[string]connector.App{"sandbox": {ClientID: "c", Secret: "s"}}, nil)
	channels := r.Deps.Channels(publishtest.Limits)
	who := r.Member().Who
	var states []string
	for range 5 {
		address, err := channels.Begin(t.Context(), who, publishing.BeginConnect{Connector: "sandbox"})
		r.OK(err)
		_, state, _ := strings.Cut(address, "state=")
		states = append(states, state)
	}
	finish := func(state string) error {
		_, err := channels.Finish(t.Context(), publishing.FinishConnect{Connector: "sandbox", State: state, Code: "code"})
		return err
	}
	var all sync.WaitGroup
	for _, state := range states[:4] {
		all.Go(func() { _ = finish(state) }) // fails in the end
	}
	for range 4 {
		<-d.inside
	}
	if err := finish(states[4]); !fault.Is(err, fault.RateLimited) {
		t.Errorf("the fifth connect of an organization: %v, want RateLimited", err)
	}
	close(d.opened)
	all.Wait()
	for _, want := range []string{"The code is refused.", "has been used"} {
		if err := finish(states[4]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the same again: %v, want %q", err, want)
		}
	}
}

// authority refuses everybody once access is lost.
type authority struct{ lost atomic.Bool }

func (a *authority) Confirm(context.Context, pg.Querier, tenancy.Principal) error {
	if a.lost.Load() {
		return fault.New(fault.Forbidden, "test", "You are no longer a member of this organization.")
	}
	return nil
}

// losingPlatform removes the access of the person who connects while it handles the connect.
type losingPlatform struct {
	*passwordPlatform
	authority *authority
}

func (d losingPlatform) Connect(ctx context.Context, env connector.Env, fields map[string]string) (
	connector.Connected, error) {
	d.authority.lost.Store(true)
	return d.passwordPlatform.Connect(ctx, env, fields)
}

func TestFinishConnect_AccessLostDuringConnectStoresNothing(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	a := &authority{}
	r.Register(losingPlatform{passwordPlatform: &passwordPlatform{Platform: r.Platform}, authority: a})
	r.Deps.DB = &db.DB{DB: r.DB, Authority: a}
	m := r.Member()
	if err := begin(m, publishtest.Limits)("right"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("got %v, want Forbidden", err)
	}
	channels, err := channelstore.Channels(t.Context(), m.Store, m.Who.Org, publishing.CustomerID{})
	if err != nil || len(channels) != 1 {
		t.Errorf("got the channels %+v, %v, want only the one from before", channels, err)
	}
}

// TestFormFields_TakeWhatPeoplePaste checks that characters pasted along with a value are removed
// from fields that cannot contain white space, and that a password is left unchanged.
func TestFormFields_TakeWhatPeoplePaste(t *testing.T) {
	t.Parallel()
	d := connector.Descriptor{Fields: []connector.Field{
		{Key: "key", Type: "password", Word: true}, {Key: "password", Type: "password"}, {Key: "name", Type: "text"},
		{Key: "service", Type: "text", Word: true, DefaultValue: "https://example.com"},
	}}
	got, err := channel.FormFields(d, map[string]string{
		"key": "\u202ansec1–abc\u200b\u202c \r\n", "password": " a – b ", "name": "\u2066Ann\u2069 Lee\u00a0", "service": " \u200b",
	})
	want := map[string]string{"key": "nsec1-abc", "password": " a – b ", "name": "Ann Lee", "service": "https://example.com"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %+q, %v, want %+q", got, err, want)
	}
}

func TestConnectFault(t *testing.T) {
	t.Parallel()
	blocked := fmt.Errorf("dial: %w", outbound.ErrBlocked)
	const retry = " Check what you typed, or try again later."
	for name, c := range map[string]struct {
		err     error
		kind    fault.Kind
		message string
	}{
		"a refused connection is Invalid": {
			err: connector.FromSend(syscall.ECONNREFUSED, false), kind: fault.Invalid, message: "The platform could not be reached." + retry,
		},
		"a timeout is Invalid": {
			err: connector.FromSend(context.DeadlineExceeded, false), kind: fault.Invalid, message: "The platform could not be reached." + retry,
		},
		"a blocked address looks like a refused connection": {
			err: connector.FromSend(blocked, false), kind: fault.Invalid, message: "The platform could not be reached." + retry,
		},
		"a blocked relay keeps its message": {
			err:  &connector.Error{Kind: connector.KindOperator, Public: "No relay: a cannot be reached.", Err: blocked},
			kind: fault.Invalid, message: "No relay: a cannot be reached." + retry,
		},
		"an unreadable answer is Invalid": {
			err:  &connector.Error{Kind: connector.KindTransient, Status: 200, Public: "The answer cannot be read."},
			kind: fault.Invalid, message: "The answer cannot be read." + retry,
		},
		"a failing server is Invalid": {
			err: &connector.Error{Kind: connector.KindTransient, Status: 502, Public: "It fails."}, kind: fault.Invalid, message: "It fails." + retry,
		},
		"a refusal keeps its message": {
			err:  &connector.Error{Kind: connector.KindReauth, Status: 401, Public: "The password is wrong."},
			kind: fault.Invalid, message: "The password is wrong.",
		},
		"a platform that asks to wait is RateLimited": {
			err:  &connector.Error{Kind: connector.KindTransient, Status: 429, After: time.Minute, Public: "Slow down."},
			kind: fault.RateLimited, message: "Slow down.",
		},
		"so is one that does not name a time": {
			err: &connector.Error{Kind: connector.KindTransient, Status: 429, Public: "Slow down."}, kind: fault.RateLimited, message: "Slow down.",
		},
		"another error is Internal": {err: errors.New("broken"), kind: fault.Internal, message: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fault.Error
			err := channel.ConnectFault("op", c.err)
			if !errors.As(err, &f) || f.Kind != c.kind || f.Message != c.message || !errors.Is(err, c.err) {
				t.Errorf("got %v, want %s %q with the cause %v", err, c.kind, c.message, c.err)
			}
		})
	}
}
