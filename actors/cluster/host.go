package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"crier/platform/clock"
	"crier/platform/fault"
)

// Host runs the actors of this process, and sends messages to the actors of other processes if Config.Listen is set.
// Its methods are safe for concurrent use.
//
// Only the process that owns an identity's shard knows whether its actor runs. Another process therefore never
// addresses the actor itself: it sends the message to the owner's router, an actor with a fixed name, which starts the
// actor if necessary and passes the message on. So an actor that stopped, moved or was restarted is never mistaken for
// a process that does not answer.
//
// Host uses protoactor's actors and transport only. Membership and ownership are Member's, so the library's cluster,
// gossip and block list are not started: its block list would exclude a process that was cut off for a while for ever.
type Host struct {
	system *actor.ActorSystem
	lookup *lookup
	remote *remote.Remote
	kind   Kind
	moved  atomic.Int64
}

// Kind describes the actors that a host runs. Its functions are called concurrently, also under a lock of the Host, so
// they must not call the Host.
type Kind struct {
	// Name is part of the router's name. It must be the same in all processes.
	Name string
	// Produce returns a new actor of an identity.
	Produce func(identity string) actor.Actor
	// Leave is sent to an actor whose shard moved to another process. From then on the actor must answer requests with
	// Moved and pass other messages on through Send; it is stopped a second later.
	Leave any
	// Moved is the answer to a request that came to the wrong process or to an actor that has left. Its GetMoved()
	// returns true, and that of every other answer returns false.
	Moved any
	// Shard returns the shard of an identity, and false when the identity is not valid.
	Shard func(identity string) (int16, bool)
	// Place returns the owner of a shard; see Owners.Place. When it is nil, and without Config.Listen, this process owns
	// every shard.
	Place func(shard int16) (address string, here bool)
}

var (
	// ErrSilent is returned when the actor, or its process, did not answer in time.
	ErrSilent = errors.New("no answer in time")
	// ErrNowhere is returned when no process could be found that runs the actor.
	ErrNowhere = errors.New("no process runs the actor now")
	// errDead is for a request to an actor that has stopped.
	errDead = errors.New("the actor has stopped")
)

func isMoved(answer any) bool {
	v, ok := answer.(interface{ GetMoved() bool })
	return ok && v.GetMoved()
}

const (
	messageLimit = 16 << 20 // a frame holds up to 1,000 messages, and a larger one would break the connection
	queueSize    = 1024
	pingAfter    = 10 * time.Second // idle time after which a connection is probed
	pingLimit    = 5 * time.Second  // time to answer the probe, or the connection is closed
)

// NewHost returns a host for one kind of actor, and opens the socket at cfg.Listen if that is set. The error is
// fault.Invalid for an address that cannot be parsed, fault.Unavailable for one that cannot be listened on, and an
// env.Fault for certificates that cannot be read.
func NewHost(cfg Config, kind Kind, log *slog.Logger) (*Host, error) {
	log = slog.New(levelShiftHandler{Handler: log.Handler()})
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	host, port := "127.0.0.1", 0
	if cfg.Listen != "" {
		var err error
		host, port, err = hostPort(cfg.Listen)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, "cluster.NewHost", "CLUSTER_LISTEN must be host:port.", err)
		}
	}
	options, err := remoteOptions(cfg)
	if err != nil {
		return nil, err
	}
	rc := remote.Configure(host, port, options...)
	rc.MaxRetryCount = 1
	if cfg.Listen == "" {
		kind.Place = nil
	}
	h := &Host{system: system, lookup: &lookup{system: system, kind: kind, pids: map[string]*actor.PID{}}, kind: kind}
	if cfg.Listen == "" {
		return h, nil
	}
	return h, h.listen(rc)
}

// remoteOptions returns an env.Fault when the certificates cannot be read.
func remoteOptions(cfg Config) ([]remote.ConfigOption, error) {
	options := []remote.ConfigOption{
		remote.WithEndpointWriterQueueSize(queueSize), remote.WithEndpointManagerQueueSize(queueSize),
		remote.WithCallOptions(grpc.MaxCallRecvMsgSize(messageLimit), grpc.MaxCallSendMsgSize(messageLimit)),
	}
	dial := []grpc.DialOption{grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingLimit})}
	if cfg.Advertise != "" {
		options = append(options, remote.WithAdvertisedHost(cfg.Advertise))
	}
	server := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(messageLimit),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingLimit}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2}),
	}
	mutual, err := cfg.tls()
	if err != nil {
		return nil, err
	}
	if mutual != nil {
		server = append(server, grpc.Creds(credentials.NewTLS(mutual)))
		dial = append(dial, grpc.WithTransportCredentials(credentials.NewTLS(mutual)))
	} else {
		dial = append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	return append(options, remote.WithServerOptions(server...), remote.WithDialOptions(dial...)), nil
}

// listen opens the socket and starts the router. It recovers because the library panics when it cannot listen.
func (h *Host) listen(rc *remote.Config) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Wrap(fault.Unavailable, "cluster.NewHost",
				"Cannot listen on CLUSTER_LISTEN: is another process using this address?", fmt.Errorf("%v", r))
		}
	}()
	h.remote = remote.NewRemote(h.system, rc)
	h.remote.Start()
	_, err = h.system.Root.SpawnNamed(actor.PropsFromFunc(h.route), routerName(h.kind.Name))
	return err
}

func routerName(kind string) string { return "router-" + kind }

// identityHeader is the header of a message to a router that names the identity that the message is for.
const identityHeader = "identity"

// route is the router's Receive: it passes messages of other processes on to the actors of this one. It never blocks.
func (h *Host) route(ctx actor.Context) {
	if ctx.MessageHeader() == nil {
		return
	}
	identity := ctx.MessageHeader().Get(identityHeader)
	if identity == "" {
		return // a message of the actor system itself
	}
	pid := h.lookup.activate(identity)
	switch {
	case pid != nil:
		h.system.Root.Send(pid, &actor.MessageEnvelope{Message: ctx.Message(), Sender: ctx.Sender()})
	case ctx.Sender() != nil:
		ctx.Respond(h.kind.Moved)
	}
}

// Address returns where other processes reach this one, or "" without Config.Listen.
func (h *Host) Address() string {
	if h.remote == nil {
		return ""
	}
	return h.system.Address()
}

// Request sends a message to the actor of an identity, starts the actor if necessary, and waits for the answer at most
// for budget. When the actor has moved or stopped, or its connection was lost, Request tries once more. The error is
// ErrSilent or ErrNowhere; after ErrSilent the message may have arrived.
func (h *Host) Request(identity string, message any, budget time.Duration) (any, error) {
	end := clock.System{}.Now().Add(budget)
	for tries := 1; ; tries++ {
		answer, err := h.requestOnce(identity, message, end.Sub(clock.System{}.Now()))
		switch {
		case errors.Is(err, ErrSilent):
			return nil, ErrSilent
		case err != nil: // without an actor, or with one that has stopped
		case isMoved(answer):
			h.moved.Add(1)
		default:
			return answer, nil
		}
		if tries == 2 || errors.Is(err, ErrNowhere) {
			return nil, ErrNowhere
		}
	}
}

func (h *Host) requestOnce(identity string, message any, budget time.Duration) (any, error) {
	pid, header := h.find(identity)
	if pid == nil {
		return nil, ErrNowhere
	}
	registry, reply := h.system.ProcessRegistry, newReply()
	sender, _ := registry.Add(reply, "reply"+registry.NextID()) // NextID returns no name twice
	defer registry.Remove(sender)
	timeout := time.NewTimer(max(0, budget))
	defer timeout.Stop()
	h.system.Root.Send(pid, &actor.MessageEnvelope{Header: header, Message: message, Sender: sender})
	select {
	case answer := <-reply.answers:
		if _, dead := answer.(*actor.DeadLetterResponse); !dead {
			return answer, nil
		}
		if header == nil {
			h.lookup.remove(identity, pid)
		}
		return nil, errDead
	case <-timeout.C:
		return nil, ErrSilent
	}
}

// Send sends a message to the actor of an identity without waiting for an answer, and starts the actor if necessary.
// The message may be lost when a process or a connection ends.
func (h *Host) Send(identity string, message any) {
	pid, header := h.find(identity)
	if pid != nil {
		h.system.Root.Send(pid, &actor.MessageEnvelope{Header: header, Message: message})
	}
}

// find returns the receiver of messages for an identity: its actor, or the router of another process and the header
// that the router needs. It returns nil when no process owns the identity, or this one is closed.
func (h *Host) find(identity string) (*actor.PID, map[string]string) {
	address, here := h.lookup.where(identity)
	switch {
	case here:
		return h.lookup.activate(identity), nil
	case address == "":
		return nil, nil
	}
	return actor.NewPID(address, routerName(h.kind.Name)), map[string]string{identityHeader: identity}
}

// SendLocal sends a message to the actor of an identity if it runs in this process, and drops the message otherwise.
func (h *Host) SendLocal(identity string, message any) {
	if pid := h.lookup.active(identity); pid != nil {
		h.system.Root.Send(pid, message)
	}
}

// Where returns the process that owns an identity: here is true for this process, otherwise address is that of the
// other. The address is empty when no process owns the identity.
func (h *Host) Where(identity string) (address string, here bool) { return h.lookup.where(identity) }

// Moves returns how many answers to requests were Kind.Moved. A request that is tried twice may count twice.
func (h *Host) Moves() int64 { return h.moved.Load() }

// forwardFor is how long an actor that has left or retired runs on to forward the messages that were on their way to
// it.
const forwardFor = time.Second

// Evict sends Kind.Leave to the actors whose shards this process no longer owns, and stops them a second later. It does
// not wait for them.
func (h *Host) Evict() {
	for _, pid := range h.lookup.removeForeign() {
		h.system.Root.Send(pid, h.kind.Leave)
		h.stopLater(pid)
	}
}

// Retire removes an activation, so that the next message for its identity starts another, and stops it a second later.
// An actor calls Retire when it is idle. It must handle later messages as after Kind.Leave, so that no message that was
// on its way to it is lost.
func (h *Host) Retire(identity string, pid *actor.PID) {
	h.lookup.remove(identity, pid)
	h.stopLater(pid)
}

func (h *Host) stopLater(pid *actor.PID) {
	time.AfterFunc(forwardFor, func() { h.system.Root.Poison(pid) })
}

// Close stops every actor, after it has handled the messages in its mailbox, and then the actor system. When ctx ends
// first, Close does not wait for the remaining actors and returns the error of ctx.
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
	if h.remote != nil {
		h.remote.Shutdown(false)
	}
	h.system.Shutdown()
	return errors.Join(errs...)
}

// ActorCount returns how many actors run in this process, those that are being stopped included.
func (h *Host) ActorCount() int { return int(h.lookup.running.Load()) }
