package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing/db"
	"crier/tenancy"
)

// appChannels counts the channels that lose their application. These are the channels connected
// with the stored application, unless that application's client id equals $3, the new client id.
// The query sees the row as it is before the statement changes it.
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

// SavePlatformApp stores an organization's application for the family that the given connectors
// belong to. by is the person who entered the secret, or zero if no person did. SavePlatformApp
// returns the number of channels that were connected with the replaced application.
func SavePlatformApp(
	ctx context.Context, tx *db.Tx, app db.PlatformApp, connectors []string, by tenancy.PersonID,
) (channels int, err error) {
	err = tx.QueryRow(ctx, appSave, connectors, app.Family, app.ClientID, tx.Org, app.Secret, by).Scan(&channels)
	return channels, err
}

const appsBy = `-- publishing.PlatformAppsBy
select family from platform_app where set_by = $1 order by family`

// AppsBy returns the families whose current application was entered by the given person. It covers
// the organization of q's transaction. It is called in transactions that change accounts.
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

// DeletePlatformApp deletes an organization's application for the family that the given connectors
// belong to. It returns the number of channels that were connected with the application. It
// succeeds even if there is no application.
func DeletePlatformApp(ctx context.Context, tx *db.Tx, family string, connectors []string) (channels int, err error) {
	err = tx.QueryRow(ctx, appDelete, connectors, family, "").Scan(&channels)
	return channels, err
}
