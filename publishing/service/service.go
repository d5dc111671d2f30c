// Package service carries out the commands and queries of publishing, one use case a file, and owns their transactions.
package service

import (
	"context"
	"io"
	"log/slog"
	"time"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/pictures"
	publishingstore "crier/publishing/store"
)

// Config configures the use cases.
type Config struct {
	// BaseURL is the public address of this instance.
	BaseURL string
	// RequestDeadline is the longest time of one call to a platform.
	PlatformTimeout time.Duration

	MaxImage    int64         `env:"MAX_IMAGE_BYTES, default=10485760" doc:"Largest image that may be uploaded, in bytes."`
	MaxVideo    int64         `env:"MAX_VIDEO_BYTES, default=1073741824" doc:"Largest video that may be uploaded, in bytes."`
	MaxStorage  int64         `env:"ORG_MAX_STORAGE_BYTES, default=107374182400" doc:"Bytes of files that one organization may store; uploads that end at the same moment may pass it. 0 = no limit."`
	MaxChannels int           `env:"ORG_MAX_CHANNELS, default=1000" doc:"Channels that one organization may have, at most 10000. Connecting an account again is always possible, and disconnected channels do not count."`
	PauseMaxAge time.Duration `env:"PAUSE_MAX_AGE, default=24h" doc:"When publishing is resumed after a pause: what was due for longer than this is given up as missed, the rest goes out one by one with CATCH_UP_INTERVAL between. 0s: nothing that fell due meanwhile goes out by itself."`
}

// Deps are what the use cases need.
type Deps struct {
	DB         *pg.DB
	Blobs      blob.Store
	Keyring    *secret.Keyring
	Connectors *connector.Registry
	HTTP       connector.HTTP
	Clock      clock.Clock
	Waker      publishing.Waker
	Log        *slog.Logger
	// Pictures makes smaller pictures in this process; nil when other processes do.
	Pictures *pictures.Maker
	// Node is the name of this process in timelines.
	Node string
}

// core is what all use cases share.
type core struct {
	cfg   Config
	deps  Deps
	store *publishingstore.Store
}

func newCore(cfg Config, deps Deps) core {
	return core{cfg: cfg, deps: deps, store: publishingstore.New(deps.DB).At(deps.Node)}
}

// media returns the connector's view of a file.
func (c core) media(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	return connector.MediaOf(m, alt, c.cfg.BaseURL, func() (io.ReadCloser, error) {
		return c.deps.Blobs.Open(ctx, m.BlobKey())
	})
}
