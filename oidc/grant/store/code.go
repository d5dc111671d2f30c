package store

import (
	"context"
	"time"

	"crier/oidc"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Code is a row of the oauth_code table.
type Code struct {
	Grant       tenancy.GrantID `db:"grant_id"`
	Client      tenancy.AgentID `db:"client"`
	RedirectURI string          `db:"redirect_uri"`
	// Sent means that the authorization request contained the redirect URI.
	Sent      bool      `db:"sent"`
	Challenge string    `db:"challenge"`
	Scopes    []string  `db:"scopes"`
	Resource  string    `db:"resource"`
	ExpiresAt time.Time `db:"expires_at"`
	// Family is zero unless the code has been exchanged.
	Family oidc.FamilyID `db:"family_id"`
}

const codeInsert = `-- oidc.CodeInsert
insert into oauth_code (hash, org_id, grant_id, client, redirect_uri, sent, challenge, scopes, resource, request,
  expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// InsertCode stores a code. hash is the code's hash, and request is the hash of the consent page's
// token. InsertCode returns a violation of oauth_code_request_key if the consent page's token has
// been used.
func InsertCode(ctx context.Context, tx *db.OrgTx, hash, request []byte, c Code) error {
	_, err := db.Exec(ctx, tx, codeInsert, hash, tx.Org, c.Grant, c.Client, c.RedirectURI, c.Sent, c.Challenge, c.Scopes,
		c.Resource, request, c.ExpiresAt)
	return err
}

const codeLock = `-- oidc.CodeLock
select grant_id, client, redirect_uri, sent, challenge, scopes, resource, expires_at, family_id
from oauth_code where hash = $1 for update`

// LockCode returns a code and locks it until the end of the transaction. It returns pgx.ErrNoRows
// if there is no such code.
func LockCode(ctx context.Context, tx *db.OrgTx, hash []byte) (Code, error) {
	return db.One[Code](ctx, tx, codeLock, hash)
}

const codeUse = `-- oidc.CodeUse
update oauth_code set family_id = $2 where hash = $1 and family_id is null`

// UseCode records the family of the tokens that a code was exchanged for. It returns pgx.ErrNoRows
// if the code has already been exchanged.
func UseCode(ctx context.Context, tx *db.OrgTx, hash []byte, family oidc.FamilyID) error {
	return db.Change(ctx, tx, codeUse, hash, family)
}
