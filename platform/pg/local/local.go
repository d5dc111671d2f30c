// Package local runs a Postgres of our own on loopback, for development and for tests, from the machine's binaries or from npm's.
package local

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"crier/platform/fault"
)

const (
	superuser = "postgres"
	owner     = "crier"
	database  = "crier"
	loopback  = "127.0.0.1"
	poll      = 30 * time.Millisecond
	portTries = 3
)

// Config says where the data is kept and how careful the server is with it.
type Config struct {
	Dir     string       // made when absent, kept between runs; see Server.Dir
	Log     *slog.Logger // nil = slog.Default
	Durable bool         // false = no fsync: a crash of the machine may lose the data
	// Detached lets the server outlive this process and be shared: Start joins one that runs. Otherwise it ends with this process, however that ends.
	Detached bool
	Preload  []string // libraries to load at start, each only when this Postgres has it
	Extra    []string // more settings, "name=value"
}

// Server is a running Postgres that accepts connections by password on loopback TCP only.
type Server struct {
	cfg           Config
	bin           binaries
	place         place
	port          int
	superPassword string
	ownerPassword string
	proc          atomic.Pointer[process]
	joined        bool

	stopping chan struct{} // closed by the first Stop
	once     sync.Once
	work     sync.Mutex // held while it is brought up or ended
	lock     *os.File   // nil when detached; guarded by work
}

// Start brings up the server in cfg.Dir and returns when it answers. What a killed run left behind is stopped or
// finished first. Two runs in one folder are refused unless detached. The error is a fault with one sentence for people.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	pl, err := openPlace(cfg)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(ctx, pl.join("lock"), cfg.Detached)
	if err != nil {
		return nil, err
	}
	s, err := startLocked(ctx, cfg, pl)
	if err != nil || cfg.Detached {
		_ = lock.Close() // closing gives the lock back and cannot lose anything
	}
	if err != nil {
		return nil, err
	}
	if !cfg.Detached {
		s.lock = lock
	}
	return s, nil
}

// Stop ends whatever server runs in cfg.Dir and is not held by a living run; a detached one, that is. None running is fine.
func Stop(ctx context.Context, cfg Config) error {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	pl, err := openPlace(cfg)
	if err != nil {
		return err
	}
	lock, err := lockFile(ctx, pl.join("lock"), cfg.Detached)
	if err != nil {
		return err
	}
	defer lock.Close()
	return pl.stopLeftover(ctx, cfg.Log)
}

func startLocked(ctx context.Context, cfg Config, pl place) (*Server, error) {
	s := &Server{cfg: cfg, place: pl, stopping: make(chan struct{})}
	var err error
	if s.superPassword, err = pl.secret("super.password"); err != nil {
		return nil, err
	}
	if s.ownerPassword, err = pl.secret("owner.password"); err != nil {
		return nil, err
	}
	if cfg.Detached && s.join(ctx) {
		return s, nil
	}
	if err := pl.stopLeftover(ctx, cfg.Log); err != nil {
		return nil, err
	}
	if s.bin, err = find(ctx, pl, cfg.Log); err != nil {
		return nil, err
	}
	if err := pl.initialize(ctx, s.bin, cfg.Durable); err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	if _, err := Own(ctx, s.SuperURL("postgres"), s.ownerPassword); err != nil {
		_ = s.Stop(context.WithoutCancel(ctx)) // the first error is the one to tell
		return nil, err
	}
	return s, nil
}

// join takes over a detached server that runs and answers.
func (s *Server) join(ctx context.Context) bool {
	pid, port := s.place.postmaster()
	if pid == 0 || port == 0 {
		return false
	}
	s.port = port
	s.proc.Store(&process{pid: pid})
	s.joined = connectable(ctx, s.SuperURL("postgres")) == nil
	return s.joined
}

// run brings the postmaster up on a free port.
func (s *Server) run(ctx context.Context) error {
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return fault.Wrap(fault.Unavailable, "local.Start", "No free loopback port can be had for Postgres.", err)
		}
		s.port = port
		portTaken, err := s.attempt(ctx)
		if err == nil || !portTaken || try == portTries {
			return err
		}
	}
}

// attempt starts the postmaster on the port and waits until it answers, as long as it lives and ctx allows.
func (s *Server) attempt(ctx context.Context) (portTaken bool, err error) {
	if err := s.spawn(); err != nil {
		return false, fault.Wrap(fault.Unavailable, "local.Start", "Postgres cannot be started from "+s.bin.dir+".", err)
	}
	if err = s.ready(ctx); err == nil {
		return false, nil
	}
	if s.alive() {
		_ = s.end(context.WithoutCancel(ctx)) // the first error is the one to tell
	}
	why, portTaken := s.place.lastWords()
	return portTaken, fault.Wrap(fault.Unavailable, "local.Start", "Postgres in "+s.place.root+" did not start: "+why, err)
}

func (s *Server) spawn() error {
	logFile, err := os.Create(s.place.join("server.log"))
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := s.place.command(context.Background(), s.bin.path("postgres"), s.arguments()...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if s.cfg.Detached {
		cmd.SysProcAttr.Setsid = true
		if err := cmd.Start(); err != nil {
			return err
		}
		s.proc.Store(&process{pid: cmd.Process.Pid})
		return cmd.Process.Release()
	}
	// A group of its own: Ctrl-C in the terminal is for us, and we stop Postgres after its last user.
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)
	p, err := startProcess(cmd)
	if err == nil {
		s.proc.Store(p)
	}
	return err
}

func (s *Server) arguments() []string {
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
	args := []string{"-D", s.place.data()}
	for _, v := range append(settings, s.cfg.Extra...) {
		args = append(args, "-c", v)
	}
	return args
}

// ready waits for the first successful connection. Recovery after a crash may take long, so only the death of the server or ctx ends it.
func (s *Server) ready(ctx context.Context) error {
	for {
		err := connectable(ctx, s.SuperURL("postgres"))
		if err == nil {
			return nil
		}
		if !s.alive() {
			return err
		}
		if pause(ctx, poll) != nil {
			return fmt.Errorf("gave up waiting: %w", err)
		}
	}
}

func (s *Server) alive() bool {
	p := s.proc.Load()
	if p.done != nil {
		return p.running()
	}
	return isPostmaster(p.pid, s.place.data())
}

// Stop ends the server by a fast shutdown: sessions are cut, the data is written. When ctx ends first, an immediate
// shutdown follows, which recovery repairs at the next start. Stopping twice is fine.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() { close(s.stopping) })
	s.work.Lock()
	defer s.work.Unlock()
	defer s.unlock()
	return s.end(ctx)
}

func (s *Server) end(ctx context.Context) error {
	if !s.alive() {
		return nil
	}
	return stopPostmaster(ctx, s.PID(), s.alive)
}

func (s *Server) unlock() {
	if s.lock != nil && !s.alive() {
		_ = s.lock.Close() // closing gives the lock back and cannot lose anything
		s.lock = nil
	}
}

// Done is closed when a server that was not detached has ended, by Stop or by itself; one that Keep brought back has a new channel.
// It is nil for a detached one.
func (s *Server) Done() <-chan struct{} { return s.proc.Load().done }

// Joined tells whether a detached server ran already.
func (s *Server) Joined() bool { return s.joined }

// PID is the postmaster's process id.
func (s *Server) PID() int { return s.proc.Load().pid }

// Dir is where the data really is: Config.Dir, or a folder under /var/lib when root runs us and Postgres' own user cannot reach Config.Dir.
func (s *Server) Dir() string { return s.place.root }

// URL is the address of a database for its owner, who is no superuser; "crier" exists from the start.
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

// lockFile takes the folder's lock, waiting for it only when asked.
func lockFile(ctx context.Context, name string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "local.Start", "The lock file "+name+" cannot be opened.", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !wait || pause(ctx, poll) != nil {
			_ = f.Close() // nothing was written
			return nil, fault.Wrap(fault.Conflict, "local.Start", "Another run is using the Postgres data in "+filepath.Dir(name)+": stop it, or use another folder.", err)
		}
	}
}

// pause waits for d or until ctx ends, which is its error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
