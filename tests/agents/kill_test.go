package agents

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"crier/tests/call"
)

// mostDelay is the longest time between a request and the kill. A request takes less.
const mostDelay = 25 * time.Millisecond

// TestKill kills the process during and between the steps of an authorization. After each kill the
// program must be able to continue with what it has, or after asking the person again. Nothing may
// be granted twice.
func TestKill(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := &killing{t: t, s: s, p: s.owner(t), a: s.native(t), random: rand.New(rand.NewPCG(1, 38))}
	kept := k.p.grant(t, k.a, nil) // another installation of the program
	steps := []func(t *testing.T) tokens{k.duringConsent, k.duringExchange, k.duringRefresh, k.between}
	for round := range killRounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			got := steps[round%len(steps)](t)
			s.wantAlive(t, "the token after the kill", got.Access)
			next := good(t, k.a.token(t, k.a.refreshForm(got.Refresh)))
			s.wantAlive(t, "the token of a refresh after the kill", next.Access)
			kept = good(t, k.a.token(t, k.a.refreshForm(kept.Refresh)))
			s.wantAlive(t, "the token of the other installation", kept.Access)
			if apps := k.p.approvedApps(t); len(apps) != 1 {
				t.Errorf("got the approved apps %+v, want 1", apps)
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("of %d kills during a request, %d came before its answer", k.during, k.lost)
}

// killing kills the process of a service while one program and one person use it.
type killing struct {
	t            testing.TB // of all rounds: a process outlasts the round that starts it
	s            *service
	p            *person
	a            *app
	random       *rand.Rand
	during, lost int
}

// whileKilled sends a request, kills the process at about the same time and starts it again. It
// returns false if no answer came.
func (k *killing) whileKilled(t *testing.T, send func(ctx context.Context) (call.Answer, error)) (call.Answer, bool) {
	t.Helper()
	type outcome struct {
		answer call.Answer
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		a, err := send(t.Context())
		done <- outcome{answer: a, err: err}
	}()
	time.Sleep(time.Duration(k.random.Int64N(int64(mostDelay))))
	k.restart()
	got := <-done
	k.during++
	if got.err != nil {
		k.lost++
	}
	return got.answer, got.err == nil
}

func (k *killing) restart() {
	k.t.Helper()
	k.s.kill()
	k.s.restart(k.t)
}

// exchange asks the person and exchanges the code, as a program does when it starts over.
func (k *killing) exchange(t *testing.T) tokens {
	t.Helper()
	return k.p.grant(t, k.a, nil)
}

// duringConsent kills the process while the person approves. The form then works unless the
// approval has been stored.
func (k *killing) duringConsent(t *testing.T) tokens {
	t.Helper()
	r := k.a.request(nil)
	f := k.p.consentForm(t, r)
	form := f.values(f.button(approveButton))
	path := f.path(t, k.s.base+r.path())
	first, answered := k.whileKilled(t, func(ctx context.Context) (call.Answer, error) {
		return k.p.tryBrowse(ctx, http.MethodPost, path, form)
	})
	code := ""
	if answered {
		code = back(t, first, k.a.redirect).Get("code")
	}
	again := back(t, k.p.browse(t, http.MethodPost, path, form), k.a.redirect).Get("code")
	switch {
	case code != "" && again != "":
		t.Error("one approval gave two codes")
	case code == "" && again == "":
		return k.exchange(t) // the code was lost with the answer
	case code == "":
		code = again
	}
	return good(t, k.a.token(t, r.exchangeForm(code)))
}

// duringExchange kills the process while the program exchanges its code.
func (k *killing) duringExchange(t *testing.T) tokens {
	t.Helper()
	r := k.a.request(nil)
	form := r.exchangeForm(k.p.approve(t, r, nil))
	first, answered := k.whileKilled(t, func(ctx context.Context) (call.Answer, error) { return k.a.tryToken(ctx, form) })
	if answered && first.Status == http.StatusOK {
		return good(t, first)
	}
	second := k.a.token(t, form)
	if second.Status == http.StatusOK {
		got := good(t, second)
		third := k.a.token(t, form)
		wantOAuthError(t, "the code once more", third, "invalid_grant")
		k.s.wantDead(t, "the token of a code that was replayed", got.Access)
		return k.exchange(t)
	}
	wantOAuthError(t, "a code whose tokens were lost", second, "invalid_grant")
	return k.exchange(t)
}

// duringRefresh kills the process while the program refreshes. The old token must work if the new
// one was lost.
func (k *killing) duringRefresh(t *testing.T) tokens {
	t.Helper()
	got := k.exchange(t)
	form := k.a.refreshForm(got.Refresh)
	first, answered := k.whileKilled(t, func(ctx context.Context) (call.Answer, error) { return k.a.tryToken(ctx, form) })
	if answered && first.Status == http.StatusOK {
		return good(t, first)
	}
	return good(t, k.a.token(t, form))
}

// between kills the process after each step.
func (k *killing) between(t *testing.T) tokens {
	t.Helper()
	r := k.a.request(nil)
	f := k.p.consentForm(t, r)
	k.restart()
	code := back(t, k.p.submit(t, r, f, approveButton), k.a.redirect).Get("code")
	if code == "" {
		t.Fatal("the form of a consent page does not work after a restart")
	}
	k.restart()
	first := good(t, k.a.token(t, r.exchangeForm(code)))
	k.restart()
	good(t, k.a.token(t, k.a.refreshForm(first.Refresh)))
	k.restart()
	repeated := good(t, k.a.token(t, k.a.refreshForm(first.Refresh))) // as if the answer had been lost
	k.restart()
	return repeated
}
