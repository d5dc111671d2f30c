package e2e

import (
	"bytes"
	"crier/tests/suite"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the path of the binary, built before the first test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(built(m))
}

func built(m *testing.M) int {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // the tests mostly wait, so more than one per CPU can run
		if err := flag.Set("test.parallel", "6"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	dir, err := os.MkdirTemp("", "crier-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "crier")
	build := exec.Command("go", "build", "-o", binary, "crier/apps/crier")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the binary: %v\n%s", err, out)
		return 1
	}
	return suite.Run(m)
}

// process is one run of the service.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	exited  chan struct{}
	address string // host:port
}

// startLimit is generous because the machine may be busy. An idle one needs a second.
const startLimit = time.Minute

// launch runs "crier serve" and returns once it is ready.
func launch(t testing.TB, settings map[string]string, log *record) *process {
	t.Helper()
	cmd := exec.Command(binary, "serve")
	cmd.Env = []string{}
	for name, v := range settings {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	ready := log.begin()
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &process{cmd: cmd, exited: make(chan struct{}), started: time.Now()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // callers that wait for exited use ProcessState
		close(p.exited)
	}()
	t.Cleanup(p.kill)
	select {
	case p.address = <-ready:
	case <-p.exited:
		t.Fatalf("the service ended instead of starting: %v", cmd.ProcessState)
	case <-time.After(startLimit):
		t.Fatalf("the service was not ready within %s", startLimit)
	}
	return p
}

// kill sends SIGKILL to the process group and returns when the process has ended.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails only if it has ended
	<-p.exited
}

// record is the log of a service, across restarts.
type record struct {
	mu    sync.Mutex
	all   bytes.Buffer
	line  []byte
	ready chan string
}

func (r *record) begin() <-chan string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready, r.line = make(chan string, 1), nil
	r.all.WriteString("--- start\n")
	return r.ready
}

// Write appends to the log. It sends the address in the line "crier is ready" to the channel ready.
func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.Write(b)
	r.line = append(r.line, b...)
	for {
		end := bytes.IndexByte(r.line, '\n')
		if end < 0 {
			return len(b), nil
		}
		var entry struct{ Msg, Address string }
		if json.Unmarshal(r.line[:end], &entry) == nil && entry.Msg == "crier is ready" {
			r.ready <- entry.Address
		}
		r.line = r.line[end+1:]
	}
}

// String returns the log without the records of requests.
func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out strings.Builder
	for line := range strings.Lines(r.all.String()) {
		if !strings.Contains(line, `"level":"INFO","msg":"request"`) {
			out.WriteString(line)
		}
	}
	return out.String()
}
