package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

const channelColumns = `c.org_id, c.id, c.connector, c.name, c.profile, c.picture, c.account_id, c.account, c.grade, c.customer_id, u.name, c.disabled, c.refresh_needed, c.timezone, c.created_at`

func scanChannel(row pgx.CollectableRow) (publishing.Channel, error) {
	var c publishing.Channel
	var customer publishing.CustomerID
	var customerName *string
	err := row.Scan(&c.Org, &c.ID, &c.Connector, &c.Name, &c.Profile, &c.Picture, &c.AccountID, &c.Account, &c.Grade, &customer, &customerName, &c.Disabled, &c.RefreshNeeded, &c.Timezone, &c.CreatedAt)
	if customerName != nil {
		c.Customer = &publishing.Customer{ID: customer, Name: *customerName}
	}
	return c, err
}

const channelList = `-- publishing.ChannelList
select ` + channelColumns + `
from channel c left join customer u on u.org_id = c.org_id and u.id = c.customer_id
where c.deleted_at is null and ($1::uuid is null or c.customer_id = $1)
order by c.created_at, c.id limit $2`

// Channels lists the connected channels of an organization, of one customer when it is not zero: the oldest
// publishing.MaxChannels of them.
func (s *Store) Channels(ctx context.Context, org tenancy.OrgID, customer publishing.CustomerID) (out []publishing.Channel, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelList, customer, publishing.MaxChannels).Query(into(&out, scanChannel))
	})
	return out, err
}

const channelsByID = `-- publishing.ChannelsByID
select ` + channelColumns + `
from channel c left join customer u on u.org_id = c.org_id and u.id = c.customer_id
where c.deleted_at is null and c.id = any($1)`

const channelOfAccount = `-- publishing.ChannelOfAccount
select c.id from channel c where c.connector = $1 and c.deleted_at is null and (c.account_id = $2 or c.id::text = $2)`

// ChannelOfAccount finds a live channel by its id or by its platform account id, or pgx.ErrNoRows.
func (s *Store) ChannelOfAccount(ctx context.Context, org tenancy.OrgID, connector, account string) (found publishing.ChannelID, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelOfAccount, connector, account).QueryRow(func(row pgx.Row) error { return row.Scan(&found) })
	})
	return found, err
}

// $1 int: how many channels the organization may have, $2 text: connector, $3 text: account_id.
const channelsFull = `-- publishing.ChannelsFull
select (select count(*) from channel where deleted_at is null) >= $1
  and not exists (select from channel where connector = $2 and account_id = $3 and deleted_at is null)`

const channelUpsert = `-- publishing.ChannelUpsert
insert into channel (org_id, id, connector, name, profile, picture, account_id, account, grade, credential, timezone)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, coalesce(nullif($11, ''), o.timezone) from organization o where o.id = $1
on conflict (org_id, connector, account_id) where deleted_at is null do update set
  profile = excluded.profile, picture = excluded.picture, account = excluded.account, grade = excluded.grade,
  credential = excluded.credential, refresh_needed = false, timezone = coalesce(nullif($11, ''), channel.timezone), updated_at = now()
returning id, name, customer_id, disabled, timezone, created_at`

const queueInsert = `-- publishing.QueueInsert
insert into channel_queue (channel_id, org_id, shard, connector, destination, paused)
values ($1, $2, $3, $4, $5, exists (select 1 from pause where subject = $2))
on conflict (channel_id) do update set parked = false, destination = excluded.destination,
  resumed_at = case when channel_queue.parked then now() else channel_queue.resumed_at end`

const queueNext = `-- publishing.QueueNext
select min(due) from post where channel_id = $1 and state = 'QUEUE' and deleted_at is null`

// ErrTooManyChannels means that a new channel would take its organization past its limit.
var ErrTooManyChannels = errors.New("the organization has as many channels as it may have")

// Connect stores a channel, or the new credential of one with the same account: it keeps its id and name, and its
// queue goes on. A time zone that is given becomes the channel's; without one a new channel has its organization's,
// and an existing one keeps its own. It returns the channel as stored and when its next post is due, nil for none.
// It returns ErrTooManyChannels when a new channel would be one more than most, which also holds for channels that are
// connected at the same time. Disconnected channels do not count.
func (s *Store) Connect(
	ctx context.Context, c publishing.Channel, credential []byte, most int,
) (publishing.Channel, *time.Time, error) {
	var next *time.Time
	err := s.db.InOrg(ctx, c.Org.UUID(), func(tx pgx.Tx) error {
		// Connects of one organization follow each other, so that none misses a pause or a channel of another.
		if _, err := tx.Exec(ctx, pausesLock, c.Org); err != nil {
			return err
		}
		var full bool
		if err := tx.QueryRow(ctx, channelsFull, most, c.Connector, c.AccountID).Scan(&full); err != nil {
			return err
		}
		if full {
			return ErrTooManyChannels
		}
		var customer publishing.CustomerID
		if err := tx.QueryRow(ctx, channelUpsert, c.Org, c.ID, c.Connector, c.Name, c.Profile, c.Picture, c.AccountID, c.Account, c.Grade, credential, c.Timezone).
			Scan(&c.ID, &c.Name, &customer, &c.Disabled, &c.Timezone, &c.CreatedAt); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, queueInsert, c.ID, c.Org, tenancy.Shard(c.Org), c.Connector, c.Destination); err != nil {
			return err
		}
		return tx.QueryRow(ctx, queueNext, c.ID).Scan(&next)
	})
	return c, next, err
}

const channelsHold = `-- publishing.ChannelsHold
select c.id from channel c where (c.id = any($1) or c.id in (select p.channel_id from post p where p.group_id = $2)) and c.deleted_at is null order by c.id for share`

// HoldChannels keeps channels, and those of a group, from being disconnected until the transaction ends; it returns how many of them are there.
func (t *Tx) HoldChannels(ctx context.Context, channels []publishing.ChannelID, group publishing.GroupID) (int, error) {
	tag, err := t.tx.Exec(ctx, channelsHold, uuids(channels), group)
	return int(tag.RowsAffected()), err
}

const organizationZone = `-- publishing.OrganizationZone
select timezone from organization where id = $1`

// OrganizationZone returns an organization's time zone, or pgx.ErrNoRows.
func (s *Store) OrganizationZone(ctx context.Context, org tenancy.OrgID) (zone string, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(organizationZone, org).QueryRow(func(row pgx.Row) error { return row.Scan(&zone) })
	})
	return zone, err
}

const channelLock = `-- publishing.ChannelLock
select 1 from channel where id = $1 and deleted_at is null for update`

const channelGoing = `-- publishing.ChannelGoing
select p.id, p.state from post p join channel c on c.org_id = p.org_id and c.id = p.channel_id and c.deleted_at is null
where p.channel_id = $1 and p.deleted_at is null and p.state not in ('PUBLISHED', 'ERROR') order by p.id for no key update of p`

const channelSeriesEnd = `-- publishing.ChannelSeriesEnd
update series set stopped_at = now(), stopped_for = 'deleted' where channel_id = $1 and stopped_at is null`

const channelDelete = `-- publishing.ChannelDelete
update channel set deleted_at = now(), credential = null, updated_at = now() where id = $1 and deleted_at is null`

// Disconnect forgets a channel's access and removes everything that it was still to publish; false means that there is no such channel.
// What is being sent at this moment ends by itself.
func (t *Tx) Disconnect(ctx context.Context, channel publishing.ChannelID) (found bool, err error) {
	// First, so that whoever writes a post for the channel is either seen below or finds it gone.
	if _, err := t.tx.Exec(ctx, channelLock, channel); err != nil {
		return false, err
	}
	rows, err := t.tx.Query(ctx, channelGoing, channel)
	if err != nil {
		return false, err
	}
	posts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (st Standing, err error) {
		return st, row.Scan(&st.ID, &st.State)
	})
	if err != nil {
		return false, err
	}
	if _, err := t.tx.Exec(ctx, channelSeriesEnd, channel); err != nil {
		return false, err
	}
	if err := t.Delete(ctx, posts); err != nil {
		return false, err
	}
	tag, err := t.tx.Exec(ctx, channelDelete, channel)
	return tag.RowsAffected() == 1, err
}

const credentialSwap = `-- publishing.CredentialSwap
with c as (
  update channel set credential = $3, refresh_needed = false, updated_at = now()
  where id = $1 and credential = $2 and deleted_at is null returning id
),
moved as (update channel_queue q set destination = $4 from c where q.channel_id = c.id and $4 not in ('', q.destination))
select exists (select 1 from c)`

// SwapCredential replaces a sealed credential, but only the one that was read: false means that somebody else was
// first. destination is where the channel's posts go from now on, "" where they went before.
func (s *Store) SwapCredential(
	ctx context.Context, org tenancy.OrgID, channel publishing.ChannelID, old, fresh []byte, destination string,
) (swapped bool, err error) {
	err = s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(credentialSwap, channel, old, fresh, destination).
			QueryRow(func(row pgx.Row) error { return row.Scan(&swapped) })
	})
	return swapped, err
}

const channelPark = `-- publishing.ChannelPark
with c as (update channel set refresh_needed = true, updated_at = now() where id = $1 and credential = $2 and deleted_at is null returning id)
update channel_queue q set parked = true from c where q.channel_id = c.id`

// Park keeps a channel's posts back until it is reconnected. A channel that does not have the sealed credential any more
// that was refused has been reconnected already.
func (s *Store) Park(ctx context.Context, org tenancy.OrgID, channel publishing.ChannelID, refused []byte) error {
	return s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(channelPark, channel, refused) })
}

// ConnectState is a connect under way.
type ConnectState struct {
	Org        tenancy.OrgID
	Connector  string
	Channel    publishing.ChannelID // the channel to reconnect, zero for a new one
	Person     tenancy.PersonID
	Onboarding bool
	ReturnURL  string
	ExpiresAt  time.Time
}

const stateInsert = `-- publishing.ConnectStateInsert
insert into connect_state (org_id, hash, connector, channel_id, person_id, onboarding, return_url, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8)`

// SaveState stores a connect state by its hash.
func (s *Store) SaveState(ctx context.Context, hash []byte, st ConnectState) error {
	return s.db.WriteOrg(ctx, st.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateInsert, st.Org, hash, st.Connector, st.Channel, st.Person, st.Onboarding, st.ReturnURL, st.ExpiresAt)
	})
}

const stateOwner = `-- publishing.ConnectStateOwner
select org_id from connect_state where hash = $1 and expires_at > now()`

const stateTry = `-- publishing.ConnectStateTry
update connect_state set tries = tries + 1 where hash = $1 and connector = $2 and expires_at > now() and tries < $3
returning connector, channel_id, person_id, onboarding, return_url, expires_at`

// TryState counts a try of a living connect state and returns the state. It returns pgx.ErrNoRows when there is none, or it
// was tried most times already.
func (s *Store) TryState(ctx context.Context, hash []byte, connector string, most int) (st ConnectState, err error) {
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(stateOwner, hash).QueryRow(func(row pgx.Row) error { return row.Scan(&st.Org) })
	})
	if err != nil {
		return st, err
	}
	err = s.db.WriteOrg(ctx, st.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateTry, hash, connector, most).QueryRow(func(row pgx.Row) error {
			return row.Scan(&st.Connector, &st.Channel, &st.Person, &st.Onboarding, &st.ReturnURL, &st.ExpiresAt)
		})
	})
	return st, err
}

const stateTake = `-- publishing.ConnectStateTake
delete from connect_state where hash = $1 and expires_at > now() returning connector`

// TakeState uses a connect state up; pgx.ErrNoRows means that somebody else did.
func (s *Store) TakeState(ctx context.Context, org tenancy.OrgID, hash []byte) error {
	return s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(stateTake, hash).QueryRow(func(row pgx.Row) error { return row.Scan(new(string)) })
	})
}
