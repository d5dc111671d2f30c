package sandbox

import (
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const maxJSON = 1 << 20 // bytes

type bodyKind int

const (
	noBody bodyKind = iota
	jsonBody
	mediaBody
	formBody
)

// endpoint handles one method of one path. The whole request is received before act is called, so
// that a fault can be applied in between.
type endpoint struct {
	open bool // no access token needed
	body bodyKind
	user bool // a grant's token is accepted before a page is chosen
	// scope is the permission that a grant's token needs for this endpoint, or "" if it needs none.
	scope string
	act   func(*call) (answer, error)
}

// call is one received request.
type call struct {
	r       *http.Request
	account *account // nil if the endpoint is open
	grant   *grant   // nil unless the token belongs to a grant
	token   string   // hash of the access token
	body    []byte
	upload  *upload
	polls   int  // number of polls before an upload is processed, set by a "processing" fault
	fails   bool // whether processing then fails
}

func (p *Platform) routes() http.Handler {
	mux := http.NewServeMux()
	for path, methods := range map[string]map[string]endpoint{
		"/api/accounts":        {"POST": {open: true, body: jsonBody, act: accounts{p}.createAccount}},
		"/api/session":         {"POST": {open: true, body: jsonBody, act: accounts{p}.signIn}},
		"/api/session/refresh": {"POST": {open: true, body: jsonBody, act: accounts{p}.refreshSession}},
		"/api/me":              {"GET": {act: accounts{p}.me}},
		"/api/media":           {"POST": {body: mediaBody, scope: "publish", act: p.createMedia}},
		"/api/media/{id}":      {"GET": {act: p.readMedia}},
		"/api/posts": {
			"POST": {body: jsonBody, scope: "publish", act: posts{p}.createPost},
			"GET":  {scope: "publish", act: posts{p}.listPosts},
		},
		"/api/posts/{id}":          {"DELETE": {scope: "publish", act: posts{p}.deletePost}},
		"/api/posts/{id}/insights": {"GET": {scope: "insights", act: p.postInsights}},
		"/api/insights":            {"GET": {scope: "insights", act: p.accountInsights}},
		"/api/topics":              {"GET": {act: p.listTopics}},
		"/api/oauth/token":         {"POST": {open: true, body: formBody, act: oauth{p}.exchange}},
		"/api/oauth/pages":         {"GET": {user: true, act: oauth{p}.listPages}},
		"/api/oauth/page":          {"POST": {user: true, body: jsonBody, act: oauth{p}.choosePage}},
	} {
		mux.Handle(path, p.methods(methods, p.perform))
	}
	for path, methods := range map[string]map[string]endpoint{
		"/_sim/faults": {
			"POST":   {open: true, body: jsonBody, act: p.addFault},
			"GET":    {open: true, act: p.listFaults},
			"DELETE": {open: true, act: p.clearFaults},
		},
		"/_sim/faults/{id}/release": {"POST": {open: true, act: p.releaseFault}},
		"/_sim/posts":               {"GET": {open: true, act: p.listAllPosts}},
		"/_sim/oauth/apps":          {"POST": {open: true, body: jsonBody, act: oauth{p}.addApp}},
		"/_sim/oauth/users":         {"POST": {open: true, body: jsonBody, act: oauth{p}.addUser}},
		"/_sim/oauth/revoke":        {"POST": {open: true, body: jsonBody, act: oauth{p}.revokeUser}},
	} {
		mux.Handle(path, p.methods(methods, p.plain))
	}
	for path, serve := range map[string]http.HandlerFunc{
		"/{$}": pages{p}.servePage, "/style.css": pages{p}.serveStyle,
		"/media/{sha256}": pages{p}.serveMedia, "/picture/{id}": pages{p}.servePicture,
	} {
		mux.Handle(path, p.readOnly(serve))
	}
	mux.HandleFunc("/oauth/authorize", oauth{p}.authorize)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		p.failure(refuse(http.StatusNotFound, "not_found", "There is nothing here.")).send(w)
	})
	return p.guard(mux)
}

// guard rejects requests from pages on other sites. It checks the Host header, to prevent DNS
// rebinding, and the Origin and Sec-Fetch-Site headers.
func (p *Platform) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		err := refuse(http.StatusForbidden, "cross_origin", "Pages of other sites may not change the sandbox.")
		p.failure(err).send(w)
	}))
	inner := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOnly(r.Host)
		if !loopback(host) && !slices.Contains(p.opts.Hosts, host) {
			p.failure(refuse(http.StatusForbidden, "bad_host", "The sandbox answers on loopback names only.")).send(w)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func hostOnly(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.Trim(hostport, "[]")
	}
	return host
}

func loopback(host string) bool {
	addr, _ := netip.ParseAddr(host) // the zero address of any other name is not loopback
	return strings.EqualFold(host, "localhost") || addr.Unmap().IsLoopback()
}

func (p *Platform) readOnly(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			p.wrongMethod(w, "GET, HEAD")
			return
		}
		serve(w, r)
	})
}

func (p *Platform) wrongMethod(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	p.failure(refuse(http.StatusMethodNotAllowed, "wrong_method", "Only %s is allowed here.", allow)).send(w)
}

// methods returns a handler that calls run for the endpoint of the request's method. If the method
// has no endpoint, it responds with 405 and an Allow header. It removes the upload of a request
// that was not carried out.
func (p *Platform) methods(table map[string]endpoint, run func(http.ResponseWriter, *call, endpoint)) http.Handler {
	allow := strings.Join(slices.Sorted(maps.Keys(table)), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, ok := table[r.Method]
		if !ok {
			p.wrongMethod(w, allow)
			return
		}
		c := &call{r: r}
		defer p.discard(c)
		if err := p.receive(w, c, e); err != nil {
			p.failure(err).send(w)
			return
		}
		run(w, c, e)
	})
}

// plain serves the control routes, to which faults do not apply.
func (p *Platform) plain(w http.ResponseWriter, c *call, e endpoint) { p.run(c, e).send(w) }

func (p *Platform) run(c *call, e endpoint) answer {
	a, err := e.act(c)
	if err != nil {
		return p.failure(err)
	}
	return a
}

// receive authenticates the request and reads the whole body. Once the body has been read, the
// server can detect that the client has disconnected while the request is held.
func (p *Platform) receive(w http.ResponseWriter, c *call, e endpoint) error {
	if !e.open {
		if err := p.authenticate(c, e); err != nil {
			return err
		}
	}
	switch e.body {
	case jsonBody:
		return readBody(w, c, "application/json")
	case formBody:
		return readBody(w, c, "application/x-www-form-urlencoded")
	case mediaBody:
		return p.spool(w, c)
	}
	if n, err := io.Copy(io.Discard, http.MaxBytesReader(w, c.r.Body, 1)); n > 0 || err != nil {
		return refuse(http.StatusBadRequest, "unexpected_body", "This request takes no body.")
	}
	return nil
}

func readBody(w http.ResponseWriter, c *call, want string) error {
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || kind != want {
		return refuse(http.StatusUnsupportedMediaType, "wrong_content_type", "Content-Type must be %s.", want)
	}
	if _, err := query(c.r); err != nil {
		return err
	}
	var err error
	c.body, err = io.ReadAll(http.MaxBytesReader(w, c.r.Body, maxJSON))
	return bodyError(err, maxJSON)
}

func bodyError(err error, limit int64) error {
	if err == nil {
		return nil
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return refuse(http.StatusRequestEntityTooLarge, "too_large", "The body is larger than %d bytes.", limit)
	}
	return refuse(http.StatusBadRequest, "body_incomplete", "The body is incomplete.")
}

// commit writes a record to the journal and then applies it to the state. The caller must hold p.mu
// and must have checked the record.
func (p *Platform) commit(rec record) error {
	rec.At = p.opts.Clock.Now()
	where, err := p.journal.append(rec)
	if err != nil {
		return err
	}
	return p.state.apply(rec, where)
}

// baseURL returns the URL of the page, ending in "/".
func (p *Platform) baseURL(r *http.Request) string {
	if p.opts.PublicURL != "" {
		return p.opts.PublicURL
	}
	return "http://" + r.Host + "/"
}
