package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"crier/platform/fault"
)

// Host runs the actors of this process. Alone it needs no socket; with one, it finds the actors of the other processes, too. The request path is the cluster's either way.
//
// Of the library's cluster only that path is used. Who is a member and who holds what is Member's, so neither gossip nor its block list is started:
// a process that was cut off for a while would stay blocked for ever.
type Host struct {
	system  *actor.ActorSystem
	cluster *cluster.Cluster
	lookup  *lookup
	remote  *remote.Remote
	kind    string
}

// Kind is what a host runs.
type Kind struct {
	Name    string
	Produce func() actor.Actor
	Moved   any                                 // told to every actor that has to go, a second before it goes: it is to answer nothing more
	Shard   func(identity string) (int16, bool) // the shard of an identity, false when it names nothing
}

// ErrClosed is the answer of a host that is going down.
var ErrClosed = errors.New("the actor host is closed")

const (
	lookupTime   = 100 * time.Millisecond // to ask another process for an actor
	messageLimit = 16 << 20               // a frame holds up to 1,000 messages, and a larger one would kill the connection
	queueSize    = 1024
)

// NewHost makes a host for one kind of actor. The first user message of every actor is *cluster.ClusterInit with its identity.
func NewHost(cfg Config, kind Kind, log *slog.Logger) (*Host, error) {
	log = slog.New(lower{log.Handler()})
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	host, port := "127.0.0.1", 0
	if cfg.Listen != "" {
		var err error
		if host, port, err = hostPort(cfg.Listen); err != nil {
			return nil, fault.Wrap(fault.Invalid, "cluster.NewHost", "CLUSTER_LISTEN must be host:port.", err)
		}
	}
	options, err := wire(cfg)
	if err != nil {
		return nil, err
	}
	rc := remote.Configure(host, port, options...)
	rc.MaxRetryCount = 1
	look := &lookup{system: system, kind: kind, pids: map[string]*actor.PID{}}
	c := cluster.New(system, cluster.Configure("crier", nil, look, rc, cluster.WithKinds(cluster.NewKind(kind.Name, actor.PropsFromProducer(kind.Produce))), cluster.WithRequestLog(false)))
	c.IdentityLookup = look
	look.built = cluster.NewKind(kind.Name, actor.PropsFromProducer(kind.Produce)).Build(c)
	look.terminating = system.EventStream.Subscribe(func(event any) {
		if gone, ok := event.(*cluster.ActivationTerminating); ok {
			look.RemovePid(gone.ClusterIdentity, gone.Pid)
		}
	})
	h := &Host{system: system, cluster: c, lookup: look, kind: kind.Name}
	if cfg.Listen == "" {
		return h, nil
	}
	return h, h.listen(rc)
}

func wire(cfg Config) ([]remote.ConfigOption, error) {
	options := []remote.ConfigOption{
		remote.WithEndpointWriterQueueSize(queueSize), remote.WithEndpointManagerQueueSize(queueSize),
		remote.WithCallOptions(grpc.MaxCallRecvMsgSize(messageLimit), grpc.MaxCallSendMsgSize(messageLimit)),
	}
	if cfg.Advertise != "" {
		options = append(options, remote.WithAdvertisedHost(cfg.Advertise))
	}
	server := []grpc.ServerOption{grpc.MaxRecvMsgSize(messageLimit)}
	mutual, err := cfg.tls()
	if err != nil {
		return nil, err
	}
	if mutual != nil {
		server = append(server, grpc.Creds(credentials.NewTLS(mutual)))
		options = append(options, remote.WithDialOptions(grpc.WithTransportCredentials(credentials.NewTLS(mutual))))
	}
	return append(options, remote.WithServerOptions(server...)), nil
}

// listen opens the socket and the door at which other processes ask for actors. The library panics where others return an error.
func (h *Host) listen(rc *remote.Config) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Wrap(fault.Unavailable, "cluster.NewHost", "Cannot listen on CLUSTER_LISTEN: is another process using this address?", fmt.Errorf("%v", r))
		}
	}()
	h.remote = remote.NewRemote(h.system, rc)
	h.remote.Start()
	_, err = h.system.Root.SpawnNamed(actor.PropsFromFunc(h.door), door(h.kind))
	return err
}

func door(kind string) string { return "door-" + kind }

// door answers another process: with the actor it asks for, or that it is not here.
func (h *Host) door(ctx actor.Context) {
	ask, ok := ctx.Message().(*wrapperspb.StringValue)
	if !ok {
		return
	}
	if pid := h.lookup.local(ask.GetValue()); pid != nil {
		ctx.Respond(pid)
		return
	}
	ctx.Respond(wrapperspb.Bool(false))
}

// Address is where other processes reach this one, "" when alone.
func (h *Host) Address() string {
	if h.remote == nil {
		return ""
	}
	return h.system.Address()
}

// Locate tells the host where identities live; without it, all of them are here. Call it before the first request.
func (h *Host) Locate(place func(shard int16) (address string, here bool)) {
	h.lookup.place.Store(&place)
}

// Request asks an actor, waking it if need be, and waits for its answer at most as long as timeout. It is tried once.
func (h *Host) Request(identity string, message any, timeout time.Duration) (any, error) {
	h.check(identity)
	return h.cluster.Request(identity, h.kind, message, cluster.WithTimeout(timeout), cluster.WithRetryCount(1))
}

// Send tells an actor something, waking it if need be. The message may be lost.
func (h *Host) Send(identity string, message any) {
	h.check(identity)
	pid, known := h.cluster.PidCache.Get(identity, h.kind)
	if !known {
		if pid = h.lookup.Get(cluster.NewClusterIdentity(identity, h.kind)); pid == nil {
			return
		}
	}
	h.system.Root.Send(pid, message)
}

// check forgets where an actor was, if it belongs elsewhere by now.
func (h *Host) check(identity string) {
	pid, known := h.cluster.PidCache.Get(identity, h.kind)
	if !known {
		return
	}
	address, here := h.lookup.where(identity)
	if here {
		address = h.system.Address()
	}
	if pid.Address != address {
		h.Forget(identity)
	}
}

// SendHere tells an actor of this process something, if it is awake.
func (h *Host) SendHere(identity string, message any) {
	if pid := h.lookup.awake(identity); pid != nil {
		h.system.Root.Send(pid, message)
	}
}

// Here tells whether an actor belongs to this process.
func (h *Host) Here(identity string) bool {
	_, here := h.lookup.where(identity)
	return here
}

// Forget makes the next message to an identity look its actor up anew.
func (h *Host) Forget(identity string) { h.cluster.PidCache.Remove(identity, h.kind) }

// leaving is how long an actor that has to go still answers that it is gone.
const leaving = time.Second

// Evict stops the actors that do not belong here any more. It does not wait for them.
func (h *Host) Evict() {
	for identity, pid := range h.lookup.strangers() {
		h.Forget(identity)
		h.system.Root.Send(pid, h.lookup.kind.Moved)
		time.AfterFunc(leaving, func() { h.system.Root.Poison(pid) })
	}
}

// Close stops every actor and the system. Messages under way are answered first.
func (h *Host) Close(ctx context.Context) error {
	var stopped []actor.Future
	for _, pid := range h.lookup.close() {
		stopped = append(stopped, h.system.Root.PoisonFuture(pid))
	}
	var errs []error
	for _, f := range stopped {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		errs = append(errs, f.Wait())
	}
	h.system.EventStream.Unsubscribe(h.lookup.terminating)
	if h.remote != nil {
		h.remote.Shutdown(false)
	}
	h.system.Shutdown()
	return errors.Join(errs...)
}

// Len is how many actors live here.
func (h *Host) Len() int { return h.lookup.len() }
