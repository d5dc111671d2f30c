// Package sandbox simulates a social platform that publishes nowhere. New users try out the service
// with it, and integrators and tests use it to script faults. README.md documents its API.
package sandbox

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
)

// Options configures a Platform. The zero value is valid.
type Options struct {
	// Clock is the source of time. Nil means the machine's clock.
	Clock clock.Clock
	// Log is the logger. Nil means slog.Default.
	Log *slog.Logger
	// PublicURL is the URL of the page, ending in "/". If it is empty, the URL is "http://"
	// followed by the request's Host and "/". Example: http://localhost:4000/sandbox/
	PublicURL string
	// Hosts lists the names, without a port, that the Host header may contain besides loopback
	// names.
	Hosts []string
}

// Platform is an open sandbox. All methods are safe for concurrent use.
type Platform struct {
	opts        Options
	dir         string
	page        *template.Template
	script      *script
	handler     http.Handler
	stop        chan struct{} // closed by Close; ends the requests held by a fault
	endHeldOnce sync.Once
	closeOnce   sync.Once

	mu      sync.Mutex // protects the fields below
	journal *journal
	state   *state
	apps    map[string]App
	codes   map[string]*grantedCode
}

// Open reads the state stored in dir and locks the folder. It creates the folder if it does not
// exist. It returns fault.Conflict if the folder is already open.
//
// A process that is killed during a write leaves an incomplete last line in sandbox.log. The line
// was never acknowledged, so Open removes it and logs a warning. For any other invalid line, Open
// returns an error with the line number and does not change the file.
func Open(dir string, opts Options) (*Platform, error) {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if err := prepare(dir); err != nil {
		return nil, fault.Wrap(fault.Internal, "sandbox.Open", "The sandbox cannot use its folder "+dir+".", err)
	}
	page, err := parsePage()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "sandbox.Open", "The sandbox's page is broken.", err)
	}
	st := newState()
	j, err := openJournal(filepath.Join(dir, "sandbox.log"), opts.Log, st.apply)
	if err != nil {
		return nil, err
	}
	st.sweep(opts.Clock.Now())
	p := &Platform{
		opts: opts, dir: dir, page: page, script: &script{}, stop: make(chan struct{}), journal: j, state: st,
		apps: map[string]App{}, codes: map[string]*grantedCode{},
	}
	if err := p.clearUploads(); err != nil {
		err = fault.Wrap(fault.Internal, "sandbox.Open", "The sandbox cannot remove unfinished uploads.", err)
		return nil, errors.Join(err, j.close())
	}
	p.handler = p.routes()
	return p, nil
}

// prepare creates the folders and syncs their parents, so that the folders survive a crash.
func prepare(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "media"), 0o700); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(filepath.Clean(dir))))
}

// Handler returns the handler for the API, the control routes under /_sim and the page at /.
func (p *Platform) Handler() http.Handler { return p.handler }

// Close ends held requests without carrying them out, rejects further writes and unlocks the
// folder. Further calls do nothing.
func (p *Platform) Close() error {
	p.endHeld()
	var err error
	p.closeOnce.Do(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		err = p.journal.close()
	})
	return err
}

func (p *Platform) endHeld() { p.endHeldOnce.Do(func() { close(p.stop) }) }

// Listen opens a TCP listener on addr; port 0 chooses a free port. It returns fault.Invalid if addr
// is not a loopback address, and fault.Unavailable if addr cannot be used.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "sandbox.Listen", "The sandbox's address must be host:port.", err)
	}
	if !loopback(host) {
		return nil, fault.New(fault.Invalid, "sandbox.Listen", "The sandbox listens on loopback only, not on "+addr+".")
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "sandbox.Listen", "The sandbox cannot listen on "+addr+".", err)
	}
	return ln, nil
}

// shutdownTime is how long Serve waits for running requests before it returns. It must exceed the
// five seconds that net/http waits for the first request on a connection, because clients can open
// connections that they never use.
const shutdownTime = 15 * time.Second

// Serve serves requests on ln until ctx ends. It then waits up to shutdownTime for running requests
// and closes the Platform. It returns nil if all requests have ended by then.
func (p *Platform) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler: p.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(p.opts.Log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return errors.Join(err, p.Close())
	case <-ctx.Done():
	}
	p.endHeld()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		return errors.Join(err, srv.Close(), p.Close())
	}
	return p.Close()
}
