package pds

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"crier/tests/call"
	"crier/tests/faultnet"
)

const posts = "app.bsky.feed.post"

// user calls the server, or a proxy in front of it, as a signed-in account.
type user struct {
	base, did, token string
}

func signIn(t *testing.T, base string, a Account) user {
	t.Helper()
	var session struct{ DID, AccessJwt string }
	user{base: base}.must(t, &session, "com.atproto.server.createSession", map[string]any{"identifier": a.Handle, "password": a.Password})
	if session.DID != a.DID || session.AccessJwt == "" {
		t.Fatalf("session %+v is not of %s", session, a.DID)
	}
	return user{base: base, did: session.DID, token: session.AccessJwt}
}

func (u user) call(t *testing.T, method string, body any, headers ...string) (call.Answer, error) {
	t.Helper()
	if u.token != "" {
		headers = append(headers, "Authorization", "Bearer "+u.token)
	}
	// The server may have closed a connection that is kept alive.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return call.Do(t.Context(), client, http.MethodPost, u.base+"/xrpc/"+method, body, headers...)
}

// must is like call for requests that must succeed.
func (u user) must(t *testing.T, out any, method string, body any, headers ...string) {
	t.Helper()
	a, err := u.call(t, method, body, headers...)
	if err != nil {
		t.Fatalf("%s: got the error %v, want an answer", method, err)
	}
	if err := a.Into(out); err != nil {
		t.Fatalf("%s: got the error %v, want a success", method, err)
	}
}

func (u user) record(rkey string, record map[string]any) map[string]any {
	return map[string]any{"repo": u.did, "collection": posts, "rkey": rkey, "record": record, "swapRecord": nil}
}

// mustPut returns the CID of the record that it writes.
func (u user) mustPut(t *testing.T, rkey string, record map[string]any) string {
	t.Helper()
	var out struct{ CID string }
	u.must(t, &out, "com.atproto.repo.putRecord", u.record(rkey, record))
	return out.CID
}

func post(text string) map[string]any {
	return map[string]any{"$type": posts, "text": text, "createdAt": "2026-01-02T03:04:05.000Z"}
}

// tid returns the nth of a sequence of ascending record keys.
func tid(n int) string {
	const digits = "234567abcdefghijklmnopqrstuvwxyz"
	return "3laaaaaaa" + string([]byte{digits[n>>10&31], digits[n>>5&31], digits[n&31], '2'})
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := Start(t)
	u := signIn(t, s.URL, s.CreateAccount(t, "alice.test", "correct horse"))

	t.Run("repeated content creates no second record", func(t *testing.T) {
		first := u.mustPut(t, tid(1), post("once"))
		again := u.mustPut(t, tid(1), post("once"))
		if first != again {
			t.Fatalf("got cid %s and then %s, want equal", first, again)
		}
		if all := s.Records(t, u.did, posts); len(all) != 1 || all[0].CID != first {
			t.Fatalf("records: %+v", all)
		}
	})

	t.Run("other content under the same key is refused", func(t *testing.T) {
		a, err := u.call(t, "com.atproto.repo.putRecord", u.record(tid(1), post("another")))
		if err != nil || a.Status != http.StatusBadRequest || !strings.Contains(a.Body, `"InvalidSwap"`) {
			t.Fatalf("got %v (%v), want 400 with InvalidSwap", a, err)
		}
		all := s.Records(t, u.did, posts)
		if len(all) != 1 || !bytes.Contains(all[0].Value, []byte(`"once"`)) {
			t.Fatalf("records: %+v", all)
		}
	})

	t.Run("a blob is readable once a record refers to it", func(t *testing.T) {
		picture := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("pixels"), 1000)...)
		var up struct{ Blob json.RawMessage }
		u.must(t, &up, "com.atproto.repo.uploadBlob", picture, "Content-Type", "image/png")
		var blob struct {
			Ref struct {
				Link string `json:"$link"`
			}
		}
		if err := json.Unmarshal(up.Blob, &blob); err != nil || blob.Ref.Link == "" {
			t.Fatalf("uploadBlob: %s %v", up.Blob, err)
		}
		record := post("look")
		record["embed"] = map[string]any{"$type": "app.bsky.embed.images", "images": []any{map[string]any{"alt": "a picture", "image": up.Blob}}}
		u.mustPut(t, tid(2), record)
		if got := s.Blob(t, u.did, blob.Ref.Link); !bytes.Equal(got, picture) {
			t.Fatalf("got %d other bytes, want the %d uploaded", len(got), len(picture))
		}
	})

	t.Run("all pages of records are returned, oldest first", func(t *testing.T) {
		v := signIn(t, s.URL, s.CreateAccount(t, "bob.test", "battery staple"))
		const n = 101 // one page holds 100
		want := []string{}
		for i := range n {
			want = append(want, fmt.Sprintf("at://%s/%s/%s", v.did, posts, tid(i)))
		}
		v.create(t, n)
		got := []string{}
		for _, r := range s.Records(t, v.did, posts) {
			got = append(got, r.URI)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %d records %v, want %d", len(got), got, n)
		}
		if none := s.Records(t, v.did, "app.bsky.feed.like"); len(none) != 0 {
			t.Fatalf("records of another collection: %+v", none)
		}
	})
}

// create writes n posts, newest first, in one call.
func (u user) create(t *testing.T, n int) {
	t.Helper()
	writes := []any{}
	for i := n - 1; i >= 0; i-- {
		writes = append(writes, map[string]any{"$type": "com.atproto.repo.applyWrites#create", "collection": posts, "rkey": tid(i), "value": post(fmt.Sprint(i))})
	}
	u.must(t, nil, "com.atproto.repo.applyWrites", map[string]any{"repo": u.did, "writes": writes})
}

func TestServer_EndsWithStandardInput(t *testing.T) {
	t.Parallel()
	dir, err := Install(t.Context(), testLog{t: t})
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	cmd := command(dir, data, filepath.Join(data, "pds.log"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.Contains(line, "http://127.0.0.1:") {
		t.Fatalf("got the line %q (%v), want the address of the server", line, err)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestPutRecord_RepeatAfterLostAnswer(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := faultnet.StartHTTP(t, s.URL)
	u := signIn(t, p.URL, s.CreateAccount(t, "carol.test", "correct horse"))

	h := p.Hold("POST /xrpc/com.atproto.repo.putRecord", faultnet.Answer)
	result := make(chan error, 1)
	go func() {
		_, err := u.call(t, "com.atproto.repo.putRecord", u.record(tid(1), post("once")))
		result <- err
	}()
	<-h.Reached
	before := s.Records(t, u.did, posts)
	if len(before) != 1 {
		t.Fatalf("got records %+v while the answer is held, want one", before)
	}
	h.Drop()
	if err := <-result; err == nil {
		t.Fatal("got an answer, want a closed connection")
	}
	if cid := u.mustPut(t, tid(1), post("once")); cid != before[0].CID {
		t.Fatalf("cid %s after the repeat, %s before", cid, before[0].CID)
	}
	if after := s.Records(t, u.did, posts); len(after) != 1 {
		t.Fatalf("records: %+v", after)
	}
}
