package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crier/tests/faultnet"
	"crier/tests/pds"
	"crier/tests/sandboxtest"
)

// account is an account on a platform, with the platform's own view of it.
type account interface {
	// service returns the settings that a service needs to reach the platform.
	service() map[string]string
	// form returns the name of the connector and the completed form.
	form() (connector string, fields map[string]string)
	// hold holds the nth call of a kind, counted from now, before the platform receives it or
	// before its response is delivered.
	hold(t *testing.T, kind callKind, nth int, answer bool) heldCall
	// delayProxy puts a proxy between services and the platform. The proxy holds the nth publishing
	// call, counted from now, and delivers it even if its sender is gone.
	delayProxy(t *testing.T) (delay func(nth int) *faultnet.Held)
	// posts returns the published posts, oldest first.
	posts(t *testing.T) []live
}

// callKind is a kind of call to a platform.
type callKind int

const (
	uploads   callKind = iota // uploads an image
	publishes                 // publishes a post
)

// heldCall is a call that is held or will be held.
type heldCall interface {
	reached(t *testing.T) // waits until it is held
	lost(t *testing.T)    // waits until the platform has noticed that the client is gone
	release(t *testing.T)
}

// live is a published post on the platform.
type live struct {
	id   string // the release id
	text string
	// root and parent are ids. They are empty for a post that is not a reply.
	root, parent string
	images       []picture
}

// picture is an image, identified by the SHA-256 of its bytes.
type picture struct{ sum, alt string }

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// blueskyAccount is an account on the PDS, behind a separate proxy.
type blueskyAccount struct {
	server *pds.Server
	proxy  *faultnet.HTTP
	pds.Account
}

const (
	putRecord  = "POST /xrpc/com.atproto.repo.putRecord"
	uploadBlob = "POST /xrpc/com.atproto.repo.uploadBlob"
)

// hold holds the nth such call, counted from now.
func hold(p *faultnet.HTTP, call string, nth int, at faultnet.Point) *faultnet.Held {
	for range nth - 1 {
		p.Hold(call, faultnet.Request).Release()
	}
	return p.Hold(call, at)
}

var names atomic.Int64

func newBluesky(t *testing.T, server *pds.Server) account {
	t.Helper()
	a := server.CreateAccount(t, fmt.Sprintf("user%d.test", names.Add(1)), password)
	return &blueskyAccount{server: server, proxy: faultnet.StartHTTP(t, server.URL), Account: a}
}

func (a *blueskyAccount) service() map[string]string {
	return map[string]string{"OUTBOUND_ALLOW": strings.TrimPrefix(a.proxy.URL, "http://")}
}

func (a *blueskyAccount) delayProxy(*testing.T) func(nth int) *faultnet.Held {
	return func(nth int) *faultnet.Held { return hold(a.proxy, putRecord, nth, faultnet.Late) }
}

func (a *blueskyAccount) form() (string, map[string]string) {
	return "bluesky", map[string]string{"service": a.proxy.URL, "identifier": a.Handle, "password": a.Password}
}

func (a *blueskyAccount) hold(_ *testing.T, kind callKind, nth int, answer bool) heldCall {
	at := map[bool]faultnet.Point{false: faultnet.Request, true: faultnet.Answer}[answer]
	return proxyCall{Held: hold(a.proxy, map[callKind]string{uploads: uploadBlob, publishes: putRecord}[kind], nth, at)}
}

type proxyCall struct{ *faultnet.Held }

func (h proxyCall) reached(t *testing.T) { closed(t, "the call", h.Reached) }

func (h proxyCall) lost(t *testing.T) { closed(t, "the client's end", h.Lost) }

func (h proxyCall) release(*testing.T) { h.Release() }

func closed(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not happen within %s", what, patience)
	}
}

func (a *blueskyAccount) posts(t *testing.T) (out []live) {
	t.Helper()
	times := map[string]string{}
	for _, r := range a.server.Records(t, a.DID, "app.bsky.feed.post") {
		type ref struct{ URI string }
		var v struct {
			Text      string
			CreatedAt string
			Reply     struct{ Root, Parent ref }
			Embed     struct {
				Images []struct {
					Alt   string
					Image struct {
						Ref struct {
							Link string `json:"$link"`
						}
					}
				}
			}
		}
		if err := json.Unmarshal(r.Value, &v); err != nil {
			t.Fatal(err)
		}
		p := live{id: r.URI, text: v.Text, root: v.Reply.Root.URI, parent: v.Reply.Parent.URI}
		for _, i := range v.Embed.Images {
			p.images = append(p.images, picture{sum: sum(a.server.Blob(t, a.DID, i.Image.Ref.Link)), alt: i.Alt})
		}
		times[p.id], out = v.CreatedAt, append(out, p)
	}
	// Feeds are ordered by createdAt. Record keys are only accurate to about a second.
	slices.SortStableFunc(out, func(a, b live) int { return strings.Compare(times[a.id], times[b.id]) })
	return out
}

// sandboxAccount is an account of one grade on the sandbox.
type sandboxAccount struct {
	judge       sandboxtest.Judge
	serviceURL  string // the URL that services use
	name, grade string
}

func newSandbox(url, grade string) account {
	return &sandboxAccount{judge: sandboxtest.Judge{URL: url}, serviceURL: url, name: fmt.Sprintf("account-%d", names.Add(1)), grade: grade}
}

func (a *sandboxAccount) service() map[string]string {
	return map[string]string{"SANDBOX_URL": a.serviceURL}
}

func (a *sandboxAccount) delayProxy(t *testing.T) func(nth int) *faultnet.Held {
	p := faultnet.StartHTTP(t, a.judge.URL)
	a.serviceURL = p.URL
	return func(nth int) *faultnet.Held { return hold(p, "POST /api/posts", nth, faultnet.Late) }
}

func (a *sandboxAccount) form() (string, map[string]string) {
	return "sandbox", map[string]string{"service": a.serviceURL, "name": a.name, "password": password, "grade": a.grade}
}

func (a *sandboxAccount) hold(t *testing.T, kind callKind, nth int, answer bool) heldCall {
	t.Helper()
	path := map[callKind]string{uploads: "/api/media", publishes: "/api/posts"}[kind]
	action := map[bool]string{false: "hold", true: "hold_answer"}[answer]
	id, err := a.judge.Fault(t.Context(), a.name, m{"match": m{"method": "POST", "path": path, "nth": nth}, "action": action})
	if err != nil {
		t.Fatal(err)
	}
	return scriptedCall{judge: a.judge, id: id}
}

// scriptedCall is a call that a scripted fault of the sandbox holds.
type scriptedCall struct {
	judge sandboxtest.Judge
	id    string
}

func (f scriptedCall) reached(t *testing.T) { f.held(t, 1) }

func (f scriptedCall) lost(t *testing.T) { f.held(t, 0) }

func (f scriptedCall) release(t *testing.T) {
	t.Helper()
	if err := f.judge.Release(t.Context(), f.id); err != nil {
		t.Fatal(err)
	}
}

func (f scriptedCall) held(t *testing.T, want int) {
	t.Helper()
	var all map[string]int
	await(t, fmt.Sprintf("a hold of %d calls", want), time.Now().Add(patience), func() bool {
		var err error
		all, err = f.judge.Held(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held, known := all[f.id]
		return known && held == want
	}, func() string { return fmt.Sprint(all) })
}

func (a *sandboxAccount) posts(t *testing.T) (out []live) {
	t.Helper()
	all, err := a.judge.Posts(t.Context(), a.name)
	if err != nil {
		t.Fatal(err)
	}
	roots := map[string]string{}
	for _, p := range all {
		l := live{id: p.ID, text: p.Text, parent: p.ReplyTo, root: roots[p.ReplyTo]}
		roots[p.ID] = l.root
		if l.root == "" {
			roots[p.ID] = p.ID
		}
		for _, i := range p.Media {
			l.images = append(l.images, picture{sum: i.SHA256, alt: i.Alt})
		}
		out = append(out, l)
	}
	return out
}
