package github

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"crier/platform/fault"
)

// Endpoint is a part of the simulator that a Fault applies to. The API's endpoints include those below /api/v3.
type Endpoint string

// The values of Endpoint.
const (
	EndpointAny       Endpoint = ""
	EndpointAuthorize Endpoint = "authorize"
	EndpointToken     Endpoint = "token"
	EndpointUser      Endpoint = "user"
	EndpointEmails    Endpoint = "emails"
)

func endpointOf(path string) Endpoint {
	switch strings.TrimPrefix(path, enterprise) {
	case pathAuthorize:
		return EndpointAuthorize
	case pathToken:
		return EndpointToken
	case pathUser:
		return EndpointUser
	case pathEmails:
		return EndpointEmails
	}
	return EndpointAny
}

// FaultKind is what happens to a request instead of its answer.
type FaultKind string

// The values of FaultKind.
const (
	// FaultHang holds the request until the client gives up or Close is called, without acting on it.
	FaultHang FaultKind = "hang"
	// FaultStatus answers Status without acting on the request. The body is Body.
	FaultStatus FaultKind = "status"
	// FaultOversized answers 200 with a JSON object of Size bytes.
	FaultOversized FaultKind = "oversized"
	// FaultMalformed answers 200 with application/json that is cut off.
	FaultMalformed FaultKind = "malformed"
	// FaultDrop closes the connection without acting on the request.
	FaultDrop FaultKind = "drop"
	// FaultDropAfter acts on the request and closes the connection without an answer.
	FaultDropAfter FaultKind = "drop after"
	// FaultSecondaryLimit answers as "Rate limits for the REST API" describes for a secondary limit: LimitStatus, a
	// message that names it, and Retry-After if RetryAfter is set.
	FaultSecondaryLimit FaultKind = "secondary limit"
)

// Fault changes the answers of an endpoint. Faults apply in the order of Fail.
type Fault struct {
	Endpoint Endpoint
	Kind     FaultKind
	// Times is the number of requests. 0 means every request until ClearFaults.
	Times int
	// Status is the status of FaultStatus, 400 to 599.
	Status int
	// Body is the body of FaultStatus, JSON. "" means GitHub's text for an error of the server.
	Body string
	// Size is the size of FaultOversized in bytes. 0 means 16 MiB.
	Size int64
	// RetryAfter is rounded up to whole seconds.
	RetryAfter time.Duration
}

const maxFaults = 100

// Fail adds a fault. One that cannot be performed is fault.Invalid.
func (p *Platform) Fail(f Fault) error {
	kinds := []FaultKind{
		FaultHang, FaultStatus, FaultOversized, FaultMalformed, FaultDrop, FaultDropAfter, FaultSecondaryLimit,
	}
	endpoints := []Endpoint{EndpointAny, EndpointAuthorize, EndpointToken, EndpointUser, EndpointEmails}
	known := slices.Contains(kinds, f.Kind) && slices.Contains(endpoints, f.Endpoint)
	badStatus := f.Kind == FaultStatus && (f.Status < 400 || f.Status > 599)
	if !known || badStatus || f.Times < 0 || f.Size < 0 || f.RetryAfter < 0 {
		return fault.New(fault.Invalid, "github.Fail", "The fault has an unknown kind or endpoint, or a number out of range.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) >= maxFaults {
		return fault.New(fault.Invalid, "github.Fail", "There are too many faults. Call ClearFaults.")
	}
	p.faults = append(p.faults, f)
	return nil
}

// ClearFaults removes all faults. Requests that hang stay so until Close.
func (p *Platform) ClearFaults() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// takeFault returns the first fault for the endpoint and counts it.
func (p *Platform) takeFault(at Endpoint) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.faults, func(f Fault) bool { return f.Endpoint == EndpointAny || f.Endpoint == at })
	if i < 0 {
		return Fault{}, false
	}
	found := p.faults[i]
	switch found.Times {
	case 0:
	case 1:
		p.faults = slices.Delete(p.faults, i, i+1)
	default:
		p.faults[i].Times--
	}
	return found, true
}

func (p *Platform) serveFault(w http.ResponseWriter, r *http.Request, f Fault) {
	switch f.Kind {
	case FaultHang:
		// The server notices the end of a client only after the body was read.
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
		select {
		case <-r.Context().Done():
		case <-p.stop:
		}
		drop(w)
	case FaultStatus:
		body := cmp.Or(f.Body, `{"message":"Server Error"}`)
		sendRaw(w, f.Status, strings.NewReader(body))
	case FaultOversized:
		sendRaw(w, http.StatusOK, oversized(cmp.Or(f.Size, 16<<20)))
	case FaultMalformed:
		sendRaw(w, http.StatusOK, strings.NewReader(`{"access_token":"gho_`))
	case FaultDrop:
		drop(w)
	case FaultDropAfter:
		p.mux.ServeHTTP(discard{}, r)
		drop(w)
	case FaultSecondaryLimit:
		p.sendSecondaryLimit(w, f.RetryAfter)
	}
}

func (p *Platform) sendSecondaryLimit(w http.ResponseWriter, after time.Duration) {
	out := apiProblem(p.opts.LimitStatus, "You have exceeded a secondary rate limit. Please wait a few minutes "+
		"before you try again.", docsLimits+"#about-secondary-rate-limits")
	if after > 0 {
		out.header = map[string]string{"Retry-After": seconds(after)}
	}
	out.send(w)
}

func sendRaw(w http.ResponseWriter, status int, body io.Reader) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.Copy(w, body) // the client may have disconnected
}

// oversized returns a valid JSON object of about size bytes.
func oversized(size int64) io.Reader {
	return io.MultiReader(strings.NewReader(`{"padding":"`), io.LimitReader(padding{}, size), strings.NewReader(`"}`))
}

type padding struct{}

func (padding) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// drop closes the connection. A ResponseWriter that has none, such as httptest.ResponseRecorder, receives status 502.
func drop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if errors.Is(err, http.ErrNotSupported) {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	if err == nil {
		_ = conn.Close() // the connection is given up either way
	}
}

// discard is a ResponseWriter for an answer that is not received.
type discard struct{}

func (discard) Header() http.Header { return http.Header{} }

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func (discard) WriteHeader(int) {}
