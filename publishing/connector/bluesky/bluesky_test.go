package bluesky_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/connector/bluesky"
	"crier/publishing/connector/conformance"
	"crier/publishing/file/picture"
	"crier/tests/faultnet"
	"crier/tests/pds"
)

func item(at time.Time, text string) connector.Item {
	at = at.UTC().Truncate(time.Millisecond)
	it := connector.Item{Due: at, CreatedAt: at, Text: text}
	fresh(&it.Publication)
	return it
}

func fresh[T any](p *id.ID[T]) { *p = id.New[T]() }

func opener(raw []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// post is a record as the tests decode it, independently of the connector's types.
type post struct {
	Type      string `json:"$type"`
	Text      string
	CreatedAt string
	Langs     []string
	Facets    []struct {
		Index    struct{ ByteStart, ByteEnd int }
		Features []map[string]string
	}
	Embed struct {
		Images []struct {
			Alt   string
			Image struct {
				Ref      map[string]string
				MimeType string
			}
			AspectRatio struct{ Width, Height int }
		}
	}
	Reply struct{ Root, Parent struct{ URI, CID string } }
}

func read(t *testing.T, r pds.Record) post {
	t.Helper()
	var p post
	if err := json.Unmarshal(r.Value, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// published returns the account's posts in the order of createdAt.
func published(t *testing.T, server *pds.Server, account connector.Account) []conformance.Seen {
	t.Helper()
	type dated struct {
		conformance.Seen
		at string
	}
	var all []dated
	for _, r := range server.Records(t, account.ID, "app.bsky.feed.post") {
		p := read(t, r)
		seen := conformance.Seen{ID: r.URI, Text: p.Text, Parent: p.Reply.Parent.URI, Root: p.Reply.Root.URI, MediaSHA256: []string{}}
		for _, img := range p.Embed.Images {
			sum := sha256.Sum256(server.Blob(t, account.ID, img.Image.Ref["$link"]))
			seen.Alts = append(seen.Alts, img.Alt)
			seen.MediaSHA256 = append(seen.MediaSHA256, hex.EncodeToString(sum[:]))
		}
		all = append(all, dated{Seen: seen, at: p.CreatedAt})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].at < all[j].at })
	var out []conformance.Seen
	for _, d := range all {
		out = append(out, d.Seen)
	}
	return out
}

// TestServer shares one real server among all tests that need one, because it takes seconds to
// start.
func TestServer(t *testing.T) {
	t.Parallel()
	server := pds.Start(t)
	t.Run("conformance", func(t *testing.T) { conform(t, server) })
	t.Run("own", func(t *testing.T) {
		w := &rig{server: server, account: server.CreateAccount(t, "alice.test", "alice-alice-1")}
		w.session = w.connect(t, w.account)
		t.Run("a pasted handle connects", w.pastedHandle)
		t.Run("facets and white space are published unchanged", w.facets)
		t.Run("a large image is scaled down", w.bigImage)
		t.Run("preparing twice gives the same record", w.sameRecord)
		t.Run("a key with other content is refused", w.taken)
		t.Run("a lost response gives one post", w.dropped)
		t.Run("the profile names the account", w.profile)
		t.Run("statistics describe the present day", w.statistics)
		t.Run("an expired refresh token leads to a sign-in", w.deadToken)
		t.Run("the languages are published", w.langs)
		t.Run("an account that changes its handle stays the same", w.renamed)
	})
}

func conform(t *testing.T, server *pds.Server) {
	account := server.CreateAccount(t, "conform.test", "conform-conform")
	form := func(service, identifier, password string) map[string]string {
		return map[string]string{"service": service, "identifier": identifier, "password": password}
	}
	conformance.Run(t, conformance.Suite{
		New:    func() connector.Connector { return bluesky.New() },
		Allow:  []string{hostOf(t, server.URL)},
		Fields: func(*testing.T) map[string]string { return form(server.URL, "@"+account.Handle, account.Password) },
		BadFields: map[string]map[string]string{
			"a wrong password":  form(server.URL, account.Handle, "wrong-wrong-wrong"),
			"an unknown name":   form(server.URL, "nobody.test", account.Password),
			"no password":       form(server.URL, account.Handle, ""),
			"plain http":        form("http://pds.example.com", account.Handle, account.Password),
			"a private address": form("https://10.0.0.1", account.Handle, account.Password),
			"a forbidden port":  form("http://127.0.0.1:1", account.Handle, account.Password),
		},
		Published: func(t *testing.T, a connector.Account) []conformance.Seen { return published(t, server, a) },
		Grade:     publishing.GradeIdempotent, KeyOnly: true,
	})
}

type rig struct {
	server  *pds.Server
	account pds.Account
	session *connector.Session
}

func (w *rig) connect(t *testing.T, account pds.Account) *connector.Session {
	t.Helper()
	return w.connectAt(t, w.server.URL, account)
}

func (w *rig) connectAt(t *testing.T, service string, account pds.Account) *connector.Session {
	t.Helper()
	env := connector.Env{HTTP: conformance.NewLine(t, hostOf(t, service)), Clock: clock.System{}}
	done, err := bluesky.New().Connect(t.Context(), env, map[string]string{"service": service, "identifier": account.Handle, "password": account.Password})
	if err != nil {
		t.Fatal(err)
	}
	if done.Account.ID != account.DID || done.Account.Profile != account.Handle {
		t.Fatalf("got the account %+v, want %s", done.Account, account.DID)
	}
	return &connector.Session{Env: env, Account: done.Account, Credential: done.Credential}
}

// pastedHandle connects with what people copy from a profile in a browser.
func (w *rig) pastedHandle(t *testing.T) {
	for _, pasted := range []string{"\u202a" + w.account.Handle + "\u202c", "@" + w.account.Handle + "\u200b", "https://bsky.app/profile/" + w.account.Handle} {
		env := connector.Env{HTTP: conformance.NewLine(t, hostOf(t, w.server.URL)), Clock: clock.System{}}
		form := map[string]string{"service": w.server.URL, "identifier": pasted, "password": w.account.Password}
		if done, err := bluesky.New().Connect(t.Context(), env, form); err != nil || done.Account.ID != w.account.DID {
			t.Errorf("connecting with %+q: got %+v, %v, want %s", pasted, done.Account, err, w.account.DID)
		}
	}
}

func (w *rig) item(text string) connector.Item { return item(w.session.Clock.Now(), text) }

// find returns the record that a Ref names.
func (w *rig) find(t *testing.T, ref connector.Ref) post {
	t.Helper()
	for _, r := range w.server.Records(t, w.account.DID, "app.bsky.feed.post") {
		if r.URI == ref.ID {
			return read(t, r)
		}
	}
	t.Fatalf("the server has no record %s", ref.ID)
	return post{}
}

func (w *rig) facets(t *testing.T) {
	text := " \n👍 @alice.test @nobody.test #日本 https://münchen.example/a. \t\n"
	it := w.item(text)
	ref, err := conformance.Publish(t.Context(), bluesky.New(), w.session, it)
	if err != nil {
		t.Fatal(err)
	}
	rkey := ref.ID[strings.LastIndex(ref.ID, "/")+1:]
	if ref.URL != "https://bsky.app/profile/"+w.account.DID+"/post/"+rkey {
		t.Errorf("got the URL %s, want the page of the post", ref.URL)
	}
	p := w.find(t, ref)
	if p.Text != text || p.CreatedAt != it.CreatedAt.Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("got %q at %s, want %q at %s", p.Text, p.CreatedAt, text, it.CreatedAt)
	}
	var got []string
	for _, f := range p.Facets {
		feature := f.Features[0]
		got = append(got, text[f.Index.ByteStart:f.Index.ByteEnd]+" "+feature["did"]+feature["tag"]+feature["uri"])
	}
	want := []string{"@alice.test " + w.account.DID, "#日本 日本", "https://münchen.example/a https://xn--mnchen-3ya.example/a"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got the facets %q, want %q", got, want)
	}
}

func (w *rig) bigImage(t *testing.T) {
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.NoCompression}
	if err := enc.Encode(&b, image.NewRGBA(image.Rect(0, 0, 900, 600))); err != nil {
		t.Fatal(err)
	}
	it := w.item("big")
	it.Media = []connector.Media{{ContentType: "image/png", Name: "big.png", Size: int64(b.Len()), Alt: " alt\n", Open: opener(b.Bytes())}}
	_, err := conformance.Publish(t.Context(), bluesky.New(), w.session, it)
	wantKind(t, err, connector.KindContent, 0)
	spec, needed := bluesky.New().Derived(it.Media[0])
	if !needed {
		t.Fatal("Derived returned no picture, want a smaller one")
	}
	small, err := picture.Fit(t.Context(), bytes.NewReader(b.Bytes()), spec)
	if err != nil {
		t.Fatal(err)
	}
	it.Media[0].ContentType, it.Media[0].Size, it.Media[0].Open = small.ContentType, int64(len(small.Bytes)), opener(small.Bytes)
	ref, err := conformance.Publish(t.Context(), bluesky.New(), w.session, it)
	if err != nil {
		t.Fatal(err)
	}
	img := w.find(t, ref).Embed.Images[0]
	body := w.server.Blob(t, w.account.DID, img.Image.Ref["$link"])
	cfg, format, err := image.DecodeConfig(bytes.NewReader(body))
	if err != nil || format != "jpeg" || img.Image.MimeType != "image/jpeg" || len(body) > 1_000_000 {
		t.Errorf("got %d bytes of %s as %s, %v; want a JPEG within the limit", len(body), format, img.Image.MimeType, err)
	}
	if cfg.Width != img.AspectRatio.Width || cfg.Height != img.AspectRatio.Height || img.Alt != " alt\n" {
		t.Errorf("got %+v, want the size %d x %d and the alt text unchanged", img, cfg.Width, cfg.Height)
	}
}

// sameRecord prepares and commits an item a second time without its handle. The server accepts the
// second commit only because the record is identical.
func (w *rig) sameRecord(t *testing.T) {
	it := w.item("same #tag @alice.test")
	for _, alt := range []string{"one", "two"} {
		it.Media = append(it.Media, connector.Media{ContentType: "image/png", Name: alt, Size: 3, Alt: alt, Open: opener([]byte(alt))})
	}
	first, err := conformance.Publish(t.Context(), bluesky.New(), w.session, it)
	if err != nil {
		t.Fatal(err)
	}
	it.Handle = nil
	second, err := conformance.Publish(t.Context(), bluesky.New(), w.session, it)
	if err != nil || second.ID != first.ID || string(second.Data) != string(first.Data) {
		t.Errorf("got %+v, then %+v, %v; want the same record", first, second, err)
	}
}

func (w *rig) taken(t *testing.T) {
	it := w.item("ours")
	first, err := conformance.Publish(t.Context(), bluesky.New(), w.session, it)
	if err != nil {
		t.Fatal(err)
	}
	it.Text, it.Handle = "another", nil
	it, err = conformance.Prepare(t.Context(), bluesky.New(), w.session, it)
	if err != nil {
		t.Fatal(err)
	}
	_, err = bluesky.New().Commit(t.Context(), w.session, it)
	wantKind(t, err, connector.KindContent, 0)
	v, err := bluesky.New().Reconcile(t.Context(), w.session, it)
	if err != nil || v.Outcome != connector.CannotTell {
		t.Errorf("Reconcile: got %+v, %v; want CannotTell", v, err)
	}
	if p := w.find(t, first); p.Text != "ours" {
		t.Errorf("the record has the text %q, want it unchanged", p.Text)
	}
}

// dropped loses the response of a real server on a real connection.
func (w *rig) dropped(t *testing.T) {
	proxy := faultnet.StartHTTP(t, w.server.URL)
	s := w.connectAt(t, proxy.URL, w.account)
	it, err := conformance.Prepare(t.Context(), bluesky.New(), s, w.item("dropped"))
	if err != nil {
		t.Fatal(err)
	}
	const put = "POST /xrpc/com.atproto.repo.putRecord"
	proxy.Hold(put, faultnet.Answer).Drop()
	_, err = bluesky.New().Commit(t.Context(), s, it)
	wantKind(t, err, connector.KindUnknown, 0)
	v, err := bluesky.New().Reconcile(t.Context(), s, it)
	if err != nil || v.Outcome != connector.Published {
		t.Fatalf("Reconcile: got %+v, %v; want Published", v, err)
	}
	if p := w.find(t, v.Ref); p.Text != "dropped" || proxy.Forwarded(put) != 1 {
		t.Errorf("got %q after %d calls, want one call", p.Text, proxy.Forwarded(put))
	}
	proxy.Hold(put, faultnet.Request).Drop()
	lost, err := conformance.Prepare(t.Context(), bluesky.New(), s, w.item("lost"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = bluesky.New().Commit(t.Context(), s, lost)
	wantKind(t, err, connector.KindUnknown, 0)
	if v, err := bluesky.New().Reconcile(t.Context(), s, lost); err != nil || v.Outcome != connector.NotPublished {
		t.Errorf("Reconcile: got %+v, %v; want NotPublished", v, err)
	}
}

func (w *rig) profile(t *testing.T) {
	body := `{"repo":"` + w.account.DID + `","collection":"app.bsky.actor.profile","rkey":"self",` +
		`"record":{"displayName":" Alice A. "}}`
	w.call(t, "com.atproto.repo.putRecord", w.token(t, "accessJwt"), body)
	if s := w.connect(t, w.account); s.Account.Name != "Alice A." {
		t.Errorf("got the name %q, want Alice A.", s.Account.Name)
	}
}

func (w *rig) deadToken(t *testing.T) {
	dead := w.token(t, "refreshJwt")
	w.call(t, "com.atproto.server.deleteSession", dead, "")
	fresh, err := bluesky.New().Refresh(t.Context(), w.session)
	if err != nil {
		t.Fatal(err)
	}
	w.session.Credential = fresh.Credential
	if w.token(t, "refreshJwt") == dead {
		t.Error("the expired token is kept, want a new one")
	}
	if _, err := conformance.Publish(t.Context(), bluesky.New(), w.session, w.item("alive")); err != nil {
		t.Error(err)
	}
}

func (w *rig) langs(t *testing.T) {
	for settings, want := range map[string]string{
		`{"langs":["pt-br","de","DE"]}`: "pt-BR de", `{"langs":null}`: "", `{}`: "", "": "",
	} {
		it := w.item("Hallo")
		it.Settings = json.RawMessage(settings)
		ref, err := conformance.Publish(t.Context(), bluesky.New(), w.session, it)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(w.find(t, ref).Langs, " "); got != want {
			t.Errorf("%s: got the languages %q, want %q", settings, got, want)
		}
	}
}

// renamed changes an account's handle, which another account then takes.
func (w *rig) renamed(t *testing.T) {
	own := &rig{server: w.server, account: w.server.CreateAccount(t, "carol.test", "carol-carol-1")}
	own.session = own.connect(t, own.account)
	own.call(t, "com.atproto.identity.updateHandle", own.token(t, "accessJwt"), `{"handle":"carola.test"}`)
	other := &rig{server: w.server, account: w.server.CreateAccount(t, "dora.test", "another-another")}
	other.session = other.connect(t, other.account)
	other.call(t, "com.atproto.identity.updateHandle", other.token(t, "accessJwt"), `{"handle":"carol.test"}`)
	ref, err := conformance.Publish(t.Context(), bluesky.New(), own.session, own.item("still here"))
	if err != nil || !strings.HasPrefix(ref.URL, "https://bsky.app/profile/"+own.account.DID+"/post/") {
		t.Errorf("got %+v, %v; want a URL with the DID", ref, err)
	}
	for _, refused := range []bool{false, true} {
		if refused {
			own.call(t, "com.atproto.server.deleteSession", own.token(t, "refreshJwt"), "")
		}
		fresh, err := bluesky.New().Refresh(t.Context(), own.session)
		if err != nil || fresh.Profile != "carola.test" || fresh.Name != "carola.test" {
			t.Fatalf("a refresh that is refused, %t: got %+v, %v; want the new handle", refused, fresh, err)
		}
		own.session.Credential = fresh.Credential
	}
	own.account.Handle = "carola.test"
	if s := own.connect(t, own.account); s.Account.Name != "carola.test" {
		t.Errorf("got the account %+v, want the new name", s.Account)
	}
}

func (w *rig) token(t *testing.T, name string) string {
	t.Helper()
	var cred map[string]string
	if err := json.Unmarshal(w.session.Credential, &cred); err != nil || cred[name] == "" {
		t.Fatalf("no %s: %v", name, err)
	}
	return cred[name]
}

func (w *rig) call(t *testing.T, method, token, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+"/xrpc/"+method, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.session.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		answer, err := io.ReadAll(resp.Body)
		t.Fatalf("%s: got %d %s, %v; want 200", method, resp.StatusCode, answer, err)
	}
}
