package key

import (
	"context"
	"strings"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	keystore "crier/tenancy/key/store"
)

// Authenticate returns the principal for the API key in an Authorization header. It returns
// fault.Unauthenticated if the header does not contain a valid key, and fault.Forbidden if the
// operator has suspended the key's organization. It returns fault.Unavailable if the database
// cannot be queried and no recent result is cached.
func (s *Keys) Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error) {
	const op = "tenancy.Authenticate"
	if authorization == "" {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, op,
			"No API key found: send it in the Authorization header.")
	}
	if !strings.HasPrefix(authorization, tenancy.KeyPrefix) ||
		len(authorization) != len(tenancy.KeyPrefix)+tenancy.KeyLength {
		denied := fault.New(fault.Unauthenticated, op, "Invalid API key.")
		if strings.Contains(authorization, tenancy.KeyPrefix) {
			denied = fault.New(fault.Unauthenticated, op,
				"Invalid API key: it is incomplete or has extra characters around it.")
		}
		return tenancy.Principal{}, denied
	}
	p, err := s.authenticate(ctx, op, secret.HashToken(authorization))
	if err != nil {
		return tenancy.Principal{}, err
	}
	p.Name = "API key " + authorization[:len(tenancy.KeyPrefix)+shownOfKey]
	return p, nil
}

// AuthenticateHash is like Authenticate, but for the SHA-256 hash of a key. The principal's name
// lacks the first characters of the key.
func (s *Keys) AuthenticateHash(ctx context.Context, hash []byte) (tenancy.Principal, error) {
	return s.authenticate(ctx, "tenancy.AuthenticateHash", hash)
}

func (s *Keys) authenticate(ctx context.Context, op string, hash []byte) (tenancy.Principal, error) {
	k, found, err := s.cache.Find(ctx, hash)
	if err != nil {
		f := fault.Wrap(fault.Unavailable, op, "The database cannot look up API keys right now; try again soon.", err)
		f.RetryAfter = pg.RetryAfter
		return tenancy.Principal{}, f
	}
	if !found || k.EndsAt != nil && !s.clock.Now().Before(*k.EndsAt) {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, op, "Invalid API key.")
	}
	if k.Suspended {
		return tenancy.Principal{}, fault.New(fault.Forbidden, op, "The operator has suspended this organization.")
	}
	return tenancy.Principal{
		Org: k.Org, Person: k.CreatedBy, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaKey, Key: k.ID,
		Name: "API key",
	}, nil
}

func (s *Keys) findKeys(ctx context.Context, hashes [][]byte) (map[string]keystore.FoundKey, error) {
	return keystore.KeysByHash(ctx, s.db, hashes, s.clock.Now())
}
