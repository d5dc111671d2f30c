// Package slot implements the use cases of posting times: queue plans, and finding free slots in
// them.
package slot

import (
	"context"
	"time"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/db"
)

// Slots are the use cases of posting times. They are safe for concurrent use.
type Slots struct {
	db    *db.DB
	clock clock.Clock
	posts Posts
}

// Posts are the posts that take slots.
type Posts interface {
	// TakenMinutes returns the minutes between two instants that are taken by posts and holds of a
	// channel, or of all channels for the zero id. The slots of the organization must be locked. It
	// returns Conflict if there are too many repeated posts, or the Postgres error.
	TakenMinutes(
		ctx context.Context, tx *db.Tx, channel publishing.ChannelID, from, until time.Time,
	) (publishing.TakenMinutes, error)
}

// New returns the use cases of posting times.
func New(d *db.DB, c clock.Clock, posts Posts) *Slots { return &Slots{db: d, clock: c, posts: posts} }
