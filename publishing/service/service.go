// Package service carries out the commands and queries of publishing, one use case a file, and owns their transactions.
package service

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/access"
	"crier/publishing/connector"
	"crier/publishing/media/metadata"
	"crier/publishing/pictures"
	publishingstore "crier/publishing/store"
)

// Config configures the use cases. BaseURL, PlatformTimeout, UploadTimeout and SnapshotRate are not read from the
// environment: the program sets them.
type Config struct {
	// BaseURL is the public address of this instance.
	BaseURL string
	// PlatformTimeout limits the sign-in of a connect, all of its calls together.
	PlatformTimeout time.Duration
	// UploadTimeout is the longest time of an upload. CollectFiles takes older bytes without a row for orphans.
	UploadTimeout time.Duration
	// SnapshotRate is how many readings a second TakeSnapshots begins at one server, see SnapshotRate.
	SnapshotRate float64

	MaxImage int64 `env:"MAX_IMAGE_BYTES, default=10485760" doc:"Largest image that may be uploaded, in bytes."`
	MaxVideo int64 `env:"MAX_VIDEO_BYTES, default=1073741824" doc:"Largest video that may be uploaded, in bytes."`
	// MaxStorage is in bytes of uploaded files. Uploads that end at the same moment may exceed it. 0 means no limit.
	MaxStorage int64 `env:"ORG_MAX_STORAGE_BYTES, default=107374182400" doc:"Stored bytes an organization; 0: no limit."`
	// MaxChannels does not count disconnected channels. Connecting an account again is always possible.
	MaxChannels int `env:"ORG_MAX_CHANNELS, default=1000" doc:"Channels that one organization may have, at most 10000."`
	// MaxWebhooks counts disabled webhooks too.
	MaxWebhooks int `env:"ORG_MAX_WEBHOOKS, default=100" doc:"Webhooks that one organization may have, at most 10000."`
	// PauseMaxAge is counted from the due time to the end of a pause. Older posts end as missed, the others are published
	// one by one; with 0 all that became due during the pause end as missed.
	PauseMaxAge time.Duration `env:"PAUSE_MAX_AGE, default=24h" doc:"How late a post may be published after a pause."`
}

const (
	maxFile    = 1 << 40 // bytes
	maxStorage = 1 << 50 // bytes
	year       = 365 * 24 * time.Hour
)

// Validate returns every fault of the configuration, joined; errors.As finds an env.Fault in it.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Number("MAX_IMAGE_BYTES", c.MaxImage, 1, maxFile)
	faults.Number("MAX_VIDEO_BYTES", c.MaxVideo, 1, maxFile)
	faults.Number("ORG_MAX_STORAGE_BYTES", c.MaxStorage, 0, maxStorage)
	faults.Number("ORG_MAX_CHANNELS", int64(c.MaxChannels), 1, publishing.MaxChannels)
	faults.Number("ORG_MAX_WEBHOOKS", int64(c.MaxWebhooks), 1, publishing.MaxWebhooks)
	faults.Duration("PAUSE_MAX_AGE", c.PauseMaxAge, 0, year)
	return faults.Err()
}

// Deps are what the use cases need. Only Pictures, Authority and Quota are optional.
type Deps struct {
	DB         *pg.DB
	Blobs      blob.Store
	Keyring    *secret.Keyring
	Connectors *connector.Registry
	// Access opens and refreshes credentials.
	Access *access.Keeper
	HTTP   connector.HTTP
	// Fetch connects to public addresses only and follows no redirects.
	Fetch http.RoundTripper
	Clock clock.Clock
	Waker publishing.Waker
	Log   *slog.Logger
	// Pictures makes smaller pictures in this process; nil when other processes do.
	Pictures *pictures.Maker
	// Authority confirms principals; nil allows everything, which is for tests.
	Authority publishingstore.Authority
	// Quota limits the posts, channels and webhooks of an organization; nil without plans.
	Quota publishingstore.Quota
	// ReviewMails is the queue of mails to reviewers; nil on an instance that sends no mail.
	ReviewMails *jobs.Queue
	// Node is the name of this process in timelines.
	Node string
}

type core struct {
	cfg   Config
	deps  Deps
	store *publishingstore.Store
}

func newCore(cfg Config, deps Deps) core {
	return core{cfg: cfg, deps: deps, store: publishingstore.New(deps.DB).At(deps.Node)}
}

// media returns the connector's view of a file. The file is opened only when the connector calls Open.
func (c core) media(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	return connector.MediaOf(m, alt, c.cfg.BaseURL, func() (io.ReadCloser, error) {
		return metadata.Open(ctx, c.deps.Blobs, m.BlobKey(), m.Edits)
	})
}
