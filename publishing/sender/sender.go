// Package sender publishes posts: it claims them, sends them to their platforms, stores how that ended, asks platforms for
// unknown outcomes, and ends what is late or left behind. The worker calls it; it decides nothing about order or time.
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

// Config of the sender.
type Config struct {
	BaseURL         string
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

	aged   atomic.Int64 // when stuck and orphaned posts were last looked for, by clock.Boot
	noLate atomic.Int64 // when a search for missed posts last found none, by clock.Boot
	marks  *batch.Batcher[*marking]
	number atomic.Int64 // of the last claim statement
	aside  asides

	occurrences, seriesAside atomic.Int64 // see OccurrencesWritten and SeriesSetAside

	loading batch.Size // posts in a statement of Load
}

// New returns a Sender for one process. It does nothing by itself.
func New(cfg Config, deps Deps) *Sender {
	s := &Sender{cfg: cfg, deps: deps, store: publishingstore.New(deps.DB).At(deps.Node), loading: batch.Size{Max: loadsAtOnce}}
	s.marks = s.newMarks()
	return s
}

// media returns the connector's view of a file.
func (s *Sender) media(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	return connector.MediaOf(m, alt, s.cfg.BaseURL, func() (io.ReadCloser, error) { return s.deps.Blobs.Open(ctx, m.BlobKey()) })
}
