// Package slot implements the use cases for posting times: managing queue plans and finding free
// slots.
package slot

import (
	"context"
	"time"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/db"
)

// Slots manages queue plans and finds free slots. It is safe for concurrent use.
type Slots struct {
	db    *db.DB
	clock clock.Clock
	posts Posts
}

// Posts finds the minutes that posts take.
type Posts interface {
	// TakenMinutes returns the minutes taken by a channel's posts and holds. The range starts with
	// from's minute and ends before until. If channel is zero, the range is searched for all
	// channels. The caller must have locked the organization's slots. TakenMinutes returns Conflict
	// if there are too many repeated posts, or any Postgres error.
	TakenMinutes(
		ctx context.Context, tx *db.Tx, channel publishing.ChannelID, from, until time.Time,
	) (publishing.TakenMinutes, error)
}

// New returns a Slots that uses posts to look up which minutes are taken.
func New(d *db.DB, c clock.Clock, posts Posts) *Slots { return &Slots{db: d, clock: c, posts: posts} }
