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

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// shellBlocks returns the blocks of shell commands in a page, whose path is below the root of the
// module.
func shellBlocks(t *testing.T, page string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// TestReadme_FirstPost types the blocks of the README, on other ports and with another data folder.
func TestReadme_FirstPost(t *testing.T) {
	t.Parallel()
	blocks := shellBlocks(t, "README.md")
	if len(blocks) != 3 || blocks[0] != "go run ./apps/crier dev\n" || blocks[2] != "ops/test\n" {
		t.Fatalf("got the blocks %q, want crier dev, a first post, and the gate, which runs this test", blocks)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	home, port := t.TempDir(), freePort(t)
	moved := strings.NewReplacer("localhost:4000", "localhost:"+port, ".crier/", home+"/")
	script := moved.Replace(strings.Join([]string{
		"set -eu",
		"trap \"trap '' INT; kill -INT 0; wait\" EXIT # stops crier dev with its Postgres",
		strings.TrimSpace(blocks[0]) + " &",
		"until [ -s .crier/dev.json ] && curl -sf http://localhost:4000/health; do sleep 1; done",
		blocks[1],
		"until curl -s http://localhost:4000/sandbox/ | grep 'Hello from Crier'; do sleep 1; done",
	}, "\n"))
	typed := shell(t, script, root, map[string]string{"HOME": home, "CRIER_HOME": home, "PORT": port})
	if !strings.Contains(typed, `"postId"`) {
		t.Errorf("got\n%s\nwant the id of a post", typed)
	}
}

// TestReadme_FirstTenMinutes types the blocks of the install page, in one shell and with a separate
// home folder.
func TestReadme_FirstTenMinutes(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -eu\n" + strings.Join(shellBlocks(t, "docs/self-hosting/install.md"), "")
	home, sandbox := t.TempDir(), freePort(t)
	typed := shell(t, script, root, map[string]string{
		"HOME": home, "DATABASE_URL": dbtest.Blank(t), "PORT": freePort(t), "SANDBOX_PORT": sandbox,
	})
	judge := sandboxtest.Judge{URL: "http://127.0.0.1:" + sandbox}
	posts, err := judge.Posts(t.Context(), "me")
	if err != nil || len(posts) != 1 || posts[0].Text != "Hello from Crier" {
		t.Errorf("got the posts %v in the sandbox, %v, want the one of the page\n%s", posts, err, typed)
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

// freePort returns a loopback port on which nothing listened a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return fmt.Sprint(ln.Addr().(*net.TCPAddr).Port)
}

// shell runs a script in a folder and returns its output. Processes that it leaves running end with
// the test. The script's environment has only PATH, Go's caches and the settings.
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
	// A pipe would stay open as long as the service runs.
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Kill fails only if all processes have ended.
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(5 * time.Minute):
		err = fmt.Errorf("not done in 5 minutes")
	}
	typed, readErr := os.ReadFile(out.Name())
	if err != nil || readErr != nil {
		t.Fatalf("the commands of the page: %v %v\n%s", err, readErr, typed)
	}
	return string(typed)
}
