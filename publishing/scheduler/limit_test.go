package scheduler_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/connector/conformance"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
)

// scriptedPlatform is a platform whose methods a test defines. If prepare is nil, it prepares like
// platform.
type scriptedPlatform struct {
	*platform
	prepare func(ctx context.Context) (connector.Step, error)
	commit  func(ctx context.Context, s *connector.Session) (connector.Ref, error)
	refresh func() (connector.Refreshed, error)
}

func (a scriptedPlatform) Prepare(ctx context.Context, s *connector.Session, item connector.Item) (connector.Step, error) {
	if a.prepare == nil {
		return a.platform.Prepare(ctx, s, item)
	}
	return a.prepare(ctx)
}

func (a scriptedPlatform) Commit(ctx context.Context, s *connector.Session, item connector.Item) (connector.Ref, error) {
	return a.commit(ctx, s)
}

func (a scriptedPlatform) Refresh(context.Context, *connector.Session) (connector.Refreshed, error) {
	return a.refresh()
}

// register makes c the only connector of the rig.
func (r *rig) register(c connector.Connector) {
	r.Helper()
	registry, err := connector.NewRegistry(c)
	r.OK(err)
	r.deps.Connectors = registry
}

// sendWith claims the organization's due post and sends it with cfg. It does not store the outcome.
func (m member) sendWith(cfg scheduler.Config, yield func(context.Context, time.Duration) error) dispatch.Outcome {
	m.Helper()
	from := scheduler.New(cfg, m.deps)
	want := []dispatch.Want{{Org: m.who.Org, Permits: 1}}
	round, _, err := from.Claim(m.Context(), m.lease, want, dispatch.ClaimWindow, dispatch.NoClaimLimits())
	m.OK(err)
	if len(round.Claimed) != 1 {
		m.Fatalf("claimed %+v", round)
	}
	works, _, err := from.Load(m.Context(), round.Claimed)
	m.OK(err)
	return from.Send(m.Context(), works[round.Claimed[0].Post], yield)
}

// A process may be suspended between its mark and its call. Others may then have asked for the
// outcome and sent the post again, so the call must not begin after the deadline of a request.
func TestSend_MakesNoCallAfterItsLimit(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	t.Cleanup(server.Close)
	r := newRig(t)
	r.deps.HTTP = conformance.NewLine(t, server.Listener.Addr().String())
	cfg := limits
	cfg.PlatformTimeout = 200 * time.Millisecond
	var late bool
	r.register(scriptedPlatform{platform: r.platform, commit: func(ctx context.Context, s *connector.Session) (connector.Ref, error) {
		for from := clock.Boot(); late && clock.Boot() < from+cfg.PlatformTimeout; {
			// The process is suspended for as long as a request may take.
			time.Sleep(time.Millisecond)
		}
		// A suspended process continues before it notices that its contexts have ended.
		req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, server.URL, strings.NewReader("{}"))
		if err != nil {
			return connector.Ref{}, err
		}
		resp, err := s.Env.HTTP.Commit(req)
		if err != nil {
			return connector.Ref{}, connector.FromSend(err, true)
		}
		return connector.Ref{ID: "release"}, resp.Body.Close()
	}})
	m := r.organization()
	m.book(m.channel, time.Second)
	late = true
	if out := m.sendWith(cfg, nil); out.Result != dispatch.ResultRetry {
		t.Errorf("a send that was suspended: got %q, %s, want a retry, since nothing was sent", out.Result, out.Error)
	}
	if n := got.Load(); n != 0 {
		t.Errorf("the platform got %d calls after their limit", n)
	}
}

// The limit of a call begins before its mark is stored, because others count from the mark.
func TestSend_LimitBeginsBeforeTheMark(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	post := m.book(m.channel, time.Second)
	prepared, locked := make(chan struct{}), make(chan struct{})
	var began time.Duration
	r.register(scriptedPlatform{
		platform: r.platform,
		prepare: func(context.Context) (connector.Step, error) {
			close(prepared)
			<-locked
			return connector.Step{Ready: true}, nil
		},
		commit: func(ctx context.Context, _ *connector.Session) (connector.Ref, error) {
			left, limited := outbound.Left(ctx)
			if !limited || left > limits.PlatformTimeout {
				t.Errorf("%s are left for a call of at most %s", left, limits.PlatformTimeout)
			}
			began = clock.Boot() + left - limits.PlatformTimeout
			return connector.Ref{ID: "release"}, nil
		},
	})
	owner, err := pgx.Connect(t.Context(), r.Address)
	r.OK(err)
	t.Cleanup(func() { _ = owner.Close(context.WithoutCancel(t.Context())) })
	var unlocked time.Duration
	failed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		<-prepared
		failed <- pgx.BeginFunc(ctx, r.DB.Pool(pg.Clock), func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select 1 from post where id = $1 for no key update`, post)
			close(locked)
			for tried := false; err == nil && !tried; {
				err = owner.QueryRow(ctx, `select exists (select from pg_stat_activity
					where datname = current_database() and query like '-- publishing.CommitMark%')`).Scan(&tried)
			}
			unlocked = clock.Boot()
			return err
		})
	}()
	out := m.sendWith(limits, nil)
	r.OK(<-failed)
	if out.Result != dispatch.ResultPublished || began > unlocked {
		t.Errorf("the send ends as %q; its limit begins %s after its mark could be stored", out.Result, began-unlocked)
	}
}

// A post whose credential the platform refused was not published. If our code panics before the
// post is sent again, its outcome is not unknown.
func TestSend_PanicAfterARefusedCredentialIsNotUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	m.book(m.channel, time.Second)
	commits := 0
	r.register(scriptedPlatform{
		platform: r.platform,
		prepare: func(context.Context) (connector.Step, error) {
			return connector.Step{Ready: commits == 0, Wait: time.Second}, nil
		},
		commit: func(context.Context, *connector.Session) (connector.Ref, error) {
			commits++
			return connector.Ref{}, &connector.Error{Kind: connector.KindReauth, Public: "The access is over."}
		},
		refresh: func() (connector.Refreshed, error) {
			return connector.Refreshed{Credential: []byte(`{"new":true}`)}, nil
		},
	})
	out := m.sendWith(limits, func(context.Context, time.Duration) error { panic("a mistake of ours") })
	if out.Result != dispatch.ResultError || out.Code != publishing.CodeRejected || commits != 1 {
		t.Errorf("after %d calls the post ends as %q, %s: %s; want an error, since nothing was sent", commits, out.Result, out.Code, out.Error)
	}
}

// The back-offs of a post add up: a post that has been failing for longer than RETRY_WINDOW is
// given up, even if the next wait is short.
func TestSend_GivesUpAfterFailingForTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	post := m.book(m.channel, time.Second)
	r.register(overloaded{platform: r.platform})
	if out := m.send(nil, nil); out.Result != dispatch.ResultRetry {
		t.Fatalf("the first try ends as %q: %s", out.Result, out.Error)
	}
	r.Clock(`update post set not_before = null, failing_since = failing_since - $2 * interval '1 millisecond' where id = $1`,
		post, limits.RetryWindow.Milliseconds())
	out := m.send(nil, nil)
	if out.Result != dispatch.ResultError || out.Code != publishing.CodeRetriesUsedUp || !strings.Contains(out.Error, "2 tries") {
		t.Errorf("after %s of failing a try ends as %q, %s: %s", limits.RetryWindow, out.Result, out.Code, out.Error)
	}
}

// A refreshed credential that is too large to be stored must not cost the channel the credential
// that it has.
func TestSend_KeepsCredentialWhenTheNewOneIsTooLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.register(scriptedPlatform{platform: r.platform, prepare: func(context.Context) (connector.Step, error) {
		return connector.Step{}, &connector.Error{Kind: connector.KindReauth, Public: "expired"}
	}, refresh: func() (connector.Refreshed, error) {
		return connector.Refreshed{Credential: []byte(`"` + strings.Repeat("x", 430_000) + `"`)}, nil
	}})
	m := r.organization()
	access := func() (sealed []byte, parked bool) {
		r.OK(r.DB.InOrg(t.Context(), m.who.Org.UUID(), func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select credential, refresh_needed from channel where id = $1", m.channel).Scan(&sealed, &parked)
		}))
		return sealed, parked
	}
	before, _ := access()
	m.book(m.channel, time.Second)
	if out := m.sendWith(limits, nil); out.Result != dispatch.ResultRetry {
		t.Errorf("the send ends as %q: %s, want a retry", out.Result, out.Error)
	}
	if after, parked := access(); !bytes.Equal(after, before) || parked {
		t.Errorf("the channel has an access of %d bytes, parked: %t; want the one that it had", len(after), parked)
	}
}

func TestSend_ConnectionsBelongToTheOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var owner string
	r.register(scriptedPlatform{platform: r.platform, commit: func(ctx context.Context, _ *connector.Session) (connector.Ref, error) {
		owner = outbound.Owner(ctx)
		return connector.Ref{ID: "release"}, nil
	}})
	m := r.organization()
	m.book(m.channel, time.Second)
	if out := m.sendWith(limits, nil); out.Result != dispatch.ResultPublished || owner != m.who.Org.String() {
		t.Errorf("the connections belong to %q, want the organization %s: %s", owner, m.who.Org, out.Error)
	}
}
