package connector

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"crier/platform/outbound"
	"crier/publishing"
)

// scripted is a connector that returns the values of its fields, or panics.
type scripted struct {
	connected Connected
	problems  []Problem
	step      Step
	ref       Ref
	verdict   Verdict
	renewed   Refreshed
	send      func(context.Context) error // called by Commit, unless it is nil
	err       error
	panics    any
}

func (c scripted) Describe() Descriptor { return Descriptor{ID: "scripted"} }

func (c scripted) fail() error {
	if c.panics != nil {
		panic(c.panics)
	}
	return c.err
}

func (c scripted) Connect(context.Context, Env, map[string]string) (Connected, error) {
	return c.connected, c.fail()
}

func (c scripted) Validate(Draft) []Problem {
	if c.fail() != nil {
		return nil
	}
	return c.problems
}

func (c scripted) Prepare(context.Context, *Session, Item) (Step, error) { return c.step, c.fail() }

func (c scripted) Commit(ctx context.Context, _ *Session, _ Item) (Ref, error) {
	if c.send != nil {
		return c.ref, c.send(ctx)
	}
	return c.ref, c.fail()
}

func (c scripted) Reconcile(context.Context, *Session, Item) (Verdict, error) {
	return c.verdict, c.fail()
}

func (c scripted) Refresh(context.Context, *Session) (Refreshed, error) {
	return c.renewed, c.fail()
}

// registered returns c from a registry, as the engine uses it.
func registered(t *testing.T, c Connector) Connector {
	t.Helper()
	r, err := NewRegistry(c)
	if err != nil {
		t.Fatal(err)
	}
	out, ok := r.Get("scripted")
	if !ok || len(r.All()) != 1 {
		t.Fatal("the registry lacks the connector")
	}
	return out
}

func TestRegistry_TurnsPanicsIntoErrors(t *testing.T) {
	t.Parallel()
	long := "split into halves\x00" + strings.Repeat("x", 10_000)
	for name, value := range map[string]any{
		"words": long, "an error": errors.New(long), "a secret": struct{ token string }{token: "secret-token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := registered(t, scripted{panics: value})
			_, connect := c.Connect(t.Context(), Env{}, nil)
			_, prepare := c.Prepare(t.Context(), nil, Item{})
			_, commit := c.Commit(t.Context(), &Session{}, Item{})
			verdict, reconcile := c.Reconcile(t.Context(), nil, Item{})
			_, refresh := c.(Refresher).Refresh(t.Context(), nil)
			for call, tc := range map[string]struct {
				err  error
				want Kind
			}{
				"Connect": {
					err:  connect,
					want: KindContent,
				}, "Prepare": {
					err:  prepare,
					want: KindContent,
				}, "Commit": {
					err:  commit,
					want: KindUnknown,
				},
				"Reconcile": {err: reconcile, want: KindTransient}, "Refresh": {err: refresh, want: KindContent},
			} {
				var e *Error
				if !errors.As(tc.err, &e) || e.Kind != tc.want || e.Public == "" {
					t.Errorf("%s: got %v, want %s", call, tc.err, tc.want)
					continue
				}
				if !strings.HasPrefix(e.Raw, "panic: ") || len(e.Raw) > maxRaw || strings.Contains(e.Raw, "\x00") {
					t.Errorf("%s: got Raw %q, want a bounded text of the panic", call, e.Raw)
				}
				if log := e.Error(); !strings.Contains(log, "guarded_test.go") || strings.Contains(log, "secret-token") {
					t.Errorf("%s: got %s, want the stack and no secret", call, log)
				}
			}
			if verdict.Outcome != CannotTell {
				t.Errorf("Reconcile: got %q, want %q", verdict.Outcome, CannotTell)
			}
			if problems := c.Validate(Draft{}); len(problems) != 1 || problems[0].Message == "" {
				t.Errorf("Validate: got %+v, want one problem", problems)
			}
		})
	}
}

func TestRegistry_CleansResults(t *testing.T) {
	t.Parallel()
	c := registered(t, scripted{
		connected: Connected{Account: Account{
			ID: "1", Name: "A\x00nn", Profile: "@a\x00", Picture: "javascript:x", Destination: "a\x00",
			Data: json.RawMessage(`["\u0000"]`),
		}},
		problems: []Problem{{Part: 1, Message: "too\x00 long"}},
		step:     Step{Wait: -1, Handle: json.RawMessage(`{"id":"\u0000"}`)},
		ref:      Ref{ID: "1\x00", URL: "https://a.test/\x00", Data: json.RawMessage(`{"cid":"\u0000"}`)},
		verdict:  Verdict{Outcome: Published, Ref: Ref{ID: "1\x00"}},
		renewed:  Refreshed{Credential: json.RawMessage(`{}`), Destination: "b\x00"},
	})
	connected, err := c.Connect(t.Context(), Env{}, nil)
	want := Account{ID: "1", Name: "Ann", Profile: "@a", Destination: "a", Data: json.RawMessage(`[""]`)}
	if err != nil || !reflect.DeepEqual(connected.Account, want) {
		t.Errorf("Connect: got %+v %v, want %+v", connected.Account, err, want)
	}
	if problems := c.Validate(Draft{}); len(problems) != 1 || problems[0] != (Problem{Part: 1, Message: "too long"}) {
		t.Errorf("Validate: got %+v, want one clean problem", problems)
	}
	fresh, err := c.(Refresher).Refresh(t.Context(), nil)
	if err != nil || fresh.Destination != "b" || string(fresh.Credential) != `{}` {
		t.Errorf("Refresh: got %+v, %v; want a clean destination", fresh, err)
	}
	step, err := c.Prepare(t.Context(), nil, Item{})
	if err != nil || step.Wait != 0 || string(step.Handle) != `{"id":""}` {
		t.Errorf("Prepare: got %s, wait %v, %v; want a clean handle and no wait", step.Handle, step.Wait, err)
	}
	ref, err := c.Commit(t.Context(), &Session{}, Item{})
	if err != nil || ref.ID != "1" || ref.URL != "" || string(ref.Data) != `{"cid":""}` {
		t.Errorf("Commit: got %+v, %v; want a clean reference", ref, err)
	}
	if v, err := c.Reconcile(t.Context(), nil, Item{}); err != nil || v.Outcome != Published || v.Ref.ID != "1" {
		t.Errorf("Reconcile: got %+v, %v; want a clean reference", v, err)
	}
}

func TestRegistry_RefusesUnstorableResults(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]Account{
		"no ID":                {},
		"an ID with U+0000":    {ID: "a\x00"},
		"an ID that is long":   {ID: strings.Repeat("x", maxID+1)},
		"data that is no JSON": {ID: "1", Data: json.RawMessage(`{`)},
	} {
		c := registered(t, scripted{connected: Connected{Account: a}})
		if _, err := c.Connect(t.Context(), Env{}, nil); KindOf(err, false) != KindContent || err == nil {
			t.Errorf("%s: got %v, want KindContent", name, err)
		}
	}
	c := registered(t, scripted{step: Step{Handle: json.RawMessage(`{`)}, verdict: Verdict{Outcome: "mad"}})
	if _, err := c.Prepare(t.Context(), nil, Item{}); KindOf(err, false) != KindContent || err == nil {
		t.Errorf("a handle that is no JSON: got %v, want KindContent", err)
	}
	if v, err := c.Reconcile(t.Context(), nil, Item{}); err != nil || v.Outcome != CannotTell {
		t.Errorf("an invalid outcome: got %+v, %v; want CannotTell", v, err)
	}
	words := registered(t, scripted{err: &Error{Kind: KindContent, Public: "no\x00"}})
	if _, err := words.Commit(t.Context(), &Session{}, Item{}); err == nil || strings.Contains(err.Error(), "\x00") {
		t.Errorf("an error with U+0000: got %v, want clean text", err)
	}
}

func TestRegistry_BoundsCredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size             int
		connect, refresh Kind // "" if the credential is accepted
	}{
		"of the largest size": {size: maxCredential, connect: "", refresh: ""},
		"larger by one byte":  {size: maxCredential + 1, connect: KindContent, refresh: KindTransient},
	} {
		credential := json.RawMessage(`"` + strings.Repeat("x", c.size-2) + `"`)
		r := registered(t, scripted{
			connected: Connected{Account: Account{ID: "1"}, Credential: credential},
			renewed:   Refreshed{Credential: credential},
		})
		connected, connectErr := r.Connect(t.Context(), Env{}, nil)
		renewed, refreshErr := r.(Refresher).Refresh(t.Context(), nil)
		for call, got := range map[string]struct {
			credential json.RawMessage
			err        error
			want       Kind
		}{"Connect": {
			credential: connected.Credential, err: connectErr,
			want: c.connect,
		}, "Refresh": {
			credential: renewed.Credential, err: refreshErr,
			want: c.refresh,
		}} {
			if got.want == "" {
				if got.err != nil || len(got.credential) != c.size {
					t.Errorf("%s, %s: got %d bytes, %v; want %d", name, call, len(got.credential), got.err, c.size)
				}
				continue
			}
			var e *Error
			if !errors.As(got.err, &e) || e.Kind != got.want || e.Public == "" || strings.Contains(got.err.Error(), "xxx") {
				t.Errorf("%s, %s: got %v, want %s without the credential", name, call, got.err, got.want)
			}
			if len(got.credential) != 0 {
				t.Errorf("%s, %s: got the credential, want none", name, call)
			}
		}
	}
}

// plain is a connector whose access does not expire.
type plain struct{ Connector }

func TestRegistry_AddsNoRefresh(t *testing.T) {
	t.Parallel()
	if _, ok := registered(t, plain{Connector: scripted{}}).(Refresher); ok {
		t.Error("a connector without Refresh: got a Refresher, want none")
	}
	if _, ok := registered(t, scripted{}).(Refresher); !ok {
		t.Error("a connector with Refresh: got no Refresher, want one")
	}
}

func TestRegistry_KeepsConnectionsForGradesThatDeduplicate(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr)
	}))
	t.Cleanup(server.Close)
	for grade, want := range map[publishing.Grade]int{
		publishing.GradeIdempotent: 1, publishing.GradeTrackable: 1,
		publishing.GradeMarked: 3, publishing.GradeSearchable: 3, publishing.GradeOpaque: 3,
	} {
		client, err := outbound.New(outbound.Config{Allow: []string{server.Listener.Addr().String()}}, outbound.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		connections := map[string]bool{}
		c := registered(t, scripted{send: func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
			if err != nil {
				return err
			}
			resp, err := client.Commit(req)
			if err != nil {
				return err
			}
			from, err := outbound.ReadAll(resp, 100)
			connections[string(from)] = true
			return err
		}})
		for range 3 {
			if _, err := c.Commit(t.Context(), &Session{Account: Account{Grade: grade}}, Item{}); err != nil {
				t.Fatal(err)
			}
		}
		if len(connections) != want {
			t.Errorf("grade %s: three commits have %d connections, want %d", grade, len(connections), want)
		}
	}
}
