package boot

import (
	"net/http"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"crier/platform/secret"
	"crier/tests/call"
	"crier/tests/faultnet"
)

// login logs in with a password and returns the status.
func (s *serving) login(t *testing.T, password string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	body := map[string]string{"email": "owner@crier.test", "password": password}
	a, err := call.Do(t.Context(), client, http.MethodPost, "http://"+s.Addr()+"/auth/login", body, "Content-Type", "application/json")
	if err != nil {
		t.Fatal(err)
	}
	return a.Status
}

func TestLogin_ProcessesCountFailuresTogether(t *testing.T) {
	t.Parallel()
	way, through := faultnet.Start(t, "redis://"+miniredis.RunT(t).Addr())
	// Redis also answers late on a busy machine.
	patient := func(a *App) { a.loginTimeout = time.Hour }
	key, err := secret.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"REDIS_URL": through, "ENCRYPTION_KEYS": key}
	one, other := serveWith(t, settings, patient), serveWith(t, settings, patient)
	for i := range 5 {
		if status := []*serving{one, other}[i%2].login(t, "wrong"); status != http.StatusBadRequest {
			t.Fatalf("wrong password %d: %d, want 400", i+1, status)
		}
	}
	for _, s := range []*serving{one, other} {
		if status := s.login(t, "wrong"); status != http.StatusTooManyRequests {
			t.Errorf("after five failures in both: %d, want 429", status)
		}
	}
	if err := way.Close(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if status := one.login(t, "wrong"); status != http.StatusBadRequest {
			t.Errorf("without Redis: %d, want 400", status)
		}
	}
	if status := one.login(t, "wrong"); status != http.StatusTooManyRequests {
		t.Errorf("after five failures without Redis: %d, want 429", status)
	}
}
