package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	platform "crier/apps/sim/sandbox"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/connector/bluesky"
	"crier/publishing/connector/conformance"
	"crier/publishing/connector/nostr"
	"crier/publishing/connector/sandbox"
)

// world is a simulated platform that listens on a port.
type rig struct {
	t       *testing.T
	handler http.Handler
	url     string
	host    string
}

func open(t *testing.T) *rig {
	t.Helper()
	p, err := platform.Open(t.TempDir(), platform.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rig{t: t, handler: p.Handler(), url: server.URL, host: server.Listener.Addr().String()}
}

func (w *rig) connector() connector.Connector { return sandbox.New(sandbox.Config{URL: w.url}) }

// call calls the platform without the connector and decodes the response into out, unless out is
// nil.
func (w *rig) call(t *testing.T, method, path, body string, out any) {
	t.Helper()
	req := httptest.NewRequest(method, w.url+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, req)
	if rec.Code > 299 {
		t.Fatalf("%s %s: got %d %s, want a success", method, path, rec.Code, rec.Body)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil {
		t.Fatal(err)
	}
}

type judged struct {
	Posts []struct {
		ID      string
		Text    string
		ReplyTo string
		Media   []struct{ Alt, SHA256 string }
	}
}

func (w *rig) published(t *testing.T, account connector.Account) []conformance.Seen {
	t.Helper()
	var all judged
	w.call(t, http.MethodGet, "/_sim/posts?account="+account.Name, "", &all)
	var out []conformance.Seen
	for _, p := range all.Posts {
		seen := conformance.Seen{ID: p.ID, Text: p.Text, Parent: p.ReplyTo}
		for _, m := range p.Media {
			seen.Alts, seen.MediaSHA256 = append(seen.Alts, m.Alt), append(seen.MediaSHA256, m.SHA256)
		}
		out = append(out, seen)
	}
	return out
}

func (w *rig) form(grade publishing.Grade) map[string]string {
	return map[string]string{"service": w.url, "name": "n" + unique(), "password": "correct horse " + unique(), "grade": string(grade)}
}

func unique() string { return id.New[rig]().String() }

func TestConnector_Conforms(t *testing.T) {
	t.Parallel()
	for _, grade := range []publishing.Grade{publishing.GradeIdempotent, publishing.GradeMarked, publishing.GradeOpaque} {
		t.Run("grade "+string(grade), func(t *testing.T) {
			t.Parallel()
			w := open(t)
			taken := w.connectedForm(t, w.form(grade))
			var offline []conformance.Method
			if !grade.Askable() {
				offline = []conformance.Method{conformance.MethodReconcile}
			}
			conformance.Run(t, conformance.Suite{
				New: w.connector, Allow: []string{w.host}, Published: w.published, Grade: grade, KeyOnly: true, Offline: offline,
				Fields: func(*testing.T) map[string]string { return w.form(grade) },
				BadFields: map[string]map[string]string{
					"no name":                {"service": w.url, "name": "", "password": "secret password", "grade": "A"},
					"no password":            {"service": w.url, "name": unique(), "password": "", "grade": "A"},
					"an unknown grade":       {"service": w.url, "name": unique(), "password": "secret password", "grade": "B"},
					"an invalid name":        {"service": w.url, "name": "no spaces", "password": "secret password", "grade": "A"},
					"the wrong password":     {"service": w.url, "name": taken["name"], "password": "wrong password", "grade": string(grade)},
					"an address without web": {"service": "ftp://" + w.host, "name": unique(), "password": "secret password", "grade": "A"},
					"an address with a user": {"service": "http://user:secret@" + w.host, "name": unique(), "password": "secret password", "grade": "A"},
					"a private address":      {"service": "http://127.0.0.1:1", "name": unique(), "password": "secret password", "grade": "A"},
				},
			})
		})
	}
}

// connectedForm creates the account that a form names and returns the form.
func (w *rig) connectedForm(t *testing.T, form map[string]string) map[string]string {
	t.Helper()
	w.session(t, form)
	return form
}

func (w *rig) session(t *testing.T, form map[string]string) *connector.Session {
	t.Helper()
	env := connector.Env{HTTP: conformance.NewLine(t, w.host), Clock: clock.System{}}
	done, err := w.connector().Connect(t.Context(), env, form)
	if err != nil {
		t.Fatal(err)
	}
	return &connector.Session{Env: env, Account: done.Account, Credential: done.Credential}
}

func (w *rig) fault(t *testing.T, body string) {
	t.Helper()
	w.call(t, http.MethodPost, "/_sim/faults", body, nil)
}

func item(text string, media ...connector.Media) connector.Item {
	now := clock.System{}.Now().Truncate(time.Millisecond)
	it := connector.Item{Text: text, Media: media, Due: now, CreatedAt: now}
	renew(&it.Publication)
	return it
}

func renew[T any](v *id.ID[T]) { *v = id.New[T]() }

func gif() connector.Media {
	const bytes = "GIF89a\x01\x00\x01\x00\x00\x00\x00;"
	return connector.Media{ContentType: "image/gif", Size: int64(len(bytes)), Name: "dot.gif", Alt: "A dot",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(bytes)), nil }}
}

func TestPrepare_WaitsWhileThePlatformProcesses(t *testing.T) {
	t.Parallel()
	w := open(t)
	s := w.session(t, w.form("C"))
	w.fault(t, `{"action":"processing","polls":3}`)
	counter := &waits{Connector: w.connector()}
	if _, err := conformance.Publish(t.Context(), counter, s, item("processed", gif())); err != nil {
		t.Fatal(err)
	}
	if counter.n != 3 {
		t.Errorf("Prepare returned %d steps with a Wait, want 3", counter.n)
	}
	if seen := w.published(t, s.Account); len(seen) != 1 || len(seen[0].Alts) != 1 {
		t.Errorf("published %+v, want one post with one medium", seen)
	}
}

// waits counts the steps that have a Wait.
type waits struct {
	connector.Connector
	n int
}

func (c *waits) Prepare(ctx context.Context, s *connector.Session, it connector.Item) (connector.Step, error) {
	step, err := c.Connector.Prepare(ctx, s, it)
	if step.Wait > 0 {
		c.n++
	}
	return step, err
}

func TestCommit_RefusedContentIsFinal(t *testing.T) {
	t.Parallel()
	for name, it := range map[string]connector.Item{
		"a text that is too long":    item(strings.Repeat("x", 501)),
		"a reply to an unknown post": func() connector.Item { it := item("reply"); it.Parent = &connector.Ref{ID: unique()}; return it }(),
		"a file of another type":     item("lie", func() connector.Media { m := gif(); m.ContentType = "image/png"; return m }()),
	} {
		t.Run(name+" is refused for its content", func(t *testing.T) {
			t.Parallel()
			w := open(t)
			s := w.session(t, w.form("A"))
			if _, err := conformance.Publish(t.Context(), w.connector(), s, it); connector.KindOf(err, true) != connector.KindContent {
				t.Fatalf("got %v, want %s", err, connector.KindContent)
			}
			if seen := w.published(t, s.Account); len(seen) > 0 {
				t.Errorf("published %+v, want nothing", seen)
			}
		})
	}
}

func TestPrepare_FailedProcessingIsFinal(t *testing.T) {
	t.Parallel()
	w := open(t)
	s := w.session(t, w.form("A"))
	w.fault(t, `{"action":"processing","polls":1,"then":"failed"}`)
	if _, err := conformance.Publish(t.Context(), w.connector(), s, item("fails", gif())); connector.KindOf(err, true) != connector.KindContent {
		t.Fatalf("got %v, want %s", err, connector.KindContent)
	}
}

func TestCommit_FaultsOfThePlatform(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]struct {
		kind  connector.Kind
		posts int
	}{
		`"drop_answer"`:                {kind: connector.KindUnknown, posts: 1},
		`"error_after"`:                {kind: connector.KindUnknown, posts: 1},
		`"error_before"`:               {kind: connector.KindUnknown, posts: 0},
		`"rate_limit","retryAfter":30`: {kind: connector.KindTransient, posts: 0},
		`"expire_token"`:               {kind: connector.KindReauth, posts: 0},
	} {
		t.Run(action+" is "+string(want.kind), func(t *testing.T) {
			t.Parallel()
			w := open(t)
			s := w.session(t, w.form("C"))
			w.fault(t, `{"match":{"method":"POST","path":"/api/posts"},"action":`+action+`}`)
			_, err := conformance.Publish(t.Context(), w.connector(), s, item("fault"))
			if connector.KindOf(err, true) != want.kind {
				t.Errorf("got %v, want %s", err, want.kind)
			}
			if seen := w.published(t, s.Account); len(seen) != want.posts {
				t.Errorf("%d posts, want %d", len(seen), want.posts)
			}
		})
	}
}

func TestRefresh_RenewsAnExpiredToken(t *testing.T) {
	t.Parallel()
	w := open(t)
	s := w.session(t, w.form("A"))
	c := sandbox.New(sandbox.Config{})
	w.fault(t, `{"match":{"method":"POST","path":"/api/posts"},"action":"expire_token"}`)
	it := item("expired")
	if _, err := conformance.Publish(t.Context(), c, s, it); connector.KindOf(err, true) != connector.KindReauth {
		t.Fatalf("got %v, want %s", err, connector.KindReauth)
	}
	// This blocks sign-ins with the password.
	w.fault(t, `{"match":{"path":"/api/session"},"action":"error_before","times":1000}`)
	first := s.Credential
	for range 2 {
		fresh, err := c.Refresh(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		s.Credential = fresh.Credential
	}
	if _, err := conformance.Publish(t.Context(), c, s, it); err != nil {
		t.Fatal(err)
	}
	s.Credential = first
	if _, err := c.Refresh(t.Context(), s); connector.KindOf(err, false) != connector.KindTransient {
		t.Fatalf("a used refresh token while no sign-in is possible: got %v, want %s", err, connector.KindTransient)
	}
	w.call(t, http.MethodDelete, "/_sim/faults", "", nil)
	fresh, err := c.Refresh(t.Context(), s)
	if err != nil {
		t.Fatalf("a used refresh token when the sign-in is possible: %v", err)
	}
	s.Credential = fresh.Credential
	if _, err := conformance.Publish(t.Context(), c, s, item("by password")); err != nil {
		t.Fatal(err)
	}
}

func TestValidate_AppliesRulesOfAccountAndPlatform(t *testing.T) {
	t.Parallel()
	video := connector.Media{ContentType: "video/mp4", Size: 10, Name: "film", Video: true}
	account := connector.Account{Data: json.RawMessage(`{"maxLength":5}`)}
	for name, tc := range map[string]struct {
		part connector.DraftPart
		want int
	}{
		"a text at the account's limit":   {part: connector.DraftPart{Text: "12345"}, want: 0},
		"a text over the account's limit": {part: connector.DraftPart{Text: "123456"}, want: 1},
		"a blank text":                    {part: connector.DraftPart{Text: " \n"}, want: 1},
		"a blank text beside a file":      {part: connector.DraftPart{Text: " ", Media: []connector.Media{gif()}}, want: 0},
		"five files of both kinds":        {part: connector.DraftPart{Media: []connector.Media{gif(), gif(), gif(), video, video}}, want: 1},
		"a WebP image":                    {part: connector.DraftPart{Media: []connector.Media{{ContentType: "image/webp", Name: "w"}}}, want: 1},
		"an alternative text at its limit": {
			part: connector.DraftPart{Media: []connector.Media{{ContentType: "image/png", Alt: strings.Repeat("é", 1500)}}},
			want: 0,
		},
		"an alternative text over its limit": {
			part: connector.DraftPart{Media: []connector.Media{{ContentType: "image/png", Alt: strings.Repeat("é", 1501)}}},
			want: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sandbox.New(sandbox.Config{}).Validate(connector.Draft{Account: account, Parts: []connector.DraftPart{tc.part}})
			if len(got) != tc.want {
				t.Errorf("got the problems %+v, want %d", got, tc.want)
			}
		})
	}
}

// Reconcile must find a post on a later page, and must not mistake another post for one that was
// not published.
func TestReconcile_SearchesSeveralPages(t *testing.T) {
	t.Parallel()
	w := open(t)
	s := w.session(t, w.form("C"))
	lost, found := item("not published"), item("published first")
	lost.Committing = s.Clock.Now()
	found.Committing = lost.Committing
	if _, err := conformance.Publish(t.Context(), w.connector(), s, found); err != nil {
		t.Fatal(err)
	}
	for n := range 200 {
		if n == 99 || n == 199 { // exactly one page and exactly two pages
			if v, err := w.connector().Reconcile(t.Context(), s, lost); err != nil || v.Outcome != connector.NotPublished {
				t.Errorf("the lost post among %d: got %+v, %v, want %s", n+1, v, err, connector.NotPublished)
			}
		}
		if _, err := conformance.Publish(t.Context(), w.connector(), s, item("another")); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := w.connector().Reconcile(t.Context(), s, found); err != nil || v.Outcome != connector.Published {
		t.Errorf("the first post: got %+v, %v, want %s", v, err, connector.Published)
	}
}

func TestConfigHTTP_ReachesOnlyTheInstancesSandbox(t *testing.T) {
	t.Parallel()
	w := open(t)
	guarded := connector.Env{HTTP: conformance.NewLine(t), Clock: clock.System{}}
	own := sandbox.New(sandbox.Config{URL: w.url + "/", HTTP: conformance.NewLine(t, w.host)})
	done, err := own.Connect(t.Context(), guarded, w.form(publishing.GradeIdempotent))
	if err != nil {
		t.Fatal(err)
	}
	s := &connector.Session{Env: guarded, Account: done.Account, Credential: done.Credential}
	fresh, err := own.Refresh(t.Context(), s)
	if err != nil || fresh.Destination != done.Account.Destination {
		t.Fatalf("got the destination %q, %v, want %q", fresh.Destination, err, done.Account.Destination)
	}
	s.Credential = fresh.Credential
	it := item("with its own client")
	it, err = conformance.Prepare(t.Context(), own, s, it)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Commit(t.Context(), s, it); err != nil {
		t.Fatal(err)
	}
	if v, err := own.Reconcile(t.Context(), s, it); err != nil || v.Outcome != connector.Published {
		t.Fatalf("got %+v, %v, want %s", v, err, connector.Published)
	}
	other := open(t) // the same platform on another loopback port
	for name, try := range map[string]struct {
		c      connector.Connector
		fields map[string]string
	}{
		"the sandbox at another address": {c: own, fields: other.form(publishing.GradeIdempotent)},
		"a sandbox without a client":     {c: w.connector(), fields: w.form(publishing.GradeIdempotent)},
		"bluesky": {
			c:      bluesky.New(),
			fields: map[string]string{"service": w.url, "identifier": "me.example", "password": "secret password"},
		},
		"nostr": {
			c:      nostr.New(),
			fields: map[string]string{"key": strings.Repeat("1", 64), "relays": "ws://" + w.host + ", ws://" + other.host},
		},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			t.Parallel()
			_, err := try.c.Connect(t.Context(), guarded, try.fields)
			if !errors.Is(err, outbound.ErrBlocked) || connector.KindOf(err, false) != connector.KindOperator {
				t.Fatalf("got %v, want %s for a blocked address", err, connector.KindOperator)
			}
		})
	}
}
