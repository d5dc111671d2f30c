package github

import (
	"encoding/json"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	docsSite   = "https://docs.github.com"
	docsREST   = docsSite + "/rest"
	docsUser   = docsSite + "/rest/users/users#get-the-authenticated-user"
	docsEmails = docsSite + "/rest/users/emails#list-email-addresses-for-the-authenticated-user"
	docsLimits = docsSite + "/rest/using-the-rest-api/rate-limits-for-the-rest-api"
)

// caller is the authenticated user of an API request.
type caller struct {
	user   User
	scopes []string
	base   string // of the API's URLs
	web    string // of the web site's URLs
}

// apiAnswer is a JSON response of the REST API.
type apiAnswer struct {
	status int
	body   any
	header map[string]string
}

// apiError is the body of an error response. The documentation mentions a message and a link to the
// documentation.
type apiError struct {
	Message          string `json:"message"`
	DocumentationURL string `json:"documentation_url"`
	Status           string `json:"status"`
}

func apiProblem(status int, message, docs string) apiAnswer {
	return apiAnswer{status: status, body: apiError{
		Message: message, DocumentationURL: docs, Status: strconv.Itoa(status),
	}}
}

func notFound(docs string) apiAnswer { return apiProblem(http.StatusNotFound, "Not Found", docs) }

func (a apiAnswer) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // the client may have disconnected
}

// api performs the checks that all requests of the REST API share, counts the request and calls the
// operation.
func (p *Platform) api(prefix string, operation func(caller, *http.Request) apiAnswer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.TrimSpace(r.UserAgent()) == "" {
			refuseAgent(w)
			return
		}
		if problem, ok := checkHeaders(r); !ok {
			problem.send(w)
			return
		}
		c, known, problem := p.authenticate(r)
		c.base, c.web = baseURL(r)+prefix, baseURL(r)
		if prefix != enterprise || p.opts.LimitEnterprise {
			if limited, ok := p.count(w.Header(), r, c, known); !ok {
				limited.send(w)
				return
			}
		}
		if !known {
			problem.send(w)
			return
		}
		w.Header().Set("X-OAuth-Scopes", strings.Join(c.scopes, ", ")) // "Scopes for OAuth apps"
		operation(c, r).send(w)
	}
}

// refuseAgent implements "Getting started with the REST API", section "User-Agent": requests
// without the header are rejected with 403 Forbidden. An older version of that page shows this text
// as HTML.
func refuseAgent(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte("\nRequest forbidden by administrative rules. " +
		"Please make sure your request has a User-Agent header.\n")) // the client may have left
}

var (
	// apiVersions are the versions named in "API Versions" and on the endpoint pages.
	apiVersions = []string{"2022-11-28", "2026-03-10"}
	// mediaTypes are the types in "Getting started with the REST API", section "Media types", and
	// their wildcards.
	mediaTypes = []string{"application/vnd.github+json", "application/json", "application/*", "*/*"}
)

// checkHeaders implements "API Versions": an unsupported version gets 400. It is an assumption that
// an Accept header without a known media type gets 415.
func checkHeaders(r *http.Request) (apiAnswer, bool) {
	if v := r.Header.Get("X-GitHub-Api-Version"); v != "" && !slices.Contains(apiVersions, v) {
		return apiProblem(http.StatusBadRequest, "The version "+v+" is not a supported version.", docsREST), false
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	for part := range strings.SplitSeq(accept, ",") {
		if kind, _, err := mime.ParseMediaType(part); err == nil && slices.Contains(mediaTypes, kind) {
			return apiAnswer{}, true
		}
	}
	if accept == "" {
		return apiAnswer{}, true
	}
	return apiProblem(
		http.StatusUnsupportedMediaType, "The Accept header names no supported media type.", docsREST,
	), false
}

// authenticate implements "Authenticating to the REST API": the token follows Bearer or token in
// Authorization. Invalid credentials get 401, and so do a user name and password, which are not
// supported. According to the endpoint pages, a request without credentials gets 401.
func (p *Platform) authenticate(r *http.Request) (caller, bool, apiAnswer) {
	header := r.Header.Get("Authorization")
	if header == "" {
		docs := docsUser
		if strings.HasSuffix(r.URL.Path, pathEmails) {
			docs = docsEmails
		}
		return caller{}, false, apiProblem(http.StatusUnauthorized, "Requires authentication", docs)
	}
	scheme, value, _ := strings.Cut(header, " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.tokens[value]
	if !ok || !strings.EqualFold(scheme, "bearer") && !strings.EqualFold(scheme, "token") {
		return caller{}, false, apiProblem(http.StatusUnauthorized, "Bad credentials", docsREST)
	}
	return caller{user: p.users[t.userID], scopes: t.scopes}, true, apiAnswer{}
}

func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
