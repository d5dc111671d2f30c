package channel

import (
	"context"

	"crier/publishing"
	"crier/publishing/db"
)

// Posts ends the posts of a channel that is being disconnected.
type Posts interface {
	// EndOfChannel ends the series of a locked channel and deletes its unfinished posts. A post
	// that is being sent ends when its sender is done. EndOfChannel returns the Postgres error.
	EndOfChannel(ctx context.Context, tx *db.Tx, channel publishing.ChannelID) error
}

// Notices stores notifications in the same transaction as the changes that they report.
type Notices interface {
	// Add stores a notification for the bell and, if n.MailAt is set, for an email. It returns the
	// Postgres error.
	Add(ctx context.Context, tx *db.Tx, n publishing.Notification) error
}
