// Package store contains the statements for clients and static applications. Only oidc/client uses
// it.
package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/oidc"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Client is a row of the oauth_client table.
type Client struct {
	oidc.Client
	// Secret is the hash of the client's secret, or nil if the client is public.
	Secret []byte
	// Fingerprint is set for registered public clients; see oidc.Client.Fingerprint.
	Fingerprint []byte
	// Source is the network from which the client was registered.
	Source    string
	CreatedAt time.Time
	// FetchedAt is when the client's metadata document was fetched, or nil if it has none.
	FetchedAt *time.Time
}

type clientRow struct {
	ID           tenancy.AgentID `db:"id"`
	ClientID     string          `db:"client_id"`
	Kind         oidc.ClientKind `db:"kind"`
	Org          tenancy.OrgID   `db:"org_id"`
	Name         string          `db:"name"`
	URI          string          `db:"uri"`
	RedirectURIs []string        `db:"redirect_uris"`
	Auth         oidc.AuthMethod `db:"auth_method"`
	Secret       []byte          `db:"secret_hash"`
	Scopes       []string        `db:"scopes"`
	LongLived    bool            `db:"long_lived"`
	CreatedAt    time.Time       `db:"created_at"`
	FetchedAt    *time.Time      `db:"fetched_at"`
}

func (r clientRow) value() Client {
	return Client{
		Client: oidc.Client{
			ID: r.ID, ClientID: r.ClientID, Kind: r.Kind, Name: r.Name, URI: r.URI, RedirectURIs: r.RedirectURIs,
			Auth: r.Auth, Scopes: oidc.ScopesOf(r.Scopes), Org: r.Org, LongLived: r.LongLived,
		},
		Secret: r.Secret, CreatedAt: r.CreatedAt, FetchedAt: r.FetchedAt,
	}
}

const clientColumns = `id, client_id, kind, org_id, name, uri, redirect_uris, auth_method, secret_hash, scopes, long_lived,
created_at, fetched_at`

const clientFind = `-- oidc.ClientFind
select ` + clientColumns + ` from oauth_client where client_id = $1`

// Find returns the client with the given client_id, or pgx.ErrNoRows.
func Find(ctx context.Context, d *db.DB, clientID string) (c Client, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(clientFind, clientID).Query(func(rows pgx.Rows) error {
			row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[clientRow])
			c = row.value()
			return err
		})
	})
	return c, err
}

const clientByID = `-- oidc.ClientByID
select ` + clientColumns + ` from oauth_client where id = $1`

// ByID returns a client, or pgx.ErrNoRows.
func ByID(ctx context.Context, tx *db.GateTx, client tenancy.AgentID) (Client, error) {
	row, err := db.One[clientRow](ctx, tx, clientByID, client)
	return row.value(), err
}

const clientInsert = `-- oidc.ClientInsert
insert into oauth_client (id, client_id, kind, org_id, name, uri, redirect_uris, auth_method, secret_hash, scopes,
  long_lived, fingerprint, source, created_at, seen_at, fetched_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15)
on conflict (fingerprint) do update set seen_at = excluded.seen_at
returning ` + clientColumns

// Insert stores a client and returns it. If a client with the same fingerprint exists, Insert
// returns that client instead.
func Insert(ctx context.Context, tx *db.GateTx, c Client) (Client, error) {
	row, err := db.One[clientRow](ctx, tx, clientInsert, c.ID, c.ClientID, c.Kind, c.Org, c.Name, c.URI, c.RedirectURIs,
		c.Auth, c.Secret, c.Scopes.Names(), c.LongLived, c.Fingerprint, c.Source, c.CreatedAt, c.FetchedAt)
	return row.value(), err
}

const clientRegistered = `-- oidc.ClientRegistered
update oauth_client set seen_at = $2 where fingerprint = $1 returning ` + clientColumns

// FindRegistered returns the client with the given fingerprint and records that it registered
// again. It returns pgx.ErrNoRows if there is no such client.
func FindRegistered(ctx context.Context, tx *db.GateTx, fingerprint []byte, now time.Time) (Client, error) {
	row, err := db.One[clientRow](ctx, tx, clientRegistered, fingerprint, now)
	return row.value(), err
}

const clientsRecent = `-- oidc.ClientsRecent
select count(*) from (select from oauth_client
  where source = $1 and created_at > $2 and kind = 'registered' and approved_at is null limit $3) c`

// CountRecent returns how many clients a network has registered since the given time, not counting
// approved clients. It stops counting at limit.
func CountRecent(ctx context.Context, tx *db.GateTx, source string, since time.Time, limit int) (n int, err error) {
	err = tx.QueryRow(ctx, clientsRecent, source, since, limit).Scan(&n)
	return n, err
}

const clientDocument = `-- oidc.ClientDocument
insert into oauth_client (id, client_id, kind, name, uri, redirect_uris, auth_method, scopes, created_at, seen_at,
  fetched_at)
values ($1, $2, 'document', $3, $4, $5, 'none', $6, $7, $7, $7)
on conflict (client_id) do update set name = excluded.name, uri = excluded.uri,
  redirect_uris = excluded.redirect_uris, scopes = excluded.scopes, seen_at = excluded.seen_at,
  fetched_at = excluded.fetched_at
where oauth_client.kind = 'document'
returning ` + clientColumns

// SaveDocument stores the client that a metadata document describes, and returns it. A client that
// is already stored is updated and keeps its ID.
func SaveDocument(ctx context.Context, tx *db.GateTx, c oidc.Client, now time.Time) (Client, error) {
	row, err := db.One[clientRow](ctx, tx, clientDocument, c.ID, c.ClientID, c.Name, c.URI, c.RedirectURIs,
		c.Scopes.Names(), now)
	return row.value(), err
}

const clientApproved = `-- oidc.ClientApproved
update oauth_client set approved_at = coalesce(approved_at, $2), seen_at = greatest(seen_at, $2)
where id = $1 and (approved_at is null or seen_at < $2::timestamptz - interval '1 hour')`

const clientExists = `-- oidc.ClientExists
select 1 from oauth_client where id = $1 for key share`

// MarkApproved records that a person has approved a client, so that Prune keeps it. It returns
// pgx.ErrNoRows if there is no such client.
func MarkApproved(ctx context.Context, tx *db.GateTx, client tenancy.AgentID, now time.Time) error {
	if n, err := db.Exec(ctx, tx, clientApproved, client, now); err != nil || n > 0 {
		return err
	}
	return db.Change(ctx, tx, clientExists, client)
}

const clientSecret = `-- oidc.ClientSecret
update oauth_client set secret_hash = $2 where id = $1 and kind = 'static'`

// SetSecret replaces the hash of a static client's secret. It returns pgx.ErrNoRows if there is no
// such client.
func SetSecret(ctx context.Context, tx *db.GateTx, client tenancy.AgentID, hash []byte) error {
	return db.Change(ctx, tx, clientSecret, client, hash)
}

const clientUpdate = `-- oidc.ClientUpdate
update oauth_client set name = $2, redirect_uris = $3, long_lived = $4 where id = $1 and kind = 'static'`

// UpdateStatic replaces a static client's name, redirect URIs and LongLived. It returns
// pgx.ErrNoRows if there is no such client.
func UpdateStatic(ctx context.Context, tx *db.GateTx, c oidc.Client) error {
	return db.Change(ctx, tx, clientUpdate, c.ID, c.Name, c.RedirectURIs, c.LongLived)
}

const clientDelete = `-- oidc.ClientDelete
with told as (
  select pg_notify('` + db.RevocationChannel + `', g.org_id::text)
  from (select distinct org_id from oauth_grant where client = $1) g
)
delete from oauth_client where id = $1 and kind = 'static' and (select count(*) from told) >= 0`

// DeleteStatic deletes a static client with its application, grants and tokens in all
// organizations. It notifies all processes that the tokens have been revoked. It returns
// pgx.ErrNoRows if there is no such client.
func DeleteStatic(ctx context.Context, tx *db.GateTx, client tenancy.AgentID) error {
	return db.Change(ctx, tx, clientDelete, client)
}

const clientsPrune = `-- oidc.PruneClients
delete from oauth_client c where c.id = any (array(
  select o.id from oauth_client o
  where o.kind <> 'static' and (o.kind = 'registered' and o.approved_at is null and o.seen_at < $1
    or o.kind = 'document' and o.seen_at < $2 and not exists (select from oauth_grant g where g.client = o.id))
  order by o.seen_at, o.id limit $3))
and (c.kind = 'registered' and c.approved_at is null and c.seen_at < $1 or c.kind = 'document' and c.seen_at < $2)`

// Prune deletes registered clients that nobody has approved and that last registered before the
// time in never. It also deletes documents that have no grants and were last fetched or approved
// before the time in unused. It deletes at most limit clients and returns how many it deleted.
func Prune(ctx context.Context, d *db.DB, never, unused time.Time, limit int) (n int, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(clientsPrune, never, unused, limit).Exec(db.Written(&n))
	})
	return n, err
}
