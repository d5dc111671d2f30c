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

type notes struct {
	BaseURL, APIKey, Email, Password, OrganizationID, ChannelID, SandboxURL string
	Channels                                                                map[string]string
}

func devNotes(t *testing.T, home string) (n notes) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(home, "dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		t.Fatal(err)
	}
	if n.BaseURL == "" || n.APIKey == "" || n.Email == "" || n.Password == "" || n.OrganizationID == "" || n.ChannelID == "" {
		t.Fatalf("dev.json lacks something: %s", raw)
	}
	return n
}

func dev(t *testing.T, home, port string) *program {
	t.Helper()
	return begin(t, "Ctrl-C stops everything.", []string{"CRIER_HOME=" + home, "PORT=" + port}, "dev")
}

// TestDev lives through one newcomer's day on one data folder: the steps build on one another.
func TestDev(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed") // as /root is
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	home, port := filepath.Join(closed, "home"), freePort(t)
	p := dev(t, home, port)
	n := devNotes(t, home)
	if n.BaseURL != "http://localhost:"+port {
		t.Fatalf("%+v", n)
	}
	out := p.stdout()
	for _, word := range []string{n.BaseURL + "/docs", n.BaseURL + "/sandbox/", n.Email, n.Password, n.APIKey, n.ChannelID, filepath.Join(home, "dev.json")} {
		if !strings.Contains(out, word) {
			t.Errorf("%q is not printed in %s", word, out)
		}
	}
	if p.errors() != "" {
		t.Errorf("stderr: %s", p.errors())
	}
	for _, path := range []string{"/docs", "/sandbox/", "/health", "/openapi.json"} {
		if a := get(t, n.BaseURL+path, ""); a.Status != http.StatusOK {
			t.Errorf("%s: %v", path, a)
		}
	}
	pasteLines(t, out, n)
	signIn(t, n)

	t.Run("a second one on the same folder is refused", func(t *testing.T) {
		run(t, []string{"CRIER_HOME=" + home, "PORT=" + freePort(t)}, "dev").fails(t, home)
	})
	t.Run("a taken port is refused and leaves nothing behind", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "home")
		run(t, []string{"CRIER_HOME=" + other, "PORT=" + port}, "dev").fails(t, port, "PORT")
		if left := postgres(t, other); len(left) > 0 {
			t.Fatalf("Postgres runs on: %v", left)
		}
	})
	t.Run("Ctrl-C ends everything", func(t *testing.T) {
		p.signal(syscall.SIGINT)
		if code := p.wait(t); code != 0 || p.errors() != "" {
			t.Fatalf("exit %d: %s", code, p.errors())
		}
		if left := postgres(t, home); len(left) > 0 {
			t.Fatalf("Postgres runs on: %v", left)
		}
	})
	t.Run("the next start keeps key and channel, and survives kill -9", func(t *testing.T) {
		p := dev(t, home, port)
		if again := devNotes(t, home); again.APIKey != n.APIKey || again.ChannelID != n.ChannelID || again.Password != n.Password {
			t.Fatalf("%+v became %+v", n, again)
		}
		published(t, n, 1)
		p.signal(syscall.SIGKILL)
		p.wait(t)
		p = dev(t, home, freePort(t))
		again := devNotes(t, home)
		if again.APIKey != n.APIKey || again.ChannelID != n.ChannelID || again.BaseURL == n.BaseURL {
			t.Fatalf("%+v became %+v", n, again)
		}
		published(t, again, 1)
		pasteLines(t, p.stdout(), again)
		p.signal(syscall.SIGTERM)
		if code := p.wait(t); code != 0 || p.errors() != "" {
			t.Fatalf("exit %d: %s", code, p.errors())
		}
	})
	t.Run("broken files are named, or healed", func(t *testing.T) { brokenFiles(t, home, n) })
	t.Run("without its folder it begins anew, and warns of its settings", func(t *testing.T) {
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
		p := begin(t, "Ctrl-C stops everything.", []string{"CRIER_HOME=" + home, "PORT=" + port, "BASE_URL=http://crier.test"}, "dev")
		if !strings.Contains(p.errors(), "BASE_URL is an http address") {
			t.Errorf("no warning: %q", p.errors())
		}
		anew := devNotes(t, home)
		// The same address can be made once in a database.
		if anew.Email != n.Email || anew.APIKey == n.APIKey || anew.OrganizationID == n.OrganizationID {
			t.Errorf("%+v follows %+v", anew, n)
		}
		p.signal(syscall.SIGINT)
		if code := p.wait(t); code != 0 {
			t.Errorf("exit %d: %s", code, p.errors())
		}
	})
}

// brokenFiles spoils one file of a stopped home at a time.
func brokenFiles(t *testing.T, home string, n notes) {
	spoil := func(name, content string) (restore func()) {
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
		restore := spoil(x[0], x[1])
		try().fails(t, append(x[2:], filepath.Base(x[0]))...)
		restore()
	}
	if left := postgres(t, home); len(left) > 0 {
		t.Fatalf("Postgres runs on: %v", left)
	}
	spoil("dev.json", "{ not json")
	p := dev(t, home, freePort(t))
	healed := devNotes(t, home)
	if a := get(t, healed.BaseURL+"/public/v1/is-connected", healed.APIKey); a.Status != http.StatusOK {
		t.Fatal(a)
	}
	signIn(t, healed)
	p.signal(syscall.SIGINT)
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit %d: %s", code, p.errors())
	}
}

// pasteLines runs what dev printed in a plain shell and waits for the post on the sandbox.
func pasteLines(t *testing.T, out string, n notes) {
	t.Helper()
	var lines []string
	for _, l := range strings.Split(out, "\n") {
		if strings.HasPrefix(l, "M=") || strings.HasPrefix(l, "T=") || strings.HasPrefix(l, "curl ") {
			lines = append(lines, l)
		}
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines to paste in %s", len(lines), out)
	}
	cmd := exec.CommandContext(t.Context(), "sh")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	id := regexp.MustCompile(`"postId":"([^"]+)"`).FindSubmatch(said)
	if id == nil || !strings.Contains(string(said), "Hello from Crier") {
		t.Fatalf("the lines say %s", said)
	}
	eventually(t, "the post on the sandbox", func() bool {
		return strings.Contains(get(t, n.BaseURL+"/public/v1/posts/"+string(id[1]), n.APIKey).Body, `"state":"PUBLISHED"`)
	})
	if a := get(t, n.BaseURL+"/sandbox/", ""); !strings.Contains(a.Body, "Hello from Crier") {
		t.Fatalf("the sandbox shows %v", a)
	}
}

// published wants the posts of the demo channel that are out.
func published(t *testing.T, n notes, want int) {
	t.Helper()
	a := get(t, n.BaseURL+"/public/v1/posts?page=0", n.APIKey)
	if got := strings.Count(a.Body, `"state":"PUBLISHED"`); got != want {
		t.Fatalf("%d published posts in %v", got, a)
	}
}

func signIn(t *testing.T, n notes) {
	t.Helper()
	a, err := call.Do(t.Context(), http.DefaultClient, http.MethodPost, n.BaseURL+"/auth/login", map[string]string{"provider": "LOCAL", "email": n.Email, "password": n.Password})
	if err != nil || a.Status != http.StatusCreated || a.Cookie("auth") == "" {
		t.Fatalf("log-in: %v, %v", a, err)
	}
}

func TestDevRefusesABadHome(t *testing.T) {
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
