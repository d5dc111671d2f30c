package store

import (
	"context"
	"time"

	"crier/oidc"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Family is a row of the oauth_family table.
type Family struct {
	ID        oidc.FamilyID
	Grant     tenancy.GrantID
	Scopes    []string
	Resource  string
	CreatedAt time.Time
}

const familyInsert = `-- oidc.FamilyInsert
insert into oauth_family (org_id, id, grant_id, scopes, resource, created_at) values ($1, $2, $3, $4, $5, $6)`

// InsertFamily stores a family without tokens.
func InsertFamily(ctx context.Context, tx *db.OrgTx, f Family) error {
	_, err := db.Exec(ctx, tx, familyInsert, tx.Org, f.ID, f.Grant, f.Scopes, f.Resource, f.CreatedAt)
	return err
}

// NewToken is a token to be stored.
type NewToken struct {
	Hash []byte
	// Refresh distinguishes refresh tokens from access tokens.
	Refresh bool
	// Parent is the hash of the refresh token that this token was issued for, or nil.
	Parent    []byte
	CreatedAt time.Time
	// ExpiresAt is nil for a token that does not expire.
	ExpiresAt *time.Time
}

const tokenInsert = `-- oidc.TokenInsert
insert into oauth_token (hash, org_id, family_id, kind, parent, created_at, expires_at)
values ($1, $2, $3, case when $4 then 'refresh' else 'access' end, $5, $6, $7)`

// InsertToken stores a token of a family.
func InsertToken(ctx context.Context, tx *db.OrgTx, family oidc.FamilyID, t NewToken) error {
	_, err := db.Exec(ctx, tx, tokenInsert, t.Hash, tx.Org, family, t.Refresh, t.Parent, t.CreatedAt, t.ExpiresAt)
	return err
}

const familyLock = `-- oidc.FamilyLock
select 1 from oauth_family f where f.id = (select t.family_id from oauth_token t where t.hash = $1) for update of f`

// LockFamily locks the family of the token with the given hash until the end of the transaction. It
// returns pgx.ErrNoRows if there is no such token.
func LockFamily(ctx context.Context, tx *db.OrgTx, hash []byte) error {
	return db.Change(ctx, tx, familyLock, hash)
}

// Token is a token in a family that LockFamily has locked.
type Token struct {
	Family    oidc.FamilyID   `db:"family_id"`
	Grant     tenancy.GrantID `db:"grant_id"`
	Client    tenancy.AgentID `db:"client"`
	Refresh   bool            `db:"refresh"`
	Scopes    []string        `db:"scopes"`
	Granted   []string        `db:"granted"`
	ExpiresAt *time.Time      `db:"expires_at"`
	// GrantEnds is when the grant ends, or nil.
	GrantEnds *time.Time `db:"ends_at"`
	// Voided means that the token's parent was used again.
	Voided bool `db:"voided"`
	// Succeeded means that a refresh token issued for this token has been used.
	Succeeded bool `db:"succeeded"`
}

const tokenRead = `-- oidc.TokenRead
select t.family_id, f.grant_id, g.client, t.kind = 'refresh' refresh, f.scopes, g.scopes granted, t.expires_at,
  g.ends_at, t.voided,
  exists (select from oauth_token c where c.org_id = t.org_id and c.family_id = t.family_id and c.parent = t.hash
    and c.kind = 'refresh' and c.used_at is not null) succeeded
from oauth_token t
join oauth_family f on f.org_id = t.org_id and f.id = t.family_id
join oauth_grant g on g.org_id = f.org_id and g.id = f.grant_id
where t.hash = $1`

// ReadToken returns the token with the given hash, or pgx.ErrNoRows.
func ReadToken(ctx context.Context, tx *db.OrgTx, hash []byte) (Token, error) {
	return db.One[Token](ctx, tx, tokenRead, hash)
}

const tokenUse = `-- oidc.TokenUse
update oauth_token set used_at = coalesce(used_at, $2) where hash = $1`

// UseToken records the first use of a refresh token. It returns pgx.ErrNoRows if there is no such
// token.
func UseToken(ctx context.Context, tx *db.OrgTx, hash []byte, now time.Time) error {
	return db.Change(ctx, tx, tokenUse, hash, now)
}

const tokenVoid = `-- oidc.TokenVoid
update oauth_token set voided = true where family_id = $1 and parent = $2 and kind = 'refresh' and not voided`

// VoidSuccessors voids the refresh tokens that were issued for a refresh token. The access tokens
// remain valid until they expire, because another of the client's processes may be using them.
func VoidSuccessors(ctx context.Context, tx *db.OrgTx, family oidc.FamilyID, parent []byte) error {
	_, err := db.Exec(ctx, tx, tokenVoid, family, parent)
	return err
}

const familyTell = `-- oidc.FamilyTell
select pg_notify('` + db.RevocationChannel + `', encode(hash, 'hex')) from oauth_token
where family_id = $1 and kind = 'access'`

const familyDelete = `-- oidc.FamilyDelete
delete from oauth_family where id = $1`

// DeleteFamily deletes a family and its tokens. It notifies all processes that the tokens have been
// revoked. It returns nil if the family no longer exists.
func DeleteFamily(ctx context.Context, tx *db.OrgTx, family oidc.FamilyID) error {
	if _, err := db.Exec(ctx, tx, familyTell, family); err != nil {
		return err
	}
	_, err := db.Exec(ctx, tx, familyDelete, family)
	return err
}

const tokenDelete = `-- oidc.TokenDelete
delete from oauth_token where hash = $1 returning pg_notify('` + db.RevocationChannel + `', encode(hash, 'hex'))`

// DeleteToken deletes a token and notifies all processes that it has been revoked. It returns
// pgx.ErrNoRows if there is no such token.
func DeleteToken(ctx context.Context, tx *db.OrgTx, hash []byte) error {
	return db.Change(ctx, tx, tokenDelete, hash)
}
