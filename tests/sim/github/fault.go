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

// Endpoint is a part of the simulator to which a Fault applies. The API's endpoints include those
// below /api/v3.
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

// FaultKind is what happens to a request instead of the normal response.
type FaultKind string

// The values of FaultKind.
const (
	// FaultHang holds the request, without acting on it, until the client gives up or Close is
	// called.
	FaultHang FaultKind = "hang"
	// FaultStatus responds with Status and Body, without acting on the request.
	FaultStatus FaultKind = "status"
	// FaultOversized responds with 200 and a JSON object of Size bytes.
	FaultOversized FaultKind = "oversized"
	// FaultMalformed responds with 200 and application/json that is cut off.
	FaultMalformed FaultKind = "malformed"
	// FaultDrop closes the connection without acting on the request.
	FaultDrop FaultKind = "drop"
	// FaultDropAfter acts on the request and closes the connection without a response.
	FaultDropAfter FaultKind = "drop after"
	// FaultSecondaryLimit responds as "Rate limits for the REST API" describes for a secondary
	// limit: with LimitStatus, a message that names the limit, and Retry-After if RetryAfter is
	// set.
	FaultSecondaryLimit FaultKind = "secondary limit"
)

// Fault changes the responses of an endpoint. Faults apply in the order in which they were added
// with Fail.
type Fault struct {
	Endpoint Endpoint
	Kind     FaultKind
	// Times is the number of requests to which the fault applies. 0 means every request until
	// ClearFaults.
	Times int
	// Status is the status for FaultStatus, 400 to 599.
	Status int
	// Body is the JSON body for FaultStatus. "" means GitHub's text for a server error.
	Body string
	// Size is the size for FaultOversized in bytes. 0 means 16 MiB.
	Size int64
	// RetryAfter is the time for FaultSecondaryLimit. It is rounded up to whole seconds.
	RetryAfter time.Duration
}

const maxFaults = 100

// Fail adds a fault. It returns fault.Invalid if the fault cannot be performed or there are too
// many faults.
func (p *Platform) Fail(f Fault) error {
	kinds := []FaultKind{
		FaultHang, FaultStatus, FaultOversized, FaultMalformed, FaultDrop, FaultDropAfter, FaultSecondaryLimit,
	}
	endpoints := []Endpoint{EndpointAny, EndpointAuthorize, EndpointToken, EndpointUser, EndpointEmails}
	known := slices.Contains(kinds, f.Kind) && slices.Contains(endpoints, f.Endpoint)
	badStatus := f.Kind == FaultStatus && (f.Status < 400 || f.Status > 599)
	if !known || badStatus || f.Times < 0 || f.Size < 0 || f.RetryAfter < 0 {
		return fault.New(
			fault.Invalid, "github.Fail", "The fault has an unknown kind or endpoint, or a number out of range.",
		)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) >= maxFaults {
		return fault.New(fault.Invalid, "github.Fail", "There are too many faults. Call ClearFaults.")
	}
	p.faults = append(p.faults, f)
	return nil
}

// ClearFaults removes all faults. Requests that already hang keep hanging until Close.
func (p *Platform) ClearFaults() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// takeFault returns the first fault for the endpoint and counts the request.
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
		// The server detects that a client has left only after the body has been read.
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

// drop closes the connection. A ResponseWriter without a connection, such as
// httptest.ResponseRecorder, gets the status 502.
func drop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if errors.Is(err, http.ErrNotSupported) {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	if err == nil {
		_ = conn.Close() // the connection is abandoned either way
	}
}

// discard is a ResponseWriter for a response that nobody receives.
type discard struct{}

func (discard) Header() http.Header { return http.Header{} }

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func (discard) WriteHeader(int) {}
