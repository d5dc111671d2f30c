package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"crier/platform/fault"
)

func mediaFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "media", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestOpen_RestoresStateAndRemovesTornLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir, Options{})
	tok := r.join("c", "C")
	m := r.upload(tok)
	root := r.want(201, "POST", "/api/posts", tok, `{"text":"one","media":[{"id":"`+m.text("id")+`"}]}`).text("id")
	r.want(201, "POST", "/api/posts", tok, `{"text":"two","replyTo":"`+root+`"}`)
	before := r.want(200, "GET", "/_sim/posts", "", "").raw
	if err := r.p.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sandbox.log")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(bytes.Clone(whole), `{"op":"post","at":"20`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "media", "upload-1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	r = start(t, dir, Options{Log: slog.New(slog.NewTextHandler(&logged, nil))})
	if !strings.Contains(logged.String(), "torn last line") {
		t.Errorf("logged %q, want a message about the torn last line", logged.String())
	}
	if after := r.want(200, "GET", "/_sim/posts", "", "").raw; after != before {
		t.Errorf("after the restart: got %s, want %s", after, before)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole) {
		t.Errorf("the torn line is still there: %v", err)
	}
	if files := mediaFiles(t, dir); len(files) != 1 || filepath.Base(files[0]) != m.text("sha256") {
		t.Errorf("the media folder has %v, want only %s", files, m.text("sha256"))
	}
	r.want(201, "POST", "/api/posts", tok, `{"text":"three","replyTo":"`+root+`"}`)
}

func TestOpen_InvalidLineFailsAndChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir, Options{})
	r.want(201, "POST", "/api/posts", r.join("c", "C"), `{"text":"one"}`)
	if err := r.p.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "sandbox.log"))
	if err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{
		"not JSON":            "garbage\n",
		"empty line":          "\n",
		"two values":          "{\"op\":\"account\"}{}\n",
		"unknown op":          `{"op":"dance","at":"2026-01-01T00:00:00Z"}` + "\n",
		"unknown member":      `{"op":"delete","at":"2026-01-01T00:00:00Z","zzz":1}` + "\n",
		"op without its part": `{"op":"post","at":"2026-01-01T00:00:00Z"}` + "\n",
		"unknown account":     `{"op":"post","at":"2026-01-01T00:00:00Z","post":{"id":"","account":"","text":"","replyTo":""}}` + "\n",
		"unknown post":        `{"op":"delete","at":"2026-01-01T00:00:00Z","ref":"1"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := t.TempDir()
			bad := append([]byte(line), whole...)
			path := filepath.Join(other, "sandbox.log")
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if p, err := Open(other, Options{}); !strings.Contains(fmt.Sprint(err), "line 1 is broken") {
				t.Errorf("got %v and error %v, want an error about line 1", p, err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
				t.Errorf("the file changed: %v", err)
			}
		})
	}
}

func TestOpen_SecondOpenIsConflict(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir, Options{})
	var f *fault.Error
	if p, err := Open(dir, Options{}); !errors.As(err, &f) || f.Kind != fault.Conflict || f.Message != "Another process is using "+filepath.Join(dir, "sandbox.log")+"." || f.Err != nil {
		t.Errorf("the second Open: %v, %v, want Conflict without a cause", p, err)
	}
	// This is the copy that a child process holds between fork and exec.
	starting, err := syscall.Dup(int(r.p.journal.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(starting)
	if err := r.p.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, dir, Options{})
}

func TestCreatePost_AfterCloseIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	if err := r.p.Close(); err != nil {
		t.Fatal(err)
	}
	if a := r.want(503, "POST", "/api/posts", tok, aPost); a.code() != "storage" {
		t.Errorf("got %s, want storage", a.raw)
	}
}

func TestServe_StopsCleanlyAndListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "nonsense"} {
		if ln, err := Listen(t.Context(), addr); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, %v, want Invalid", addr, ln, err)
		}
	}
	dir := t.TempDir()
	p, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, ln) }()
	r := &rig{t: t, p: p, url: "http://" + ln.Addr().String()}
	tok := r.join("c", "C")
	id := r.script(`{"match":{"path":"/api/posts"},"action":"hold"}`)
	conn := r.raw("POST", "/api/posts", tok, aPost)
	r.waitHeld(id, 1)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if res := r.answered(conn); res != nil {
		t.Errorf("a held request was answered with %s, want no answer", res.Status)
	}
	start(t, dir, Options{})
}

// child serves a folder, prints its address, and runs until it is killed.
func child(dir string) int {
	ctx := context.Background()
	p, err := Open(dir, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ln, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("http://" + ln.Addr().String())
	fmt.Fprintln(os.Stderr, p.Serve(ctx, ln))
	return 1
}

func spawn(t *testing.T, dir string) (*rig, *exec.Cmd) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-sandbox.child="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, url: strings.TrimSpace(line)}, cmd
}

// acked collects the acknowledged posts.
type acked struct {
	mu  sync.Mutex
	ids map[string]string // post id -> text
}

func (a *acked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ids)
}

// hammer posts until the connection fails.
func (r *rig) hammer(worker, round int, token string, a *acked) {
	for n := 0; ; n++ {
		text := fmt.Sprintf("w%d r%d n%d", worker, round, n)
		res, err := r.try("POST", "/api/posts", token, "application/json", fmt.Appendf(nil, `{"text":%q,"key":%q}`, text, text))
		if err != nil {
			return
		}
		if res.status != 201 {
			r.t.Errorf("got %d %s, want 201", res.status, res.raw)
			return
		}
		a.mu.Lock()
		a.ids[res.text("id")] = text
		a.mu.Unlock()
	}
}

func TestKill_KeepsAcknowledgedPosts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acks := &acked{ids: map[string]string{}}
	tokens := []string{}
	for round := range 4 {
		r, cmd := spawn(t, dir)
		if round == 0 {
			tokens = []string{r.join("a", "A"), r.join("c", "C"), r.join("e", "E")}
		}
		sum := r.upload(tokens[1]).text("sha256")
		var wg sync.WaitGroup
		for w, tok := range tokens {
			wg.Go(func() { r.hammer(w, round, tok, acks) })
		}
		goal := acks.count() + 20 + 7*round
		eventually(t, "posts are acknowledged", func() bool { return acks.count() >= goal })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child has ended without the kill")
		}
		if _, err := os.Stat(filepath.Join(dir, "media", sum)); err != nil {
			t.Error(err)
		}
		checkKept(t, dir, acks)
	}
}

// checkKept opens the folder and checks that all acknowledged posts are published.
func checkKept(t *testing.T, dir string, acks *acked) {
	t.Helper()
	p, err := Open(dir, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, recs, err := p.load(1_000_000, func(*entry) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, rec := range recs {
		kept[rec.Post.ID.String()] = rec.Post.Text
	}
	for id, text := range acks.ids {
		if kept[id] != text {
			t.Errorf("the post %s has the text %q, want %q", id, kept[id], text)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// The test publishes, repeats, deletes and restarts at random, and compares the result with a map.
func TestGradeA_RandomSequencesMatchAMap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	setup := start(t, dir, Options{})
	tok := setup.join("a", "A")
	r := setup
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		type made struct {
			id, text string
			deleted  bool
		}
		model := map[string]*made{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			key := fmt.Sprintf("%d-%d", round, rapid.IntRange(0, 3).Draw(rt, "key"))
			had := model[key]
			switch op := rapid.IntRange(0, 9).Draw(rt, "op"); {
			case op < 6:
				text := rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "text")
				a := r.do("POST", "/api/posts", tok, fmt.Sprintf(`{"text":%q,"key":%q}`, text, key))
				want := 200
				switch {
				case had == nil:
					want = 201
					model[key] = &made{id: a.text("id"), text: text}
				case had.text != text:
					want = 409
				case had.deleted:
					want = 410
				}
				if a.status != want || want == 200 && a.text("id") != had.id {
					rt.Fatalf("key %s: %d %s, want %d", key, a.status, a.raw, want)
				}
			case op < 9 && had != nil && !had.deleted:
				r.want(204, "DELETE", "/api/posts/"+had.id, tok, "")
				had.deleted = true
			case op == 9:
				if err := r.p.Close(); err != nil {
					rt.Fatal(err)
				}
				r = start(t, dir, Options{})
			}
		}
		alive := map[string]any{}
		for _, p := range r.published("a") {
			if strings.HasPrefix(p["key"].(string), fmt.Sprintf("%d-", round)) {
				alive[p["key"].(string)] = p["text"]
			}
		}
		for key, m := range model {
			if _, ok := alive[key]; ok == m.deleted {
				rt.Fatalf("key %s: published is %v, want %v", key, ok, !m.deleted)
			}
			delete(alive, key)
		}
		if len(alive) != 0 {
			rt.Fatalf("the posts %v were not requested", alive)
		}
	})
}
