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

// App is the whole service in one process.
type App struct {
	cfg      Config
	log      *slog.Logger
	group    *lifecycle.Group
	registry *prometheus.Registry
	health   *telemetry.Health

	db        *pg.DB
	probe     *pg.DB        // one connection, for the health check alone
	figures   *pg.DB        // one connection, for /monitor/queue alone
	redis     *redis.Client // nil without REDIS_URL
	loginWait time.Duration // the constant, but for tests
	home      *cluster.Home
	blobs     *blob.Disk
	http      *outbound.Client
	sandbox   *outbound.Client // reaches the sandbox and nothing else; nil without one
	Accounts  *tenancyservice.Accounts
	Channels  *publishingservice.Channels
	pictures  *pictures.Maker
	revoked   *revocations // nil without REDIS_URL
	actors    *org.Client
	sender    *sender.Sender
	worker    *worker.Worker
	jobs      *jobs.Runner
	pruned    atomic.Int64 // rows that the jobs have deleted
	member    *cluster.Member
	edge      *edge.Server
	queues    atomic.Pointer[edge.Server] // the same, once it can be asked for the queues
	listener  net.Listener
	private   *telemetry.Listener
}

// New makes an App; nothing runs yet.
func New(cfg Config, log *slog.Logger) *App {
	return &App{
		cfg: cfg, log: log, group: lifecycle.New(log), registry: telemetry.NewRegistry(),
		health: telemetry.NewHealth(checkTime, log), loginWait: loginWait,
	}
}

// Start brings every part up, in order; on an error, what was up is down again.
func (a *App) Start(ctx context.Context) error {
	parts := []lifecycle.Part{
		{Name: "home", Start: a.openHome, Stop: func(context.Context) error { return a.home.Close() }},
		{Name: "metrics", Start: a.serveMetrics, Stop: a.stopMetrics},
		{Name: "postgres", Start: a.openPostgres, Stop: a.closePostgres},
		{Name: "redis", Start: a.openRedis, Stop: a.closeRedis},
		{Name: "files", Start: a.openFiles, Stop: func(context.Context) error { return a.blobs.Close() }},
		{Name: "services", Start: a.openServices, Stop: a.closeServices},
		{Name: "cluster", Start: a.join, Stop: func(ctx context.Context) error { return a.member.Leave(ctx) }},
	}
	if a.cfg.Cluster.Has(cluster.RoleWorker) {
		parts = append(parts,
			lifecycle.Part{Name: "pictures", Start: func(ctx context.Context) error { a.pictures.Start(ctx); return nil }, Stop: func(ctx context.Context) error { return a.pictures.Stop(ctx) }},
			lifecycle.Part{Name: "worker", Start: a.work, Stop: func(ctx context.Context) error { return a.worker.Stop(ctx) }, Timeout: a.cfg.Worker.Drain + 5*time.Second},
			lifecycle.Part{Name: "jobs", Start: a.startJobs, Stop: func(ctx context.Context) error { return a.jobs.Stop(ctx) }})
	}
	if a.cfg.Cluster.Has(cluster.RoleEdge) {
		parts = append(parts, lifecycle.Part{Name: "edge", Start: a.serve, Stop: func(ctx context.Context) error { return a.edge.Shutdown(ctx) }, Timeout: 10 * time.Second})
	}
	if err := a.group.Start(ctx, parts...); err != nil {
		return errors.Join(err, a.Close())
	}
	a.health.Start(ctx)
	a.health.SetReady(true)
	return nil
}

// Wait returns when ctx ends, or with what made the service unable to go on.
func (a *App) Wait(ctx context.Context) error { return a.group.Wait(ctx) }

// Close stops everything in the reverse order: no new posts and no new requests first, then posts under way, then what they stand on.
func (a *App) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.StopWithin)
	defer cancel()
	if a.health.Ready() {
		a.quit(ctx)
	}
	a.health.Stop()
	return a.group.Stop(ctx)
}

// releaseTime is what giving the organizations to the others may take: the others find out by themselves, only later.
const releaseTime = 2 * time.Second

// quit lets others take over: they get the organizations at once, and what goes between clients and processes has time to see that this one is going.
func (a *App) quit(ctx context.Context) {
	a.health.SetReady(false)
	a.edge.Drain()
	a.worker.Quiesce()
	release, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	if err := a.member.Release(release); err != nil {
		a.log.Warn("the organizations could not be given away; others take them when the lease is over", "error", err)
	}
	_ = clock.Sleep(ctx, a.cfg.DrainDelay) // it ends with ctx too
}

// Addr is where the service listens.
func (a *App) Addr() string { return a.listener.Addr().String() }

// PrivateAddr is where metrics are served, "" when nowhere.
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

// nodeName names this process in timelines, which tenants read: the begin of its data folder's id, and not the name of the machine.
func (a *App) nodeName() string { return a.home.ID.String()[:8] }

func (a *App) openPostgres(ctx context.Context) (err error) {
	if a.db, err = pg.Open(context.WithoutCancel(ctx), a.cfg.Postgres); err != nil {
		return err
	}
	have, want, err := migrations.Version(ctx, a.schema())
	if err == nil && have < want {
		err = fault.New(fault.Unavailable, "boot.openPostgres", "The database is not up to date: run `crier migrate` first.")
	}
	if err == nil {
		err = a.db.Ping(ctx)
	}
	if err == nil {
		err = a.checkPostgres(ctx)
	}
	if err == nil {
		err = a.openFigures(ctx)
	}
	if err != nil {
		err = errors.Join(err, a.closePostgres(ctx))
	}
	return err
}

func (a *App) closePostgres(context.Context) error {
	for _, db := range []*pg.DB{a.figures, a.probe, a.db} {
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
	if err == nil {
		a.health.Add("files", a.blobs.Check)
	}
	return err
}

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
		toSandbox = way{a.sandbox}
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
			return env.Fault{Name: "PLATFORM_RATES", Message: "names " + name + ", which is no platform of this instance."}
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
	a.cfg.Publishing.BaseURL, a.cfg.Sender.BaseURL = a.cfg.Edge.Base(), a.cfg.Edge.Base()
	a.cfg.Publishing.RequestDeadline = a.cfg.Sender.RequestDeadline
	a.cfg.Worker.LookRest = a.cfg.Sender.UnknownFor / 8 // so that it is asked several times before the time for asking is over
	dispatch := &dispatcher{}
	if a.actors, err = org.New(a.cfg.Actors, a.cfg.Cluster, clock.System{}, a.log, dispatch); err != nil {
		return err
	}
	deps := publishingservice.Deps{DB: a.db, Blobs: a.blobs, Keyring: keyring, Connectors: registry, HTTP: way{a.http}, Clock: clock.System{}, Waker: a.actors, Log: a.log, Node: a.nodeName()}
	a.pictures = pictures.New(pictures.Deps{DB: a.db, Blobs: a.blobs, Log: a.log, Shards: func() []int16 { return a.member.Lease().Shards }})
	deps.Pictures = a.pictures
	a.sender = sender.New(a.cfg.Sender, sender.Deps(deps))
	a.worker = worker.New(a.cfg.Worker, worker.Deps{
		Claimer: a.sender, Publisher: a.sender, Keeper: a.sender, Actors: a.actors, Clock: clock.System{}, Log: a.log,
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
	ofMonitors := deps
	ofMonitors.DB = a.figures
	a.edge, err = edge.New(a.cfg.Edge, edge.Deps{
		Posts: posts, Queue: queue{posts, publishingservice.NewPosts(a.cfg.Publishing, ofMonitors)}, Channels: a.Channels, Media: publishingservice.NewMedia(a.cfg.Publishing, deps), Accounts: a.Accounts,
		Limiter: a.actors, Attempts: a.attempts(), AccountKey: accountKey, Health: a.health, SandboxURL: a.cfg.SandboxURL, Log: a.log, Metrics: a.registry, Clock: clock.System{}, Version: a.cfg.Version,
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

func (a *App) join(ctx context.Context) (err error) {
	a.member, err = cluster.Join(ctx, a.cfg.Cluster, a.actors.Address(), cluster.Deps{
		DB: a.db, Home: a.home, Log: a.log, Changed: a.worker.SweepNow, Lost: a.actors.Evict,
	})
	if err != nil {
		return err
	}
	if a.actors.Address() != "" {
		a.actors.SetPlacement(a.member.Place)
	} else if a.member.LiveCount() > 1 {
		a.log.Warn("other processes use this database, but this one cannot be reached by them: what one is told about posts the others find out seconds later. Set CLUSTER_LISTEN.")
	}
	if err := a.observe(); err != nil {
		return err
	}
	a.health.Add("cluster", a.checkCluster)
	a.health.AddDegraded("redis", a.checkRedis)
	return nil
}

func (a *App) work(ctx context.Context) error {
	a.health.AddDegraded("scheduler", a.worker.Check) // it has left its organizations to others, and still answers requests
	a.worker.Start(ctx)
	return nil
}

func (a *App) serve(ctx context.Context) error {
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

// dispatcher is the worker, known to the actors before it exists.
type dispatcher struct{ *worker.Worker }

// way is platform/outbound as connectors know it.
type way struct{ *outbound.Client }

func (w way) Websocket(ctx context.Context, url string) (*websocket.Conn, error) {
	return w.DialWebsocket(ctx, url)
}
