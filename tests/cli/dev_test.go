package cli

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"crier/tests/call"
)

// devFile is dev.json, where `crier dev` stores its credentials.
type devFile struct {
	BaseURL, APIKey, Email, Password, OrganizationID, ChannelID, SandboxURL string
	Channels                                                                map[string]string
}

func readDevFile(t *testing.T, home string) (n devFile) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(home, "dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		t.Fatal(err)
	}
	if n.BaseURL == "" || n.APIKey == "" || n.Email == "" || n.Password == "" || n.OrganizationID == "" || n.ChannelID == "" {
		t.Fatalf("got dev.json %s, want all fields set", raw)
	}
	return n
}

func dev(t *testing.T, home, port string) *program {
	t.Helper()
	return begin(t, "Ctrl-C stops everything.", []string{"CRIER_HOME=" + home, "PORT=" + port}, "dev")
}

// TestDev runs the first day of a new user on one data folder. Each step builds on the previous
// one.
func TestDev(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed") // readable only by its owner, as /root is
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	home, port := filepath.Join(closed, "home"), freePort(t)
	p := dev(t, home, port)
	n := readDevFile(t, home)
	if n.BaseURL != "http://localhost:"+port {
		t.Fatalf("got %+v, want the base URL http://localhost:%s", n, port)
	}
	firstStart(t, p, home, n)
	t.Run("a second process on the same folder is refused", func(t *testing.T) {
		run(t, []string{"CRIER_HOME=" + home, "PORT=" + freePort(t)}, "dev").fails(t, home)
	})
	t.Run("a taken port is refused and leaves nothing behind", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "home")
		run(t, []string{"CRIER_HOME=" + other, "PORT=" + port}, "dev").fails(t, port, "PORT")
		if left := postgres(t, other); len(left) > 0 {
			t.Fatalf("got running Postgres processes %v, want none", left)
		}
	})
	t.Run("Ctrl-C ends everything", func(t *testing.T) {
		p.signal(syscall.SIGINT)
		if code := p.wait(t); code != 0 || p.errors() != "" {
			t.Fatalf("got exit code %d and stderr %s, want 0 and none", code, p.errors())
		}
		if left := postgres(t, home); len(left) > 0 {
			t.Fatalf("got running Postgres processes %v, want none", left)
		}
	})
	t.Run("the next start keeps key and channel, and survives kill -9", func(t *testing.T) { laterStarts(t, home, port, n) })
	t.Run("damaged files are reported or repaired", func(t *testing.T) { brokenFiles(t, home, n) })
	t.Run("a deleted folder is set up again, with a warning for an http address", func(t *testing.T) {
		startWithoutFolder(t, home, port, n)
	})
}

// firstStart checks what a first start prints and serves.
func firstStart(t *testing.T, p *program, home string, n devFile) {
	t.Helper()
	out := p.stdout()
	for _, word := range []string{n.BaseURL + "/docs", n.BaseURL + "/sandbox/", n.Email, n.Password, n.APIKey, n.ChannelID, filepath.Join(home, "dev.json")} {
		if !strings.Contains(out, word) {
			t.Errorf("got output %s, want %q in it", out, word)
		}
	}
	if p.errors() != "" {
		t.Errorf("got stderr %s, want none", p.errors())
	}
	for _, path := range []string{"/docs", "/sandbox/", "/health", "/openapi.json"} {
		if a := get(t, n.BaseURL+path, ""); a.Status != http.StatusOK {
			t.Errorf("%s: got %v, want 200", path, a)
		}
	}
	pasteLines(t, out, n)
	signIn(t, n)
}

// laterStarts starts a stopped home on its port, kills the process, and starts it on another port.
// n is from the first start.
func laterStarts(t *testing.T, home, port string, n devFile) {
	p := dev(t, home, port)
	if again := readDevFile(t, home); again.APIKey != n.APIKey || again.ChannelID != n.ChannelID || again.Password != n.Password {
		t.Fatalf("got %+v, want the key, channel and password of %+v", again, n)
	}
	published(t, n, 1)
	p.signal(syscall.SIGKILL)
	p.wait(t)
	p = dev(t, home, freePort(t))
	again := readDevFile(t, home)
	if again.APIKey != n.APIKey || again.ChannelID != n.ChannelID || again.BaseURL == n.BaseURL {
		t.Fatalf("got %+v, want the key and channel of %+v, and another base URL", again, n)
	}
	published(t, again, 1)
	pasteLines(t, p.stdout(), again)
	p.signal(syscall.SIGTERM)
	if code := p.wait(t); code != 0 || p.errors() != "" {
		t.Fatalf("got exit code %d and stderr %s, want 0 and none", code, p.errors())
	}
}

// startWithoutFolder deletes a stopped home and starts it again. n is from before the deletion.
func startWithoutFolder(t *testing.T, home, port string, n devFile) {
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	p := begin(t, "Ctrl-C stops everything.", []string{"CRIER_HOME=" + home, "PORT=" + port, "BASE_URL=http://crier.test"}, "dev")
	if !strings.Contains(p.errors(), "BASE_URL is an http address") {
		t.Errorf("got stderr %q, want a warning", p.errors())
	}
	fresh := readDevFile(t, home)
	// An email address is unique in a database.
	if fresh.Email != n.Email || fresh.APIKey == n.APIKey || fresh.OrganizationID == n.OrganizationID {
		t.Errorf("got %+v, want another key and organization than in %+v", fresh, n)
	}
	p.signal(syscall.SIGINT)
	if code := p.wait(t); code != 0 {
		t.Errorf("got exit code %d and stderr %s, want 0", code, p.errors())
	}
}

// brokenFiles damages the files of a stopped home, one at a time.
func brokenFiles(t *testing.T, home string, n devFile) {
	damage := func(name, content string) (restore func()) {
		path := filepath.Join(home, name)
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.WriteFile(path, old, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	try := func() result { return run(t, []string{"CRIER_HOME=" + home, "PORT=" + freePort(t)}, "dev") }
	for _, x := range [][]string{
		{"node.id", "not a uuid", home}, {"encryption.key", "not a key"}, {"sandbox.port", "not a port"}, {"sandbox/sandbox.log", "not a log\n"},
	} {
		restore := damage(x[0], x[1])
		try().fails(t, append(x[2:], filepath.Base(x[0]))...)
		restore()
	}
	if left := postgres(t, home); len(left) > 0 {
		t.Fatalf("got running Postgres processes %v, want none", left)
	}
	damage("dev.json", "{ not json")
	p := dev(t, home, freePort(t))
	repaired := readDevFile(t, home)
	if a := get(t, repaired.BaseURL+"/public/v1/is-connected", repaired.APIKey); a.Status != http.StatusOK {
		t.Fatalf("got %v with the repaired key, want 200", a)
	}
	signIn(t, repaired)
	p.signal(syscall.SIGINT)
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit %d: %s", code, p.errors())
	}
}

// pasteLines runs the printed commands in a shell and waits until the post is on the sandbox.
func pasteLines(t *testing.T, out string, n devFile) {
	t.Helper()
	var lines []string
	for _, l := range strings.Split(out, "\n") {
		if strings.HasPrefix(l, "M=") || strings.HasPrefix(l, "T=") || strings.HasPrefix(l, "curl ") {
			lines = append(lines, l)
		}
	}
	if len(lines) != 3 {
		t.Fatalf("got %d commands in %s, want 3", len(lines), out)
	}
	cmd := exec.CommandContext(t.Context(), "sh")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the printed commands failed: %v: %s", err, printed)
	}
	id := regexp.MustCompile(`"postId":"([^"]+)"`).FindSubmatch(printed)
	if id == nil || !strings.Contains(string(printed), "Hello from Crier") {
		t.Fatalf("got %s, want the post", printed)
	}
	eventually(t, "the post on the sandbox", func() bool {
		return strings.Contains(get(t, n.BaseURL+"/public/v1/posts/"+string(id[1]), n.APIKey).Body, `"state":"PUBLISHED"`)
	})
	if a := get(t, n.BaseURL+"/sandbox/", ""); !strings.Contains(a.Body, "Hello from Crier") {
		t.Fatalf("got %v, want the post on the sandbox", a)
	}
}

// published checks the number of published posts of the demo channel.
func published(t *testing.T, n devFile, want int) {
	t.Helper()
	a := get(t, n.BaseURL+"/public/v1/posts?page=0", n.APIKey)
	if got := strings.Count(a.Body, `"state":"PUBLISHED"`); got != want {
		t.Fatalf("got %d published posts, want %d: %v", got, want, a)
	}
}

func signIn(t *testing.T, n devFile) {
	t.Helper()
	a, err := call.Do(t.Context(), http.DefaultClient, http.MethodPost, n.BaseURL+"/auth/login", map[string]string{"provider": "LOCAL", "email": n.Email, "password": n.Password})
	if err != nil || a.Status != http.StatusCreated || a.Cookie("auth") == "" {
		t.Fatalf("got %v, %v, want a session", a, err)
	}
}

func TestDev_RefusesInvalidHome(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, []string{"CRIER_HOME=" + file, "PORT=" + freePort(t)}, "dev").fails(t, file, "CRIER_HOME")
	run(t, []string{"CRIER_HOME=" + filepath.Join(file, "below"), "PORT=" + freePort(t)}, "dev").fails(t, file, "CRIER_HOME")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	r := run(t, []string{"CRIER_HOME=" + filepath.Join(t.TempDir(), "h"), "PORT=x", "API_LIMIT=-1"}, "dev")
	if r.code != 1 || !strings.Contains(r.errors, "PORT") {
		t.Fatalf("exit %d: %s", r.code, r.errors)
	}
}
