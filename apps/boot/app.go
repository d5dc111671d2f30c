package boot

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"crier/actors/cluster"
	"crier/actors/org"
	"crier/apps/edge"
	"crier/apps/worker"
	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/jobs"
	"crier/platform/lifecycle"
	"crier/platform/migrations"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/platform/redis"
	"crier/platform/telemetry"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/connector/all"
	"crier/publishing/pictures"
	"crier/publishing/sender"
	publishingservice "crier/publishing/service"
	tenancyservice "crier/tenancy/service"
)

// App is the whole service in one process. Start, Wait and Close are called once each, in this order. Its fields are
// set by Start, part by part.
type App struct {
	// Accounts are the use cases of people, sessions and API keys, set by Start.
	Accounts *tenancyservice.Accounts
	// Channels are the use cases of channels, set by Start.
	Channels *publishingservice.Channels

	cfg      Config
	log      *slog.Logger
	group    *lifecycle.Group
	registry *prometheus.Registry
	health   *telemetry.Health

	db           *pg.DB
	healthDB     *pg.DB        // one connection, for the health check only
	queueDB      *pg.DB        // one connection, for /monitor/queue only
	redis        *redis.Client // nil without REDIS_URL
	loginTimeout time.Duration // the constant loginTimeout, except in tests
	home         *cluster.Home
	blobs        *blob.Disk
	http         *outbound.Client
	sandbox      *outbound.Client // reaches the address of the sandbox only; nil without one
	pictures     *pictures.Maker
	revoked      *revocations // nil without REDIS_URL
	actors       *org.Client
	sender       *sender.Sender
	worker       *worker.Worker
	jobs         *jobs.Runner
	pruned       atomic.Int64 // rows that the jobs have deleted
	member       *cluster.Member
	edge         *edge.Server
	queues       atomic.Pointer[edge.Server] // edge, once it can serve /monitor/queue
	listener     net.Listener
	private      *telemetry.Listener // nil without METRICS_LISTEN
}

// New returns an App that does not run yet.
func New(cfg Config, log *slog.Logger) *App {
	return &App{
		cfg: cfg.withDerived(), log: log, group: lifecycle.New(log), registry: telemetry.NewRegistry(),
		health: telemetry.NewHealth(checkTimeout, log), loginTimeout: loginTimeout,
	}
}

// Start starts every part in order. On an error it stops the parts that were started, and returns.
func (a *App) Start(ctx context.Context) error {
	parts := []lifecycle.Part{
		{Name: "home", Start: a.openHome, Stop: func(context.Context) error { return a.home.Close() }},
		{Name: "metrics", Start: a.serveMetrics, Stop: a.stopMetrics},
		{Name: "postgres", Start: a.openPostgres, Stop: a.closePostgres},
		{Name: "redis", Start: a.openRedis, Stop: a.closeRedis},
		{Name: "files", Start: a.openFiles, Stop: func(context.Context) error { return a.blobs.Close() }},
		{Name: "services", Start: a.openServices, Stop: a.closeServices},
		{Name: "cluster", Start: a.joinCluster, Stop: func(ctx context.Context) error { return a.member.Leave(ctx) }},
	}
	if a.cfg.Cluster.Has(cluster.RoleWorker) {
		parts = append(parts,
			lifecycle.Part{
				Name: "pictures", Start: a.startPictures,
				Stop: func(ctx context.Context) error { return a.pictures.Stop(ctx) },
			},
			lifecycle.Part{
				Name: "worker", Start: a.startWorker, Timeout: a.cfg.Worker.DrainTimeout + 5*time.Second,
				Stop: func(ctx context.Context) error { return a.worker.Stop(ctx) },
			},
			lifecycle.Part{
				Name: "jobs", Start: a.startJobs, Stop: func(ctx context.Context) error { return a.jobs.Stop(ctx) },
			})
	}
	if a.cfg.Cluster.Has(cluster.RoleEdge) {
		parts = append(parts, lifecycle.Part{
			Name: "edge", Start: a.startEdge, Timeout: 10 * time.Second,
			Stop: func(ctx context.Context) error { return a.edge.Shutdown(ctx) },
		})
	}
	if err := a.group.Start(ctx, parts...); err != nil {
		return errors.Join(err, a.Close())
	}
	a.health.Start(ctx)
	a.health.SetReady(true)
	return nil
}

// Wait returns nil when ctx ends, and an error when a part has failed and the service must stop.
func (a *App) Wait(ctx context.Context) error { return a.group.Wait(ctx) }

// Close stops every part in the reverse order, within STOP_TIMEOUT: the edge and the worker first, which finish their
// requests and posts, then the services and connections that they use. A process that ends without Close loses nothing:
// others take over its shards when its lease has expired.
func (a *App) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.StopTimeout)
	defer cancel()
	if a.health.Ready() {
		a.drain(ctx)
	}
	a.health.Stop()
	return a.group.Stop(ctx)
}

// releaseTimeout limits the release of the shards. Without it other processes take them over when the lease has
// expired.
const releaseTimeout = 2 * time.Second

// drain releases the shards to other processes, makes the health check fail and keeps serving for DRAIN_DELAY, so that
// load balancers notice.
func (a *App) drain(ctx context.Context) {
	a.health.SetReady(false)
	a.edge.Drain()
	a.worker.Drain()
	release, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if err := a.member.Release(release); err != nil {
		a.log.Warn("the shards could not be released; other processes take them over when the lease has expired",
			"error", err)
	}
	_ = clock.Sleep(ctx, a.cfg.DrainDelay) // an error means that STOP_TIMEOUT is over
}

// Addr returns the address of the public listener. Only a process with the role edge has one, after Start.
func (a *App) Addr() string { return a.listener.Addr().String() }

// PrivateAddr returns the address of the listener for metrics, "" if there is none.
func (a *App) PrivateAddr() string {
	if a.private == nil {
		return ""
	}
	return a.private.Addr()
}

func (a *App) openHome(context.Context) (err error) {
	a.home, err = cluster.OpenHome(a.cfg.Home)
	return err
}

// nodeName returns the name of this process in timelines: the first characters of the id of its data folder. Tenants
// see it, so it is not the name of the machine.
func (a *App) nodeName() string { return a.home.ID.String()[:8] }

// openPostgres opens the pools of the database. It is Unavailable when the schema is older than this binary.
func (a *App) openPostgres(ctx context.Context) (err error) {
	a.db, err = pg.Open(context.WithoutCancel(ctx), a.cfg.Postgres)
	if err != nil {
		return err
	}
	if err := a.preparePostgres(ctx); err != nil {
		return errors.Join(err, a.closePostgres(ctx))
	}
	return nil
}

// preparePostgres checks the schema and the connection, and opens the pools of the health check and of the queues.
func (a *App) preparePostgres(ctx context.Context) error {
	have, want, err := migrations.Version(ctx, a.schema())
	if err != nil {
		return err
	}
	if have < want {
		return fault.New(fault.Unavailable, "boot.openPostgres",
			"The database is not up to date: run `crier migrate` first.")
	}
	if err := a.db.Ping(ctx); err != nil {
		return err
	}
	if err := a.checkPostgres(ctx); err != nil {
		return err
	}
	return a.openQueueDB(ctx)
}

func (a *App) closePostgres(context.Context) error {
	for _, db := range []*pg.DB{a.queueDB, a.healthDB, a.db} {
		if db != nil {
			db.Close()
		}
	}
	return nil
}

func (a *App) schema() migrations.Config {
	return migrations.Config{URL: a.cfg.Postgres.Direct(), RolePrefix: a.cfg.Postgres.RolePrefix}
}

func (a *App) openFiles(context.Context) (err error) {
	a.blobs, err = blob.NewDisk(cmp.Or(a.cfg.Files, filepath.Join(a.cfg.Home, "files")))
	if err != nil {
		return err
	}
	a.health.Add("files", a.blobs.Check)
	return nil
}

// openServices creates the services, the actors, the worker and the edge and connects them. Nothing of it runs yet.
func (a *App) openServices(ctx context.Context) error {
	if len(a.cfg.Outbound.Allow) > 0 {
		a.log.Info("outgoing requests may also reach", "addresses", a.cfg.Outbound.Allow)
	}
	var err error
	if a.http, err = outbound.New(a.cfg.Outbound, outbound.Deps{Log: a.log}); err != nil {
		return err
	}
	var toSandbox connector.HTTP
	if a.cfg.SandboxURL != "" {
		if a.sandbox, err = outbound.To(a.cfg.SandboxURL, outbound.Deps{Log: a.log}); err != nil {
			return err
		}
		toSandbox = httpAdapter{Client: a.sandbox}
	}
	if err := a.openAccounts(ctx); err != nil {
		return err
	}
	registry, err := connector.NewRegistry(all.New(a.cfg.SandboxURL, toSandbox)...)
	if err != nil {
		return err
	}
	for name := range a.cfg.Worker.Rates {
		if _, ok := registry.Get(name); !ok {
			return env.Fault{
				Name: "PLATFORM_RATES", Message: "names " + name + ", which is no platform of this instance.",
			}
		}
	}
	keyring, err := a.cfg.Secret.Keyring()
	if err != nil {
		return err
	}
	accountKey, err := a.cfg.Secret.Derive("account names")
	if err != nil {
		return err
	}
	dispatch := &dispatcher{}
	if a.actors, err = org.New(a.cfg.Actors, a.cfg.Cluster, clock.System{}, a.log, dispatch); err != nil {
		return err
	}
	deps := publishingservice.Deps{
		DB: a.db, Blobs: a.blobs, Keyring: keyring, Connectors: registry, HTTP: httpAdapter{Client: a.http},
		Clock: clock.System{}, Waker: a.actors, Log: a.log, Node: a.nodeName(),
	}
	a.pictures = pictures.New(pictures.Deps{
		DB: a.db, Blobs: a.blobs, Log: a.log, Shards: func() []int16 { return a.member.Lease().Shards },
	})
	deps.Pictures = a.pictures
	a.sender = sender.New(a.cfg.Sender, sender.Deps(deps))
	a.worker = worker.New(a.cfg.Worker, worker.Deps{
		Claimer: a.sender, Publisher: a.sender, Maintainer: a.sender, Actors: a.actors, Clock: clock.System{}, Log: a.log,
		Metrics: worker.NewMetrics(a.registry), Bucket: a.bucket(),
		Suspend: func(reason string) { a.member.Suspend(reason) }, Resume: func() { a.member.Resume() },
		Lease: func() publishing.Lease {
			if a.member == nil {
				return publishing.Lease{}
			}
			return a.member.Lease()
		},
	})
	dispatch.Worker = a.worker
	a.Channels = publishingservice.NewChannels(a.cfg.Publishing, deps)
	posts := publishingservice.NewPosts(a.cfg.Publishing, deps)
	monitorDeps := deps
	monitorDeps.DB = a.queueDB
	a.edge, err = edge.New(a.cfg.Edge, edge.Deps{
		Posts: posts, Queue: queue{Posts: posts, stats: publishingservice.NewPosts(a.cfg.Publishing, monitorDeps)},
		Channels: a.Channels, Media: publishingservice.NewMedia(a.cfg.Publishing, deps), Accounts: a.Accounts,
		Limiter: a.actors, Attempts: a.attempts(), AccountKey: accountKey, Health: a.health,
		SandboxURL: a.cfg.SandboxURL, Log: a.log, Metrics: a.registry, Clock: clock.System{}, Version: a.cfg.Version,
	})
	a.queues.Store(a.edge)
	return err
}

func (a *App) closeServices(ctx context.Context) error {
	if a.revoked != nil {
		a.revoked.close()
	}
	err := a.actors.Close(ctx)
	a.http.Close()
	if a.sandbox != nil {
		a.sandbox.Close()
	}
	return err
}

// joinCluster makes this process a member of the cluster. From then on it gets shards, renews its lease and has health
// checks.
func (a *App) joinCluster(ctx context.Context) (err error) {
	a.member, err = cluster.Join(ctx, a.cfg.Cluster, a.actors.Address(), cluster.Deps{
		DB: a.db, Home: a.home, Log: a.log, Changed: a.worker.SweepNow, Lost: a.actors.Evict,
	})
	if err != nil {
		return err
	}
	if a.actors.Address() != "" {
		a.actors.SetPlacement(a.member.Place)
	} else if a.member.LiveCount() > 1 {
		a.log.Warn("other processes use this database but cannot reach this one: " +
			"changes of posts are noticed seconds later. Set CLUSTER_LISTEN.")
	}
	if err := a.registerMetrics(); err != nil {
		return err
	}
	a.health.Add("cluster", a.checkCluster)
	a.health.AddDegraded("redis", a.checkRedis)
	return nil
}

func (a *App) startPictures(ctx context.Context) error {
	a.pictures.Start(ctx)
	return nil
}

func (a *App) startWorker(ctx context.Context) error {
	a.health.AddDegraded("scheduler", a.worker.Check) // only degraded: a suspended process still answers requests
	a.worker.Start(ctx)
	return nil
}

func (a *App) startEdge(ctx context.Context) error {
	ln, err := listen(ctx, a.cfg.Edge.Address(), "HOST", "PORT")
	if err != nil {
		return err
	}
	a.listener = ln
	go func() {
		if err := a.edge.Listen(ln); err != nil {
			a.group.Fail(err)
		}
	}()
	return nil
}

// dispatcher breaks a cycle: the actors need it when they are created, and the worker, which is set later, needs them.
type dispatcher struct{ *worker.Worker }

// httpAdapter adapts an outbound.Client to connector.HTTP.
type httpAdapter struct{ *outbound.Client }

func (w httpAdapter) Websocket(ctx context.Context, url string) (*websocket.Conn, error) {
	return w.DialWebsocket(ctx, url)
}
