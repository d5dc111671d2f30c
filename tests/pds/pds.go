// Package pds runs the real Bluesky PDS as a test server.
package pds

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
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

//go:embed server.mjs
var script string

// startLimit bounds the way from exec to the first answer; a quiet machine needs about four seconds.
const startLimit = 2 * time.Minute

// Server is one PDS with its own in-memory directory and its own empty data folder.
// Handles end in ".test", invites are off, and there is no AppView: app.bsky.* reads do not answer.
type Server struct {
	URL string // http://127.0.0.1:port, no trailing slash

	client *http.Client
}

// Start runs a PDS until the test ends, installing it first when this machine has none.
// It fails the test when the install or the start is impossible, and when the server dies before the test does.
func Start(t testing.TB) *Server {
	t.Helper()
	dir, err := Install(t.Context(), testLog{t})
	if err != nil {
		t.Fatalf("pds: install: %v", err)
	}
	p := launch(t, dir)
	s := &Server{URL: p.ready(t), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	if err := s.get(ctx, "_health", nil, nil); err != nil {
		t.Fatalf("pds: health: %v\n%s", err, p.tail())
	}
	return s
}

type process struct {
	cmd    *exec.Cmd
	first  chan string   // the first line of standard output; closed without one when there was none
	exited chan struct{} // closed when the process has ended
	logs   []string      // files to show when something is wrong
}

// launch starts node on the script and arranges its end. The script itself ends with its standard input,
// so it does not outlive a test binary that is killed.
func launch(t testing.TB, dir string) *process {
	t.Helper()
	data := t.TempDir()
	stderr, err := os.Create(filepath.Join(data, "stderr.log"))
	if err != nil {
		t.Fatalf("pds: %v", err)
	}
	defer stderr.Close()
	log := filepath.Join(data, "pds.log")
	cmd := command(dir, data, log)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("pds: %v", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("pds: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("pds: start: %v", err)
	}
	p := &process{cmd: cmd, first: make(chan string, 1), exited: make(chan struct{}), logs: []string{stderr.Name(), log}}
	go p.watch(stdout)
	t.Cleanup(func() { p.stop(t, stdin) })
	return p
}

func command(dir, data, log string) *exec.Cmd {
	cmd := exec.Command(node(dir), "--input-type=module", "--eval", script, data)
	cmd.Dir = dir // imports of an evaluated script resolve from the working folder
	cmd.Env = []string{"TMPDIR=" + data, "LOG_ENABLED=true", "LOG_LEVEL=warn", "LOG_DESTINATION=" + log}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func (p *process) watch(stdout io.Reader) {
	defer close(p.exited)
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); err == nil {
		p.first <- line
	}
	close(p.first)
	io.Copy(io.Discard, lines) // ends when the process does
	p.cmd.Wait()               // its error is always "killed" or told by stop
}

func (p *process) ready(t testing.TB) string {
	t.Helper()
	select {
	case line, ok := <-p.first:
		var answer struct{ URL string }
		if !ok || json.Unmarshal([]byte(line), &answer) != nil || answer.URL == "" {
			t.Fatalf("pds: did not start: %q\n%s", line, p.tail())
		}
		return answer.URL
	case <-time.After(startLimit):
		t.Fatalf("pds: not ready within %s\n%s", startLimit, p.tail())
	}
	return ""
}

func (p *process) stop(t testing.TB, stdin io.Closer) {
	select {
	case <-p.exited:
		t.Errorf("pds: died before the test ended: %v\n%s", p.cmd.ProcessState, p.tail())
	default:
		if t.Failed() {
			t.Logf("pds: log:\n%s", p.tail())
		}
	}
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails only when the group is gone
	stdin.Close()
	<-p.exited
}

// tail gives the last lines of what the process wrote, for a failing test.
func (p *process) tail() string {
	const most = 8 << 10
	out := ""
	for _, name := range p.logs {
		text, err := os.ReadFile(name)
		if err != nil {
			out += fmt.Sprintf("%s: %v\n", filepath.Base(name), err)
			continue
		}
		out += fmt.Sprintf("%s:\n%s\n", filepath.Base(name), text[max(0, len(text)-most):])
	}
	return out
}

// node is the Node.js that the install brought for this machine.
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
