package boot

import (
	"context"

	"github.com/coder/websocket"

	"crier/actors/cluster"
	"crier/actors/org"
	"crier/apps/edge"
	"crier/apps/edge/docs"
	"crier/apps/worker"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/outbound"
	"crier/publishing/connector"
	"crier/publishing/connector/all"
	"crier/publishing/pictures"
	"crier/publishing/post"
	"crier/publishing/scheduler"
)

func (a *App) openHome(context.Context) (err error) {
	a.home, err = cluster.OpenHome(a.cfg.Home)
	return err
}

// openOutbound creates the client for addresses that tenants choose: webhooks, files and platform
// servers. If SANDBOX_URL is set, it also creates a client that can reach the sandbox on loopback.
// Servers that only the operator chooses, such as the bucket and the identity providers, have
// separate clients.
func (a *App) openOutbound(context.Context) (err error) {
	a.log.Info("requests of tenants may reach public addresses and the addresses in OUTBOUND_ALLOW",
		"addresses", a.cfg.Outbound.Allow)
	a.http, err = outbound.New(a.cfg.Outbound, outbound.Deps{Log: a.log})
	if err != nil || a.cfg.SandboxURL == "" {
		return err
	}
	a.sandbox, err = outbound.To(a.cfg.SandboxURL, outbound.Deps{Log: a.log})
	if err != nil {
		a.http.Close()
	}
	return err
}

func (a *App) closeOutbound(context.Context) error {
	a.http.Close()
	if a.sandbox != nil {
		a.sandbox.Close()
	}
	return nil
}

// openConnectors creates the connectors and the keyring for their credentials. It returns an
// env.Fault if PLATFORM_RATES names a platform that has no connector.
func (a *App) openConnectors(context.Context) (err error) {
	var toSandbox connector.HTTP
	if a.sandbox != nil {
		toSandbox = httpAdapter{Client: a.sandbox}
	}
	a.connectors, err = connector.NewRegistry(all.New(a.cfg.SandboxURL, toSandbox)...)
	if err != nil {
		return err
	}
	if err := a.checkFamilies(); err != nil {
		return err
	}
	for name := range a.cfg.Worker.Rates {
		if _, ok := a.connectors.Get(name); !ok {
			return env.Fault{
				Name: "PLATFORM_RATES", Message: "names " + name + ", which is not a platform of this instance",
			}
		}
	}
	a.keyring, err = a.cfg.Secret.Keyring()
	return err
}

// openActors creates this process's actor host. No shard has an owner until the process has joined
// the cluster, so no actor runs before then. The exception is a process that other processes cannot
// reach: it runs actors for all shards from the start.
func (a *App) openActors(context.Context) (err error) {
	a.actors, err = org.New(a.cfg.Actors, a.cfg.Cluster, org.Deps{
		Offers: a.offers, Place: a.owners.Place, Clock: clock.System{}, Log: a.log,
	})
	return err
}

// openSender creates the sender, which publishes posts, and the picture maker for posts. It starts
// neither of them.
func (a *App) openSender(context.Context) error {
	a.pictures = pictures.New(pictures.Deps{
		DB: a.publishingDB(), Blobs: a.blobs, Log: a.log, Shards: func() []int16 { return a.owners.Lease().Shards },
	})
	a.sender = scheduler.New(a.cfg.Sender, scheduler.Deps{
		DB: a.publishingDB(), Blobs: a.blobs, Keyring: a.keyring, Connectors: a.connectors, Access: a.access,
		HTTP:  httpAdapter{Client: a.http},
		Clock: clock.System{}, Waker: a.actors, Log: a.log, Pictures: a.pictures,
		Series: post.Series{DB: a.publishingDB(), Quota: a.plans},
	})
	return nil
}

// openWorker creates the worker, which takes work from offers. startWorker starts the worker.
func (a *App) openWorker(context.Context) error {
	a.worker = worker.New(a.cfg.Worker, worker.Deps{
		Claimer: a.sender, Publisher: a.sender, Maintainer: a.sender, Actors: a.actors, Offers: a.offers,
		Lease: a.owners.Lease, Suspend: a.owners.Suspend, Resume: a.owners.Resume, Bucket: storage{a}.bucket(),
		Clock: clock.System{}, Log: a.log, Metrics: worker.NewMetrics(a.registry),
	})
	return nil
}

// openEdge creates the edge. A process without the edge role needs it too, because serveQueue uses
// it. Public requests are not served until listenAndServe is called.
func (a *App) openEdge(context.Context) error {
	accountKey, err := a.cfg.Secret.Derive("account names")
	if err != nil {
		return err
	}
	if err := a.openPublishing(); err != nil {
		return err
	}
	deps := a.ports()
	deps.Accounts, deps.Plans, deps.Limiter, deps.Health = a.Accounts, a.plans, a.actors, a.health
	deps.Attempts, deps.Windows, deps.AccountKey = storage{a}.attempts(), storage{a}.windows(), accountKey
	deps.OAuth = a.OAuth.ports(a.Accounts, a.providers)
	deps.DevMail, deps.SandboxURL, deps.Limits = a.devMail(), a.cfg.SandboxURL, a.documentedLimits()
	deps.Log, deps.Metrics, deps.Clock, deps.Version = a.log, a.registry, clock.System{}, a.cfg.Version
	a.edge, err = edge.New(a.cfg.Edge, deps)
	if err != nil {
		return err
	}
	a.queues.Store(a.edge)
	return nil
}

// joinCluster makes this process a member of the cluster. From then on, the process is assigned
// shards and renews its lease.
func (a *App) joinCluster(ctx context.Context) (err error) {
	a.member, err = cluster.Join(ctx, a.cfg.Cluster, a.actors.Address(), cluster.Deps{
		DB: a.db, Home: a.home, Log: a.log, Owners: a.owners, Changed: a.worker.SweepNow, Lost: a.actors.Evict,
	})
	if err != nil {
		return err
	}
	if a.actors.Address() == "" && a.owners.LiveCount() > 1 {
		a.log.Warn("other processes use this database but cannot reach this one: " +
			"changes to posts take seconds to be noticed. Set CLUSTER_LISTEN.")
	}
	a.health.Add("cluster", storage{a}.checkCluster)
	a.health.AddDegraded("redis", storage{a}.checkRedis)
	return nil
}

func (a *App) startPictures(ctx context.Context) error {
	a.pictures.Start(ctx)
	return nil
}

func (a *App) startWorker(ctx context.Context) error {
	a.health.AddDegraded("scheduler", a.worker.Check) // only degraded: a suspended process still serves requests
	a.worker.Start(ctx)
	return nil
}

// listenAndServe returns once the port is open. If the edge fails later, Wait returns the edge's
// error.
func (a *App) listenAndServe(ctx context.Context) (err error) {
	a.listener, err = listen(ctx, a.cfg.Edge.Address(), "HOST", "PORT")
	if err != nil {
		return err
	}
	go func() {
		if err := a.edge.Listen(a.listener); err != nil {
			a.group.Fail(err)
		}
	}()
	return nil
}

// httpAdapter adapts an outbound.Client to connector.HTTP.
type httpAdapter struct{ *outbound.Client }

func (h httpAdapter) Websocket(ctx context.Context, url string) (*websocket.Conn, error) {
	return h.DialWebsocket(ctx, url)
}

// documentedLimits returns the limits stated in the API documentation.
func (a *App) documentedLimits() docs.InstanceLimits {
	return docs.InstanceLimits{
		Requests: a.cfg.Actors.Limit, Channels: a.cfg.Channels.MaxChannels,
		Webhooks: a.cfg.Webhooks.MaxWebhooks, Image: a.cfg.Media.MaxImage, Video: a.cfg.Media.MaxVideo,
		Storage: a.cfg.Media.MaxStorage, IdempotencyKeys: a.cfg.Retention.Keys, Deliveries: a.cfg.Retention.Deliveries,
	}
}
