// Package boot creates the service from its configuration, and starts and stops its parts in order.
// It also contains the binary's commands.
package boot

import (
	"log/slog"
	"net"
	"net/url"
	"time"

	"crier/actors/cluster"
	"crier/actors/org"
	"crier/apps/edge"
	"crier/apps/edge/dev"
	"crier/apps/edge/request"
	"crier/apps/worker"
	"crier/oidc/grant"
	"crier/platform/blob"
	"crier/platform/env"
	"crier/platform/mail"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/platform/redis"
	"crier/platform/secret"
	"crier/platform/telemetry"
	"crier/publishing/analytics"
	"crier/publishing/channel"
	"crier/publishing/media"
	"crier/publishing/post"
	"crier/publishing/purge"
	"crier/publishing/scheduler"
	"crier/publishing/webhook"
	"crier/tenancy/instance"
	"crier/tenancy/signin"
)

// Config holds the values of all the service's environment variables. Most of them belong to other
// packages. env.Load fills Config and calls the Validate methods.
type Config struct {
	Home string `env:"CRIER_HOME, default=.crier" doc:"Folder for uploads, locks and, in dev, the database."`
	// FilesDir defaults to the folder "files" in Home. Multiple processes need a shared folder or a
	// bucket.
	FilesDir string `env:"FILES_DIR" doc:"Folder for uploads, shared by all processes; defaults to CRIER_HOME/files."`
	// SandboxURL is an http URL on loopback with a port. The sandbox platform is offered only if
	// SandboxURL is set. Example: http://127.0.0.1:4613
	SandboxURL string `env:"SANDBOX_URL" doc:"URL of a running sandbox (crier sandbox) on loopback."`
	// PlansFile is read at startup; see billing.Parse. If it is empty, there are no plan limits.
	PlansFile string `env:"PLANS_FILE" doc:"JSON file with plans and their limits. Without it, organizations have no plan limits."`
	// DrainDelay counts toward StopTimeout.
	DrainDelay time.Duration `env:"DRAIN_DELAY, default=3s" doc:"How long a stopping process continues to serve requests."`
	// StopTimeout limits how long Close may take.
	StopTimeout   time.Duration `env:"STOP_TIMEOUT, default=40s" doc:"Time limit for a clean shutdown."`
	PruneInterval time.Duration `env:"PRUNE_INTERVAL, default=1h" doc:"How often expired rows are deleted."`

	Postgres  pg.Config
	Files     blob.Config
	Redis     redis.Config
	Edge      edge.Config
	Actors    org.Config
	Cluster   cluster.Config
	Worker    worker.Config
	Posts     post.Config
	Channels  channel.Config
	Media     media.Config
	Webhooks  webhook.Config
	Analytics analytics.Config
	Sender    scheduler.Config
	Retention purge.Retention
	Apps      Apps
	Outbound  outbound.Config
	Secret    secret.Config
	Telemetry telemetry.Config
	Accounts  AccountsConfig
	OAuth     grant.Config
	Sessions  instance.Retention
	SignIn    signin.Config
	Mail      mail.Config

	// Version is the binary's version, which GET /health returns. It is set by the commands, not by
	// an environment variable.
	Version string
}

// Validate returns all faults in this package's variables as one joined error. errors.As can
// extract an env.Fault from it.
func (c Config) Validate() error {
	var faults env.Faults
	if c.SandboxURL != "" && !dev.IsSandbox(c.SandboxURL) {
		faults.Add("SANDBOX_URL", "must be http with a loopback address and a port, such as http://127.0.0.1:4613")
	}
	faults.Duration("DRAIN_DELAY", c.DrainDelay, 0, 10*time.Minute)
	faults.Duration("STOP_TIMEOUT", c.StopTimeout, 100*time.Millisecond, time.Hour)
	faults.Duration("PRUNE_INTERVAL", c.PruneInterval, time.Second, 7*24*time.Hour)
	return faults.Err()
}

// withDerived returns the configuration with its derived settings filled in. A derived setting is
// copied or computed from another package's settings.
func (c Config) withDerived() Config {
	c.Posts.BaseURL, c.Channels.BaseURL, c.Media.BaseURL, c.Sender.BaseURL = c.Edge.Base(), c.Edge.Base(), c.Edge.Base(), c.Edge.Base()
	c.Channels.PlatformTimeout, c.Media.UploadTimeout = c.Sender.PlatformTimeout, c.Edge.UploadTimeout
	c.Analytics.SnapshotRate = analytics.SnapshotRate
	c.Accounts.BaseURL, c.Accounts.FrontendURL = c.Edge.Base(), c.Edge.Frontend()
	c.OAuth.BaseURL = c.Edge.Base()
	c.Worker.MaxReconcileRest = c.Sender.ReconcileWindow / 8 // so that a platform is queried several times
	return c
}

// warn logs a warning for each setting that is valid but probably a mistake.
func (c Config) warn(log *slog.Logger) {
	warnings := c.Edge.Warnings()
	host, _, err := net.SplitHostPort(c.Telemetry.Listen)
	private := err != nil || request.IsLoopback(host) // Validate has checked the address; it may be empty
	if !private {
		warnings = append(warnings, "METRICS_LISTEN is not on loopback: "+
			"every machine that reaches it can read metrics, the queues of all organizations "+
			"and the memory of the process (/debug/pprof) without a password. Let only your monitoring reach it.")
	}
	if u, err := url.Parse(c.Edge.Base()); c.SandboxURL != "" && err == nil && !request.IsLoopback(u.Hostname()) {
		warnings = append(warnings, "SANDBOX_URL is set and BASE_URL is not on loopback: everyone can read the posts "+
			"of all sandbox channels at /sandbox/. Unset SANDBOX_URL before others use the service.")
	}
	for _, w := range warnings {
		log.Warn(w)
	}
}
