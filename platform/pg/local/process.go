package local

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"crier/platform/fault"
)

const (
	leftoverWait  = 30 * time.Second
	immediateWait = 10 * time.Second
)

// process is a postmaster.
type process struct {
	pid  int
	done chan struct{} // closed when the child that we wait for has ended; nil when it is nobody's child
}

// startProcess starts cmd on a thread that lives as long as the child: the kernel's parent-death signal follows the thread that forked, not the process.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p, started := &process{done: make(chan struct{})}, make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // why it ended is in its log
		close(p.done)
	}()
	return p, <-started
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stopPostmaster asks for a fast shutdown and, when ctx ends, for an immediate one. It never kills outright: that would leave shared memory and backends behind.
func stopPostmaster(ctx context.Context, pid int, alive func() bool) error {
	err := signalAndWait(ctx, pid, syscall.SIGINT, alive)
	if err == nil || ctx.Err() == nil {
		return err
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), immediateWait)
	defer cancel()
	return signalAndWait(after, pid, syscall.SIGQUIT, alive)
}

func signalAndWait(ctx context.Context, pid int, sig syscall.Signal, alive func() bool) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fault.Wrap(fault.Unavailable, "local.Stop", "Postgres (process "+strconv.Itoa(pid)+") cannot be stopped by this user.", err)
	}
	for alive() {
		if err := pause(ctx, poll); err != nil {
			return fault.Wrap(fault.Unavailable, "local.Stop", "Postgres (process "+strconv.Itoa(pid)+") is still stopping.", err)
		}
	}
	return nil
}

// pidFile reads the process id and the port that a postmaster wrote; zeroes when there is none.
func (p place) pidFile() (pid, port int) {
	b, err := os.ReadFile(p.join("data/postmaster.pid"))
	if err != nil {
		return 0, 0
	}
	lines := strings.Split(string(b), "\n")
	number := func(i int) int {
		if i >= len(lines) {
			return 0
		}
		n, err := strconv.Atoi(strings.TrimSpace(lines[i]))
		if err != nil {
			return 0
		}
		return n
	}
	return number(0), number(3)
}

// postmaster is pidFile for a server of this very folder that lives.
func (p place) postmaster() (pid, port int) {
	pid, port = p.pidFile()
	if !isPostmaster(pid, p.data()) {
		return 0, 0
	}
	return pid, port
}

// stopLeftover ends what a killed run left, and makes a stale pid file harmless when its number belongs to another process now.
func (p place) stopLeftover(ctx context.Context, log *slog.Logger) error {
	pid, _ := p.pidFile()
	if pid <= 0 {
		return nil
	}
	alive := func() bool { return isPostmaster(pid, p.data()) }
	if alive() {
		log.Info("stopping the Postgres that an earlier run left", "process", pid)
		ctx, cancel := context.WithTimeout(ctx, leftoverWait)
		defer cancel()
		return stopPostmaster(ctx, pid, alive)
	}
	if syscall.Kill(pid, 0) != nil {
		return nil // Postgres sees by itself that the file is stale
	}
	return p.adoptPidFile()
}

// adoptPidFile writes our number over a stranger's. Postgres takes its own parent's number for stale, and still
// checks the shared memory named in the file for backends that are left, which it could not if the file were removed.
func (p place) adoptPidFile() error {
	b, err := os.ReadFile(p.join("data/postmaster.pid"))
	if err == nil {
		_, rest, _ := bytes.Cut(b, []byte("\n"))
		err = p.write("data/postmaster.pid", append([]byte(strconv.Itoa(os.Getpid())+"\n"), rest...))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, "local.Start", "The stale file "+p.join("data/postmaster.pid")+" cannot be repaired.", err)
	}
	return nil
}
