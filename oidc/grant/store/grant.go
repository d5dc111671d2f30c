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

// Grant is a row of the oauth_grant table, with the organization's name and the person's email
// address.
type Grant struct {
	Org        tenancy.OrgID    `db:"org_id"`
	OrgName    string           `db:"org_name"`
	ID         tenancy.GrantID  `db:"id"`
	Client     tenancy.AgentID  `db:"client"`
	ClientID   string           `db:"client_id"`
	ClientKind oidc.ClientKind  `db:"client_kind"`
	ClientName string           `db:"client_name"`
	Person     tenancy.PersonID `db:"person_id"`
	Email      string           `db:"email"`
	Scopes     []string         `db:"scopes"`
	// WriteDeclined means that the client requested write access but the person declined it.
	WriteDeclined bool       `db:"write_declined"`
	Channels      []string   `db:"channels"`
	Customers     []string   `db:"customers"`
	MustAsk       bool       `db:"must_ask"`
	PostsPerDay   int        `db:"posts_per_day"`
	EndsAt        *time.Time `db:"ends_at"`
	CreatedAt     time.Time  `db:"created_at"`
	UsedAt        *time.Time `db:"used_at"`
}

// grantColumns lists the columns of Grant. It selects them from oauth_grant g, its organization o
// and its person p.
const grantColumns = `g.org_id, o.name org_name, g.id, g.client, g.client_id, g.client_kind, g.client_name, g.person_id,
coalesce(p.email, '') email, g.scopes, g.write_declined, g.channels::text[] channels, g.customers::text[] customers, g.must_ask,
g.posts_per_day, g.ends_at, g.created_at, g.used_at`

const grantSave = `-- oidc.GrantSave
insert into oauth_grant as g (org_id, id, client, client_id, client_kind, client_name, person_id, scopes, channels,
  customers, must_ask, posts_per_day, ends_at, created_at, approved_at, write_declined)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9::text[]::uuid[], $10::text[]::uuid[], $11, $12, $13, $14, $14, $15)
on conflict (org_id, client, person_id) do update set client_id = excluded.client_id,
client_kind = excluded.client_kind,
  client_name = excluded.client_name, scopes = excluded.scopes, channels = excluded.channels,
  customers = excluded.customers, must_ask = excluded.must_ask, posts_per_day = excluded.posts_per_day,
  ends_at = excluded.ends_at, approved_at = excluded.approved_at, write_declined = excluded.write_declined
returning g.id`

// SaveGrant stores a grant and returns its id. A person has one grant per client and organization.
// If that grant already exists, SaveGrant replaces what it allows and keeps its id.
func SaveGrant(ctx context.Context, tx *db.OrgTx, g Grant) (saved tenancy.GrantID, err error) {
	err = tx.QueryRow(ctx, grantSave, tx.Org, g.ID, g.Client, g.ClientID, g.ClientKind, g.ClientName, g.Person, g.Scopes,
		g.Channels, g.Customers, g.MustAsk, g.PostsPerDay, g.EndsAt, g.CreatedAt, g.WriteDeclined).Scan(&saved)
	return saved, err
}

const grantLock = `-- oidc.GrantLock
select ` + grantColumns + ` from oauth_grant g join organization o on o.id = g.org_id
left join person p on p.id = g.person_id where g.id = $1 for update of g`

// LockGrant returns a grant and locks it until the end of the transaction. It returns pgx.ErrNoRows
// if the organization has no such grant.
func LockGrant(ctx context.Context, tx *db.OrgTx, grant tenancy.GrantID) (Grant, error) {
	return db.One[Grant](ctx, tx, grantLock, grant)
}

const grantDelete = `-- oidc.GrantDelete
delete from oauth_grant where id = $1 returning pg_notify('` + db.RevocationChannel + `', org_id::text)`

// DeleteGrant deletes a grant with its codes and tokens. It notifies all processes that the tokens
// have been revoked. It returns pgx.ErrNoRows if there is no such grant.
func DeleteGrant(ctx context.Context, tx *db.OrgTx, grant tenancy.GrantID) error {
	return db.Change(ctx, tx, grantDelete, grant)
}

const grantsOfOrg = `-- oidc.GrantsOfOrg
select ` + grantColumns + ` from oauth_grant g join organization o on o.id = g.org_id
left join person p on p.id = g.person_id order by g.created_at desc, g.id desc limit $1`

// Grants returns the organization's grants, newest first, up to limit. Email is "" for a person who
// has left.
func Grants(ctx context.Context, tx *db.OrgTx, limit int) ([]Grant, error) {
	return db.List[Grant](ctx, tx, grantsOfOrg, limit)
}

const grantsOfPerson = `-- oidc.GrantsOfPerson
select ` + grantColumns + ` from oauth_grant g join organization o on o.id = g.org_id and o.deleted_at is null
join person p on p.id = g.person_id where g.person_id = $1 order by g.created_at desc, g.id desc limit $2`

// GrantsOf returns a person's grants in all organizations, newest first, up to limit. It leaves out
// grants in organizations that are scheduled for deletion.
func GrantsOf(ctx context.Context, d *db.DB, person tenancy.PersonID, limit int) (out []Grant, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(grantsOfPerson, person, limit).Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectRows(rows, pgx.RowToStructByName[Grant])
			return err
		})
	})
	return out, err
}

const postsTake = `-- oidc.PostsTake
insert into oauth_grant_day as d (org_id, grant_id, day, posts)
select g.org_id, g.id, $2::text::date, $3 from oauth_grant g
where g.id = $1 and (g.posts_per_day = 0 or g.posts_per_day >= $3)
on conflict (org_id, grant_id, day) do update set posts = d.posts + excluded.posts
where (select g.posts_per_day = 0 or g.posts_per_day >= d.posts + excluded.posts
  from oauth_grant g where g.org_id = d.org_id and g.id = d.grant_id)
returning d.posts`

// TakePosts counts posts that are queued under a grant on a day. If they exceed what the grant
// allows, or if the grant no longer exists, TakePosts returns pgx.ErrNoRows and counts nothing. It
// locks the day's row until the end of the transaction. The transaction must be in the grant's
// organization.
func TakePosts(ctx context.Context, q pg.Querier, grant tenancy.GrantID, day string, posts int) (total int, err error) {
	err = q.QueryRow(ctx, postsTake, grant, day, posts).Scan(&total)
	return total, err
}

const postsLimit = `-- oidc.PostsLimit
select posts_per_day from oauth_grant where id = $1`

// PostsPerDay returns how many posts a grant allows per day, or pgx.ErrNoRows.
func PostsPerDay(ctx context.Context, q pg.Querier, grant tenancy.GrantID) (n int, err error) {
	err = q.QueryRow(ctx, postsLimit, grant).Scan(&n)
	return n, err
}
