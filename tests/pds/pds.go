// Package pds runs the real Bluesky PDS as a test server.
package pds

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

var (
	//go:embed server.mjs
	serverScript string
	//go:embed appview.mjs
	appViewScript string
)

// startLimit limits the time from exec to the first response. An idle machine needs about four
// seconds.
const startLimit = 2 * time.Minute

// Server is a PDS with an in-memory directory and an empty data folder. Handles end in ".test" and
// no invite is needed. Of the AppView, it has only the calls that count followers, likes and so on.
type Server struct {
	// URL is http://127.0.0.1:port, without a trailing slash.
	URL string

	appView string
	process *process
	client  *http.Client
}

// Start runs a PDS until the test ends, and installs it first if this machine has none. It fails
// the test if the PDS cannot be installed or started, or if the server dies before the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s, stop, err := Run(t.Context(), testLog{t: t})
	if err != nil {
		t.Fatalf("pds: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("pds: log:\n%s", s.process.tail())
		}
		if err := stop(); err != nil {
			t.Errorf("pds: %v", err)
		}
	})
	return s
}

// Run runs a PDS until stop is called, and installs it first if this machine has none. The
// installer writes its progress to log. An error from stop means that the server had died before.
func Run(ctx context.Context, log io.Writer) (s *Server, stop func() error, err error) {
	dir, err := Install(ctx, log)
	if err != nil {
		return nil, nil, fmt.Errorf("install: %w", err)
	}
	p, err := launch(dir)
	if err != nil {
		return nil, nil, err
	}
	s = &Server{process: p, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	failed := func(err error) error { return errors.Join(fmt.Errorf("%w\n%s", err, p.tail()), p.stop()) }
	s.URL, s.appView, err = p.ready(ctx)
	if err != nil {
		return nil, nil, failed(err)
	}
	if _, err := s.get(ctx, "_health", nil); err != nil {
		return nil, nil, failed(err)
	}
	return s, p.stop, nil
}

type process struct {
	cmd   *exec.Cmd
	data  string // its folder
	stdin io.Closer
	// first receives the first line of the standard output. It is closed without a line if there
	// was none.
	first chan string
	// exited is closed once the process has ended.
	exited chan struct{}
}

// launch starts Node.js with the script. The script ends when its standard input does, so it does
// not outlive a killed test binary.
func launch(dir string) (p *process, err error) {
	p = &process{first: make(chan string, 1), exited: make(chan struct{})}
	p.data, err = os.MkdirTemp("", "crier-pds-")
	if err != nil {
		return nil, err
	}
	stderr, err := os.Create(p.log("stderr"))
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p.cmd = command(dir, p.data, p.log("pds"))
	p.cmd.Stderr = stderr
	p.stdin, err = p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.watch(stdout)
	return p, nil
}

func (p *process) log(name string) string { return filepath.Join(p.data, name+".log") }

func command(dir, data, log string) *exec.Cmd {
	cmd := exec.Command(node(dir), "--input-type=module", "--eval", appViewScript+serverScript, data)
	cmd.Dir = dir // imports of an evaluated script are relative to the working folder
	cmd.Env = []string{"TMPDIR=" + data, "LOG_ENABLED=true", "LOG_LEVEL=warn", "LOG_DESTINATION=" + log}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func (p *process) watch(stdout io.Reader) {
	defer close(p.exited)
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	if err != nil {
		line = "" // part of a line, from a process that ends
	}
	if line != "" {
		p.first <- line
	}
	close(p.first)
	io.Copy(io.Discard, lines) // returns when the process ends
	p.cmd.Wait()               // stop reports how the process ended
}

func (p *process) ready(ctx context.Context) (url, appView string, err error) {
	select {
	case line := <-p.first:
		var answer struct{ URL, AppView string }
		if json.Unmarshal([]byte(line), &answer) != nil || answer.URL == "" {
			return "", "", fmt.Errorf("it did not start: %q", line)
		}
		return answer.URL, answer.AppView, nil
	case <-ctx.Done():
		return "", "", fmt.Errorf("it is not ready: %w", ctx.Err())
	}
}

func (p *process) stop() (err error) {
	select {
	case <-p.exited:
		err = fmt.Errorf("it died by itself: %v\n%s", p.cmd.ProcessState, p.tail())
	default:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails only if the group has ended
	_ = p.stdin.Close()                                   // nothing was written
	<-p.exited
	return errors.Join(err, os.RemoveAll(p.data))
}

// tail returns the last lines in the logs.
func (p *process) tail() string {
	const most = 8 << 10
	out := ""
	for _, name := range []string{"stderr", "pds"} {
		text, err := os.ReadFile(p.log(name))
		out += fmt.Sprintf("%s: %v\n%s\n", name, err, text[max(0, len(text)-most):])
	}
	return out
}

// node returns the path of the Node.js that is installed for this machine.
func node(dir string) string {
	return filepath.Join(nodeHome(dir), "bin", "node")
}

func nodeHome(dir string) string {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-"+arch)
}

type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

// Node returns the path of the installed Node.js, and installs it first if this machine has none.
// The installer writes its progress to log. This Node.js runs TypeScript without flags.
func Node(ctx context.Context, log io.Writer) (string, error) {
	dir, err := Install(ctx, log)
	if err != nil {
		return "", err
	}
	return node(dir), nil
}
