package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/tenancy"
)

// PlatformApp is an organization's own application at a family of platforms.
type PlatformApp struct {
	Family   string `db:"family"`
	ClientID string `db:"client_id"`
	// Secret is sealed.
	Secret    []byte    `db:"sealed_secret"`
	UpdatedAt time.Time `db:"updated_at"`
}

const appList = `-- publishing.PlatformAppList
select family, client_id, sealed_secret, updated_at from platform_app where $1 = '' or family = $1 order by family`

// PlatformApps returns the applications of an organization, or the one of a family unless it is empty.
func (s *Store) PlatformApps(ctx context.Context, org tenancy.OrgID, family string) (out []PlatformApp, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(appList, family).Query(into(&out, pgx.RowToStructByName[PlatformApp]))
	})
	return out, err
}

// appChannels counts the channels that lose their application: they were connected with the one that is stored, and
// not with $3, which takes its place. It reads the row that the statement changes as it was before.
const appChannels = `(
  select count(*) from channel c join platform_app o on o.org_id = c.org_id and o.family = $2 and o.client_id = c.app_id
  where c.deleted_at is null and c.connector = any($1) and c.app_id <> $3)`

const appSave = `-- publishing.PlatformAppSave
with saved as (
  insert into platform_app (org_id, family, client_id, sealed_secret) values ($4, $2, $3, $5)
  on conflict (org_id, family) do update
  set client_id = excluded.client_id, sealed_secret = excluded.sealed_secret, updated_at = now()
)
select ` + appChannels

// SavePlatformApp stores the application of an organization for a family, whose connectors are given. It returns the
// number of channels that were connected with the application that it replaces.
func (t *Tx) SavePlatformApp(ctx context.Context, app PlatformApp, connectors []string) (channels int, err error) {
	err = t.tx.QueryRow(ctx, appSave, connectors, app.Family, app.ClientID, t.org, app.Secret).Scan(&channels)
	return channels, err
}

const appDelete = `-- publishing.PlatformAppDelete
with gone as (delete from platform_app where family = $2)
select ` + appChannels

// DeletePlatformApp deletes the application of an organization for a family, whose connectors are given. It returns the
// number of channels that were connected with it. There need not be one.
func (t *Tx) DeletePlatformApp(ctx context.Context, family string, connectors []string) (channels int, err error) {
	err = t.tx.QueryRow(ctx, appDelete, connectors, family, "").Scan(&channels)
	return channels, err
}
