package key

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	keystore "crier/tenancy/key/store"
	"crier/tenancy/notice"
)

// maxOverlap is the maximum overlap in hours.
const maxOverlap = 72

// RotateKey replaces a key with a new key that has the same name and expiry. If key is "", it
// replaces the oldest key that has not been replaced yet. If there is no key to replace, it creates
// one. The old key keeps working for the given overlap of 0 to 72 hours. If overlap is 0, the old
// key stops working immediately.
//
// RotateKey requires the same sign-in or proof as CreateKey.
//
// RotateKey returns fault.NotFound if the key no longer works. It returns fault.Conflict if the key
// still works but has already been replaced. If key is "", it also returns fault.Conflict if the
// oldest key was created by a rotation in the last ten minutes.
func (s *Keys) RotateKey(ctx context.Context, p tenancy.Principal, key string, overlap int, proof tenancy.Proof) (
	out tenancy.Rotation, err error) {
	const op = "tenancy.RotateKey"
	var in tenancy.Inputs
	in.Check(overlap >= 0 && overlap <= maxOverlap, "overlapHours", "must be from 0 to 72")
	if err := in.Err(op); err != nil {
		return out, err
	}
	parsed, ok := id.Parse[tenancy.KeyTag](key)
	if key != "" && !ok {
		return out, noKey(op)
	}
	if err := s.proofs.ProveLately(ctx, op, p, proof); err != nil {
		return out, err
	}
	var hash []byte
	err = s.db.InOrgAlone(ctx, op, p, func(tx *db.OrgTx) error {
		out, hash = tenancy.Rotation{}, nil // fn may run again
		stored, err := s.keyToRotate(ctx, tx, op, parsed)
		if pg.IsNoRows(err) && key == "" {
			return s.makeFirstKey(ctx, tx, op, p, &out)
		}
		if err != nil {
			return err
		}
		hash, out.Old = stored.Hash, stored.APIKey
		until := s.clock.Now().Add(time.Duration(overlap) * time.Hour)
		out.Old.OverlapUntil = &until
		if err := keystore.ReplaceKey(ctx, tx, stored.ID, until); err != nil {
			return err
		}
		next := tenancy.NewKey{Name: stored.Name, ExpiresAt: stored.ExpiresAt}
		if out.Full, out.New, err = s.makeKey(ctx, tx, op, p, next, true); err != nil {
			return err
		}
		return s.recordKey(ctx, tx, p, tenancy.ActionKeyRotated, notice.KeyRotated, stored.APIKey)
	})
	if hash != nil {
		s.ForgetRevoked(err, [][]byte{hash}) // the cached key has the old expiry
	}
	if pg.IsNoRows(err) {
		return out, noKey(op)
	}
	return out, err
}

// makeFirstKey creates an organization's first key.
func (s *Keys) makeFirstKey(ctx context.Context, tx *db.OrgTx, op string, p tenancy.Principal,
	out *tenancy.Rotation) (err error) {
	if out.Full, out.New, err = s.makeKey(ctx, tx, op, p, tenancy.NewKey{Name: "default"}, true); err != nil {
		return err
	}
	return s.recordKey(ctx, tx, p, tenancy.ActionKeyCreated, notice.KeyCreated, out.New)
}

// rotationRest is how long a key created by a rotation is protected from RotateKey calls without a
// key id. Otherwise, a second click, or a retry after a lost response, would replace the key that
// the first request returned.
const rotationRest = 10 * time.Minute

// keyToRotate locks and returns the key with the given id, or the oldest key if the id is zero. It
// returns pgx.ErrNoRows if there is no such key or the key no longer works. It returns Conflict if
// the key has already been replaced or must not be replaced yet.
func (s *Keys) keyToRotate(ctx context.Context, tx *db.OrgTx, op string, key tenancy.KeyID) (
	stored keystore.Key, err error) {
	chosen := !key.IsZero()
	if !chosen {
		if key, err = keystore.OldestKey(ctx, tx, s.clock.Now()); err != nil {
			return stored, err
		}
	}
	if stored, err = keystore.LockKey(ctx, tx, key, s.clock.Now); err != nil {
		return stored, err
	}
	if stored.OverlapUntil != nil {
		return stored, fault.New(fault.Conflict, op, "This API key has already been replaced; it works until "+
			stored.Ends().UTC().Format(time.RFC3339)+".")
	}
	if rests := stored.CreatedAt.Add(rotationRest).Sub(s.clock.Now()); !chosen && stored.Rotated && rests > 0 {
		return stored, &fault.Error{Kind: fault.Conflict, Op: op, RetryAfter: rests,
			Message: "The oldest API key was created by a rotation minutes ago: send its id to replace it now."}
	}
	return stored, nil
}
