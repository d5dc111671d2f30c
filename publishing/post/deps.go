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
	// BaseURL is the public URL of this instance.
	BaseURL string
}

// Deps holds the dependencies of New. Only Pictures, Quota and Allowance are optional.
type Deps struct {
	DB         *db.DB
	Blobs      blob.Store
	Connectors *connector.Registry
	// Access opens and refreshes credentials.
	Access *access.Refresher
	Clock  clock.Clock
	// Waker wakes an organization's actor after a post has been written.
	Waker publishing.Waker
	Log   *slog.Logger
	// Pictures makes smaller versions of pictures in this process. It is nil if other processes
	// make them.
	Pictures *pictures.Maker
	// Quota limits the number of posts per organization. It is nil on an instance without plans.
	Quota db.Quota
	// Allowance limits the number of posts per agent per day. If it is nil, agents are not limited.
	Allowance Allowance
	Approvals Approvals
}
