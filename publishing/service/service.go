// Package service carries out publishing's commands and queries; it owns the transactions, and publish.go is the act of publishing one post.
package service

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/connector"
	publishingstore "crier/publishing/store"
)

// Config of publishing.
type Config struct {
	BaseURL         string
	MaxImage        int64         `env:"MAX_IMAGE_BYTES, default=10485760" doc:"Largest image that may be uploaded, in bytes."`
	MaxVideo        int64         `env:"MAX_VIDEO_BYTES, default=1073741824" doc:"Largest video that may be uploaded, in bytes."`
	MaxStored       int64         `env:"ORG_STORAGE_LIMIT, default=107374182400" doc:"Bytes of files that one organization may store; uploads that end at the same moment may pass it. 0 = no limit."`
	MaxChannels     int           `env:"ORG_CHANNELS, default=1000" doc:"Channels that one organization may have, at most 10000. Connecting an account again is always possible, and disconnected channels do not count."`
	RequestDeadline time.Duration `env:"REQUEST_DEADLINE, default=60s" doc:"Longest time that one call to a platform may take."`
	MaxLate         time.Duration `env:"MAX_LATE, default=24h" doc:"A post that is later than this is given up as missed."`
	LateGap         time.Duration `env:"LATE_GAP, default=30s" doc:"Pause between late posts of one channel."`
	BackoffFor      time.Duration `env:"BACKOFF_FOR, default=30m" doc:"How long a post is tried again after passing failures, and holds its channel meanwhile, before it is given up."`
	UnknownFor      time.Duration `env:"UNKNOWN_FOR, default=12m" doc:"How long an unknown outcome is looked up before it is given up."`
	SendFor         time.Duration `env:"SEND_FOR, default=6h" doc:"How long the preparing of one post for its platform may take, however often its claim is renewed, before it is given up."`
	WaitFor         time.Duration `env:"WAIT_FOR, default=1h" doc:"How long a delayed part may be left waiting after its predecessor has ended, before it is given up."`
	HeldFor         time.Duration `env:"HELD_FOR, default=24h" doc:"When publishing is resumed after a pause: what was due for longer than this is given up as missed, the rest goes out one by one with LATE_GAP between. 0s: nothing that fell due meanwhile goes out by itself."`
	SettleTime      time.Duration `env:"SETTLE_TIME, default=60s" doc:"After the request deadline, how much longer a call may still take effect on the platform."`
	Retention       Retention
}

// Deps is what the services need.
type Deps struct {
	DB         *pg.DB
	Blobs      blob.Store
	Keyring    *secret.Keyring
	Connectors *connector.Registry
	HTTP       connector.HTTP
	Clock      clock.Clock
	Waker      publishing.Waker
	Log        *slog.Logger
	Pictures   *Pictures // makes smaller pictures in this process; nil when others do
	Node       string    // name of this process in timelines
}

type core struct {
	cfg    Config
	deps   Deps
	store  *publishingstore.Store
	series *seriesCounts
}

func newCore(cfg Config, deps Deps) core {
	return core{cfg: cfg, deps: deps, store: publishingstore.New(deps.DB).At(deps.Node), series: &seriesCounts{}}
}

// url is the public address of a file.
func (c core) url(m publishing.Medium) string {
	return strings.TrimRight(c.cfg.BaseURL, "/") + m.Path()
}

// account is the connector's view of a channel.
func account(c publishing.Channel) connector.Account {
	return connector.Account{ID: c.AccountID, Name: c.Name, Profile: c.Profile, Picture: c.Picture, Data: c.Account, Grade: c.Grade}
}

// media is the connector's view of a file.
func (c core) media(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	return connector.Media{
		ContentType: m.ContentType, Size: m.Size, Width: m.Width, Height: m.Height, Alt: alt, Name: m.Name + "." + m.Ext, Video: m.Video(), URL: c.url(m),
		Open: func() (io.ReadCloser, error) { return c.deps.Blobs.Open(ctx, m.BlobKey()) },
	}
}
