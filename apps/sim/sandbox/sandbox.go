// Package sandbox is a pretend social platform that publishes nowhere: newcomers try Crier on it and integrators test against it.
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

// Options tune a Platform; the zero value is right for `crier dev`.
type Options struct {
	Clock     clock.Clock  // nil: the machine's
	Log       *slog.Logger // nil: slog.Default()
	PublicURL string       // where people reach the page, ending in "/"; empty: http://<Host of the request>/
	Hosts     []string     // names answered in the Host header besides loopback ones, without port
}

// Platform is one open sandbox. All methods are safe for concurrent use.
type Platform struct {
	opts    Options
	dir     string
	page    *template.Template
	script  *script
	handler http.Handler
	stop    chan struct{} // closed by Close: ends what a fault holds
	halted  sync.Once
	closed  sync.Once

	mu      sync.Mutex // guards what is below
	journal *journal
	state   *state
}

// Open reads the state kept in dir, which is made when absent, and locks it: a second Open of the same dir fails with
// fault.Conflict. A torn last line of sandbox.log (a kill in the middle of a write, so never acknowledged) is cut off
// and logged; any other broken line is an error that names it, and nothing is changed.
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
	p := &Platform{opts: opts, dir: dir, page: page, script: &script{}, stop: make(chan struct{}), journal: j, state: st}
	if err := p.clearUploads(); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Internal, "sandbox.Open", "The sandbox cannot remove unfinished uploads.", err), j.close())
	}
	p.handler = p.routes()
	return p, nil
}

// prepare makes the folders and makes their names durable.
func prepare(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "media"), 0o700); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(filepath.Clean(dir))))
}

// Handler serves the API, the judge's routes under /_sim and the page at /.
func (p *Platform) Handler() http.Handler { return p.handler }

// Close ends held requests without acting on them, refuses further writes and gives the folder free. Calling it again does nothing.
func (p *Platform) Close() error {
	p.halt()
	var err error
	p.closed.Do(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		err = p.journal.close()
	})
	return err
}

func (p *Platform) halt() { p.halted.Do(func() { close(p.stop) }) }

// Listen opens a TCP listener on addr ("127.0.0.1:0" picks a port) and refuses anything but a loopback address.
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

// Serve answers on ln until ctx ends, then gives running requests five seconds and closes the Platform. A clean stop is nil.
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
	p.halt()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		return errors.Join(err, srv.Close(), p.Close())
	}
	return p.Close()
}
