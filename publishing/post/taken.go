package post

import (
	"context"
	"errors"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
)

// TakenMinutes implements slot.Posts.
func (s *Posts) TakenMinutes(
	ctx context.Context, tx *db.Tx, channel publishing.ChannelID, from, until time.Time,
) (taken publishing.TakenMinutes, err error) {
	read := func(ctx context.Context) (err error) {
		taken, err = poststore.TakenMinutes(ctx, tx, channel, from, until)
		return err
	}
	if channel.IsZero() { // posts on every channel take the time, even on hidden channels
		err = tx.Whole(ctx, read)
	} else {
		err = read(ctx)
	}
	if errors.Is(err, poststore.ErrTooMuch) {
		return nil, fault.New(fault.Conflict, "publishing.FindSlot",
			"There are too many repeated posts to find a free posting time; end some of them.")
	}
	return taken, err
}
