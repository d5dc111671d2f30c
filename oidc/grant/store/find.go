// Package store contains the statements for grants, codes and tokens. Only oidc/grant uses it.
package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

//go:embed sql/find_tokens_by_hash.sql
var findTokensByHash string

// FoundToken is an access token with its grant and its person's current rights.
type FoundToken struct {
	Hash      []byte        `db:"hash"`
	Org       tenancy.OrgID `db:"org_id"`
	CreatedAt time.Time     `db:"created_at"`
	// ExpiresAt is nil for a token that does not expire.
	ExpiresAt  *time.Time       `db:"expires_at"`
	Scopes     []string         `db:"scopes"`
	Resource   string           `db:"resource"`
	Grant      tenancy.GrantID  `db:"grant_id"`
	Client     tenancy.AgentID  `db:"client"`
	ClientID   string           `db:"client_id"`
	ClientName string           `db:"client_name"`
	Person     tenancy.PersonID `db:"person_id"`
	// Granted holds the grant's scopes, which the person may have narrowed since the token was
	// issued.
	Granted []string `db:"granted"`
	// WriteDeclined means that the client requested write access but the person declined it.
	WriteDeclined bool     `db:"write_declined"`
	Channels      []string `db:"channels"`
	Customers     []string `db:"customers"`
	MustAsk       bool     `db:"must_ask"`
	PostsPerDay   int      `db:"posts_per_day"`
	// EndsAt is when the grant ends, or nil.
	EndsAt *time.Time `db:"ends_at"`
	Email  string     `db:"email"`
	// Verified means that the person has followed a link that was sent to the email address.
	Verified      bool         `db:"verified"`
	Name          string       `db:"name"`
	PersonDeleted bool         `db:"person_deleted"`
	Suspended     bool         `db:"suspended"`
	OrgDeleted    bool         `db:"org_deleted"`
	Role          tenancy.Role `db:"role"`
	// Disabled means that the person's membership gives no access.
	Disabled bool `db:"disabled"`
	// Unenrolled means that the organization requires a second factor and the person has none.
	Unenrolled bool `db:"unenrolled"`
}

// Of returns the organization that the token belongs to.
func (t FoundToken) Of() tenancy.OrgID { return t.Org }

// OfPerson returns the person that the token acts for.
func (t FoundToken) OfPerson() tenancy.PersonID { return t.Person }

// TokensByHash returns the access tokens with the given hashes, keyed by hash, and records that
// their grants were used. The map has no entry for a hash that matches no token.
//
// TokensByHash uses the connection pool for key lookups (pg.Keys), so that other statements cannot
// delay it.
func TokensByHash(ctx context.Context, d *db.DB, hashes [][]byte, now time.Time) (map[string]FoundToken, error) {
	tokens := map[string]FoundToken{}
	err := d.WriteRole(ctx, pg.Keys, func(b *pgx.Batch) {
		b.Queue(findTokensByHash, hashes, now).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByName[FoundToken])
			for _, t := range found {
				tokens[string(t.Hash)] = t
			}
			return err
		})
	})
	return tokens, err
}

// Owner is the organization and the person that a code, token or grant belongs to.
type Owner struct {
	Org    tenancy.OrgID    `db:"org_id"`
	Person tenancy.PersonID `db:"person_id"`
}

const ownerOfCode = `-- oidc.OwnerOfCode
select g.org_id, g.person_id from oauth_code c join oauth_grant g on g.org_id = c.org_id and g.id = c.grant_id
where c.hash = $1`

// OwnerOfCode returns the owner of the code with the given hash, or pgx.ErrNoRows.
func OwnerOfCode(ctx context.Context, d *db.DB, hash []byte) (Owner, error) {
	return oneAsGate[Owner](ctx, d, ownerOfCode, hash)
}

const ownerOfToken = `-- oidc.OwnerOfToken
select g.org_id, g.person_id from oauth_token t
join oauth_family f on f.org_id = t.org_id and f.id = t.family_id
join oauth_grant g on g.org_id = f.org_id and g.id = f.grant_id
where t.hash = $1`

// OwnerOfToken returns the owner of the token with the given hash, or pgx.ErrNoRows.
func OwnerOfToken(ctx context.Context, d *db.DB, hash []byte) (Owner, error) {
	return oneAsGate[Owner](ctx, d, ownerOfToken, hash)
}

const ownerOfGrant = `-- oidc.OwnerOfGrant
select org_id, person_id from oauth_grant where id = $1`

// OwnerOfGrant returns the owner of a grant, or pgx.ErrNoRows.
func OwnerOfGrant(ctx context.Context, d *db.DB, grant tenancy.GrantID) (Owner, error) {
	return oneAsGate[Owner](ctx, d, ownerOfGrant, grant)
}

// oneAsGate returns the only row of a query that runs as pg.Gate, or pgx.ErrNoRows.
func oneAsGate[T any](ctx context.Context, d *db.DB, sql string, args ...any) (out T, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
			return err
		})
	})
	return out, err
}
