// Package scheduler publishes posts. It claims posts, sends them to their platforms and stores the
// outcomes. It also queries platforms about unknown outcomes, and abandons posts that are late or
// stuck. The worker decides when each of these steps runs, and in which order.
package scheduler

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"crier/platform/batch"
	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/access"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/publishing/file/metadata"
	"crier/publishing/pictures"
)

// Config configures a Sender or a Queue.
type Config struct {
	// BaseURL is the public URL of this instance.
	BaseURL string

	// PlatformTimeout limits the duration of one call. For the irreversible call, the time starts
	// before the call is marked.
	PlatformTimeout time.Duration `env:"PLATFORM_TIMEOUT, default=60s" doc:"Time limit for one call to a platform."`
	// SettleDelay starts when PlatformTimeout ends. A post that is not found on the platform is not
	// sent again until the delay has passed.
	SettleDelay time.Duration `env:"SETTLE_DELAY, default=60s" doc:"How long after PLATFORM_TIMEOUT a call can still take effect."`
	// MaxLateness is measured from the due time.
	MaxLateness time.Duration `env:"MAX_LATENESS, default=24h" doc:"How late a post can be published; later posts end as missed."`
	// CatchUpInterval is the interval between posts on the same channel that became due while the
	// channel could not publish.
	CatchUpInterval time.Duration `env:"CATCH_UP_INTERVAL, default=30s" doc:"Interval between late posts on the same channel."`
	// RetryWindow starts at the first of several consecutive failures, and does not include times
	// when the channel was held back. A part fails permanently if its next attempt would be after
	// the end of the window. Until then, the post occupies its channel.
	RetryWindow time.Duration `env:"RETRY_WINDOW, default=30m" doc:"How long a failing post is retried."`
	// ReconcileWindow is measured from the irreversible call.
	ReconcileWindow time.Duration `env:"RECONCILE_WINDOW, default=12m" doc:"How long a platform is queried about an unknown outcome."`
	// PrepareTimeout limits how long the preparation of a post may take, even if the claim is
	// renewed.
	PrepareTimeout time.Duration `env:"PREPARE_TIMEOUT, default=6h" doc:"Time limit for preparing a post, for example uploading its files."`
	// FollowerTimeout starts when a follower's predecessor has ended.
	FollowerTimeout time.Duration `env:"FOLLOWER_TIMEOUT, default=1h" doc:"How long a delayed part can keep waiting if the part before it ended without releasing it."`
	// PauseMaxAge is the maximum time from a post's due time to the end of a pause. Older posts end
	// as missed; the others are published one by one. If PauseMaxAge is 0, all posts that became
	// due during the pause end as missed. Only a Queue uses it.
	PauseMaxAge time.Duration `env:"PAUSE_MAX_AGE, default=24h" doc:"How overdue a post can be when a pause ends and still be published."`
}

const (
	month = 30 * 24 * time.Hour
	year  = 365 * 24 * time.Hour
)

// Validate returns all faults in the configuration, joined. errors.As finds an env.Fault in the
// returned error.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Duration("PLATFORM_TIMEOUT", c.PlatformTimeout, time.Second, time.Hour)
	faults.Duration("SETTLE_DELAY", c.SettleDelay, 0, 24*time.Hour)
	faults.Duration("MAX_LATENESS", c.MaxLateness, time.Second, year)
	faults.Duration("CATCH_UP_INTERVAL", c.CatchUpInterval, 0, 24*time.Hour)
	faults.Duration("RETRY_WINDOW", c.RetryWindow, 0, month)
	faults.Duration("RECONCILE_WINDOW", c.ReconcileWindow, time.Second, month)
	faults.Duration("PREPARE_TIMEOUT", c.PrepareTimeout, time.Second, month)
	faults.Duration("PAUSE_MAX_AGE", c.PauseMaxAge, 0, year)
	faults.Duration("FOLLOWER_TIMEOUT", c.FollowerTimeout, time.Second, month)
	return faults.Err()
}

// Deps holds the dependencies of New and NewQueue. Only Pictures is optional. A Queue needs only
// DB, Connectors and Log.
type Deps struct {
	DB         *db.DB
	Blobs      blob.Store
	Keyring    *secret.Keyring
	Connectors *connector.Registry
	// Access refreshes credentials.
	Access *access.Refresher
	HTTP   connector.HTTP
	Clock  clock.Clock
	Waker  publishing.Waker
	Log    *slog.Logger
	// Pictures makes smaller versions of pictures in this process. It is nil if other processes
	// make them.
	Pictures *pictures.Maker
	// Series writes the occurrences of repeated posts.
	Series Series
}

// Sender publishes posts. It is safe for concurrent use.
type Sender struct {
	cfg  Config
	deps Deps
	db   *db.DB

	// lastAgeSearch is when the last search for stuck and orphaned posts began. lastEmptyExpire is
	// when a search for missed posts last found no posts. Both are clock.Boot readings.
	lastAgeSearch   atomic.Int64
	lastEmptyExpire atomic.Int64

	marks       *batch.Batcher[*pendingMark]
	claimNumber atomic.Int64 // the last claim statement's number
	setAsides   setAsidePosts
	loadSize    batch.Size // posts in one statement of Load

	occurrencesWritten, seriesSetAside atomic.Int64
}

// New returns a Sender for one process. It does not start any goroutines.
func New(cfg Config, deps Deps) *Sender {
	s := &Sender{
		cfg: cfg, deps: deps, db: deps.DB, loadSize: batch.Size{Max: maxLoads},
	}
	s.marks = s.newMarks()
	return s
}

// media returns a file in the form that connectors expect. The file is opened only if the connector
// calls Open.
func (s *Sender) media(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	return connector.MediaOf(m, alt, s.cfg.BaseURL, func() (io.ReadCloser, error) {
		return metadata.Open(ctx, s.deps.Blobs, m.BlobKey(), m.Edits)
	})
}
