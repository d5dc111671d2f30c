// Package sender publishes posts: it claims them, sends them to their platforms, stores the outcomes, asks platforms
// for unknown outcomes, and gives up posts that are late or stuck. The worker calls it and decides when, and in which
// order.
package sender

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"crier/platform/batch"
	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/pictures"
	publishingstore "crier/publishing/store"
)

// Config configures a Sender.
type Config struct {
	// BaseURL is the public address of this instance.
	BaseURL string

	PlatformTimeout time.Duration `env:"PLATFORM_TIMEOUT, default=60s" doc:"Longest time that one call to a platform may take."`
	MaxLateness     time.Duration `env:"MAX_LATENESS, default=24h" doc:"A post that is later than this is given up as missed."`
	CatchUpInterval time.Duration `env:"CATCH_UP_INTERVAL, default=30s" doc:"Pause between late posts of one channel."`
	RetryWindow     time.Duration `env:"RETRY_WINDOW, default=30m" doc:"How long a post is tried again after passing failures, and holds its channel meanwhile, before it is given up."`
	ReconcileWindow time.Duration `env:"RECONCILE_WINDOW, default=12m" doc:"How long an unknown outcome is looked up before it is given up."`
	PrepareTimeout  time.Duration `env:"PREPARE_TIMEOUT, default=6h" doc:"How long the preparing of one post for its platform may take, however often its claim is renewed, before it is given up."`
	FollowerTimeout time.Duration `env:"FOLLOWER_TIMEOUT, default=1h" doc:"How long a delayed part may be left waiting after its predecessor has ended, before it is given up."`
	SettleDelay     time.Duration `env:"SETTLE_DELAY, default=60s" doc:"How much longer than PLATFORM_TIMEOUT a call may still take effect on the platform."`
	Retention       Retention
}

// Deps are what a Sender needs.
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

// Sender publishes posts. It is safe for concurrent use.
type Sender struct {
	cfg   Config
	deps  Deps
	store *publishingstore.Store

	// lastAgeSearch is when stuck and orphaned posts were last searched, lastEmptyExpire when a search for missed posts
	// last found none; both by clock.Boot.
	lastAgeSearch   atomic.Int64
	lastEmptyExpire atomic.Int64

	marks       *batch.Batcher[*pendingMark]
	claimNumber atomic.Int64 // of the last claim statement
	setAsides   setAsidePosts
	loadSize    batch.Size // posts in a statement of Load

	occurrencesWritten, seriesSetAside atomic.Int64
}

// New returns a Sender for one process. It starts no goroutine.
func New(cfg Config, deps Deps) *Sender {
	s := &Sender{
		cfg: cfg, deps: deps, store: publishingstore.New(deps.DB).At(deps.Node), loadSize: batch.Size{Max: maxLoads},
	}
	s.marks = s.newMarks()
	return s
}

// media returns the connector's view of a file.
func (s *Sender) media(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	return connector.MediaOf(m, alt, s.cfg.BaseURL, func() (io.ReadCloser, error) {
		return s.deps.Blobs.Open(ctx, m.BlobKey())
	})
}
