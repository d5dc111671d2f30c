package instance_test

import (
	"testing"
	"time"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

// The process that takes away access or gives it back applies the change at once, without waiting
// for a revocation.
func TestAccessChanged_KeysFollowInThisProcessAtOnce(t *testing.T) {
	t.Parallel()
	at := time.Now() // the clock stands still, so that no cache entry expires
	a := tenancytest.With(t, boot.AccountsDeps{DB: dbtest.Open(t), Clock: clock.Func(func() time.Time { return at })})
	owner := tenancytest.Owner(t, a, "a@example.com")
	full, _ := tenancytest.NewKey(t, a, owner)
	signIn, err := a.Login(t.Context(), "a@example.com", tenancytest.Password, tenancytest.Here)
	if err != nil {
		t.Fatal(err)
	}
	person, err := a.Session(t.Context(), signIn.Session, "", "", tenancytest.Here)
	if err != nil {
		t.Fatal(err)
	}
	proof := tenancy.Proof{Password: tenancytest.Password}
	for _, step := range []struct {
		name string
		do   func() error
		want fault.Kind
	}{
		{name: "at first", do: func() error { return nil }},
		{name: "suspended", do: func() error { return a.Suspend(t.Context(), owner.Org.String(), true) }, want: fault.Forbidden},
		{name: "resumed", do: func() error { return a.Suspend(t.Context(), owner.Org.String(), false) }},
		{name: "deleted", do: func() error { return a.DeleteOrganization(t.Context(), person, proof) }, want: fault.Unauthenticated},
		{name: "restored", do: func() error { return a.RestoreOrganization(t.Context(), person, owner.Org.String()) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		_, err := a.Authenticate(t.Context(), full)
		if step.want == "" && err != nil || step.want != "" && !fault.Is(err, step.want) {
			t.Errorf("%s: the key is answered with %v, want %q", step.name, err, step.want)
		}
	}
}
