package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"crier/platform/env"
	"crier/tests/dbtest"
	"crier/tests/sandboxtest"
)

// firstMinutes is the heading of the section that TestReadme_FirstTenMinutes types.
const firstMinutes = "## The first ten minutes with `crier serve`\n"

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestReadme_FirstTenMinutes runs the commands of the README, in one shell and with a home folder of its own.
func TestReadme_FirstTenMinutes(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), firstMinutes)
	if !ok {
		t.Fatalf("README.md has no section %q", firstMinutes)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	script := "set -eu\n"
	for _, block := range shellBlock.FindAllStringSubmatch(section, -1) {
		script += block[1]
	}
	home, sandbox := t.TempDir(), freePort(t)
	typed := shell(t, script, root, map[string]string{
		"HOME": home, "DATABASE_URL": dbtest.Blank(t), "PORT": freePort(t), "SANDBOX_PORT": sandbox,
	})
	judge := sandboxtest.Judge{URL: "http://127.0.0.1:" + sandbox}
	posts, err := judge.Posts(t.Context(), "me")
	if err != nil || len(posts) != 1 || posts[0].Text != "Hello from Crier" {
		t.Errorf("got the posts %v in the sandbox, %v, want the one of the README\n%s", posts, err, typed)
	}
	if !strings.Contains(typed, `"state":"PUBLISHED"`) || !strings.Contains(typed, "crier_") {
		t.Errorf("got\n%s\nwant a key and a published post", typed)
	}
	for _, name := range []string{"serve.log", "sandbox.log"} {
		log, err := os.ReadFile(filepath.Join(home, "crier-first", name))
		if err != nil || bytes.Contains(log, []byte("ERROR")) {
			t.Errorf("%s: %v\n%s", name, err, log)
		}
	}
}

// freePort returns a port of loopback on which nothing listened a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return fmt.Sprint(ln.Addr().(*net.TCPAddr).Port)
}

// shell runs a script in a folder and returns its output. What it leaves running ends with the test. Of the
// environment the script gets the PATH, the caches of Go, and the settings.
func shell(t *testing.T, script, dir string, settings map[string]string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	for name, v := range settings {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	path, _ := env.OS()("PATH")
	cmd.Env = append(cmd.Env, "PATH="+path)
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT", "GOPROXY", "GOFLAGS", "GOTOOLCHAIN"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(string(value)))
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "typed"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out // a file: a pipe would stay open as long as the service runs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // fails only if all have ended
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(5 * time.Minute):
		err = fmt.Errorf("not done in 5 minutes")
	}
	typed, readErr := os.ReadFile(out.Name())
	if err != nil || readErr != nil {
		t.Fatalf("the commands of the README: %v %v\n%s", err, readErr, typed)
	}
	return string(typed)
}
