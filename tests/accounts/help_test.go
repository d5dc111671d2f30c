package accounts

import (
	"sync"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"crier/platform/fault"
	"crier/tenancy"
)

// together calls fn n times at once and returns the results.
func together[T any](n int, fn func(i int) T) []T {
	out := make([]T, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			out[i] = fn(i)
		})
	}
	close(start)
	all.Wait()
	return out
}

// patient calls fn until it returns something other than RateLimited, at most 100 times. A log-in
// waits only a few seconds for a slot to hash in.
func patient[T any](fn func() (T, error)) (out T, err error) {
	for range 100 {
		if out, err = fn(); !fault.Is(err, fault.RateLimited) {
			return out, err
		}
	}
	return out, err
}

// kinds counts errors by kind; nil counts as "".
func kinds(errs []error) map[fault.Kind]int {
	out := map[fault.Kind]int{}
	for _, err := range errs {
		kind := fault.Kind("")
		if err != nil {
			kind = fault.KindOf(err)
		}
		out[kind]++
	}
	return out
}

// code returns the code of a second factor at the test's time plus the given number of 30-second
// steps.
func (w *rig) code(text string, steps int) string {
	w.t.Helper()
	code, err := totp.GenerateCodeCustom(text, w.time().Add(time.Duration(steps)*30*time.Second), totp.ValidateOpts{
		Period: 30, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1,
	})
	must(w.t, err)
	return code
}

// wrongCode returns a code that is valid neither in the present time step nor in the ones next to
// it.
func (w *rig) wrongCode(text string) string {
	w.t.Helper()
	for _, guess := range []string{"000000", "111111", "222222", "333333"} {
		if guess != w.code(text, -1) && guess != w.code(text, 0) && guess != w.code(text, 1) {
			return guess
		}
	}
	w.t.Fatal("no wrong code")
	return ""
}

// enroll enables a second factor, moves to the next time step, and returns the secret and the
// recovery codes.
func (w *rig) enroll(p tenancy.Principal) (string, []string) {
	w.t.Helper()
	begun, err := w.BeginMFA(w.t.Context(), p, tenancy.Proof{Password: password})
	must(w.t, err)
	codes, err := w.ConfirmMFA(w.t.Context(), p, w.code(begun.Text, 0))
	must(w.t, err)
	w.advance(30 * time.Second)
	return begun.Text, codes
}
