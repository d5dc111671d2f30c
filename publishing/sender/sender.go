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

	RequestDeadline time.Duration `env:"REQUEST_DEADLINE, default=60s" doc:"Longest time that one call to a platform may take."`
	MaxLate         time.Duration `env:"MAX_LATE, default=24h" doc:"A post that is later than this is given up as missed."`
	LateGap         time.Duration `env:"LATE_GAP, default=30s" doc:"Pause between late posts of one channel."`
	BackoffFor      time.Duration `env:"BACKOFF_FOR, default=30m" doc:"How long a post is tried again after passing failures, and holds its channel meanwhile, before it is given up."`
	UnknownFor      time.Duration `env:"UNKNOWN_FOR, default=12m" doc:"How long an unknown outcome is looked up before it is given up."`
	SendFor         time.Duration `env:"SEND_FOR, default=6h" doc:"How long the preparing of one post for its platform may take, however often its claim is renewed, before it is given up."`
	WaitFor         time.Duration `env:"WAIT_FOR, default=1h" doc:"How long a delayed part may be left waiting after its predecessor has ended, before it is given up."`
	SettleTime      time.Duration `env:"SETTLE_TIME, default=60s" doc:"After the request deadline, how much longer a call may still take effect on the platform."`
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
