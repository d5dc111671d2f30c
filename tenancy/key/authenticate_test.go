package key_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

// processes implements credential.Revocations.
type processes struct{ healthy bool }

func (p *processes) Healthy() bool { return p.healthy }

func TestAuthenticate_KeyThatAnotherProcessRevoked(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	other := tenancytest.New(t, db)
	person := tenancytest.Owner(t, other, "a@example.com")
	for name, at := range map[string]struct {
		revocations credential.Revocations
		until       time.Duration // how long the key is accepted
	}{
		"is accepted for 5 s by a process that does not listen":        {revocations: nil, until: 5 * time.Second},
		"is accepted for 5 s while revocations are not received":       {revocations: &processes{}, until: 5 * time.Second},
		"is accepted for a minute when a received revocation was lost": {revocations: &processes{healthy: true}, until: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var now atomic.Int64
			begin := time.Now()
			a := tenancytest.With(t, boot.AccountsDeps{
				DB: db, Revocations: at.revocations,
				Clock: clock.Func(func() time.Time { return begin.Add(time.Duration(now.Load())) }),
			})
			full, key := tenancytest.NewKey(t, other, person)
			if _, err := a.Authenticate(t.Context(), full); err != nil {
				t.Fatal(err)
			}
			if err := other.DeleteKey(t.Context(), person, key.ID.String()); err != nil {
				t.Fatal(err)
			}
			now.Store(int64(at.until - 1))
			if _, err := a.Authenticate(t.Context(), full); err != nil {
				t.Errorf("before %s: %v", at.until, err)
			}
			now.Store(int64(at.until))
			if _, err := a.Authenticate(t.Context(), full); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("after %s: %v, want Unauthenticated", at.until, err)
			}
		})
	}
}

// Requests without a valid credential can cause look-ups of sessions, files and connect states.
// They must not delay the look-up of a key.
func TestAuthenticate_NeedsNoConnectionOfOtherLookUps(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	a := tenancytest.New(t, db)
	full, _ := tenancytest.NewKey(t, a, tenancytest.Owner(t, a, "a@example.com"))
	gate := db.Pool(pg.Gate)
	for range gate.Config().MaxConns {
		c, err := gate.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	if _, err := a.Authenticate(t.Context(), full); err != nil {
		t.Errorf("a key with every connection of the gate in use: %v", err)
	}
}

func TestAuthenticateHash_EndsWithTheKey(t *testing.T) {
	t.Parallel()
	a := tenancytest.New(t, dbtest.Open(t))
	person := tenancytest.Owner(t, a, "hash@example.com")
	full, key := tenancytest.NewKey(t, a, person)
	p, err := a.AuthenticateHash(t.Context(), secret.HashToken(full))
	if err != nil || p.Org != person.Org || p.Key != key.ID || p.Via != tenancy.ViaKey || p.Name != "API key" {
		t.Errorf("got %+v and %v, want the key", p, err)
	}
	if err := a.DeleteKey(t.Context(), person, key.ID.String()); err != nil {
		t.Fatal(err)
	}
	for name, sent := range map[string]string{"a deleted key": full, "no key": "other"} {
		if _, err := a.AuthenticateHash(t.Context(), secret.HashToken(sent)); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %v, want Unauthenticated", name, err)
		}
	}
}

func TestAuthenticate_ReportsIncompleteKey(t *testing.T) {
	t.Parallel()
	a := tenancytest.New(t, dbtest.Open(t))
	full, _ := tenancytest.NewKey(t, a, tenancytest.Owner(t, a, "whole@example.com"))
	for sent, whole := range map[string]bool{
		full: true, full[:20]: false, full + `\n`: false, "CRIER_API_KEY=" + full: false, "key:" + full: false,
	} {
		_, err := a.Authenticate(t.Context(), sent)
		const want = "Invalid API key: it is incomplete or has extra characters around it."
		var f *fault.Error
		if whole != (err == nil) || !whole && (!errors.As(err, &f) || f.Kind != fault.Unauthenticated || f.Message != want) {
			t.Errorf("%q: got %v, want %q", sent, err, want)
		}
	}
}
