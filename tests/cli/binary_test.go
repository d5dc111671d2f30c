package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"crier/tests/call"
	"crier/tests/syncbuffer"
)

const patience = 90 * time.Second

// binary builds the binary once for all tests and returns its path.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "crier-cli-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "crier")
	out, err := exec.Command("go", "build", "-o", path, "crier/apps/crier").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path)) // only a temporary folder
	}
	os.Exit(code)
}

// command returns a command of the binary. Its environment has only these variables and PATH.
func command(t *testing.T, vars []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, vars...)
	cmd.Dir = t.TempDir()
	return cmd
}

// result is the exit code and the output of a run.
type result struct {
	code        int
	out, errors string
}

// run runs a command that ends on its own.
func run(t *testing.T, vars []string, args ...string) result {
	t.Helper()
	return finish(t, command(t, vars, args...))
}

// finish starts a command and waits for its end.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer watchdog.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{code: cmd.ProcessState.ExitCode(), out: out.String(), errors: errs.String()}
}

// fails checks that the exit code is 1 and that stderr is one sentence that contains all the words.
func (r result) fails(t *testing.T, words ...string) {
	t.Helper()
	if r.code != 1 || strings.Count(strings.TrimSpace(r.errors), "\n") != 0 || !strings.HasPrefix(r.errors, "crier: ") || strings.Contains(r.errors, "goroutine") {
		t.Fatalf("got exit %d, stderr %q, want exit 1 and one line of error", r.code, r.errors)
	}
	for _, w := range words {
		if !strings.Contains(r.errors, w) {
			t.Errorf("got stderr %q, want %q in it", r.errors, w)
		}
	}
}

// program is a running `crier dev` or `crier serve`.
type program struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error
	out    syncbuffer.Buffer
	stderr syncbuffer.Buffer
}

func (p *program) errors() string { return p.stderr.String() }

func (p *program) stdout() string { return p.out.String() }

// begin starts the command and waits until its stdout contains the word or the command ends.
func begin(t *testing.T, word string, vars []string, args ...string) *program {
	t.Helper()
	p := &program{cmd: command(t, vars, args...), ended: make(chan struct{})}
	pipe, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		p.read(pipe, word, sync.OnceFunc(func() { close(ready) }))
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() { p.signal(syscall.SIGTERM); p.wait(t) })
	select {
	case <-ready:
	case <-p.ended:
		t.Fatalf("the command ended early: %v, %s", p.err, p.errors())
	case <-time.After(patience):
		t.Fatalf("got stdout %q, want %q in it", p.stdout(), word)
	}
	return p
}

func (p *program) read(r io.Reader, word string, ready func()) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		_, _ = p.out.Write([]byte(lines.Text() + "\n")) // never fails
		if strings.Contains(lines.Text(), word) {
			ready()
		}
	}
}

func (p *program) signal(s syscall.Signal) {
	select {
	case <-p.ended:
	default:
		_ = p.cmd.Process.Signal(s) // it may have ended already
	}
}

// wait waits until the program ends and returns the exit code.
func (p *program) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("the command did not end within %s", patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen within %s", what, patience)
		}
	}
}

func get(t *testing.T, url, key string) call.Answer {
	t.Helper()
	a, err := call.Do(t.Context(), http.DefaultClient, http.MethodGet, url, nil, "Authorization", key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// postgres returns the process ids of Postgres servers whose data folder is below home.
func postgres(t *testing.T, home string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || !bytes.Contains(line, []byte("postgres\x00-D\x00")) {
			continue
		}
		// The server's working directory is its data folder, however the path was written.
		if in, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd")); err == nil && strings.HasPrefix(in, home+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}
