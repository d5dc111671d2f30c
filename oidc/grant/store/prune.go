package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy/db"
)

// Expirable is a kind of row that is deleted some time after it has expired.
type Expirable string

// The kinds of rows that expire.
const (
	ExpiredTokens  Expirable = "tokens"
	ExpiredCodes   Expirable = "codes"
	ExpiredDays    Expirable = "days"
	ExpiredDevices Expirable = "devices"
)

// Expirables returns all kinds.
func Expirables() []Expirable {
	return []Expirable{ExpiredTokens, ExpiredCodes, ExpiredDays, ExpiredDevices}
}

// expired maps each kind to a statement that deletes at most $2 rows that expired before $1. The
// policies for pg.Retention protect rows that expired only recently.
var expired = map[Expirable]string{
	ExpiredTokens: `-- oidc.PruneTokens
delete from oauth_token where hash = any (array(select hash from oauth_token
  where expires_at < least($1::timestamptz, now() - interval '1 hour') order by expires_at limit $2))`,
	ExpiredCodes: `-- oidc.PruneCodes
delete from oauth_code where hash = any (array(select hash from oauth_code
  where expires_at < least($1::timestamptz, now()) - interval '1 day' order by expires_at limit $2))`,
	ExpiredDays: `-- oidc.PruneDays
delete from oauth_grant_day where (org_id, grant_id, day) in (select org_id, grant_id, day from oauth_grant_day
  where day < (least($1::timestamptz, now()) - interval '3 days')::date order by day limit $2)`,
	ExpiredDevices: `-- oidc.PruneDevices
delete from device_code where hash = any (array(select hash from device_code
  where expires_at < least($1::timestamptz, now()) order by expires_at limit $2))`,
}

// PruneExpired deletes at most limit rows of a kind that expired before the given time. It returns
// how many rows it deleted.
func PruneExpired(ctx context.Context, d *db.DB, kind Expirable, before time.Time, limit int) (n int, err error) {
	role := pg.Retention
	if kind == ExpiredDevices {
		role = pg.Gate // the log-ins belong to no organization
	}
	err = d.WriteRole(ctx, role, func(b *pgx.Batch) {
		b.Queue(expired[kind], before, limit).Exec(db.Written(&n))
	})
	return n, err
}

// Empty is a kind of row that is deleted once nothing belongs to it.
type Empty string

// The kinds of rows that can be empty. A family is empty if it has no tokens. A grant is empty if
// it has neither families nor codes.
const (
	EmptyFamilies Empty = "families"
	EmptyGrants   Empty = "grants"
)

// OldRow is a row that may be empty. It is also the position from which FindOld continues.
type OldRow struct {
	At  time.Time `db:"at"`
	Org uuid.UUID `db:"org_id"`
	ID  uuid.UUID `db:"id"`
}

// empty holds the statements that find and prune one kind of row.
type empty struct{ find, prune string }

var empties = map[Empty]empty{
	EmptyFamilies: {
		find: `-- oidc.FindOldFamilies
select created_at as at, org_id, id from oauth_family
where created_at < now() - interval '1 day' and (created_at, id) > ($1::timestamptz, $2::uuid)
order by created_at, id limit $3`,
		prune: `-- oidc.PruneFamilies
delete from oauth_family f using unnest($1::uuid[], $2::uuid[]) u(org, id)
where f.org_id = u.org and f.id = u.id and f.created_at < now() - interval '1 day'
  and not exists (select from oauth_token t where t.org_id = f.org_id and t.family_id = f.id)`,
	},
	EmptyGrants: {
		find: `-- oidc.FindOldGrants
select approved_at as at, org_id, id from oauth_grant
where approved_at < now() - interval '1 day' and (approved_at, id) > ($1::timestamptz, $2::uuid)
order by approved_at, id limit $3`,
		prune: `-- oidc.PruneGrants
delete from oauth_grant g using unnest($1::uuid[], $2::uuid[]) u(org, id)
where g.org_id = u.org and g.id = u.id and g.approved_at < now() - interval '1 day'
  and not exists (select from oauth_family f where f.org_id = g.org_id and f.grant_id = g.id)
  and not exists (select from oauth_code c where c.org_id = g.org_id and c.grant_id = g.id)`,
	},
}

// FindOld returns at most limit rows that are old enough to be pruned, oldest first, starting after
// the given row. The rows need not be empty.
func FindOld(ctx context.Context, d *db.DB, kind Empty, after OldRow, limit int) (out []OldRow, err error) {
	err = d.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(empties[kind].find, after.At, after.ID, limit).Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectRows(rows, pgx.RowToStructByName[OldRow])
			return err
		})
	})
	return out, err
}

// PruneEmpty deletes the given rows that are empty, and returns how many it deleted.
func PruneEmpty(ctx context.Context, d *db.DB, kind Empty, rows []OldRow) (n int, err error) {
	orgs, ids := make([]uuid.UUID, len(rows)), make([]uuid.UUID, len(rows))
	for i, r := range rows {
		orgs[i], ids[i] = r.Org, r.ID
	}
	err = d.WriteRole(ctx, pg.Retention, func(b *pgx.Batch) {
		b.Queue(empties[kind].prune, orgs, ids).Exec(db.Written(&n))
	})
	return n, err
}
