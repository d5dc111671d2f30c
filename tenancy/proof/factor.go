package proof

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

// Factor is a second factor.
type Factor struct {
	// Secret is the sealed TOTP secret.
	Secret []byte `db:"secret"`
	// ConfirmedAt is when the enrollment was completed. It is nil for a factor that is not in
	// effect yet.
	ConfirmedAt *time.Time `db:"confirmed_at"`
	// LastStep is the time step of the last accepted code.
	LastStep int64 `db:"last_step"`
	// Tries is the number of wrong codes since TriesSince.
	Tries      int       `db:"tries"`
	TriesSince time.Time `db:"tries_since"`
}

const factorLock = `-- tenancy.FactorLock
select secret, confirmed_at, last_step, tries, tries_since from mfa where person_id = $1 for update`

// LockFactor returns a person's second factor and locks it until the end of the transaction. It
// returns pgx.ErrNoRows if the person has none.
func LockFactor(ctx context.Context, tx *db.GateTx, person tenancy.PersonID) (Factor, error) {
	return db.One[Factor](ctx, tx, factorLock, person)
}

const factorUse = `-- tenancy.FactorUse
update mfa set last_step = $2, tries = $3, tries_since = $4 where person_id = $1`

// SaveTries saves a factor's last accepted time step and its number of wrong codes.
func SaveTries(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, f Factor) error {
	return db.Change(ctx, tx, factorUse, person, f.LastStep, f.Tries, f.TriesSince)
}

const recoveryUse = `-- tenancy.RecoveryUse
delete from recovery_code where person_id = $1 and hash = $2`

// UseRecoveryCode deletes a recovery code. It returns pgx.ErrNoRows if there is no such code.
func UseRecoveryCode(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, hash []byte) error {
	return db.Change(ctx, tx, recoveryUse, person, hash)
}

const mfaRequired = `-- tenancy.FactorRequired
select exists (select from member m join organization o on o.id = m.org_id
  where m.person_id = $1 and not m.disabled and o.mfa_required and o.deleted_at is null)`

// RequiresMFA reports whether any of the person's organizations requires a second factor.
func RequiresMFA(ctx context.Context, tx *db.GateTx, person tenancy.PersonID) (required bool, err error) {
	err = tx.QueryRow(ctx, mfaRequired, person).Scan(&required)
	return required, err
}
