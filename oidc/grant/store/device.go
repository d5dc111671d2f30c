package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

// Decision is a person's answer to a device's log-in. The device_code table has a CHECK constraint
// with the same values.
type Decision string

// The decisions. The zero Decision means that the person has not answered.
const (
	Approved Decision = "approved"
	Denied   Decision = "denied"
)

// Device is a row of the device_code table.
type Device struct {
	Hash      []byte          `db:"hash"`
	Client    tenancy.AgentID `db:"client"`
	Scopes    []string        `db:"scopes"`
	ExpiresAt time.Time       `db:"expires_at"`
	// Pause is how many seconds the device must wait between polls.
	Pause    int             `db:"pause"`
	PolledAt *time.Time      `db:"polled_at"`
	Decision Decision        `db:"decision"`
	Org      tenancy.OrgID   `db:"org_id"`
	Grant    tenancy.GrantID `db:"grant_id"`
	// Person is the person of the grant.
	Person tenancy.PersonID `db:"person_id"`
}

const deviceInsert = `-- oidc.DeviceInsert
insert into device_code (hash, user_hash, client, scopes, expires_at, pause) values ($1, $2, $3, $4, $5, $6)`

// InsertDevice stores a log-in with the hash of the code that a person types. It returns a
// violation of device_code_user_hash_key if another log-in has that code.
func InsertDevice(ctx context.Context, tx *db.GateTx, d Device, userHash []byte) error {
	_, err := db.Exec(ctx, tx, deviceInsert, d.Hash, userHash, d.Client, d.Scopes, d.ExpiresAt, d.Pause)
	return err
}

// deviceColumns lists the columns of Device. It selects them from device_code d and its grant g.
const deviceColumns = `d.hash, d.client, d.scopes, d.expires_at, d.pause, d.polled_at, coalesce(d.decision, '') decision,
d.org_id, d.grant_id, g.person_id`

const deviceByUser = `-- oidc.DeviceByUser
select ` + deviceColumns + ` from device_code d left join oauth_grant g on g.org_id = d.org_id and g.id = d.grant_id
where d.user_hash = $1 and d.expires_at > $2 and d.decision is null for update of d`

// LockDeviceOf returns the unanswered log-in for a code that a person typed, and locks it until the
// end of the transaction. It returns pgx.ErrNoRows if there is no such log-in or it has expired.
func LockDeviceOf(ctx context.Context, tx *db.GateTx, userHash []byte, now time.Time) (Device, error) {
	return db.One[Device](ctx, tx, deviceByUser, userHash, now)
}

const deviceLock = `-- oidc.DeviceLock
select ` + deviceColumns + ` from device_code d left join oauth_grant g on g.org_id = d.org_id and g.id = d.grant_id
where d.hash = $1 for update of d`

// LockDevice returns the log-in that a device polls for, and locks it until the end of the
// transaction. It returns pgx.ErrNoRows if there is none.
func LockDevice(ctx context.Context, tx *db.GateTx, hash []byte) (Device, error) {
	return db.One[Device](ctx, tx, deviceLock, hash)
}

const devicePolled = `-- oidc.DevicePolled
update device_code set polled_at = $2, pause = $3 where hash = $1`

// SetPolled records that a device has polled and how many seconds it must now wait between polls.
func SetPolled(ctx context.Context, tx *db.GateTx, hash []byte, at time.Time, pause int) error {
	return db.Change(ctx, tx, devicePolled, hash, at, pause)
}

const deviceAnswer = `-- oidc.DeviceAnswer
update device_code set decision = $2, org_id = $3, grant_id = $4, scopes = coalesce($5, scopes)
where hash = $1 and decision is null`

// AnswerDevice stores the person's answer in d. For Denied, d's Org, Grant and Scopes are zero.
// AnswerDevice returns pgx.ErrNoRows if the log-in has already been answered.
func AnswerDevice(ctx context.Context, tx *db.GateTx, d Device) error {
	return db.Change(ctx, tx, deviceAnswer, d.Hash, d.Decision, d.Org, d.Grant, d.Scopes)
}

const deviceDelete = `-- oidc.DeviceDelete
delete from device_code where hash = $1`

// DeleteDevice deletes a log-in, or returns pgx.ErrNoRows.
func DeleteDevice(ctx context.Context, tx *db.GateTx, hash []byte) error {
	return db.Change(ctx, tx, deviceDelete, hash)
}
