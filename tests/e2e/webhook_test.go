package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/tests/sandboxtest"
	"crier/tests/standardwebhooks"
)

// receiver records the calls to a webhook.
type receiver struct {
	mu    sync.Mutex
	calls []standardwebhooks.Call
	// held is closed once the next call has arrived; that call then hangs until its client is gone.
	// If held is nil, the receiver responds.
	held chan struct{}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	c := standardwebhooks.Call{Body: string(body), Headers: map[string]string{}, At: time.Now()}
	for name := range req.Header {
		c.Headers[strings.ToLower(name)] = req.Header.Get(name)
	}
	r.mu.Lock()
	r.calls = append(r.calls, c)
	held := r.held
	r.held = nil
	r.mu.Unlock()
	if held != nil {
		close(held)
		<-req.Context().Done()
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) got() []standardwebhooks.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]standardwebhooks.Call{}, r.calls...)
}

// holdNext makes the next call hang. The returned channel is closed once that call has arrived.
func (r *receiver) holdNext() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = make(chan struct{})
	return r.held
}

// block keeps the service from turning events into deliveries until release is called.
func (s *service) block(t *testing.T) (release func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.database)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "begin; lock table webhook in exclusive mode"); err != nil {
		t.Fatal(err)
	}
	// Closing the connection ends the transaction.
	return sync.OnceFunc(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
}

// TestWebhook_SurvivesKills kills the service between the change of the state and the delivery, and
// in the middle of a delivery.
func TestWebhook_SurvivesKills(t *testing.T) {
	t.Parallel()
	box := &receiver{}
	server := httptest.NewServer(box)
	t.Cleanup(server.Close)
	a := newSandbox(sandboxtest.Start(t), gradeA)
	settings := a.service()
	settings["OUTBOUND_ALLOW"] = strings.TrimPrefix(server.URL, "http://")
	s := start(t, settings)
	connector, form := a.form()
	channel := s.connect(t, connector, form)
	var hook struct{ ID, Secret string }
	s.answer(t, &hook, http.MethodPost, "/public/v1/webhooks", m{"name": "hook", "url": server.URL})

	release := s.block(t)
	t.Cleanup(release)
	first := s.create(t, "now", time.Now(), channel, []part{{text: "first"}})
	s.awaitEnd(t, first, time.Now().Add(patience))
	s.kill()
	if n := len(box.got()); n != 0 {
		t.Fatalf("got %d calls before the kill, want 0", n)
	}
	release()
	s.restart(t)
	box.await(t, 1)

	arrived := box.holdNext()
	second := s.create(t, "now", time.Now(), channel, []part{{text: "second"}})
	s.awaitEnd(t, second, time.Now().Add(patience))
	closed(t, "the call of the webhook", arrived)
	s.kill()
	s.restart(t)
	box.await(t, 3)

	var log []struct{ State, PostID string }
	await(t, "the end of both deliveries", time.Now().Add(patience), func() bool {
		s.answer(t, &log, http.MethodGet, "/public/v1/webhooks/"+hook.ID+"/deliveries", nil)
		return len(log) == 2 && log[0].State == "delivered" && log[1].State == "delivered"
	}, func() string { return s.log.String() })
	calls := box.got()
	if len(calls) != 3 || !strings.Contains(calls[0].Body, first) || !strings.Contains(calls[1].Body, second) {
		t.Fatalf("got the calls %v, want one of the first post and two of the second", calls)
	}
	if calls[1].Headers["webhook-id"] != calls[2].Headers["webhook-id"] || calls[1].Body != calls[2].Body || calls[0].Headers["webhook-id"] == calls[1].Headers["webhook-id"] {
		t.Errorf("got the calls %v, want the second delivery twice with one id and one body", calls)
	}
	for i := range calls {
		calls[i].Secret = hook.Secret
	}
	for i, problem := range standardwebhooks.Verify(t, calls...) {
		if problem != "" {
			t.Errorf("call %d: the library refuses it: %s", i+1, problem)
		}
	}
}

// await waits until n calls have arrived.
func (r *receiver) await(t *testing.T, n int) {
	t.Helper()
	await(t, "the calls of the webhook", time.Now().Add(2*patience), func() bool { return len(r.got()) >= n },
		func() string { return "fewer" })
}
