package store

import (
	"context"

	"crier/publishing"
	"crier/publishing/db"
)

const channelsHold = `-- publishing.ChannelsHold
select c.id from channel c
where (c.id = any($1) or c.id in (select p.channel_id from post p where p.group_id = $2)) and c.deleted_at is null
order by c.id for share`

// HoldChannels prevents the given channels and a group's channels from being disconnected until the
// transaction ends. It returns how many of these channels are still connected.
//
// If a channel is currently being disconnected, HoldChannels waits. If the wait is too long, it
// returns a Postgres error for which pg.IsLocked returns true.
func HoldChannels(
	ctx context.Context, tx *db.Tx, channels []publishing.ChannelID, group publishing.GroupID,
) (int, error) {
	tag, err := tx.Exec(ctx, channelsHold, db.UUIDs(channels), group)
	return int(tag.RowsAffected()), err
}

// mediaHeld prevents a group's files from being deleted (see LockMedium in publishing/media/store).
const mediaHeld = `-- publishing.MediaHeld
select count(*) filter (where x.deleted_at is not null) from (
  select m.deleted_at from post p
  join part a on a.org_id = p.org_id and a.post_id = p.id
  join attachment t on t.org_id = a.org_id and t.part_id = a.id
  join media m on m.org_id = t.org_id and m.id = t.media_id
  where p.group_id = $1 and p.deleted_at is null
  for key share of m) x`

// HoldMedia reports whether all of a group's files exist. It also prevents these files from being
// deleted until the transaction ends. It returns any Postgres error.
func HoldMedia(ctx context.Context, tx *db.Tx, group publishing.GroupID) (bool, error) {
	deleted := 0
	err := tx.QueryRow(ctx, mediaHeld, group).Scan(&deleted)
	return deleted == 0, err
}
