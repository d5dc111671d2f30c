package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"crier/platform/clock"
	"crier/platform/failpoint"
	"crier/tests/faultnet"
)

// startLimit is generous because the machine may be busy.
const startLimit = 2 * time.Minute

// process is one running program.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

func launch(log *os.File, environment []string, path string, args ...string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stderr, cmd.Stdout = environment, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p, started := &process{cmd: cmd, exited: make(chan struct{})}, make(chan error, 1)
	go func() {
		// Pdeathsig fires when the thread that forked ends, so the thread must live as long as the
		// process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // readers of exited use ProcessState
			close(p.exited)
		}
	}()
	return p, <-started
}

// signal sends sig to the process. It fails only if the process has ended.
func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// node is one installation of the service: a home folder, a port and at most one process at a time.
type node struct {
	mu          sync.Mutex
	proc        *process
	binary, dir string
	address     string // host:port
	// clusterProxy is the proxy in front of the node's cluster address, or nil without a cluster.
	clusterProxy *faultnet.Proxy
	environment  []string
	log          *os.File
}

// failpointFile is the file that names the failpoint at which the process must stop.
func (n *node) failpointFile() string { return filepath.Join(n.dir, "failpoint") }

func newNode(binary, dir string, environment []string) (*node, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	n := &node{binary: binary, dir: dir}
	var err error
	n.address, err = freePort()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(n.address)
	if err != nil {
		return nil, err
	}
	n.log, err = os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	n.environment = append(append([]string{}, environment...), "CRIER_HOME="+filepath.Join(dir, "home"), "PORT="+port,
		"CRIER_FAILPOINT="+n.failpointFile())
	return n, nil
}

func freePort() (address string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// join gives the node a cluster address behind a proxy.
func (n *node) join() error {
	inner, err := freePort()
	if err != nil {
		return err
	}
	n.clusterProxy, err = faultnet.Listen(loopback, inner)
	if err != nil {
		return err
	}
	n.environment = append(n.environment, "CLUSTER_LISTEN="+inner, "CLUSTER_ADVERTISE="+n.clusterProxy.Address)
	return nil
}

// kill ends the process and closes its cluster address.
func (n *node) kill() error {
	if p := n.current(); p != nil {
		p.kill()
	}
	if n.clusterProxy == nil {
		return nil
	}
	return n.clusterProxy.Close()
}

// start runs the service with a clock that is off by offset. It returns when the service listens.
func (n *node) start(ctx context.Context, offset time.Duration) error {
	if err := n.cancelStop(); err != nil {
		return err
	}
	if n.clusterProxy != nil {
		if err := n.clusterProxy.Open(); err != nil {
			return err
		}
	}
	end := time.Now().Add(startLimit)
	for {
		proc, err := launch(n.log, append(n.environment, "CRIER_CLOCK_OFFSET="+offset.String()), n.binary, "serve")
		if err != nil {
			return err
		}
		n.mu.Lock()
		n.proc = proc
		n.mu.Unlock()
		for !proc.ended() && time.Now().Before(end) && ctx.Err() == nil {
			if conn, err := net.DialTimeout("tcp", n.address, time.Second); err == nil {
				return conn.Close()
			}
			pause(ctx, 20*time.Millisecond)
		}
		proc.kill()
		if ctx.Err() != nil || time.Now().After(end) {
			return errors.Join(ctx.Err(), fmt.Errorf("the node in %s did not start", n.dir))
		}
		pause(ctx, 200*time.Millisecond) // the process ended because the database is down
	}
}

func (n *node) current() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc
}

// requestStop requests a stop at a failpoint. The point may be followed by a space and a post id.
func (n *node) requestStop(point string) error {
	fresh := n.failpointFile() + ".new"
	if err := os.WriteFile(fresh, []byte(point), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, n.failpointFile())
}

// stoppedAt returns the id of the post at which the process stopped, or "" if it has not stopped
// yet.
func (n *node) stoppedAt() string {
	raw, err := os.ReadFile(n.failpointFile() + ".hit")
	if err != nil {
		return ""
	}
	return string(raw)
}

// cancelStop withdraws the request of requestStop.
func (n *node) cancelStop() error {
	for _, f := range []string{n.failpointFile(), n.failpointFile() + ".taken", n.failpointFile() + ".hit"} {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// failpoints returns the failpoints at which a process may be stopped. Repetition gives more
// weight.
func failpoints() []string {
	return []string{failpoint.Committing, failpoint.Committing, failpoint.Answered, failpoint.Prepared}
}

func pause(ctx context.Context, d time.Duration) {
	_ = clock.Sleep(ctx, d) // callers check ctx
}
