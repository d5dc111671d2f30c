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

// startLimit is for a busy machine.
const startLimit = 2 * time.Minute

// process is one program that is ended by its pid.
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
		runtime.LockOSThread() // the parent-death signal follows the thread that forked, so that thread must live as long
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // whoever waits for exited asks for the state
			close(p.exited)
		}
	}()
	return p, <-started
}

func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) } // fails only when it has ended already

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

// node is one place where the service runs: a home folder, a port and one process at a time.
type node struct {
	mu          sync.Mutex
	proc        *process
	binary, dir string
	address     string          // host:port
	door        *faultnet.Proxy // before its place in the cluster; nil when it is alone
	environment []string
	log         *os.File
}

// haltFile is where the node looks for the name of the point at which it is to stop.
func (n *node) haltFile() string { return filepath.Join(n.dir, "halt") }

func newNode(binary, dir string, environment []string) (*node, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	n := &node{binary: binary, dir: dir}
	var err error
	if n.address, err = freePort(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(n.address)
	if err != nil {
		return nil, err
	}
	if n.log, err = os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	n.environment = append(append([]string{}, environment...), "CRIER_HOME="+filepath.Join(dir, "home"), "PORT="+port, "CRIER_FAILPOINT="+n.haltFile())
	return n, nil
}

func freePort() (address string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// join gives the node a place in a cluster, behind a proxy.
func (n *node) join() error {
	inner, err := freePort()
	if err != nil {
		return err
	}
	if n.door, err = faultnet.Listen(loopback, inner); err != nil {
		return err
	}
	n.environment = append(n.environment, "CLUSTER_LISTEN="+inner, "CLUSTER_ADVERTISE="+n.door.Address)
	return nil
}

// kill ends the process; then nothing listens at its place in the cluster either.
func (n *node) kill() error {
	if p := n.current(); p != nil {
		p.kill()
	}
	if n.door == nil {
		return nil
	}
	return n.door.Close()
}

// start runs the service and returns when it listens.
func (n *node) start(ctx context.Context, offset time.Duration) error {
	if err := n.forget(); err != nil {
		return err
	}
	if n.door != nil {
		if err := n.door.Open(); err != nil {
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
		pause(ctx, 200*time.Millisecond) // it ended: the database is away
	}
}

func (n *node) current() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc
}

// ask requests a stop at a point, or at a point and a post.
func (n *node) ask(point string) error {
	fresh := n.haltFile() + ".new"
	if err := os.WriteFile(fresh, []byte(point), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, n.haltFile())
}

// hit is the post at which the node stopped itself; "" when it has not.
func (n *node) hit() string {
	raw, err := os.ReadFile(n.haltFile() + ".hit")
	if err != nil {
		return ""
	}
	return string(raw)
}

// forget takes a request back.
func (n *node) forget() error {
	for _, f := range []string{n.haltFile(), n.haltFile() + ".taken", n.haltFile() + ".hit"} {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// points are where a node may be asked to stop.
func points() []string {
	return []string{failpoint.Committing, failpoint.Committing, failpoint.Answered, failpoint.Prepared}
}

func pause(ctx context.Context, d time.Duration) {
	_ = clock.Sleep(ctx, d) // callers look at ctx by themselves
}
