package store

import (
	"context"
	"time"

	"crier/tenancy"
)

// Factor is a second factor.
type Factor struct {
	// Secret is sealed.
	Secret []byte `db:"secret"`
	// ConfirmedAt is nil for a factor that was begun and counts for nothing.
	ConfirmedAt *time.Time `db:"confirmed_at"`
	// LastStep is the time step of the last accepted code.
	LastStep int64 `db:"last_step"`
	// Tries is the number of codes that were tried since TriesSince.
	Tries      int       `db:"tries"`
	TriesSince time.Time `db:"tries_since"`
}

const factorLock = `-- tenancy.FactorLock
select secret, confirmed_at, last_step, tries, tries_since from mfa where person_id = $1 for update`

// LockFactor returns the second factor of a person and locks it until the end of the transaction, or returns
// pgx.ErrNoRows.
func (t *GateTx) LockFactor(ctx context.Context, person tenancy.PersonID) (Factor, error) {
	return one[Factor](ctx, t.tx, factorLock, person)
}

const factorBegin = `-- tenancy.FactorBegin
insert into mfa (person_id, secret, tries_since, begun_by) values ($1, $2, $3, $4)
on conflict (person_id) do update set last_step = 0, begun_by = excluded.begun_by,
  secret = case when mfa.begun_by = excluded.begun_by then mfa.secret else excluded.secret end
where mfa.confirmed_at is null
returning secret, confirmed_at, last_step, tries, tries_since`

// BeginFactor stores an unconfirmed second factor and returns it. It replaces an earlier
// unconfirmed factor, unless the same by began that one; then it returns the earlier factor. It
// returns pgx.ErrNoRows if the person has a confirmed factor. The number of tries is kept.
func (t *GateTx) BeginFactor(
	ctx context.Context, person tenancy.PersonID, sealed []byte, now time.Time, by []byte,
) (Factor, error) {
	return one[Factor](ctx, t.tx, factorBegin, person, sealed, now, by)
}

const factorConfirm = `-- tenancy.FactorConfirm
update mfa set confirmed_at = $2 where person_id = $1 and confirmed_at is null`

// ConfirmFactor makes the second factor count, or returns pgx.ErrNoRows when there is none to be confirmed.
func (t *GateTx) ConfirmFactor(ctx context.Context, person tenancy.PersonID, now time.Time) error {
	return change(ctx, t.tx, factorConfirm, person, now)
}

const factorUse = `-- tenancy.FactorUse
update mfa set last_step = $2, tries = $3, tries_since = $4 where person_id = $1`

// SaveTries stores the last accepted step of a factor and its tries.
func (t *GateTx) SaveTries(ctx context.Context, person tenancy.PersonID, f Factor) error {
	return change(ctx, t.tx, factorUse, person, f.LastStep, f.Tries, f.TriesSince)
}

const factorDelete = `-- tenancy.FactorDelete
delete from mfa where person_id = $1`

// DeleteFactor deletes the second factor and the recovery codes of a person.
func (t *GateTx) DeleteFactor(ctx context.Context, person tenancy.PersonID) error {
	if _, err := exec(ctx, t.tx, factorDelete, person); err != nil {
		return err
	}
	_, err := exec(ctx, t.tx, recoveryDelete, person)
	return err
}

const recoveryDelete = `-- tenancy.RecoveryDelete
delete from recovery_code where person_id = $1`

const recoveryInsert = `-- tenancy.RecoveryInsert
insert into recovery_code (person_id, hash) select $1, unnest($2::bytea[])`

// ReplaceRecoveryCodes replaces the hashes of all recovery codes of a person.
func (t *GateTx) ReplaceRecoveryCodes(ctx context.Context, person tenancy.PersonID, hashes [][]byte) error {
	if _, err := exec(ctx, t.tx, recoveryDelete, person); err != nil {
		return err
	}
	_, err := exec(ctx, t.tx, recoveryInsert, person, hashes)
	return err
}

const recoveryUse = `-- tenancy.RecoveryUse
delete from recovery_code where person_id = $1 and hash = $2`

// UseRecoveryCode deletes a recovery code, or returns pgx.ErrNoRows.
func (t *GateTx) UseRecoveryCode(ctx context.Context, person tenancy.PersonID, hash []byte) error {
	return change(ctx, t.tx, recoveryUse, person, hash)
}

const recoveryCount = `-- tenancy.RecoveryCount
select count(*) from recovery_code where person_id = $1`

// CountRecoveryCodes returns how many recovery codes a person has left.
func (t *GateTx) CountRecoveryCodes(ctx context.Context, person tenancy.PersonID) (n int, err error) {
	err = t.tx.QueryRow(ctx, recoveryCount, person).Scan(&n)
	return n, err
}

const mfaRequired = `-- tenancy.FactorRequired
select exists (select from member m join organization o on o.id = m.org_id
  where m.person_id = $1 and not m.disabled and o.mfa_required and o.deleted_at is null)`

// RequiresMFA returns whether an organization of the person requires a second factor.
func (t *GateTx) RequiresMFA(ctx context.Context, person tenancy.PersonID) (required bool, err error) {
	err = t.tx.QueryRow(ctx, mfaRequired, person).Scan(&required)
	return required, err
}

const stepInsert = `-- tenancy.StepInsert
insert into sign_in_step (hash, person_id, purpose, expires_at) values ($1, $2, $3, $4)`

// CreateStep inserts the hash of a token that proves the steps of a sign-in so far.
func (t *GateTx) CreateStep(
	ctx context.Context, hash []byte, person tenancy.PersonID, purpose tenancy.Step, expires time.Time,
) error {
	_, err := exec(ctx, t.tx, stepInsert, hash, person, purpose, expires)
	return err
}

const stepPerson = `-- tenancy.StepPerson
select ` + personColumns + ` from person where id = (select person_id from sign_in_step where hash = $1)
for no key update`

const stepTry = `-- tenancy.StepTry
update sign_in_step set tries = tries + 1 where hash = $1 and purpose = $2 and expires_at > $3 returning tries`

// TryStep counts a use of a token, and locks it and its person until the end of the transaction. It returns the person
// and how often the token was used, this use included, or pgx.ErrNoRows for a token that is not one of the purpose or is
// over. The person is locked first, as everywhere.
func (t *GateTx) TryStep(ctx context.Context, hash []byte, purpose tenancy.Step, now time.Time) (
	person tenancy.Person, tries int, err error) {
	row, err := one[personRow](ctx, t.tx, stepPerson, hash)
	if err != nil {
		return person, 0, err
	}
	err = t.tx.QueryRow(ctx, stepTry, hash, purpose, now).Scan(&tries)
	return row.person(), tries, err
}

const stepDelete = `-- tenancy.StepDelete
delete from sign_in_step where hash = $1`

// DeleteStep deletes a token, so that it is used once.
func (t *GateTx) DeleteStep(ctx context.Context, hash []byte) error {
	return change(ctx, t.tx, stepDelete, hash)
}
