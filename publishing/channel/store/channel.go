// Package store reads and writes the rows of channels, connection attempts, applications and
// customers. Only the parent package uses it.
package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

var channelList = `-- publishing.ChannelList
select ` + db.ChannelColumns + `
from channel c left join customer u on u.org_id = c.org_id and u.id = c.customer_id
where c.deleted_at is null and ($1::uuid is null or c.customer_id = $1)
order by c.created_at, c.id limit $2`

// Channels returns an organization's connected channels or, if customer is not zero, that
// customer's connected channels. It returns at most publishing.MaxChannels channels, oldest first.
// It returns pg.ErrOrgBusy or a Postgres error.
func Channels(
	ctx context.Context, d *db.DB, org tenancy.OrgID, customer publishing.CustomerID,
) (out []publishing.Channel, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelList, customer, publishing.MaxChannels).Query(db.Into(&out, db.ScanChannel))
	})
	return out, err
}

const channelOfAccount = `-- publishing.ChannelOfAccount
select c.id from channel c
where c.connector = $1 and c.deleted_at is null and (c.account_id = $2 or c.id::text = $2)`

// ChannelOfAccount returns the id of the connected channel for an account. account is either the
// account's id on the platform, such as did:plc:abc, or the id of the channel itself.
// ChannelOfAccount returns pgx.ErrNoRows if there is no such channel.
func ChannelOfAccount(
	ctx context.Context, d *db.DB, org tenancy.OrgID, connector, account string,
) (found publishing.ChannelID, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelOfAccount, connector, account).QueryRow(func(row pgx.Row) error { return row.Scan(&found) })
	})
	return found, err
}

const channelLock = `-- publishing.ChannelLock
select 1 from channel where id = $1 and deleted_at is null for update`

const channelDelete = `-- publishing.ChannelDelete
update channel set deleted_at = now(), credential = null, refresh_at = null, refreshing = null, refreshing_until = null,
  updated_at = now()
where id = $1 and deleted_at is null`

// EndPosts ends the series of a channel that is being disconnected and deletes its unfinished
// posts.
type EndPosts func(ctx context.Context, tx *db.Tx, channel publishing.ChannelID) error

// Disconnect calls end and then deletes the channel and its credential. It returns false if the
// channel does not exist. If Postgres or end returns an error, Disconnect returns it, and the
// transaction must be rolled back.
func Disconnect(ctx context.Context, tx *db.Tx, channel publishing.ChannelID, end EndPosts) (found bool, err error) {
	// The lock must come first. A transaction that writes a post for the channel then either ends
	// before the posts are read or finds the channel deleted.
	if _, err := tx.Exec(ctx, channelLock, channel); err != nil {
		return false, err
	}
	if err := end(ctx, tx, channel); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, channelDelete, channel)
	return tag.RowsAffected() == 1, err
}

const channelConnectedAt = `-- publishing.ChannelConnectedAt
select o.name organization, c.name channel, c.connector, c.connected_at = $2 and c.deleted_at is null same
from channel c join organization o on o.id = c.org_id where c.id = $1`

// Disown disconnects a channel unless its account was connected again after the time at. It returns
// pgx.ErrNoRows if the channel never existed.
func Disown(
	ctx context.Context, tx *db.Tx, channel publishing.ChannelID, at time.Time, end EndPosts,
) (publishing.Disowned, error) {
	if _, err := tx.Exec(ctx, channelLock, channel); err != nil {
		return publishing.Disowned{}, err
	}
	rows, err := tx.Query(ctx, channelConnectedAt, channel, at)
	if err != nil {
		return publishing.Disowned{}, err
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[struct {
		publishing.Disowned
		Same bool `db:"same"`
	}])
	found.Org = tx.Org
	if err != nil || !found.Same {
		return found.Disowned, err
	}
	found.Disconnected, err = Disconnect(ctx, tx, channel, end)
	return found.Disowned, err
}

// $1 is the connector, and $2 is the account_id.
const channelsPresent = `-- publishing.ChannelsPresent
select (select count(*) from channel where deleted_at is null),
  exists (select from channel where connector = $1 and account_id = $2 and deleted_at is null)`

const channelUpsert = `-- publishing.ChannelUpsert
insert into channel (org_id, id, connector, name, profile, picture, account_id, account, grade, credential, timezone,
  queue_plan, app_id, refresh_at)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, coalesce(nullif($11, ''), o.timezone),
  case when $11 = '' and o.timezone = 'UTC' then $12::jsonb else $13::jsonb end, $14, $15
from organization o where o.id = $1
on conflict (org_id, connector, account_id) where deleted_at is null do update set
  name = excluded.name, profile = excluded.profile, picture = excluded.picture, account = excluded.account,
  grade = excluded.grade, credential = excluded.credential, refresh_needed = false, refresh_problem = '',
  app_id = excluded.app_id,
  refresh_at = excluded.refresh_at, refreshing = null, refreshing_until = null, timezone = coalesce(nullif($11, ''), channel.timezone),
  connected_at = now(), updated_at = now()
returning id, name, customer_id, disabled, timezone, created_at, connected_at`

const queueInsert = `-- publishing.QueueInsert
insert into channel_queue (channel_id, org_id, shard, connector, destination, paused)
values ($1, $2, $3, $4, $5, exists (select 1 from pause where subject = $2))
on conflict (channel_id) do update set parked = false, destination = excluded.destination,
  resumed_at = case when channel_queue.parked then now() else channel_queue.resumed_at end`

// insightAsk ends the wait that the platform requested under the previous credential.
const insightAsk = `-- publishing.InsightAsk
update insight set again_at = null where subject = $1 and again_at is not null`

const queueNext = `-- publishing.QueueNext
select min(due) from post where channel_id = $1 and state = 'QUEUE' and deleted_at is null`

// ConnectChannel is Connect in its own transaction.
func ConnectChannel(
	ctx context.Context, d *db.DB, c publishing.Channel, credential []byte, at *time.Time, check func(tx *db.Tx,
		present int) error,
) (stored publishing.Channel, next *time.Time, err error) {
	err = d.InOrg(ctx, c.Org, func(t *db.Tx) error {
		stored, next, err = Connect(ctx, t, c, credential, at, check)
		return err
	})
	return stored, next, err
}

// Connect stores a channel. It returns the stored channel and the time at which the channel's next
// post is due, or nil if no post is scheduled. at is when the credential must be refreshed, or nil
// for never.
//
// If the account is already connected, its channel gets the new credential and the account's
// current names. The channel keeps its id and its queue, and queued posts are published as planned.
//
// c.Timezone becomes the channel's zone. If c.Timezone is empty, a new channel gets its
// organization's zone, and an existing channel keeps its own.
//
// A new channel also gets publishing.DefaultQueueTimes. If c.Timezone is empty and the
// organization's zone is UTC, these are the times for a zone that no user chose.
//
// Before storing a new channel, Connect locks the organization and calls check with the number of
// connected channels. The lock ensures that channels connected concurrently are all counted. If
// check returns an error, Connect stores nothing and returns that error. A nil check allows
// everything.
func Connect(
	ctx context.Context, t *db.Tx, c publishing.Channel, credential []byte, at *time.Time, check func(tx *db.Tx,
		present int) error,
) (stored publishing.Channel, next *time.Time, err error) {
	// The lock serializes an organization's connection attempts, so that each attempt sees all
	// earlier pauses and channels.
	if _, err := db.LockOrganization(ctx, t); err != nil {
		return c, nil, err
	}
	var present int
	var known bool
	if err := t.QueryRow(ctx, channelsPresent, c.Connector, c.AccountID).Scan(&present, &known); err != nil {
		return c, nil, err
	}
	if check != nil && !known {
		if err := check(t, present); err != nil {
			return c, nil, err
		}
	}
	var customer publishing.CustomerID
	row := t.QueryRow(ctx, channelUpsert, c.Org, c.ID, c.Connector, c.Name, c.Profile, c.Picture, c.AccountID,
		c.Account, c.Grade, credential, c.Timezone,
		db.StoredTimes(publishing.DefaultQueueTimes(false)), db.StoredTimes(publishing.DefaultQueueTimes(true)), c.AppID, at)
	if err := row.Scan(&c.ID, &c.Name, &customer, &c.Disabled, &c.Timezone, &c.CreatedAt, &c.ConnectedAt); err != nil {
		return c, nil, err
	}
	if _, err := t.Exec(ctx, queueInsert, c.ID, c.Org, tenancy.Shard(c.Org), c.Connector, c.Destination); err != nil {
		return c, nil, err
	}
	if _, err := t.Exec(ctx, insightAsk, c.ID); err != nil {
		return c, nil, err
	}
	err = t.QueryRow(ctx, queueNext, c.ID).Scan(&next)
	return c, next, err
}

// CountChannels returns the number of connected channels.
func CountChannels(ctx context.Context, tx *db.Tx) (n int, err error) {
	return n, tx.QueryRow(ctx, channelCount).Scan(&n)
}

const channelCount = `-- publishing.ChannelCount
select count(*) from channel where deleted_at is null`
