package post

import (
	"context"

	"crier/publishing"
	"crier/publishing/db"
)

// Notices stores notifications in the transaction of the change that they report.
type Notices interface {
	// Add stores a notification for the bell and its mail. It returns the Postgres error.
	Add(ctx context.Context, tx *db.Tx, n publishing.Notification) error
}

// WebhookEvents stores events in the transaction of the change that they report.
type WebhookEvents interface {
	// AddEvent records an event about a thread for the organization's endpoints. post is the first
	// post of the thread. data is encoded as JSON and becomes the approval member of the body. It
	// returns the Postgres error.
	AddEvent(
		ctx context.Context, tx *db.Tx, event publishing.WebhookEvent, post publishing.PostID, data any,
	) error
}
