// Package store contains the statements for second factors and their recovery codes. Only
// tenancy/factor uses it.
package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/proof"
)

const factorBegin = `-- tenancy.FactorBegin
insert into mfa (person_id, secret, tries_since, begun_by) values ($1, $2, $3, $4)
on conflict (person_id) do update set last_step = 0, begun_by = excluded.begun_by,
  secret = case when mfa.begun_by = excluded.begun_by then mfa.secret else excluded.secret end
where mfa.confirmed_at is null
returning secret, confirmed_at, last_step, tries, tries_since`

// BeginFactor stores an unconfirmed second factor and returns it. by identifies the session or
// sign-in. If by has already begun an unconfirmed factor, BeginFactor returns that factor instead.
// It replaces any other unconfirmed factor, but does not reset the number of tries. It returns
// pgx.ErrNoRows if the person has a confirmed factor.
func BeginFactor(
	ctx context.Context, tx *db.GateTx, person tenancy.PersonID, sealed []byte, now time.Time, by []byte,
) (proof.Factor, error) {
	return db.One[proof.Factor](ctx, tx, factorBegin, person, sealed, now, by)
}

const factorConfirm = `-- tenancy.FactorConfirm
update mfa set confirmed_at = $2 where person_id = $1 and confirmed_at is null
returning pg_notify('` + db.RevocationChannel + `', '` + db.PersonRevocation + `' || person_id)`

// ConfirmFactor enables the second factor, and announces the change to all processes. It returns
// pgx.ErrNoRows if there is no unconfirmed factor.
func ConfirmFactor(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, now time.Time) error {
	return db.Change(ctx, tx, factorConfirm, person, now)
}

const factorDelete = `-- tenancy.FactorDelete
delete from mfa where person_id = $1
returning pg_notify('` + db.RevocationChannel + `', '` + db.PersonRevocation + `' || person_id)`

const recoveryDelete = `-- tenancy.RecoveryDelete
delete from recovery_code where person_id = $1`

// DeleteFactor deletes a person's second factor and recovery codes, and announces the change to all
// processes.
func DeleteFactor(ctx context.Context, tx *db.GateTx, person tenancy.PersonID) error {
	if _, err := db.Exec(ctx, tx, factorDelete, person); err != nil {
		return err
	}
	_, err := db.Exec(ctx, tx, recoveryDelete, person)
	return err
}

const recoveryInsert = `-- tenancy.RecoveryInsert
insert into recovery_code (person_id, hash) select $1, unnest($2::bytea[])`

// ReplaceRecoveryCodes replaces the hashes of a person's recovery codes with the given ones.
func ReplaceRecoveryCodes(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, hashes [][]byte) error {
	if _, err := db.Exec(ctx, tx, recoveryDelete, person); err != nil {
		return err
	}
	_, err := db.Exec(ctx, tx, recoveryInsert, person, hashes)
	return err
}

const recoveryCount = `-- tenancy.RecoveryCount
select count(*) from recovery_code where person_id = $1`

// CountRecoveryCodes returns how many recovery codes a person has left.
func CountRecoveryCodes(ctx context.Context, tx *db.GateTx, person tenancy.PersonID) (n int, err error) {
	err = tx.QueryRow(ctx, recoveryCount, person).Scan(&n)
	return n, err
}
