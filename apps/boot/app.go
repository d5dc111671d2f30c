package boot

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/actors/cluster"
	"crier/actors/fairqueue"
	"crier/actors/org"
	"crier/apps/edge"
	"crier/apps/worker"
	billingservice "crier/billing/service"
	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/jobs"
	"crier/platform/lifecycle"
	"crier/platform/mail"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/platform/redis"
	"crier/platform/secret"
	"crier/platform/telemetry"
	"crier/publishing/access"
	"crier/publishing/connector"
	"crier/publishing/notification"
	"crier/publishing/pictures"
	"crier/publishing/scheduler"
	"crier/publishing/webhook"
	tenancymail "crier/tenancy/mail"
	"crier/tenancy/signin"
)

// App is the whole service in one process. Call Start, Wait and Close once each, in that order.
// Start sets the fields as it starts the parts.
type App struct {
	// Accounts manages people, sessions and API keys.
	Accounts *Accounts
	// OAuth lets people give agents access.
	OAuth *OAuth
	useCases
	// mailer sends emails. It is nil on an instance that sends no email.
	mailer tenancymail.Mailer
	// box receives the emails that `dev` sends. It is nil in other processes.
	box *mail.Box

	cfg      Config
	log      *slog.Logger
	group    *lifecycle.Group
	registry *prometheus.Registry
	health   *telemetry.Health
	// loginTimeout is set to the package constant of the same name. Tests can change it.
	loginTimeout time.Duration

	home     *cluster.Home
	private  *telemetry.Listener // nil without METRICS_LISTEN
	db       *pg.DB
	healthDB *pg.DB        // one connection, for the health check only
	queueDB  *pg.DB        // one connection, for /monitor/queue only
	redis    *redis.Client // nil without REDIS_URL
	blobs    blob.Store
	toFiles  *outbound.Client // nil without FILES=s3

	// endListening stops the goroutines that receive key revocations and check the identity
	// providers, and waits for them to end.
	endListening func()

	http       *outbound.Client
	providers  *signin.Providers     // identity providers
	sandbox    *outbound.Client      // reaches only the sandbox; nil without SANDBOX_URL
	plans      *billingservice.Plans // nil in commands other than `serve`
	keyring    *secret.Keyring
	connectors *connector.Registry
	access     *access.Refresher

	// The actors add due work to offers, and the worker takes work from offers. Both read this
	// process's shards from owners, which member keeps up to date.
	owners   *cluster.Owners
	offers   *fairqueue.Offers
	actors   *org.Client
	pictures *pictures.Maker
	sender   *scheduler.Sender
	webhooks *webhook.Deliverer
	notifier *notification.Notifier
	worker   *worker.Worker
	edge     *edge.Server
	queues   atomic.Pointer[edge.Server] // edge, once it can serve /monitor/queue
	member   *cluster.Member
	jobs     *jobs.Runner
	pruned   atomic.Int64 // rows that the jobs deleted
	listener net.Listener
}

// New returns an App. It does not open or start anything, so an App that is never started does not
// need to be closed.
func New(cfg Config, log *slog.Logger) *App {
	return &App{
		cfg: cfg.withDerived(), log: log, group: lifecycle.New(log), registry: telemetry.NewRegistry(),
		health: telemetry.NewHealth(checkTimeout, log), loginTimeout: loginTimeout,
		owners: cluster.NewOwners(log), offers: fairqueue.NewOffers(),
	}
}

// Start starts all parts in order, and then makes the health check report that the process is
// ready. If a part fails to start, Start stops the parts that have already been started. It then
// returns the part's error, joined with any errors from Close.
func (a *App) Start(ctx context.Context) error {
	if err := a.group.Start(ctx, a.parts()...); err != nil {
		return errors.Join(err, a.Close())
	}
	a.health.Start(ctx)
	a.health.SetReady(true)
	return nil
}

// parts returns the parts in dependency order: a part's Start uses only the parts that come before
// it.
func (a *App) parts() []lifecycle.Part {
	parts := []lifecycle.Part{
		{Name: "plans", Start: a.openPlans},
		{Name: "home", Start: a.openHome, Stop: func(context.Context) error { return a.home.Close() }},
		{Name: "metrics", Start: figures{a}.serveMetrics, Stop: figures{a}.stopMetrics},
		{Name: "postgres", Start: storage{a}.openPostgres, Stop: closing(&a.db)},
		{Name: "schema", Start: a.patient(storage{a}.checkSchema)},
		{Name: "postgres for health", Start: storage{a}.openHealthDB, Stop: closing(&a.healthDB)},
		{Name: "postgres for queues", Start: storage{a}.openQueueDB, Stop: closing(&a.queueDB)},
		{Name: "redis", Start: storage{a}.openRedis, Stop: storage{a}.closeRedis},
		{Name: "files", Start: storage{a}.openFiles, Stop: storage{a}.closeFiles},
		{Name: "outbound", Start: a.openOutbound, Stop: a.closeOutbound},
		{Name: "connectors", Start: a.openConnectors},
		{Name: "access", Start: a.openAccess},
		{Name: "accounts", Start: a.openAccounts, Stop: a.closeAccounts},
		{Name: "actors", Start: a.openActors, Stop: func(ctx context.Context) error { return a.actors.Close(ctx) }},
		{Name: "sender", Start: a.openSender},
		{Name: "webhooks", Start: a.openWebhooks},
		{Name: "notifications", Start: a.openNotifier},
		{Name: "worker", Start: a.openWorker},
		{Name: "edge", Start: a.openEdge},
		{Name: "cluster", Start: a.patient(a.joinCluster), Stop: func(ctx context.Context) error { return a.member.Leave(ctx) }},
		{Name: "service metrics", Start: figures{a}.registerMetrics},
	}
	if a.cfg.Cluster.Has(cluster.RoleWorker) {
		parts = append(parts, a.workerParts()...)
	}
	if a.cfg.Cluster.Has(cluster.RoleEdge) {
		parts = append(parts, lifecycle.Part{
			Name: "listener", Start: a.listenAndServe, Timeout: 10 * time.Second,
			Stop: func(ctx context.Context) error { return a.edge.Shutdown(ctx) },
		})
	}
	return parts
}

func (a *App) workerParts() []lifecycle.Part {
	return []lifecycle.Part{
		{
			Name: "picture loop", Start: a.startPictures,
			Stop: func(ctx context.Context) error { return a.pictures.Stop(ctx) },
		},
		{
			Name: "worker loops", Start: a.startWorker, Timeout: a.cfg.Worker.DrainTimeout + 5*time.Second,
			Stop: func(ctx context.Context) error { return a.worker.Stop(ctx) },
		},
		{Name: "jobs", Start: a.patient(background{a}.startJobs), Stop: func(ctx context.Context) error { return a.jobs.Stop(ctx) }},
		{
			Name: "webhook loop", Start: a.startWebhooks,
			Stop: func(ctx context.Context) error { return a.webhooks.Stop(ctx) },
		},
		{
			Name: "notification loop", Start: a.startNotifier,
			Stop: func(ctx context.Context) error { return a.notifier.Stop(ctx) },
		},
	}
}

// Wait waits until ctx ends and then returns nil. If a part fails in a way that requires the
// service to stop, Wait returns an error.
func (a *App) Wait(ctx context.Context) error { return a.group.Wait(ctx) }

// Close stops all parts in reverse order, within STOP_TIMEOUT. First it stops the edge and the
// worker, which finish their requests and posts. Then it stops the services and connections that
// the edge and the worker use. If a part cannot be stopped, Close still stops the others. It
// returns the joined errors from all parts.
//
// A process that ends without Close loses nothing: other processes take over its shards once its
// lease has expired.
func (a *App) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.StopTimeout)
	defer cancel()
	if a.health.Ready() {
		a.drain(ctx)
	}
	a.health.Stop()
	return a.group.Stop(ctx)
}

// releaseTimeout limits how long releasing the shards may take. If the shards cannot be released,
// other processes take them over once the lease has expired.
const releaseTimeout = 2 * time.Second

// drain makes the health check fail and releases the shards to other processes. It then keeps
// serving for DRAIN_DELAY, so that load balancers have time to react.
func (a *App) drain(ctx context.Context) {
	a.health.SetReady(false)
	a.edge.Drain()
	a.worker.Drain()
	release, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if err := a.member.Release(release); err != nil {
		a.log.Warn("the shards could not be released; other processes take them over when the lease expires",
			"error", err)
	}
	_ = clock.Sleep(ctx, a.cfg.DrainDelay) // an error means that STOP_TIMEOUT has passed
}

// Addr returns the public listener's address. It returns "" before Start and in a process without
// the edge role.
func (a *App) Addr() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.Addr().String()
}

// PrivateAddr returns the metrics listener's address, or "" if there is none.
func (a *App) PrivateAddr() string {
	if a.private == nil {
		return ""
	}
	return a.private.Addr()
}

// nodeName returns the name that identifies this process in timelines: the first eight characters
// of its data folder's id. Tenants can see timelines, so the machine's name is not used. Example:
// 3f0c9a1e
func (a *App) nodeName() string { return a.home.ID.String()[:8] }
