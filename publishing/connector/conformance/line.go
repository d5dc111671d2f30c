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

const maxAnswer = 4 << 20 // bytes of an answer that a fault swallows

var errBroken = errors.New("the suite broke the line")

// Line is the guarded way out (connector.HTTP) with faults on demand, and it counts what passes. It is a Faults of its own.
type Line struct {
	client *outbound.Client

	mu     sync.Mutex
	commit Fault // the next Commit, once
	call   Fault // of Do and Websocket
	left   int   // how many times call strikes
	tally  tally
}

// tally counts calls.
type tally struct {
	commits int // by Commit
	writes  int // by Do, of methods that change something
	struck  int // by a fault
}

func (a tally) since(b tally) tally {
	return tally{a.commits - b.commits, a.writes - b.writes, a.struck - b.struck}
}

// NewLine opens the way to these host:port addresses.
func NewLine(t *testing.T, allow ...string) *Line {
	t.Helper()
	client, err := outbound.New(outbound.Config{Allow: allow}, outbound.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &Line{client: client}
}

// Arm breaks the next Commit.
func (l *Line) Arm(_ *testing.T, fault Fault) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commit = fault
	return true
}

// breakCalls makes the fault strike the next calls that are not commits; no times = mended.
func (l *Line) breakCalls(fault Fault, times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call, l.left = fault, times
}

func (l *Line) counted() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally
}

// Do passes a call that may be repeated.
func (l *Line) Do(req *http.Request) (*http.Response, error) {
	fault := l.nextCall(req.Method != http.MethodGet && req.Method != http.MethodHead)
	resp, err := l.send(req, fault, l.client.Do)
	if err != nil && fault != "" {
		err = &url.Error{Op: req.Method, URL: req.URL.String(), Err: err}
	}
	return resp, err
}

// Commit passes an irreversible call.
func (l *Line) Commit(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	fault := l.commit
	l.commit = ""
	l.tally.commits++
	if fault != "" {
		l.tally.struck++
	}
	l.mu.Unlock()
	resp, err := l.send(req, fault, l.client.Commit)
	if err != nil && fault != "" {
		err = &outbound.SendError{Err: err, Written: fault != RefuseDial}
	}
	return resp, err
}

// Websocket opens a websocket; any fault refuses it.
func (l *Line) Websocket(ctx context.Context, address string) (*websocket.Conn, error) {
	if l.nextCall(false) != "" {
		return nil, errBroken
	}
	return l.client.DialWebsocket(ctx, address)
}

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
	l.tally.struck++
	return l.call
}

func (l *Line) send(req *http.Request, fault Fault, through func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if fault != "" && !fault.acts() {
		if req.Body != nil {
			_ = req.Body.Close() // a test's own bytes
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

// answer is what the connector gets instead of the platform's. It repeats the access token, as careless platforms do.
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

// broken is the end of a body that the line lost, as outbound reports it.
type broken struct{}

func (broken) Read([]byte) (int, error) {
	return 0, &outbound.SendError{Err: errBroken, Written: true}
}
