package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// Access is a channel with its sealed credential.
type Access struct {
	Channel    publishing.Channel
	Credential []byte
	// Destination has the hosts that may be asked, see connector.Destination, or the connector when none is known.
	Destination string
}

type accessRow struct {
	listedChannel
	Credential  []byte `db:"credential"`
	Destination string `db:"destination" sql:"coalesce(nullif(q.destination, ''), c.connector)"`
}

func (r accessRow) access() Access {
	return Access{Channel: r.channel(), Credential: r.Credential, Destination: r.Destination}
}

var channelAccess = `-- publishing.ChannelAccess
select ` + columns[accessRow]("c") + `
from channel c
left join customer u on u.org_id = c.org_id and u.id = c.customer_id
left join channel_queue q on q.org_id = c.org_id and q.channel_id = c.id
where c.id = $1 and c.deleted_at is null`

// ChannelAccess returns a connected channel with its sealed credential, or pgx.ErrNoRows.
func ChannelAccess(
	ctx context.Context, d *Store, org tenancy.OrgID, channel publishing.ChannelID,
) (out Access, err error) {
	var rows []accessRow
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelAccess, channel).Query(into(&rows, pgx.RowToStructByName[accessRow]))
	})
	if err != nil {
		return out, err
	}
	if len(rows) == 0 {
		return out, pgx.ErrNoRows
	}
	return rows[0].access(), nil
}

// RefreshState is what BeginRefresh found.
type RefreshState struct {
	// Begun is true when the caller may refresh, and must then call SwapCredential, EndRefresh or Park.
	Begun bool `db:"begun"`
	// Run names the refresh that has begun, for EndRefresh; nil when none has.
	Run *uuid.UUID `db:"run"`
	// Interrupted is set when an earlier refresh of the same credential never ended, so that the platform may have
	// replaced it.
	Interrupted bool `db:"interrupted"`
	// Credential is the sealed credential of the channel, which is another one than was asked for when another process has
	// refreshed it or connected the channel again.
	Credential []byte `db:"credential"`
	// AppID is Channel.AppID.
	AppID string `db:"app_id"`
	// Needed and Reason are Channel.RefreshNeeded and RefreshReason.
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

// BeginRefresh begins the refresh of a channel that has the sealed credential, unless another one runs. What has begun
// keeps others off for the time hold. It returns pgx.ErrNoRows for a channel that is disconnected.
func BeginRefresh(
	ctx context.Context, d *Store, org tenancy.OrgID, channel publishing.ChannelID, credential []byte, hold time.Duration,
) (out RefreshState, err error) {
	var rows []RefreshState
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(refreshBegin, channel, credential, hold.Milliseconds()).
			Query(into(&rows, pgx.RowToStructByName[RefreshState]))
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

// EndRefresh ends the refresh run, which has brought no new credential, so that another one may begin. lost is true when
// the platform may have replaced the credential: the next one then counts the refresh as interrupted. It does nothing
// when another refresh has begun by then, because this one took longer than its hold.
func EndRefresh(
	ctx context.Context, d *Store, org tenancy.OrgID, channel publishing.ChannelID, run *uuid.UUID, credential []byte, lost bool,
) error {
	return d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(refreshEnd, channel, credential, run, lost) })
}

// DueRefresh is a channel whose credential ends soon.
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

// RefreshDue returns at most each channels of every platform whose credential is to be refreshed now, those that have
// waited the longest, and lets no other call return them for the time rest.
func RefreshDue(ctx context.Context, d *Store, each int, rest time.Duration) (out []DueRefresh, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(refreshDue, each, rest.Milliseconds()).Query(into(&out, pgx.RowToStructByName[DueRefresh]))
	})
	return out, err
}
