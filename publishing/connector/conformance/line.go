package conformance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"crier/platform/outbound"
)

const maxAnswer = 4 << 20 // bytes of a response that a fault replaces

var errBroken = errors.New("the suite broke the connection")

// Line is a connector.HTTP that injects faults and counts calls. Calls without a fault go through a
// guarded client. Line implements Faults and is safe for concurrent use.
type Line struct {
	client *outbound.Client

	mu     sync.Mutex // protects the fields below
	commit Fault      // the fault for the next Commit, or ""
	call   Fault      // the fault for Do and Websocket
	left   int        // how many more calls get the fault in call
	tally  tally
}

type tally struct {
	commits int // calls to Commit
	writes  int // calls to Do with a method other than GET or HEAD
	faulted int // calls that got a fault
}

func (a tally) since(b tally) tally {
	return tally{commits: a.commits - b.commits, writes: a.writes - b.writes, faulted: a.faulted - b.faulted}
}

// NewLine returns a Line that can reach public addresses and the given host:port addresses. The
// Line is closed when the test ends.
func NewLine(t *testing.T, allow ...string) *Line {
	t.Helper()
	client, err := outbound.New(outbound.Config{Allow: allow}, outbound.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &Line{client: client}
}

// Arm sets the fault for the next Commit. It always returns true, because a Line can produce every
// fault.
func (l *Line) Arm(_ *testing.T, fault Fault) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commit = fault
	return true
}

// failCalls sets the fault for the next calls to Do and Websocket; times is the number of calls. If
// times is 0, no fault is injected.
func (l *Line) failCalls(fault Fault, times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call, l.left = fault, times
}

func (l *Line) counted() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally
}

// Do sends a request that can be repeated. If an injected fault causes an error, Do returns a
// *url.Error, as outbound.Client would.
func (l *Line) Do(req *http.Request) (*http.Response, error) {
	fault := l.nextCall(req.Method != http.MethodGet && req.Method != http.MethodHead)
	resp, err := l.send(req, fault, l.client.Do)
	if err != nil && fault != "" {
		err = &url.Error{Op: req.Method, URL: req.URL.String(), Err: err}
	}
	return resp, err
}

// Commit sends an irreversible request. If an injected fault causes an error, Commit returns an
// *outbound.SendError.
func (l *Line) Commit(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	fault := l.commit
	l.commit = ""
	l.tally.commits++
	if fault != "" {
		l.tally.faulted++
	}
	l.mu.Unlock()
	resp, err := l.send(req, fault, l.client.Commit)
	if err != nil && fault != "" {
		err = &outbound.SendError{Err: err, Written: fault != RefuseDial}
	}
	return resp, err
}

// Websocket opens a websocket. It fails if any fault is injected.
func (l *Line) Websocket(ctx context.Context, address string) (*websocket.Conn, error) {
	if l.nextCall(false) != "" {
		return nil, errBroken
	}
	return l.client.DialWebsocket(ctx, address)
}

// nextCall counts a call to Do or Websocket. It returns the fault to inject into that call, or ""
// if there is none.
func (l *Line) nextCall(write bool) Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if write {
		l.tally.writes++
	}
	if l.left == 0 {
		return ""
	}
	l.left--
	l.tally.faulted++
	return l.call
}

// send calls through, which sends the request, and applies the fault to the response. If the fault
// strikes before the platform acts, send does not call through.
func (l *Line) send(
	req *http.Request, fault Fault, through func(*http.Request) (*http.Response, error),
) (*http.Response, error) {
	if fault != "" && !fault.acts() {
		if req.Body != nil {
			// closing a body in memory cannot fail
			_ = req.Body.Close()
		}
		return fault.answer(req)
	}
	resp, err := through(req)
	if err != nil || fault == "" {
		return resp, err
	}
	body, err := outbound.ReadAll(resp, maxAnswer)
	if err != nil {
		return nil, err
	}
	if fault == CutAnswer {
		half := io.MultiReader(bytes.NewReader(body[:len(body)/2]), broken{})
		resp.Body = io.NopCloser(half)
		return resp, nil
	}
	return fault.answer(req)
}

// answer returns the response or the error that replaces the platform's own. As on some platforms,
// the body contains the access token, so that the suite detects connectors that report a body
// unchanged.
func (f Fault) answer(req *http.Request) (*http.Response, error) {
	words := "broken, said " + req.Header.Get("Authorization")
	resp := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(words)),
	}
	switch f {
	case RateLimit:
		resp.Header.Set("Retry-After", "7")
		resp.StatusCode = http.StatusTooManyRequests
	case RateLimitBare:
		resp.StatusCode = http.StatusTooManyRequests
	case ErrorBefore, ErrorAfter:
		resp.StatusCode = http.StatusInternalServerError
	case Expired:
		resp.StatusCode = http.StatusUnauthorized
	case Replaced:
		resp.StatusCode = http.StatusNotFound
	default:
		return nil, errBroken
	}
	return resp, nil
}

// broken is a reader that fails like a response body whose connection was lost. It returns the same
// error as package outbound.
type broken struct{}

func (broken) Read([]byte) (int, error) {
	return 0, &outbound.SendError{Err: errBroken, Written: true}
}
