// Package boot creates the service from its configuration, starts and stops its parts in order, and has the commands of
// the binary.
package boot

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"crier/actors/cluster"
	"crier/actors/org"
	"crier/apps/edge"
	"crier/apps/worker"
	"crier/platform/env"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/platform/telemetry"
	"crier/publishing"
	"crier/publishing/sender"
	publishingservice "crier/publishing/service"
	tenancyservice "crier/tenancy/service"
)

// Config are all environment variables of the service: those of the packages and a few of its own. env.Load fills it
// and calls the Validate methods.
type Config struct {
	Home          string        `env:"CRIER_HOME, default=.crier" doc:"Folder for uploads, locks and, in dev, the database."`
	Files         string        `env:"FILES_DIR" doc:"Folder for uploads; several processes need one that they share. CRIER_HOME/files when not set."`
	RedisURL      string        `env:"REDIS_URL" doc:"Redis that all processes share, redis:// or rediss://; a single process needs none."`
	SandboxURL    string        `env:"SANDBOX_URL" doc:"Address of a running sandbox (crier sandbox), http with a loopback address and a port; the sandbox platform is offered only when set."`
	DrainDelay    time.Duration `env:"DRAIN_DELAY, default=3s" doc:"How long requests are still answered after /health says that the process is stopping."`
	StopTimeout   time.Duration `env:"STOP_TIMEOUT, default=40s" doc:"Longest time that a clean stop may take."`
	PruneInterval time.Duration `env:"PRUNE_INTERVAL, default=1h" doc:"How often a worker looks for rows that were kept for long enough."`
	Postgres      pg.Config
	Edge          edge.Config
	Actors        org.Config
	Cluster       cluster.Config
	Worker        worker.Config
	Publishing    publishingservice.Config
	Sender        sender.Config
	Outbound      outbound.Config
	Secret        secret.Config
	Telemetry     telemetry.Config
	Sessions      tenancyservice.Retention
	Version       string
}

// Validate returns the faults that no single package can find, joined, each an env.Fault.
func (c Config) Validate() error {
	var faults []error
	if c.Postgres.URL == "" {
		faults = append(faults, env.Fault{
			Name: "DATABASE_URL", Message: "is required: the address of a Postgres database.",
		})
	}
	if c.Postgres.Pooler != "" && c.Postgres.Pooler != pg.PoolerTransaction {
		faults = append(faults, env.Fault{Name: "POOLER", Message: "must be empty or transaction."})
	}
	if c.SandboxURL != "" && !edge.IsSandbox(c.SandboxURL) {
		faults = append(faults, env.Fault{
			Name:    "SANDBOX_URL",
			Message: "must be http with a loopback address and a port, such as http://127.0.0.1:4613.",
		})
	}
	for name, d := range map[string]time.Duration{
		"LEASE_TTL": c.Cluster.LeaseTTL, "SWEEP_INTERVAL": c.Worker.SweepInterval, "PLATFORM_TIMEOUT": c.Sender.PlatformTimeout,
		"STOP_TIMEOUT": c.StopTimeout, "ACTOR_TIMEOUT": c.Actors.Timeout, "DRAIN_TIMEOUT": c.Worker.DrainTimeout,
		"MAX_LATENESS": c.Sender.MaxLateness, "RECONCILE_WINDOW": c.Sender.ReconcileWindow, "PREPARE_TIMEOUT": c.Sender.PrepareTimeout,
		"FOLLOWER_TIMEOUT": c.Sender.FollowerTimeout, "PRUNE_INTERVAL": c.PruneInterval,
	} {
		if d <= 0 {
			faults = append(faults, env.Fault{Name: name, Message: "must be a duration above zero, such as 10s."})
		}
	}
	for name, d := range map[string]time.Duration{
		"CATCH_UP_INTERVAL": c.Sender.CatchUpInterval, "SETTLE_DELAY": c.Sender.SettleDelay, "RETRY_WINDOW": c.Sender.RetryWindow,
		"DRAIN_DELAY": c.DrainDelay, "PAUSE_MAX_AGE": c.Publishing.PauseMaxAge,
	} {
		if d < 0 {
			faults = append(faults, env.Fault{Name: name, Message: "must be a duration, zero or more, such as 10s."})
		}
	}
	if c.Publishing.MaxStorage < 0 {
		faults = append(faults, env.Fault{
			Name: "ORG_MAX_STORAGE_BYTES", Message: "must be a number of bytes, or 0 for no limit.",
		})
	}
	if n := c.Publishing.MaxChannels; n <= 0 || n > publishing.MaxChannels {
		faults = append(faults, env.Fault{
			Name: "ORG_MAX_CHANNELS", Message: fmt.Sprintf("must be a number from 1 to %d.", publishing.MaxChannels),
		})
	}
	for name, n := range map[string]int64{
		"API_LIMIT": int64(c.Actors.Limit), "ORG_MAX_IN_FLIGHT": int64(c.Actors.MaxInFlight),
		"MAX_IN_FLIGHT": int64(c.Worker.MaxInFlight), "MAX_IMAGE_BYTES": c.Publishing.MaxImage, "MAX_VIDEO_BYTES": c.Publishing.MaxVideo,
	} {
		if n <= 0 {
			faults = append(faults, env.Fault{Name: name, Message: "must be a number above zero."})
		}
	}
	return errors.Join(faults...)
}

// warn logs the settings that are valid but probably a mistake.
func (c Config) warn(log *slog.Logger) {
	warnings := c.Edge.Warnings()
	if host, _, err := net.SplitHostPort(c.Telemetry.Listen); err == nil && !edge.Loopback(host) {
		warnings = append(warnings, "METRICS_LISTEN is not on loopback: "+
			"every machine that reaches it can read metrics, the queues of all organizations "+
			"and the memory of the process (/debug/pprof) without a password. Let only your monitoring reach it.")
	}
	for _, w := range warnings {
		log.Warn(w)
	}
}
