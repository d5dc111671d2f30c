// Package post implements the use cases for posts, including repeated posts. Each use case has its
// own file and runs its own transactions.
package post

import (
	"log/slog"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/access"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/publishing/pictures"
)

// Config configures a Posts.
type Config struct {
	// BaseURL is the public address of this instance.
	BaseURL string
}

// Deps holds the dependencies of New. Only Pictures and Quota are optional.
type Deps struct {
	DB         *db.DB
	Blobs      blob.Store
	Connectors *connector.Registry
	// Access opens and refreshes credentials.
	Access *access.Refresher
	Clock  clock.Clock
	// Waker wakes an organization after one of its posts has been written.
	Waker publishing.Waker
	Log   *slog.Logger
	// Pictures makes smaller pictures in this process. It is nil if other processes make them.
	Pictures *pictures.Maker
	// Quota limits an organization's posts. It is nil on an instance without plans.
	Quota     db.Quota
	Approvals Approvals
}
