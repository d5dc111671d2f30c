package bluesky_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"crier/platform/clock"
	"crier/publishing/connector"
	"crier/publishing/connector/bluesky"
	"crier/publishing/connector/conformance"
)

// registered returns the connector from a registry, as the engine uses it.
func registered(t *testing.T) connector.Connector {
	t.Helper()
	r, err := connector.NewRegistry(bluesky.New())
	if err != nil {
		t.Fatal(err)
	}
	c, ok := r.Get("bluesky")
	if !ok {
		t.Fatal("the registry lacks the connector")
	}
	return c
}

// storable fails the test if v contains U+0000, which text and jsonb columns refuse.
func storable(t *testing.T, where string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), `\u0000`) {
		t.Errorf("%s: got %s, want no U+0000", where, raw)
	}
}

// Every field of a response here ends in U+0000, except the tokens, which are sealed. The results
// of the guarded connector can still be stored, and a published post is reported as published.
func TestRegistry_MakesAnswersStorable(t *testing.T) {
	t.Parallel()
	const account = `{"did":"` + did + `","handle":"alice.test\u0000","accessJwt":"a","refreshJwt":"r",` +
		`"didDoc":{"id":"\u0000"}}`
	const profile = `{"uri":"\u0000","cid":"\u0000",` +
		`"value":{"displayName":"Al\u0000ice","avatar":{"ref":{"$link":"bafy\u0000"}}}}`
	const upload = `{"blob":{"$type":"blob","ref":{"$link":"b\u0000"},"mimeType":"\u0000","size":3}}`
	b := newBroken(t)
	c := registered(t)
	env := b.env(t, clock.System{})
	b.breaks("com.atproto.server.createSession", 200, account, nil)
	done, err := c.Connect(t.Context(), env, b.form())
	if err != nil {
		t.Fatal(err)
	}
	storable(t, "the account", done.Account)
	if a := done.Account; a.Name != "alice.test" || a.Profile != "alice.test" || a.Destination == "" {
		t.Errorf("got the account %+v, want clean names and a destination", a)
	}
	b.breaks("com.atproto.repo.getRecord", 200, profile, nil)
	named, err := c.Connect(t.Context(), env, b.form())
	if err != nil || named.Account.Name != "Alice" {
		t.Errorf("got the account %+v, %v; want the name Alice", named.Account, err)
	}
	storable(t, "the account with a profile", named.Account)
	b.breaks("com.atproto.server.createSession", 200, strings.Replace(account, did, did+`\u0000`, 1), nil)
	_, err = c.Connect(t.Context(), env, b.form())
	wantKind(t, err, connector.KindContent, 0)

	s := &connector.Session{Env: env, Account: done.Account, Credential: done.Credential}
	it := item(clock.System{}.Now(), "text @bob.test")
	it.Media = []connector.Media{{ContentType: "image/png", Name: "a.png", Size: 3, Open: opener([]byte("abc"))}}
	b.breaks("com.atproto.identity.resolveHandle", 200, `{"did":"did:plc:bob\u0000"}`, nil)
	b.alsoBreaks("com.atproto.repo.uploadBlob", 200, upload)
	it, err = conformance.Prepare(t.Context(), c, s, it)
	if err != nil {
		t.Fatal(err)
	}
	storable(t, "the handle", it.Handle)
	b.breaks("com.atproto.repo.putRecord", 200, `{"uri":"at://x\u0000/app.bsky.feed.post/RKEY","cid":"bafy\u0000"}`, nil)
	ref, err := c.Commit(t.Context(), s, it)
	if err != nil || ref.ID == "" || !strings.HasPrefix(ref.URL, "https://bsky.app/profile/"+did) {
		t.Errorf("Commit: got %+v, %v; want the reference of the post", ref, err)
	}
	storable(t, "the reference", ref)
	b.breaks("com.atproto.repo.putRecord", 200, `{"uri":"at://x/app.bsky.feed.post/another","cid":"bafy"}`, nil)
	_, err = c.Commit(t.Context(), s, it)
	if connector.KindOf(err, true) != connector.KindUnknown {
		t.Errorf("an answer about another record: got %v, want KindUnknown", err)
	}
	b.breaks("com.atproto.repo.putRecord", 400, `{"error":"Invalid\u0000","message":"no\u0000 \ud800 \u0007"}`, nil)
	_, err = c.Commit(t.Context(), s, it)
	var e *connector.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	storable(t, "the error", []string{e.Code, e.Public, e.Raw, e.Error()})
}

// A record under our key that differs only in createdAt is ours: it comes from a Commit whose row
// was lost. A record with another text is not ours.
func TestReconcile_IgnoresCreatedAtOfRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text    string
		outcome connector.Outcome
		kind    connector.Kind // of Commit, "" if it publishes
	}{
		"the same text is ours": {text: "text", outcome: connector.Published, kind: ""},
		"another text is not":   {text: "other", outcome: connector.CannotTell, kind: connector.KindContent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroken(t)
			s := b.session(t, clock.System{})
			it, err := conformance.Prepare(t.Context(), registered(t), s, item(clock.System{}.Now(), "text"))
			if err != nil {
				t.Fatal(err)
			}
			there := `{"$type":"app.bsky.feed.post","text":"` + tc.text + `","createdAt":"2001-01-01T00:00:00.000Z"}`
			b.breaks("com.atproto.repo.getRecord", 200, `{"uri":"at://x","cid":"bafyold","value":`+there+`}`, nil)
			v, err := registered(t).Reconcile(t.Context(), s, it)
			if err != nil || v.Outcome != tc.outcome {
				t.Errorf("Reconcile: got %+v, %v; want %s", v, err, tc.outcome)
			}
			b.alsoBreaks("com.atproto.repo.putRecord", 400, `{"error":"InvalidSwap","message":"Record was at bafyold"}`)
			ref, err := registered(t).Commit(t.Context(), s, it)
			if tc.kind != "" {
				wantKind(t, err, tc.kind, 0)
			} else if err != nil || !strings.Contains(string(ref.Data), "bafyold") {
				t.Errorf("Commit: got %+v, %v; want the existing record", ref, err)
			}
		})
	}
}

// A proxy's page instead of the server's response must not look like a wrong password.
func TestRefresh_WaitsWhileAnotherServerAnswers(t *testing.T) {
	t.Parallel()
	b := newBroken(t)
	s := b.session(t, clock.System{})
	b.breaks("com.atproto.server.refreshSession", 404, `<html>404 Not Found</html>`, nil)
	_, err := bluesky.New().Refresh(t.Context(), s)
	wantKind(t, err, connector.KindTransient, 0)
}

// A short password may occur in an error code. Removing it there would change the code.
func TestRefusal_ShortPasswordLeavesTheCode(t *testing.T) {
	t.Parallel()
	b := newBroken(t)
	form := b.form()
	form["password"] = "Rec"
	if _, err := bluesky.New().Connect(t.Context(), b.env(t, clock.System{}), form); err != nil {
		t.Errorf("an account without a profile: got %v, want it connected", err)
	}
}
