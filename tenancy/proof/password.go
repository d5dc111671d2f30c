package proof

import (
	"context"
	"errors"
	"time"

	"github.com/alexedwards/argon2id"

	"crier/platform/fault"
	"crier/platform/limit"
)

// Hash returns a password hash for use with Matches. It returns the same errors as slot.
func (s *Proofs) Hash(ctx context.Context, site, password string) (string, error) {
	release, err := s.slot(ctx, site)
	if err != nil {
		return "", err
	}
	defer release()
	s.hashed.Add(1)
	hash, err := argon2id.CreateHash(password, s.hash)
	if err != nil {
		return "", fault.Wrap(fault.Internal, "tenancy.hashPassword", "", err)
	}
	return hash, nil
}

// Matches reports whether the password matches the stored hash. If stored is empty, no password
// matches, but the comparison takes as long as any other. Matches returns the same errors as slot,
// and fault.Internal if stored is not a valid hash.
func (s *Proofs) Matches(ctx context.Context, site, password, stored string) (bool, error) {
	release, err := s.slot(ctx, site)
	if err != nil {
		return false, err
	}
	defer release()
	s.hashed.Add(1)
	compared := stored
	if stored == "" {
		compared = s.decoy
	}
	ok, err := argon2id.ComparePasswordAndHash(password, compared)
	if err != nil {
		return false, fault.Wrap(fault.Internal, "tenancy.matches", "", err)
	}
	return ok && stored != "", nil
}

const (
	// hashWait is how long a login waits for a free hashing slot.
	hashWait = 3 * time.Second
	// waitingPerSite is the maximum number of logins from one site that can wait for a hashing
	// slot.
	waitingPerSite = 8
)

// slot waits up to hashWait for a free slot for hashing a password. The caller must call release
// when it has finished hashing. slot returns fault.RateLimited if too many logins from the site are
// waiting or if no slot becomes free in time.
func (s *Proofs) slot(ctx context.Context, site string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, hashWait)
	defer cancel()
	release, err = s.slots.Enter(ctx, site)
	if err != nil {
		message := "Too many log-ins are in progress; try again in a moment."
		if errors.Is(err, limit.ErrFull) {
			message = "Too many log-ins from your network are in progress; try again when they have finished."
		}
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "tenancy.slot", Message: message, RetryAfter: hashWait, Err: err,
		}
	}
	return release, nil
}

// Hashed returns how many passwords this process has hashed or compared.
func (s *Proofs) Hashed() int64 { return s.hashed.Load() }

// hashesAtOnce returns the maximum number of passwords to hash concurrently. Each hash needs a
// whole core and tens of megabytes, so half of the cores are left for other work.
func hashesAtOnce(cores int) int { return max(1, cores/2) }

func newSlots(n int) *limit.Fair[string] { return limit.NewFair[string](n, waitingPerSite) }
