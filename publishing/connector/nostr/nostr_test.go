package nostr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/connector/conformance"
	"crier/tests/relay"
)

const nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"

func envFor(t *testing.T, relays ...*relay.Relay) connector.Env {
	t.Helper()
	var allow []string
	for _, r := range relays {
		allow = append(allow, r.Addr())
	}
	return connector.Env{HTTP: conformance.NewLine(t, allow...), Clock: clock.System{}}
}

func form(relays ...*relay.Relay) map[string]string {
	var urls []string
	for _, r := range relays {
		urls = append(urls, r.URL())
	}
	return map[string]string{"key": nsec, "relays": strings.Join(urls, "\n"), "name": "Ann"}
}

func session(t *testing.T, relays ...*relay.Relay) *connector.Session {
	t.Helper()
	env := envFor(t, relays...)
	done, err := New().Connect(t.Context(), env, form(relays...))
	if err != nil {
		t.Fatal(err)
	}
	return &connector.Session{Env: env, Account: done.Account, Credential: done.Credential}
}

func renew[T any](v *id.ID[T]) { *v = id.New[T]() }

// item returns an item with a fixed time, so that all items of a test fall into the same second.
func item(text string, media ...connector.Media) connector.Item {
	moment := time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)
	it := connector.Item{Text: text, Media: media, Due: moment, CreatedAt: moment}
	renew(&it.Publication)
	return it
}

func prepared(t *testing.T, s *connector.Session, it connector.Item) connector.Item {
	t.Helper()
	it, err := conformance.Prepare(t.Context(), New(), s, it)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

func commit(t *testing.T, s *connector.Session, it connector.Item) connector.Ref {
	t.Helper()
	ref, err := New().Commit(t.Context(), s, it)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func wantKind(t *testing.T, err error, kind connector.Kind) *connector.Error {
	t.Helper()
	var e *connector.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Public == "" {
		t.Fatalf("got %v, want %s with a public text", err, kind)
	}
	return e
}

func wantOutcome(t *testing.T, s *connector.Session, it connector.Item, want connector.Outcome) connector.Verdict {
	t.Helper()
	v, err := New().Reconcile(t.Context(), s, it)
	if err != nil || v.Outcome != want {
		t.Fatalf("Reconcile: got %s, %v; want %s", v.Outcome, err, want)
	}
	return v
}

func notes(r *relay.Relay) []relay.Event {
	return slices.DeleteFunc(r.Events(), func(e relay.Event) bool { return e.Kind != kindNote })
}

// armed adapts a relay to conformance.Faults.
type armed struct{ r *relay.Relay }

func (a armed) Arm(_ *testing.T, f conformance.Fault) bool {
	faults := map[conformance.Fault]relay.Fault{
		conformance.RefuseDial:    {Dial: true},
		conformance.LoseRequest:   {Drop: true},
		conformance.DropAnswer:    {Store: true, Drop: true},
		conformance.CutAnswer:     {Store: true, Cut: true},
		conformance.RateLimitBare: {Refuse: "rate-limited: slow down"},
		conformance.ErrorBefore:   {Refuse: "error: no database"},
		conformance.ErrorAfter:    {Store: true, Refuse: "error: no index"},
	}
	fault, known := faults[f]
	if known {
		a.r.Arm(fault)
	}
	return known
}

// seen converts an event for the conformance suite.
func seen(e relay.Event) conformance.Seen {
	s := conformance.Seen{ID: e.ID, Text: e.Content}
	for _, tag := range e.Tags {
		switch {
		case tag[0] == "imeta":
			alt := ""
			for _, entry := range tag[1:] {
				if words, ok := strings.CutPrefix(entry, "alt "); ok {
					alt = words
				}
			}
			s.Alts = append(s.Alts, alt)
		case tag[0] == "e" && tag[3] == "root":
			s.Root = tag[1]
			if s.Parent == "" {
				s.Parent = tag[1]
			}
		case tag[0] == "e" && tag[3] == "reply":
			s.Parent = tag[1]
		}
	}
	return s
}

func TestConnector_Conforms(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	bad := func(key, value string) map[string]string {
		f := form(r)
		f[key] = value
		return f
	}
	conformance.Run(t, conformance.Suite{
		New: func() connector.Connector { return New() }, Allow: []string{r.Addr()},
		Fields: func(*testing.T) map[string]string { return form(r) },
		BadFields: map[string]map[string]string{
			"no key":                     bad("key", ""),
			"a short key":                bad("key", "67dea2ed018072d6"),
			"the key zero":               bad("key", strings.Repeat("0", 64)),
			"a key above the order":      bad("key", strings.Repeat("f", 64)),
			"a mistyped nsec":            bad("key", nsec[:len(nsec)-1]+"4"),
			"a public key":               bad("key", "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6"),
			"a relay that is a web page": bad("relays", "https://relay.example.com"),
			"a relay with a user":        bad("relays", "wss://me:secret@relay.example.com"),
			"a private relay":            bad("relays", "ws://127.0.0.1:1"),
			"only commas for relays":     bad("relays", ","),
			"too many relays":            bad("relays", manyRelays()),
			"a name that is too long":    bad("name", strings.Repeat("n", 101)),
			"a picture that is no URL":   bad("picture", "javascript:alert(1)"),
		},
		Published: func(_ *testing.T, a connector.Account) []conformance.Seen {
			var out []conformance.Seen
			for _, e := range notes(r) {
				if e.PubKey == a.ID {
					out = append(out, seen(e))
				}
			}
			return out
		},
		Rendered: func(it connector.Item) string { return content(it.Text, it.Media) },
		Faults:   func(*testing.T) conformance.Faults { return armed{r: r} },
		Grade:    publishing.GradeIdempotent,
		Lasting:  true, // its access is a key pair
		Offline:  []conformance.Method{conformance.MethodPrepare},
		// A relay's refusal has a message but no status.
		Spared: []conformance.Fault{conformance.RateLimit, conformance.Expired, conformance.Replaced},
	})
}

func manyRelays() string {
	var b strings.Builder
	for i := range maxRelays + 1 {
		b.WriteString(" wss://relay" + string(rune('a'+i)) + ".example.com")
	}
	return b.String()
}

func TestConnect_ReturnsAccountOfKey(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	bare := form(r)
	bare["name"] = ""
	done, err := New().Connect(t.Context(), envFor(t, r), bare)
	if err != nil {
		t.Fatal(err)
	}
	key, err := parseKey(nsec)
	if err != nil {
		t.Fatal(err)
	}
	a := done.Account
	if a.ID != publicKey(key) || !strings.HasPrefix(a.Profile, "npub1") {
		t.Errorf("got the account %+v, want the public key and its npub", a)
	}
	if !strings.HasPrefix(a.Name, "npub1") || !strings.Contains(a.Name, "…") {
		t.Errorf("got the name %q, want a short npub", a.Name)
	}
	for _, p := range []event{
		{CreatedAt: 1, Content: `{"name":"Old"}`},
		{CreatedAt: 2, Content: `{"name":"ann","display_name":"Ann of Nostr","picture":"https://example.com/ann.png"}`},
	} {
		p.Kind, p.Tags = kindProfile, [][]string{}
		publishRaw(t, r, p)
	}
	done, err = New().Connect(t.Context(), envFor(t, r), bare)
	if err != nil || done.Account.Name != "Ann of Nostr" || done.Account.Picture != "https://example.com/ann.png" {
		t.Errorf("got %+v, %v; want name and picture of the newest profile", done.Account, err)
	}
	done, err = New().Connect(t.Context(), envFor(t, r), form(r))
	if err != nil || done.Account.Name != "Ann" {
		t.Errorf("got %+v, %v; want the typed name", done.Account, err)
	}
}

// publishRaw signs an event with the key of the tests and publishes it.
func publishRaw(t *testing.T, r *relay.Relay, e event) {
	t.Helper()
	key, err := parseKey(nsec)
	if err != nil {
		t.Fatal(err)
	}
	e, err = e.signed(key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := dial(t.Context(), envFor(t, r), signer{key: key, pub: e.PubKey}, r.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if a := l.publish(t.Context(), e); !a.accepted {
		t.Fatalf("got %+v, want the event accepted", a)
	}
}

func TestConnect_NeedsOneRelay(t *testing.T) {
	t.Parallel()
	alive, dead := relay.Start(t), relay.Start(t)
	dead.Stop()
	if _, err := New().Connect(t.Context(), envFor(t, alive, dead), form(alive, dead)); err != nil {
		t.Errorf("one of two relays: got %v, want an account", err)
	}
	_, err := New().Connect(t.Context(), envFor(t, dead), form(dead))
	if e := wantKind(t, err, connector.KindTransient); !strings.Contains(e.Public, dead.Addr()) {
		t.Errorf("got the public text %q, want the relay named", e.Public)
	}
}

func TestParseRelays_NormalizesAddresses(t *testing.T) {
	t.Parallel()
	got, err := parseRelays(" wss://A.example/ ,wss://a.example\nws://b.example:7000/path/ , ")
	if want := []string{"wss://a.example", "ws://b.example:7000/path/"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if got, err := parseRelays("\n"); err != nil || len(got) != 5 {
		t.Errorf("the default: got %q, %v; want 5 relays", got, err)
	}
}

func TestCommit_SucceedsWithOneRelayDown(t *testing.T) {
	t.Parallel()
	one, two, dead := relay.Start(t), relay.Start(t), relay.Start(t)
	s := session(t, one, dead, two)
	it := prepared(t, s, item("hello"))
	dead.Stop()
	ref := commit(t, s, it)
	for _, r := range []*relay.Relay{one, two} {
		if got := notes(r); len(got) != 1 || got[0].ID != ref.ID {
			t.Errorf("a running relay has %+v, want the note", got)
		}
	}
	if at := parseRef(ref, ""); !slices.Equal(at.Relays, []string{one.URL(), two.URL()}) || at.ID != ref.ID || at.PubKey != s.Account.ID {
		t.Errorf("got the reference %+v, want both running relays", at)
	}
	if !strings.HasPrefix(ref.URL, "https://njump.me/nevent1") {
		t.Errorf("got the URL %s, want a nevent", ref.URL)
	}
	if v := wantOutcome(t, s, it, connector.Published); v.Ref.ID != ref.ID || v.Ref.URL != ref.URL {
		t.Errorf("Reconcile: got %+v, want %+v", v.Ref, ref)
	}
	// The stopped relay might have it.
	wantOutcome(t, s, prepared(t, s, item("never sent")), connector.CannotTell)
}

func TestCommit_DroppedConnectionIsUnknown(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]bool{
		"before storing, then it is not published": false, "after storing, then it is published": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, refusing := relay.Start(t), relay.Start(t)
			s := session(t, r, refusing)
			it := prepared(t, s, item("hello"))
			r.Arm(relay.Fault{Store: stored, Drop: true})
			refusing.Arm(relay.Fault{Refuse: "blocked: not you"})
			_, err := New().Commit(t.Context(), s, it)
			wantKind(t, err, connector.KindUnknown)
			wantOutcome(t, s, it, map[bool]connector.Outcome{true: connector.Published, false: connector.NotPublished}[stored])
			commit(t, s, it)
			if n := len(notes(r)); n != 1 {
				t.Errorf("the relay has %d notes, want 1", n)
			}
		})
	}
}

func TestCommit_SilentRelayIsUnknown(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	s := session(t, r)
	it := prepared(t, s, item("hello"))
	held := make(chan struct{})
	defer close(held)
	r.Arm(relay.Fault{Hold: held})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := New().Commit(ctx, s, it)
		failed <- err
	}()
	for r.Received() == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the relay got no event, want one")
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	wantKind(t, <-failed, connector.KindUnknown)
	wantOutcome(t, s, it, connector.NotPublished)
}

func TestCommit_Refusals(t *testing.T) {
	t.Parallel()
	for words, kind := range map[string]connector.Kind{
		"blocked: you are banned":       connector.KindContent,
		"invalid: too old":              connector.KindContent,
		"pow: 26 bits wanted":           connector.KindContent,
		"restricted: pay first":         connector.KindContent,
		"auth-required: who are you":    connector.KindContent,
		"no prefix at all":              connector.KindContent,
		"rate-limited: slow down there": connector.KindTransient,
		"error: no database":            connector.KindUnknown,
	} {
		t.Run(words+" is "+string(kind), func(t *testing.T) {
			t.Parallel()
			r := relay.Start(t)
			s := session(t, r)
			r.Arm(relay.Fault{Refuse: words})
			_, err := New().Commit(t.Context(), s, prepared(t, s, item("hello")))
			if e := wantKind(t, err, kind); !strings.Contains(e.Public, words) {
				t.Errorf("got the public text %q, want the relay's message", e.Public)
			}
			if len(notes(r)) != 0 {
				t.Error("the relay has a note, want none")
			}
		})
	}
	t.Run("a refused duplicate is published", func(t *testing.T) {
		t.Parallel()
		r := relay.Start(t)
		s := session(t, r)
		r.Arm(relay.Fault{Store: true, Refuse: "duplicate: have it"})
		commit(t, s, prepared(t, s, item("hello")))
	})
	t.Run("a port that cannot be reached is named", func(t *testing.T) {
		t.Parallel()
		err := combine("None", []failure{unreached("wss://a.example:7777", fmt.Errorf("%w: %w", outbound.ErrBlocked, outbound.ErrPort))})
		wantKind(t, err, connector.KindOperator)
		if !strings.Contains(err.Error(), "a port other than 80 and 443") {
			t.Errorf("got %v, want the ports that can be reached", err)
		}
	})
	t.Run("blocked relays are the operator's fault", func(t *testing.T) {
		t.Parallel()
		closed := unreached("wss://inner.example", outbound.ErrBlocked)
		refused, dead := refusal("wss://a.example", "blocked: not you"), unreached("wss://b.example", errors.New("gone"))
		for _, c := range []struct {
			failures []failure
			want     connector.Kind
		}{
			{failures: []failure{closed, closed}, want: connector.KindOperator},
			{failures: []failure{closed, refused}, want: connector.KindOperator},
			{failures: []failure{refused, closed}, want: connector.KindOperator},
			{failures: []failure{dead, refused, closed}, want: connector.KindTransient},
			{failures: []failure{closed, dead}, want: connector.KindTransient},
		} {
			wantKind(t, combine("None", c.failures), c.want)
		}
	})
	t.Run("one refusal beside a stopped relay is transient", func(t *testing.T) {
		t.Parallel()
		r, dead := relay.Start(t), relay.Start(t)
		s := session(t, r, dead)
		dead.Stop()
		r.Arm(relay.Fault{Refuse: "blocked: not you"})
		_, err := New().Commit(t.Context(), s, prepared(t, s, item("hello")))
		wantKind(t, err, connector.KindTransient)
	})
}

// Public is the same for a relay in the private network and one that does not exist. Only the kind
// and the log differ, and both kinds have the same effect.
func TestUnreached_HidesThatRelayIsBlocked(t *testing.T) {
	t.Parallel()
	dead := relay.Start(t)
	s := session(t, dead)
	it := prepared(t, s, item("hello"))
	fields := form(dead)
	dead.Stop()
	attempt := func(env connector.Env) (connect, publish *connector.Error) {
		_, err := New().Connect(t.Context(), env, fields)
		if !errors.As(err, &connect) {
			t.Fatalf("got %v, want a *connector.Error", err)
		}
		_, err = New().Commit(t.Context(), &connector.Session{Env: env, Account: s.Account, Credential: s.Credential}, it)
		if !errors.As(err, &publish) {
			t.Fatalf("got %v, want a *connector.Error", err)
		}
		return connect, publish
	}
	closed, closedLater := attempt(envFor(t))
	const port = "uses a port other than 80 and 443"
	if !strings.Contains(closed.Public, port) || !strings.Contains(closedLater.Public, port) {
		t.Errorf("got the public texts\n%q\n%q, want the port named", closed.Public, closedLater.Public)
	}
	fields["relays"] = "ws://127.0.0.1:443"
	allowed := connector.Env{HTTP: conformance.NewLine(t, "127.0.0.1:443"), Clock: clock.System{}}
	var absent, hidden *connector.Error
	if _, err := New().Connect(t.Context(), allowed, fields); !errors.As(err, &absent) {
		t.Fatalf("got %v, want a *connector.Error", err)
	}
	if _, err := New().Connect(t.Context(), envFor(t), fields); !errors.As(err, &hidden) || hidden.Public != absent.Public {
		t.Errorf("got the public texts\n%q\n%q, want equal ones", absent.Public, hidden.Public)
	}
	for _, e := range []*connector.Error{closed, closedLater} {
		if e.Kind != connector.KindOperator || !errors.Is(e, outbound.ErrBlocked) {
			t.Errorf("got %v, want the operator's kind and the cause", e)
		}
	}
}

func TestCommit_AuthenticatesAtMembersOnlyRelay(t *testing.T) {
	t.Parallel()
	r := relay.Start(t)
	r.MembersOnly(true)
	s := session(t, r)
	it := prepared(t, s, item("hello"))
	wantOutcome(t, s, it, connector.NotPublished)
	commit(t, s, it)
	wantOutcome(t, s, it, connector.Published)
	if n := len(notes(r)); n != 1 {
		t.Errorf("the relay has %d notes, want 1", n)
	}
}
