// Package outbound is the product's only HTTP and websocket client. By default, it connects only to
// public addresses.
package outbound

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"crier/platform/limit"
)

// ErrBlocked is wrapped by every error about an address, port, host or redirect that the guard does
// not allow.
var ErrBlocked = errors.New("outgoing address refused")

// ErrPort is wrapped, along with ErrBlocked, by errors about a port other than 80 and 443. The port
// is checked before the host is looked up, so the error reveals nothing about the host.
var ErrPort = errors.New("only ports 80 and 443 can be reached")

// IsUnreachable reports whether an address was blocked or its host name did not resolve. A tenant
// who enters an address must not learn which of these happened, because the difference reveals host
// names in the private network. Only ErrPort may be disclosed.
func IsUnreachable(err error) bool {
	var name *net.DNSError
	return errors.Is(err, ErrBlocked) || errors.As(err, &name)
}

// ErrTooLarge is returned by ReadAll if the body exceeds the limit.
var ErrTooLarge = errors.New("response is too large")

var ports = map[string]string{"http": "80", "https": "443"}

const (
	dialTimeout   = 10 * time.Second
	tlsTimeout    = 10 * time.Second
	headerTimeout = 60 * time.Second // platforms that fetch media themselves respond slowly
	// idleTimeout is short because all idle connections to a server can fail silently at once. By
	// the time the first call on one of them reaches its deadline, the others have been closed.
	idleTimeout  = 10 * time.Second
	maxHeader    = 256 << 10 // bytes
	maxSessions  = 256       // TLS sessions cached for resumption
	maxRedirects = 3
	// pingAfter is how long an HTTP/2 connection may be silent before it is probed. If the server
	// does not respond to the probe within pingLimit, the connection is closed, because other calls
	// would keep using it.
	pingAfter = 10 * time.Second
	pingLimit = 5 * time.Second
)

// Config lists the addresses that all users of the client may reach in addition to public ones. The
// guard cannot be switched off.
type Config struct {
	// Allow lists host:port pairs that may be reached even if the address is private or the port is
	// neither 80 nor 443. The list from the environment applies to calls made for tenants. For
	// servers that the service itself calls, use a client from To. Example: hooks.internal:8080
	Allow []string `env:"OUTBOUND_ALLOW" doc:"Additional host:port addresses, even private ones, to which the service may connect on behalf of tenants."`
}

// Validate returns an error that lists each entry that is not host:port.
func (c Config) Validate() error {
	_, err := parseAllow(c.Allow)
	return err
}

// Deps are the dependencies of New and To. A nil Log discards messages. A nil Resolver means the
// system's resolver.
type Deps struct {
	Log      *slog.Logger
	Resolver *net.Resolver
}

// Client makes guarded requests. It is safe for concurrent use.
type Client struct {
	read        *http.Transport // used by HTTP and Do
	fresh       *http.Transport // used by Commit for new connections
	kept        *http.Transport // used by Commit for kept connections
	readGuard   *guard          // used by read and by websockets
	commitGuard *guard          // used by fresh and kept
	tls         *tls.Config     // used by Commit and by websockets

	websockets *limit.PerKey[string] // by owner
}

// New returns a client. It fails if an entry of Allow is not host:port.
func New(cfg Config, deps Deps) (*Client, error) {
	allow, err := parseAllow(cfg.Allow)
	if err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	g := newGuard(allow, deps, 0)
	c := &Client{read: newTransport(g), readGuard: g, commitGuard: newGuard(allow, deps, -1)}
	c.tls = &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(maxSessions)}
	c.websockets = limit.New[string](maxWebsockets)
	c.fresh, c.kept = c.commitTransport(false), c.commitTransport(true)
	return c, nil
}

// To returns a client that may also reach the given http or https URL, even at a private address.
// It shares no connections with other clients. It fails if address is not an http or https URL with
// a host.
func To(address string, deps Deps) (*Client, error) {
	allow, err := hostPort(address)
	if err != nil {
		return nil, err
	}
	return New(Config{Allow: []string{allow}}, deps)
}

// hostPort returns the host:port in a URL. If the URL has no port, hostPort uses the scheme's
// default port.
func hostPort(address string) (string, error) {
	u, err := url.Parse(strings.ToLower(address))
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("the address must begin with http:// or https:// and name a host")
	}
	port := u.Port()
	if port == "" {
		port = ports[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

func newTransport(g *guard) *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // a proxy would bypass the guard
		DialContext:            g.dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: maxHeader,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingLimit},
	}
}

// HTTP returns the client for calls that may be repeated, such as reads and preparations. GET and
// HEAD follow up to three redirects, each of which the guard checks. Other methods follow no
// redirects and return the 3xx response. The exchange as a whole is limited only by the request's
// context. Errors from the guard match ErrBlocked.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c.Transport(), CheckRedirect: checkRedirect}
}

// Transport returns the transport that HTTP uses, for callers that build their own client. It
// follows no redirects.
func (c *Client) Transport() http.RoundTripper { return refuseUpgrade{RoundTripper: c.read} }

// Do makes a call that may be repeated, with the client that HTTP returns. Its errors contain the
// URL without the query, which may include a token.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.HTTP().Do(req)
	return resp, withoutQuery(err)
}

// withoutQuery returns the *url.Error in err with its URL reduced to the scheme, host and path. It
// drops any errors around the *url.Error, because their texts repeat the whole URL. It returns any
// other error unchanged.
func withoutQuery(err error) error {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return err
	}
	u, err := url.Parse(failed.URL)
	if err != nil {
		return &url.Error{Op: failed.Op, Err: failed.Err}
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return &url.Error{Op: failed.Op, URL: shown.String(), Err: failed.Err}
}

// refuseUpgrade turns a response with status 101 into an error. After such a response, net/http
// leaves the connection to the caller. Reading the response body would block for as long as the
// server keeps the connection open, even after the request's context has ended.
type refuseUpgrade struct{ http.RoundTripper }

func (t refuseUpgrade) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, errors.Join(errUpgrade, resp.Body.Close())
	}
	return resp, nil
}

var errUpgrade = errors.New("the server switched to another protocol without being asked")

// IsOpen reports whether OUTBOUND_ALLOW names the host and port of an http or https URL.
func (c *Client) IsOpen(u *url.URL) bool {
	address, err := hostPort(u.String())
	return err == nil && c.readGuard.allow[address]
}

// Close closes idle connections. The client can still be used.
func (c *Client) Close() {
	c.read.CloseIdleConnections()
	c.kept.CloseIdleConnections()
}

// ReadAll reads a response body of at most limit bytes and closes it. It returns ErrTooLarge if the
// body is longer.
func ReadAll(resp *http.Response, limit int64) (body []byte, err error) {
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	}
	return body, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// checkRedirect is called before each redirect is followed; dial then checks the address.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	if first.Method != http.MethodGet && first.Method != http.MethodHead {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: more than %d redirects", ErrBlocked, maxRedirects)
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return fmt.Errorf("%w: redirect to scheme %q", ErrBlocked, req.URL.Scheme)
	}
	if last.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%w: redirect from https to http", ErrBlocked)
	}
	req.Header.Del("Referer") // the query may contain tokens
	if req.URL.Host != first.URL.Host {
		stripCredentials(req.Header)
	}
	return nil
}

// stripCredentials removes every header that may contain a credential. It keeps only a few known
// headers, because each platform chooses its own names for headers with credentials.
func stripCredentials(h http.Header) {
	for name := range h {
		switch name {
		case "Accept", "Accept-Language", "User-Agent", "Range":
		default:
			h.Del(name)
		}
	}
}
