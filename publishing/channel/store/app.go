package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing/db"
	"crier/tenancy"
)

// appChannels counts the channels that lose their application: those connected with the stored one,
// unless $3, which replaces it, is the same. It reads the row as it was before the statement
// changes it.
const appChannels = `(
  select count(*) from channel c join platform_app o on o.org_id = c.org_id and o.family = $2 and o.client_id = c.app_id
  where c.deleted_at is null and c.connector = any($1) and c.app_id <> $3)`

const appSave = `-- publishing.PlatformAppSave
with saved as (
  insert into platform_app (org_id, family, client_id, sealed_secret, set_by) values ($4, $2, $3, $5, $6)
  on conflict (org_id, family) do update
  set client_id = excluded.client_id, sealed_secret = excluded.sealed_secret, set_by = excluded.set_by, updated_at = now()
)
select ` + appChannels

// SavePlatformApp stores the application of an organization for a family with the given connectors.
// by is the person who entered the secret and may know it, or zero for nobody. It returns how many
// channels were connected with the application that is replaced.
func SavePlatformApp(
	ctx context.Context, tx *db.Tx, app db.PlatformApp, connectors []string, by tenancy.PersonID,
) (channels int, err error) {
	err = tx.QueryRow(ctx, appSave, connectors, app.Family, app.ClientID, tx.Org, app.Secret, by).Scan(&channels)
	return channels, err
}

const appsBy = `-- publishing.PlatformAppsBy
select family from platform_app where set_by = $1 order by family`

// AppsBy returns the families for which a person entered the current application in the
// organization of q. It runs in transactions of accounts.
func AppsBy(ctx context.Context, q pg.Querier, person tenancy.PersonID) ([]string, error) {
	rows, err := q.Query(ctx, appsBy, person)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

const appDelete = `-- publishing.PlatformAppDelete
with gone as (delete from platform_app where family = $2)
select ` + appChannels

// DeletePlatformApp deletes the application of an organization for a family with the given
// connectors. It returns how many channels were connected with it. It succeeds even if there is
// none.
func DeletePlatformApp(ctx context.Context, tx *db.Tx, family string, connectors []string) (channels int, err error) {
	err = tx.QueryRow(ctx, appDelete, connectors, family, "").Scan(&channels)
	return channels, err
}
