package nostr

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"crier/platform/clock"
	"crier/publishing/connector"
	"crier/publishing/connector/conformance"
	"crier/tests/relay"
)

// slow returns a call that takes a relay's time and returns the relay's name, or "late" if the
// context ends first.
func slow(times map[string]time.Duration) func(context.Context, string) string {
	return func(ctx context.Context, url string) string {
		select {
		case <-time.After(times[url]):
			return url
		case <-ctx.Done():
			return "late"
		}
	}
}

func TestAsk_WaitsNoLongerThanNeeded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a, b   time.Duration
		enough string
		want   []string
	}{
		"both in time":                              {a: time.Second, b: 2 * time.Second, enough: "a", want: []string{"a", "b"}},
		"the other in its grace":                    {a: time.Second, b: time.Second + grace - 1, enough: "a", want: []string{"a", "b"}},
		"the other beyond its grace":                {a: time.Second, b: time.Second + grace + 1, enough: "a", want: []string{"a", "late"}},
		"an insufficient answer ends nothing early": {a: time.Second, b: 2 * grace, enough: "b", want: []string{"a", "b"}},
		"all calls end":                             {a: askTimeout + 1, b: time.Hour, enough: "a", want: []string{"late", "late"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				one := slow(map[string]time.Duration{"a": tc.a, "b": tc.b})
				got := askAll(t.Context(), []string{"a", "b"}, one, func(s string) bool { return s == tc.enough }, nil)
				if !slices.Equal(got, tc.want) {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		})
	}
}

func TestAsk_PanicAffectsOneRelay(t *testing.T) {
	t.Parallel()
	one := func(_ context.Context, url string) string {
		if url == "b" {
			panic("an unexpected frame")
		}
		return url
	}
	failed := func(url string, err error) string { return url + " failed: " + strings.SplitN(err.Error(), "\n", 2)[0] }
	got := askAll(t.Context(), []string{"a", "b", "c"}, one, func(string) bool { return false }, failed)
	if want := []string{"a", "b failed: panic: an unexpected frame", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever the status, no event is sent before the handshake succeeds.
func TestCommit_RefusedHandshakeIsTransient(t *testing.T) {
	t.Parallel()
	for _, status := range []int{
		200, 301, 302, 303, 308, 400, 401, 403, 404, 405, 407, 408, 421, 425, 426, 429, 500, 502, 503,
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
			}))
			t.Cleanup(server.Close)
			host := server.Listener.Addr().String()
			sealed, err := json.Marshal(credential{Key: strings.Repeat("1", 64), Relays: []string{"ws://" + host}})
			if err != nil {
				t.Fatal(err)
			}
			s := &connector.Session{
				Env: connector.Env{HTTP: conformance.NewLine(t, host), Clock: clock.System{}}, Credential: sealed,
			}
			_, err = New().Commit(t.Context(), s, prepared(t, s, item("hello")))
			wantKind(t, err, connector.KindTransient)
		})
	}
}

// silent starts a relay that reads an event and responds only if answer is true. It sends to ended
// how its connection ended.
func silent(t *testing.T, ended chan<- error, answer bool) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ended <- readSilently(t.Context(), w, req, answer)
	}))
	t.Cleanup(server.Close)
	return "ws://" + server.Listener.Addr().String()
}

// readSilently reads an event from a connection, responds to it if answer is true, and returns how
// the connection ends.
func readSilently(ctx context.Context, w http.ResponseWriter, req *http.Request, answer bool) error {
	conn, err := websocket.Accept(w, req, nil)
	if err != nil {
		return err
	}
	_, raw, err := conn.Read(ctx)
	if err != nil {
		return err
	}
	var parts []json.RawMessage
	var e event
	if err := errors.Join(json.Unmarshal(raw, &parts), json.Unmarshal(parts[1], &e)); err != nil {
		return err
	}
	if answer {
		err := conn.Write(ctx, websocket.MessageText, []byte(`["OK","`+e.ID+`",true,""]`))
		if err != nil {
			return err
		}
	}
	_, _, err = conn.Read(ctx)
	return err
}

func TestClose_ResetsWhileVerdictIsMissing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]bool{
		"without a verdict it is reset":  false,
		"with one it is closed in order": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			url := silent(t, ended, answer)
			key, err := parseKey(nsec)
			if err != nil {
				t.Fatal(err)
			}
			e, err := event{Kind: kindNote, Tags: [][]string{}}.signed(key)
			if err != nil {
				t.Fatal(err)
			}
			env := connector.Env{HTTP: conformance.NewLine(t, strings.TrimPrefix(url, "ws://")), Clock: clock.System{}}
			l, err := dial(t.Context(), env, signer{key: key, pub: e.PubKey}, url)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.send(t.Context(), "EVENT", e); err != nil {
				t.Fatal(err)
			}
			l.pending = true
			if answer {
				l.pending = false
				if _, _, err := l.next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			l.close()
			if err := <-ended; errors.Is(err, syscall.ECONNRESET) == answer {
				t.Errorf("the relay's connection ended with %v, want a reset: %t", err, !answer)
			}
		})
	}
}

func TestPrepare_SamePublicationSameNote(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	it := item("hello")
	first, second := prepared(t, s, it), prepared(t, s, it)
	if string(first.Handle) != string(second.Handle) {
		t.Errorf("prepared twice: got %s, then %s; want the same", first.Handle, second.Handle)
	}
}

func TestReconcile_SilentRelayProvesNothing(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	it := prepared(t, s, item("hello"))
	r.Deafen(true)
	wantOutcome(t, s, it, connector.CannotTell)
}
