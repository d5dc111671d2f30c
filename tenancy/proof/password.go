package proof

import (
	"context"
	"errors"
	"time"

	"github.com/alexedwards/argon2id"

	"crier/platform/fault"
	"crier/platform/limit"
)

// Hash returns a hash of the password for Matches. It returns the errors of slot.
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

// Matches reports whether the password has the stored hash. No password matches an empty hash,
// which takes as much work. It returns the errors of slot, and fault.Internal if stored is not a
// hash.
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
	// hashWait is how long a log-in waits for a slot.
	hashWait = 3 * time.Second
	// waitingPerSite is the maximum number of log-ins of one site that wait for a slot.
	waitingPerSite = 8
)

// slot waits at most hashWait for a slot in which a password may be hashed. The caller must call
// release. slot returns fault.RateLimited if too many log-ins of the site are waiting, or if no
// slot became free in time.
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

// hashesAtOnce returns the number of passwords that are hashed concurrently. Each needs a whole
// core and tens of megabytes, so half of the cores are left for other work.
func hashesAtOnce(cores int) int { return max(1, cores/2) }

func newSlots(n int) *limit.Fair[string] { return limit.NewFair[string](n, waitingPerSite) }
