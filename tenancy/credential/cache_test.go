package credential_test

import (
	"context"
	"testing"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
)

// personal is a credential that acts for a person, and impersonal is one that does not.
type personal struct {
	org    tenancy.OrgID
	person tenancy.PersonID
}

func (p personal) Of() tenancy.OrgID          { return p.org }
func (p personal) OfPerson() tenancy.PersonID { return p.person }

type impersonal struct{ org tenancy.OrgID }

func (i impersonal) Of() tenancy.OrgID { return i.org }

// finder counts the look-ups of a cache, all of which find the value.
func finder[V any](n *int, value V) credential.Find[V] {
	return func(_ context.Context, hashes [][]byte) (map[string]V, error) {
		*n++
		out := map[string]V{}
		for _, h := range hashes {
			out[string(h)] = value
		}
		return out, nil
	}
}

func TestCaches_ForgetWhatARevocationNames(t *testing.T) {
	t.Parallel()
	org, person := id.New[tenancy.OrgTag](), id.New[tenancy.PersonTag]()
	for name, c := range map[string]struct {
		revoked          string
		tokens, sessions int // how often the personal and the impersonal credential are looked up
	}{
		"nothing":                  {revoked: "00", tokens: 1, sessions: 1},
		"the hash":                 {revoked: "78", tokens: 2, sessions: 2},
		"the organization":         {revoked: org.String(), tokens: 2, sessions: 2},
		"another organization":     {revoked: id.New[tenancy.OrgTag]().String(), tokens: 1, sessions: 1},
		"the person":               {revoked: db.PersonRevocation + person.String(), tokens: 2, sessions: 1},
		"another person":           {revoked: db.PersonRevocation + id.New[tenancy.PersonTag]().String(), tokens: 1, sessions: 1},
		"a person with no id":      {revoked: db.PersonRevocation + "x", tokens: 1, sessions: 1},
		"the person without words": {revoked: person.String(), tokens: 1, sessions: 1},
	} {
		var tokens, sessions int
		a := credential.NewCache(clock.System{}, nil, finder(&tokens, personal{org: org, person: person}))
		b := credential.NewCache(clock.System{}, nil, finder(&sessions, impersonal{org: org}))
		find := func() {
			if _, found, err := a.Find(t.Context(), []byte("x")); err != nil || !found {
				t.Fatal(found, err)
			}
			if _, found, err := b.Find(t.Context(), []byte("x")); err != nil || !found {
				t.Fatal(found, err)
			}
		}
		find()
		credential.Caches{a, b}.ForgetRevoked(c.revoked)
		find()
		if tokens != c.tokens || sessions != c.sessions {
			t.Errorf("%s: %d and %d look-ups, want %d and %d", name, tokens, sessions, c.tokens, c.sessions)
		}
	}
}
