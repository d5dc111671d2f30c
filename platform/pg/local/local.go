// Package local runs a Postgres of our own on loopback, for development and for tests, from the machine's binaries or
// from npm's.
package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
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
	leftoverWait  = 30 * time.Second
	immediateWait = 10 * time.Second
	maxDeaths     = 5 // in a row, with less than calm between them
	calm          = time.Minute
)

// Config says where the data is kept and how careful the server is with it.
type Config struct {
	// Dir is made when it is absent and kept between runs. It may lie below folders that only root may enter.
	Dir string
	// Log is slog.Default when it is nil.
	Log *slog.Logger
	// Durable is false for a server without fsync: a crash of the machine may lose its data.
	Durable bool
	// Detached lets the server outlive this process and be shared: Start joins one that runs. A server that is not
	// detached ends with this process, however that ends.
	Detached bool
	// Preload names libraries to load at start, each only when this Postgres has it.
	Preload []string
	// Extra holds more settings, "name=value".
	Extra []string
}

// Server is a running Postgres that accepts connections by password on loopback TCP only.
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

	mu    sync.Mutex // held while the server is started or stopped; guards what follows
	pid   int        // of the server that launch started
	guard *exec.Cmd  // see guardScript; nil when detached
	lock  *os.File   // of the folder; nil when detached and when stopped
}

// Start brings up the server in cfg.Dir and returns when it answers. What a killed run left behind is stopped or
// finished first. Two runs in one folder are refused unless detached. The error is a fault with one sentence for people.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	pl, lock, err := enter(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, place: pl, lock: lock}
	s.stopping, s.stop = context.WithCancel(context.Background())
	if err = s.open(ctx); err != nil || cfg.Detached {
		_ = lock.Close() // closing gives the lock back and cannot lose anything
		s.lock = nil
		pl.close()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Stop ends whatever server runs in cfg.Dir and is not held by a living run; a detached one, that is. That none runs is
// no error.
func Stop(ctx context.Context, cfg Config) error {
	pl, lock, err := enter(ctx, &cfg)
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

// enter opens the folder and takes its lock, which is held by the one run that may start or stop a server there.
func enter(ctx context.Context, cfg *Config) (place, *os.File, error) {
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

func (s *Server) open(ctx context.Context) (err error) {
	if s.superPassword, err = s.place.secret("super.password"); err != nil {
		return err
	}
	if s.ownerPassword, err = s.place.secret("owner.password"); err != nil {
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
	if s.bin, err = find(ctx, s.place, s.cfg.Log); err != nil {
		return err
	}
	if err := s.place.initialize(ctx, s.bin, s.cfg.Durable, processes); err != nil {
		return err
	}
	for try := 1; ; try++ {
		if s.port, err = freePort(); err != nil {
			return fault.Wrap(fault.Unavailable, "local.Start", "No free loopback port can be had for Postgres.", err)
		}
		portTaken, err := s.launch(ctx, processes)
		if err == nil {
			break
		}
		if !portTaken || try == portTries {
			return err
		}
	}
	_ = processes.Close() // the server holds the lock from here on
	if _, err := Own(ctx, s.SuperURL("postgres"), s.ownerPassword); err != nil {
		return errors.Join(err, s.end(context.WithoutCancel(ctx)))
	}
	return nil
}

// join takes over a detached server that runs and answers.
func (s *Server) join(ctx context.Context) bool {
	_, s.port = s.place.pidFile()
	s.joined = s.port != 0 && connectable(ctx, s.SuperURL("postgres")) == nil
	return s.joined
}

// guardScript starts the server by the command that its arguments hold, writes a line when it answers, and stops it when
// its standard input ends: with this process, even one that is killed. It leaves a later server of the folder alone.
const guardScript = `trap '' PIPE
"$@" || exit 1
exec 3>&-
pid=$(head -n 1 data/postmaster.pid)
echo
read -r _
[ "$(head -n 1 data/postmaster.pid)" = "$pid" ] && kill -INT "$pid"`

// launch starts the server on s.port and returns when it answers. The server's processes inherit the lock of processes.
// After an error none of them is left.
func (s *Server) launch(ctx context.Context, processes *os.File) (portTaken bool, err error) {
	// The number in an old file may be a stranger's by now, to whom Postgres would leave the folder.
	for _, old := range []string{s.place.pidName(), s.place.join("server.log")} {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fault.Wrap(fault.Unavailable, "local.Start", "The file "+old+" of an earlier run cannot be removed.", err)
		}
	}
	args := []string{s.bin.path("pg_ctl"), "start", "--silent", "--wait", "--timeout=86400", "--log=" + s.place.seen("server.log"),
		"--pgdata=" + s.place.seen("data"), "--options=" + s.options()}
	if s.cfg.Detached {
		err = s.place.command(ctx, processes, args[0], args[1:]...).Run()
	} else {
		err = s.launchGuarded(ctx, processes, args)
	}
	if err == nil {
		s.pid, _ = s.place.pidFile()
		return false, nil
	}
	why, portTaken := s.place.lastWords()
	if ctx.Err() != nil {
		why = "gave up waiting: " + why
		err = errors.Join(err, processes.Close(), s.end(context.WithoutCancel(ctx)))
	}
	return portTaken, fault.Wrap(fault.Unavailable, "local.Start", "Postgres in "+s.place.root+" did not start: "+why, err)
}

func (s *Server) launchGuarded(ctx context.Context, processes *os.File, args []string) error {
	cmd := s.place.command(context.WithoutCancel(ctx), processes, "/bin/sh", append([]string{"-c", guardScript, "guard"}, args...)...)
	cmd.SysProcAttr.Setsid = true // Ctrl-C in the terminal is for us, and we stop Postgres after its last user
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	started, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // its session
	defer stop()
	if _, err := io.ReadFull(started, make([]byte, 1)); err != nil {
		return errors.Join(err, cmd.Wait())
	}
	s.guard = cmd
	return nil
}

// options is the part of the server's command line that pg_ctl hands to a shell.
func (s *Server) options() string {
	settings := []string{
		"listen_addresses=" + loopback, "port=" + strconv.Itoa(s.port), "unix_socket_directories=",
		"timezone=UTC", "log_timezone=UTC", "logging_collector=off", "log_destination=stderr",
	}
	if !s.cfg.Durable {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	if libs := s.bin.having(s.cfg.Preload); libs != "" {
		settings = append(settings, "shared_preload_libraries="+libs)
	}
	var out strings.Builder
	for _, v := range append(settings, s.cfg.Extra...) {
		out.WriteString(" -c '" + strings.ReplaceAll(v, "'", `'\''`) + "'")
	}
	return out.String()
}

// Stop ends the server by a fast shutdown: sessions are cut, the data is written. When ctx ends first, an immediate
// shutdown follows, which recovery repairs at the next start. Stopping twice is fine. When the folder was removed
// meanwhile, Stop makes the server end by an immediate shutdown and does not wait for it.
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
		_ = s.lock.Close() // closing gives the lock back and cannot lose anything
		s.lock = nil
		s.place.close()
	}
	return nil
}

func (s *Server) end(ctx context.Context) error {
	processes, err := s.place.end(ctx)
	if s.pid > 0 && errors.Is(err, fs.ErrNotExist) {
		// The folder was removed, with all data: nothing is left to write, and no lock to wait for.
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

// Keep watches a server that is not detached and brings it back, under the same addresses, whenever it ends by itself.
// It returns nil when ctx ends or the server is stopped, and a fault with one sentence for people when it cannot be
// brought back or does not stay up. It is called once, and beside Stop.
func (s *Server) Keep(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	for deaths := 1; ; deaths++ {
		began := clock.System{}.Now()
		processes, err := s.place.lock(ctx, processLock, true) // it is free when no process of the server is left
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if lived := (clock.System{}).Now().Sub(began); lived > calm {
			deaths = 1
		}
		err = s.restart(ctx, processes, deaths)
		_ = processes.Close() // the server holds the lock from here on
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// restart brings the dead server up again; nil as well when ctx ends first.
func (s *Server) restart(ctx context.Context, processes *os.File, deaths int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	why, _ := s.place.lastWords()
	if deaths > maxDeaths {
		return fault.New(fault.Unavailable, "local.Keep", "Postgres in "+s.place.root+" ends again and again: "+why)
	}
	s.cfg.Log.Warn("Postgres has ended by itself and is started again", "log", why)
	s.endGuard()
	for try := 1; ; try++ {
		portTaken, err := s.launch(ctx, processes)
		switch {
		case err == nil:
			s.cfg.Log.Warn("Postgres is back", "process", s.PID())
			return nil
		case ctx.Err() != nil:
			return nil
		case portTaken && try < portTries: // by a client that looks for the server, for example
			_ = clock.Sleep(ctx, time.Second) // the next try sees the end of ctx
			continue
		}
		reason := err.Error()
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			reason = f.Message
		}
		return fault.New(fault.Unavailable, "local.Keep", "Postgres ended by itself and cannot be brought back: "+reason)
	}
}

// Joined returns whether a detached server ran already.
func (s *Server) Joined() bool { return s.joined }

// PID returns the postmaster's process id, 0 when there is none.
func (s *Server) PID() int {
	pid, _ := s.place.pidFile()
	return pid
}

// Dir returns the absolute path of Config.Dir, without symbolic links.
func (s *Server) Dir() string { return s.place.root }

// URL returns the address of a database for its owner, who is no superuser; "crier" exists from the start.
func (s *Server) URL(name string) string { return s.address(owner, s.ownerPassword, name) }

// SuperURL is URL for the superuser.
func (s *Server) SuperURL(name string) string { return s.address(superuser, s.superPassword, name) }

func (s *Server) address(user, password, name string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password),
		Host: net.JoinHostPort(loopback, strconv.Itoa(s.port)), Path: "/" + name, RawQuery: "sslmode=disable"}
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
