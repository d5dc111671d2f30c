package github

import (
	"maps"
	"net/http"
	"slices"
	"sync"
)

// Request is a request that was received. It contains no values of parameters, bodies or
// credentials.
type Request struct {
	Method    string
	Path      string
	Query     []string // the names of the URL's parameters, sorted
	Accept    string
	UserAgent string
	// Authorized reports whether the request had an Authorization header.
	Authorized bool
	// Status is the status of the response. It is 0 while the request is running, and if its
	// connection was closed.
	Status int
}

const maxRequests = 10_000

// journal keeps the most recent requests in order of arrival.
type journal struct {
	mu   sync.Mutex
	list []*Request
}

func (j *journal) add(r *http.Request) *Request {
	made := &Request{
		Method: r.Method, Path: r.URL.Path, Query: slices.Sorted(maps.Keys(r.URL.Query())),
		Accept: r.Header.Get("Accept"), UserAgent: r.UserAgent(), Authorized: r.Header.Get("Authorization") != "",
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.list) >= maxRequests {
		j.list = slices.Delete(j.list, 0, 1)
	}
	j.list = append(j.list, made)
	return made
}

func (j *journal) finish(entry *Request, status int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entry.Status = status
}

// Requests returns the last 10,000 requests in order of arrival. A request is listed before its
// response is sent.
func (p *Platform) Requests() []Request {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	out := make([]Request, 0, len(p.journal.list))
	for _, r := range p.journal.list {
		out = append(out, *r)
	}
	return out
}

// statusRecorder records the status of a response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (s *statusRecorder) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (s *statusRecorder) Write(b []byte) (int, error) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	return s.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController, which closes the connection for a fault.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
