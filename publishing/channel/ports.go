package channel

import (
	"context"

	"crier/publishing"
	"crier/publishing/db"
)

// Posts ends the series and deletes the unfinished posts of a channel that is being disconnected.
type Posts interface {
	// EndOfChannel ends the series of a locked channel and deletes its unfinished posts. A post
	// that is being sent is marked as deleted, but its sender still finishes it. EndOfChannel
	// returns any Postgres error.
	EndOfChannel(ctx context.Context, tx *db.Tx, channel publishing.ChannelID) error
}

// Notices stores notifications in the same transaction as the changes that they report.
type Notices interface {
	// Add stores a notification to be listed. If n.MailAt is set, the notification is also emailed.
	// Add returns any Postgres error.
	Add(ctx context.Context, tx *db.Tx, n publishing.Notification) error
}
