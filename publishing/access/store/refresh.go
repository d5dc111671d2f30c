// Package store reads and replaces channels' credentials in the database, and keeps track of
// refreshes. Only the parent package imports it.
package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

const appList = `-- publishing.PlatformAppList
select family, client_id, sealed_secret, updated_at from platform_app where $1 = '' or family = $1 order by family`

// PlatformApps returns an organization's applications for one platform family, or for all families
// if family is empty.
func PlatformApps(ctx context.Context, d *db.DB, org tenancy.OrgID, family string) (out []db.PlatformApp, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(appList, family).Query(db.Into(&out, pgx.RowToStructByName[db.PlatformApp]))
	})
	return out, err
}

const credentialSwap = `-- publishing.CredentialSwap
with c as (
  update channel set credential = $3, refresh_at = $5, refreshing = null, refreshing_until = null, updated_at = now(),
    name = coalesce(nullif($6, ''), name), profile = coalesce(nullif($7, ''), profile),
    picture = coalesce(nullif($8, ''), picture)
  where id = $1 and credential = $2 and deleted_at is null returning id
),
moved as (
  update channel_queue q set destination = $4 from c where q.channel_id = c.id and $4 not in ('', q.destination))
select exists (select 1 from c)`

// Renewal holds the channel fields that change when the channel's credential is refreshed. An empty
// field leaves the stored value unchanged.
type Renewal struct {
	// Destination is the new destination of the channel's posts.
	Destination            string
	Name, Profile, Picture string
}

// SwapCredential replaces old, the channel's sealed credential, with fresh and ends any refresh in
// progress. If the stored credential differs from old or the channel is disconnected,
// SwapCredential changes nothing and returns false. at is when fresh must be refreshed, or nil for
// never.
//
// If the channel was parked after the refresh began, it stays parked and must still be reconnected.
// SwapCredential returns pg.ErrOrgBusy or a Postgres error. If pg.IsAway returns true for the
// error, the credential may have been replaced anyway.
func SwapCredential(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID, old, fresh []byte, r Renewal,
	at *time.Time,
) (swapped bool, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(credentialSwap, channel, old, fresh, r.Destination, at, r.Name, r.Profile, r.Picture).
			QueryRow(func(row pgx.Row) error { return row.Scan(&swapped) })
	})
	return swapped, err
}

const channelPark = `-- publishing.ChannelPark
with c as (
  update channel set refresh_needed = true, refresh_problem = $3, refreshing = null, refreshing_until = null,
    updated_at = now()
  where id = $1 and credential = $2 and deleted_at is null returning id)
update channel_queue q set parked = true from c where q.channel_id = c.id`

// Park records that the platform has rejected a channel's credential. The channel's posts then stay
// in the queue until the channel is reconnected. refused is the rejected credential in sealed form,
// and reason is a human-readable sentence. Park does nothing if the credential has been replaced in
// the meantime.
func Park(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID, refused []byte, reason string,
) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(channelPark, channel, refused, reason) })
}

// ChannelAccess returns a connected channel with its sealed credential. It returns pgx.ErrNoRows if
// there is no such channel.
func ChannelAccess(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID,
) (out db.Access, err error) {
	var rows []db.AccessRow
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(db.ChannelAccess, channel).Query(db.Into(&rows, pgx.RowToStructByName[db.AccessRow]))
	})
	if err != nil {
		return out, err
	}
	if len(rows) == 0 {
		return out, pgx.ErrNoRows
	}
	return rows[0].Access(), nil
}

// RefreshState is what BeginRefresh found.
type RefreshState struct {
	// Begun is true if the caller may refresh the credential. The caller must then call
	// SwapCredential, EndRefresh or Park.
	Begun bool `db:"begun"`
	// Run identifies the refresh to EndRefresh. It is nil if no refresh has begun.
	Run *uuid.UUID `db:"run"`
	// Interrupted is true if an earlier refresh of the same credential never ended. In that case,
	// the platform may have replaced the credential.
	Interrupted bool `db:"interrupted"`
	// Credential is the channel's sealed credential. It differs from the one passed to BeginRefresh
	// if another process has refreshed the credential or reconnected the channel.
	Credential []byte `db:"credential"`
	// AppID is Channel.AppID.
	AppID string `db:"app_id"`
	// Needed is Channel.RefreshNeeded, and Reason is Channel.RefreshReason.
	Needed bool   `db:"refresh_needed"`
	Reason string `db:"refresh_problem"`
}

const refreshBegin = `-- publishing.RefreshBegin
with before as (
  select c.id, c.credential, c.app_id, c.refresh_needed, c.refresh_problem, c.refreshing is not null as interrupted,
    c.credential = $2 and not c.refresh_needed and (c.refreshing is null or c.refreshing_until <= now()) as begun
  from channel c where c.id = $1 and c.deleted_at is null for update
),
taken as (
  update channel c set refreshing = gen_random_uuid(), refreshing_until = now() + $3 * interval '1 millisecond'
  from before b where c.id = b.id and b.begun returning c.refreshing)
select b.begun, (select refreshing from taken) as run, b.interrupted, b.credential, b.app_id,
  b.refresh_needed, b.refresh_problem from before b`

// BeginRefresh begins a refresh of a channel with the given sealed credential, unless another
// refresh is running. It excludes other refreshes until this one ends or the duration hold has
// passed. BeginRefresh returns pgx.ErrNoRows if the channel is disconnected.
func BeginRefresh(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID, credential []byte,
	hold time.Duration,
) (out RefreshState, err error) {
	var rows []RefreshState
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(refreshBegin, channel, credential, hold.Milliseconds()).
			Query(db.Into(&rows, pgx.RowToStructByName[RefreshState]))
	})
	if err != nil {
		return out, err
	}
	if len(rows) == 0 {
		return out, pgx.ErrNoRows
	}
	return rows[0], nil
}

const refreshEnd = `-- publishing.RefreshEnd
update channel set
  refreshing = case when $4 then refreshing end, refreshing_until = case when $4 then now() end
where id = $1 and credential = $2 and refreshing = $3`

// EndRefresh ends a refresh that produced no new credential, so that another refresh can begin. run
// identifies the refresh. lost is true if the platform may have replaced the credential. In that
// case, the next refresh treats this one as interrupted. EndRefresh does nothing if this refresh
// exceeded its hold and another refresh has begun.
func EndRefresh(
	ctx context.Context, d *db.DB, org tenancy.OrgID, channel publishing.ChannelID, run *uuid.UUID,
	credential []byte, lost bool,
) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(refreshEnd, channel, credential, run, lost) })
}

// DueRefresh is a channel whose credential is due for a refresh.
type DueRefresh struct {
	Org       tenancy.OrgID        `db:"org_id"`
	Channel   publishing.ChannelID `db:"id"`
	Connector string               `db:"connector"`
}

const refreshDue = `-- publishing.RefreshDue
with due as (
  select c.id, row_number() over (partition by c.connector order by c.refresh_at) as of_platform
  from channel c where c.refresh_at <= now() and c.deleted_at is null and not c.refresh_needed
)
update channel c set refresh_at = now() + $2 * interval '1 millisecond'
from due d
where c.id = d.id and d.of_platform <= $1 and c.refresh_at <= now() and c.deleted_at is null and not c.refresh_needed
returning c.org_id, c.id, c.connector`

// RefreshDue returns channels whose credentials are due for a refresh. For each platform, it
// chooses the channels that have been due longest. The argument each limits their number per
// platform. All calls skip the returned channels for the duration rest.
func RefreshDue(ctx context.Context, d *db.DB, each int, rest time.Duration) (out []DueRefresh, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(refreshDue, each, rest.Milliseconds()).Query(db.Into(&out, pgx.RowToStructByName[DueRefresh]))
	})
	return out, err
}
