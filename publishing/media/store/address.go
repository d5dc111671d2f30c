package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

const (
	// uploadAddressLock serializes an organization's inserts, so that concurrent inserts cannot
	// exceed the limit.
	uploadAddressLock = `-- publishing.UploadAddressLock
select pg_advisory_xact_lock(hashtextextended('upload address/' || $1, 0))`

	uploadAddressInsert = `-- publishing.UploadAddressInsert
insert into upload_address (org_id, hash, via, credential_hash, created_at, expires_at)
select $1, $2, $3, $4, $5, $6
where (select count(*) from upload_address where org_id = $1 and media_id is null and expires_at > $5) < $7::int`
)

// InsertAddress stores an upload address under the hash of its token. If the organization already
// has as many unused, unexpired addresses as most allows, InsertAddress stores nothing and returns
// false. It returns any Postgres error.
func InsertAddress(
	ctx context.Context, tx *db.Tx, hash []byte, a publishing.UploadAddress, now time.Time, most int,
) (bool, error) {
	if _, err := tx.Exec(ctx, uploadAddressLock, tx.Org.String()); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, uploadAddressInsert, tx.Org, hash, a.Via, a.Credential, now, a.ExpiresAt, most)
	return tag.RowsAffected() == 1, err
}

const uploadAddressByHash = `-- publishing.UploadAddressByHash
select org_id, via, credential_hash, expires_at from upload_address where hash = $1`

// foundAddress holds the columns that the role pg.Gate may read.
type foundAddress struct {
	Org        tenancy.OrgID `db:"org_id"`
	Via        tenancy.Via   `db:"via"`
	Credential []byte        `db:"credential_hash"`
	ExpiresAt  time.Time     `db:"expires_at"`
}

// AddressByHash returns the upload address with the given token hash from any organization, without
// Medium. It returns pgx.ErrNoRows if there is no such address.
func AddressByHash(ctx context.Context, d *db.DB, hash []byte) (publishing.UploadAddress, error) {
	var found []foundAddress
	err := d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(uploadAddressByHash, hash).Query(db.Into(&found, pgx.RowToStructByName[foundAddress]))
	})
	switch {
	case err != nil:
		return publishing.UploadAddress{}, err
	case len(found) == 0:
		return publishing.UploadAddress{}, pgx.ErrNoRows
	}
	a := found[0]
	return publishing.UploadAddress{Org: a.Org, Via: a.Via, Credential: a.Credential, ExpiresAt: a.ExpiresAt}, nil
}

const uploadAddressOwn = `-- publishing.UploadAddressOwn
select expires_at, media_id from upload_address where org_id = $1 and hash = $2`

type ownAddress struct {
	ExpiresAt time.Time          `db:"expires_at"`
	Medium    publishing.MediaID `db:"media_id"`
}

// OwnAddress returns one of the organization's upload addresses, without Via and Credential. found
// is false if the organization has no address with this token hash. OwnAddress returns
// pg.ErrOrgBusy or a Postgres error.
func OwnAddress(
	ctx context.Context, d *db.DB, org tenancy.OrgID, hash []byte,
) (a publishing.UploadAddress, found bool, err error) {
	var own []ownAddress
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(uploadAddressOwn, org, hash).Query(db.Into(&own, pgx.RowToStructByName[ownAddress]))
	})
	if err != nil || len(own) == 0 {
		return publishing.UploadAddress{}, false, err
	}
	return publishing.UploadAddress{Org: org, ExpiresAt: own[0].ExpiresAt, Medium: own[0].Medium}, true, nil
}

const (
	uploadAddressUse = `-- publishing.UploadAddressUse
update upload_address set media_id = $3 where org_id = $1 and hash = $2 and media_id is null`

	uploadAddressTaken = `-- publishing.UploadAddressTaken
select media_id from upload_address where org_id = $1 and hash = $2`
)

// UseAddress records that an upload address has taken a file, and returns that file. If the address
// had already taken another file, UseAddress changes nothing and returns the other file. It waits
// for a transaction that is using the address. It returns pgx.ErrNoRows if the organization has no
// such address.
func UseAddress(
	ctx context.Context, tx *db.Tx, hash []byte, medium publishing.MediaID,
) (taken publishing.MediaID, err error) {
	tag, err := tx.Exec(ctx, uploadAddressUse, tx.Org, hash, medium)
	if err != nil || tag.RowsAffected() == 1 {
		return medium, err
	}
	// A separate statement sees what was committed by the transaction that the update waited for.
	return taken, tx.QueryRow(ctx, uploadAddressTaken, tx.Org, hash).Scan(&taken)
}
