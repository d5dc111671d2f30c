// Package github simulates, for tests, the parts of GitHub that "sign in with GitHub" uses: the web
// application flow of OAuth apps, GET /user and GET /user/emails. The API is below / as on
// api.github.com, and below /api/v3 as on GitHub Enterprise Server.
//
// The package is written only from GitHub's public documentation. The comment on each rule names
// the page. It refuses what GitHub refuses. Where the documentation is silent it refuses too, and
// the comment calls that an assumption.
//
// Not simulated are the device flow, expiring tokens, conditional requests and the failed login
// limit. The scope offline_access, which asks for an expiring token, has no effect; the page
// "Authorizing OAuth apps" allows that for Enterprise Server. The failed login limit in
// "Authenticating to the REST API" applies to a user, and an unknown token does not name one.
package github

import (
	"net/http"
	"strings"
	"sync"

	"crier/platform/clock"
)

// Options configures a Platform. With the zero value, it behaves like github.com.
type Options struct {
	// Clock is the source of time. nil means the system's clock.
	Clock clock.Clock
	// RequestsPerHour is the primary rate limit per user. 0 means 5,000.
	RequestsPerHour int
	// LimitStatus is the status of a response above a rate limit: 403 or 429. The documentation
	// names both. 0 means 403.
	LimitStatus int
	// LimitEnterprise applies the primary rate limit below /api/v3 too. "Rate limits for the REST
	// API": by default, rate limits are disabled on Enterprise Server.
	LimitEnterprise bool
	// UnlimitedTokens removes the limit of ten tokens an hour per user, app and scope.
	UnlimitedTokens bool
	// MismatchPage responds to an unregistered redirect_uri with a page. "Troubleshooting
	// authorization request errors" documents a redirect to the registered callback; since 2024,
	// users report the page.
	MismatchPage bool
}

// Platform is a simulated GitHub and an http.Handler. It starts without apps and users. All methods
// are safe for concurrent use. All state is in memory.
type Platform struct {
	opts    Options
	mux     *http.ServeMux
	stop    chan struct{} // closed by Close; ends the requests held by a fault
	endOnce sync.Once
	journal journal

	mu       sync.Mutex // protects the fields below
	apps     map[string]App
	users    map[int64]User
	signedIn []int64
	consent  Consent
	pending  map[string]pending
	codes    map[string]grantedCode
	grants   map[grantKey][]string
	tokens   map[string]token
	issued   map[tokenKey][]issue
	windows  map[string]window
	faults   []Fault
}

// New returns a Platform without apps and users.
func New(opts Options) *Platform {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.RequestsPerHour == 0 {
		opts.RequestsPerHour = 5000
	}
	if opts.LimitStatus == 0 {
		opts.LimitStatus = http.StatusForbidden
	}
	p := &Platform{
		opts: opts, stop: make(chan struct{}), apps: map[string]App{}, users: map[int64]User{},
		pending: map[string]pending{}, codes: map[string]grantedCode{}, grants: map[grantKey][]string{},
		tokens: map[string]token{}, issued: map[tokenKey][]issue{}, windows: map[string]window{},
	}
	p.mux = p.routes()
	return p
}

// Close ends the requests that a fault holds by closing their connections. Call it before closing
// an httptest.Server, which waits for running requests. Further calls do nothing.
func (p *Platform) Close() { p.endOnce.Do(func() { close(p.stop) }) }

// ServeHTTP responds to one request and records it for Requests.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	entry := p.journal.add(r)
	rec := &statusRecorder{ResponseWriter: w}
	defer func() { p.journal.finish(entry, rec.status) }()
	if f, ok := p.takeFault(endpointOf(r.URL.Path)); ok {
		p.serveFault(rec, r, f)
		return
	}
	p.mux.ServeHTTP(rec, r)
}

// routes matches methods itself, because ServeMux would respond with 405, which the documentation
// does not mention. "Troubleshooting the REST API": a trailing slash is 404 Not Found.
func (p *Platform) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { notFound(docsREST).send(w) })
	mux.HandleFunc("GET "+pathAuthorize, p.authorize)
	mux.HandleFunc("POST "+pathAuthorize, p.answerForm)
	mux.HandleFunc("POST "+pathToken, p.accessToken)
	for _, prefix := range []string{"", enterprise} {
		mux.HandleFunc("GET "+prefix+pathUser, p.api(prefix, p.user))
		mux.HandleFunc("GET "+prefix+pathEmails, p.api(prefix, p.emails))
	}
	return mux
}

const (
	pathAuthorize = "/login/oauth/authorize"
	pathToken     = "/login/oauth/access_token"
	pathUser      = "/user"
	pathEmails    = "/user/emails"
	enterprise    = "/api/v3"
)

// baseURL returns the address under which the request reached the simulator, without a trailing
// slash. Every URL in a response starts with it, so that a client never leaves the simulator.
func baseURL(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + strings.TrimSuffix(r.Host, "/")
}
