// Package outbound is the only HTTP and websocket client of the product, guarded against being sent to addresses that are not public.
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

// ErrBlocked marks every refusal of the guard: an address, a port, a host or a redirect that is not allowed.
var ErrBlocked = errors.New("outgoing address refused")

// ErrTooLarge is returned by ReadAll for a body that is larger than the caller accepts.
var ErrTooLarge = errors.New("response is too large")

// ports of URLs that name none.
var ports = map[string]string{"http": "80", "https": "443"}

const (
	dialTimeout   = 10 * time.Second
	tlsTimeout    = 10 * time.Second
	headerTimeout = 60 * time.Second // platforms that fetch media themselves answer slowly
	idleTimeout   = 10 * time.Second // connections may go silent together: when the first call on one has failed, the others are gone
	maxHeader     = 256 << 10
	maxSessions   = 256 // TLS sessions that are remembered, each to spare a handshake most of its work
	maxRedirects  = 3
	pingAfter     = 10 * time.Second // an HTTP/2 connection on which nothing comes is probed after so long,
	pingLimit     = 5 * time.Second  // and is closed without an answer in this time: others would go on using it
)

// Config opens single addresses of the private network, to everybody who uses the client. There is no way to switch the guard off.
type Config struct {
	Allow []string `env:"OUTBOUND_ALLOW" doc:"host:port list of private addresses or unusual ports that outgoing requests may reach"`
}

// Validate tells every entry that is not host:port.
func (c Config) Validate() error {
	_, err := parseAllow(c.Allow)
	return err
}

// Deps are the parts that a Client needs. A nil Log is silent; a nil Resolver is the machine's.
type Deps struct {
	Log      *slog.Logger
	Resolver *net.Resolver
}

// Client makes guarded requests. It is safe for concurrent use.
type Client struct {
	read    *http.Transport
	fresh   *http.Transport // of Commit, as kept
	kept    *http.Transport
	guarded *guard      // of read and of websockets
	single  *guard      // of Commit
	tls     *tls.Config // of Commit and of websockets

	websockets *limit.PerKey[string] // by owner
}

// New makes a client; it fails when an entry of Allow is not host:port.
func New(cfg Config, deps Deps) (*Client, error) {
	allow, err := parseAllow(cfg.Allow)
	if err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	g := newGuard(allow, deps, 0)
	c := &Client{read: newTransport(g), guarded: g, single: newGuard(allow, deps, -1)}
	c.tls = &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(maxSessions)}
	c.websockets = limit.New[string](websocketsAtOnce)
	c.fresh, c.kept = c.commits(false), c.commits(true)
	return c, nil
}

// To makes a client that may also reach this one http or https address, which its owner alone is meant to call. It shares no connection with any other
// client, so that nobody else comes by an open one.
func To(address string, deps Deps) (*Client, error) {
	allow, err := single(address)
	if err != nil {
		return nil, err
	}
	return New(Config{Allow: []string{allow}}, deps)
}

// single is the host:port of an address.
func single(address string) (string, error) {
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
		Proxy:                  nil, // a proxy would connect where the guard cannot see
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

// HTTP is the client for calls that may be repeated: reads and preparations.
// GET and HEAD follow up to three redirects, each one guarded anew; other methods get the 3xx answer itself.
// The whole exchange is bounded by the request's context only. Errors of the guard match ErrBlocked.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: refuseUpgrade{c.read}, CheckRedirect: checkRedirect}
}

// Do makes a call that may be repeated, as HTTP does. Its errors name the URL without its query, which may hold a token.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.HTTP().Do(req)
	return resp, withoutQuery(err)
}

// withoutQuery returns the *url.Error in err with no more of its URL than the scheme, the host and the path; what wraps
// it has the whole URL in its words, and is left out. Any other error is returned as it is.
func withoutQuery(err error) error {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return err
	}
	shown := ""
	if u, err := url.Parse(failed.URL); err == nil {
		shown = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return &url.Error{Op: failed.Op, URL: shown, Err: failed.Err}
}

// refuseUpgrade fails a request that is answered with 101: net/http leaves such a connection to the caller, and to read
// its body would wait for as long as the server keeps it open, whatever becomes of the request's context.
type refuseUpgrade struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t refuseUpgrade) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, errors.Join(errUpgrade, resp.Body.Close())
	}
	return resp, err
}

var errUpgrade = errors.New("the server switched to another protocol without being asked")

// Close drops idle connections; the client stays usable.
func (c *Client) Close() {
	c.read.CloseIdleConnections()
	c.kept.CloseIdleConnections()
}

// ReadAll reads at most limit bytes of the body and closes it; a longer body is ErrTooLarge.
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

// checkRedirect runs before each further hop; the dial then checks the hop's address.
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
	req.Header.Del("Referer") // it would carry tokens of the query
	if req.URL.Host != first.URL.Host {
		keepHarmless(req.Header)
	}
	return nil
}

// keepHarmless drops every header that could be a credential, whatever a platform names it.
func keepHarmless(h http.Header) {
	for name := range h {
		switch name {
		case "Accept", "Accept-Language", "User-Agent", "Range":
		default:
			h.Del(name)
		}
	}
}
