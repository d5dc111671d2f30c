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

// Host runs this process's actors. If Config.Listen is set, it also sends messages to actors in
// other processes. Its methods are safe for concurrent use.
//
// Only the process that owns an identity's shard knows whether the identity's actor is running.
// Other processes therefore never address an actor directly. They send the message to the owning
// process's router, an actor with a fixed name, which starts the actor if necessary and passes the
// message on. As a result, an actor that has stopped, moved or restarted is never mistaken for an
// unresponsive process.
//
// Host uses only protoactor's actors and transport. Membership and ownership are handled by Member,
// so the library's cluster, gossip and block list are not started. The block list would permanently
// exclude a process that was only temporarily unreachable.
type Host struct {
	system *actor.ActorSystem
	lookup *lookup
	remote *remote.Remote
	kind   Kind
	moved  atomic.Int64
}

// Kind describes the actors that a host runs. Its functions are called concurrently. They must not
// call the Host, because the Host may hold a lock while it calls them.
type Kind struct {
	// Name is part of the router's name. It must be the same in all processes. Example: "org"
	Name string
	// Produce returns a new actor for an identity.
	Produce func(identity string) actor.Actor
	// Leave is sent to an actor whose shard has moved to another process. From then on, the actor
	// must respond to every request with Moved and forward all other messages through Send. It is
	// stopped a second later.
	Leave any
	// Moved is the response to a request that reached the wrong process or an actor that has left.
	// Its GetMoved method returns true. Any other response either has no GetMoved method or returns
	// false from it.
	Moved any
	// Shard returns an identity's shard, or false if the identity is invalid.
	Shard func(identity string) (int16, bool)
	// Place returns a shard's owner; see Owners.Place. If Place is nil or Config.Listen is empty,
	// this process owns every shard.
	Place func(shard int16) (address string, here bool)
}

var (
	// ErrSilent is returned if the actor or its process did not respond in time.
	ErrSilent = errors.New("no response in time")
	// ErrNowhere is returned if no process that runs the actor could be found.
	ErrNowhere = errors.New("no process is running the actor")
	// errStopped is returned for a request to an actor that has stopped.
	errStopped = errors.New("the actor has stopped")
)

func isMoved(answer any) bool {
	v, ok := answer.(interface{ GetMoved() bool })
	return ok && v.GetMoved()
}

const (
	messageLimit = 16 << 20 // a frame holds up to 1,000 messages; a larger frame breaks the connection
	queueSize    = 1024
	pingAfter    = 10 * time.Second // idle time after which a connection is probed
	pingLimit    = 5 * time.Second  // time to respond to the probe before the connection is closed
)

// NewHost returns a host for one kind of actor. If cfg.Listen is set, NewHost listens on that
// address. It returns fault.Invalid if the address cannot be parsed, fault.Unavailable if listening
// fails, and an env.Fault if the certificates cannot be read.
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

// remoteOptions returns an env.Fault if the certificates cannot be read.
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

// listen opens the socket and starts the router. The library panics if it cannot listen; in that
// case, listen recovers and returns an error.
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

// identityHeader is the message header that tells a router which identity a message is for.
const identityHeader = "identity"

// route is the router's Receive function. It forwards messages from other processes to this
// process's actors. It never blocks.
func (h *Host) route(ctx actor.Context) {
	if ctx.MessageHeader() == nil {
		return
	}
	identity := ctx.MessageHeader().Get(identityHeader)
	if identity == "" {
		return // a message from the actor system
	}
	pid := h.lookup.activate(identity)
	switch {
	case pid != nil:
		h.system.Root.Send(pid, &actor.MessageEnvelope{Message: ctx.Message(), Sender: ctx.Sender()})
	case ctx.Sender() != nil:
		ctx.Respond(h.kind.Moved)
	}
}

// Address returns the address at which other processes reach this one, or "" if Config.Listen is
// empty.
func (h *Host) Address() string {
	if h.remote == nil {
		return ""
	}
	return h.system.Address()
}

// Request sends a message to an identity's actor, starting the actor if necessary, and waits at
// most budget for the response. If the actor has moved or stopped, or if the connection to it was
// lost, Request retries once. Any error is ErrSilent or ErrNowhere. If Request returns ErrSilent,
// the message may have arrived anyway.
func (h *Host) Request(identity string, message any, budget time.Duration) (any, error) {
	end := clock.System{}.Now().Add(budget)
	for tries := 1; ; tries++ {
		answer, err := h.requestOnce(identity, message, end.Sub(clock.System{}.Now()))
		switch {
		case errors.Is(err, ErrSilent):
			return nil, ErrSilent
		case err != nil: // there is no actor, or it has stopped
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
		return nil, errStopped
	case <-timeout.C:
		return nil, ErrSilent
	}
}

// Send sends a message to an identity's actor without waiting for a response, starting the actor if
// necessary. The message may be lost if a process ends or a connection breaks.
func (h *Host) Send(identity string, message any) {
	pid, header := h.find(identity)
	if pid != nil {
		h.system.Root.Send(pid, &actor.MessageEnvelope{Header: header, Message: message})
	}
}

// find returns the actor to which messages for an identity must be sent. If this process owns the
// identity, find returns the identity's actor. If another process owns the identity, find returns
// that process's router and the header that the router needs. find returns nil if no process owns
// the identity or this host is closed.
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

// SendLocal sends a message to an identity's actor if the actor is running in this process.
// Otherwise it drops the message.
func (h *Host) SendLocal(identity string, message any) {
	if pid := h.lookup.active(identity); pid != nil {
		h.system.Root.Send(pid, message)
	}
}

// Where returns an identity's owner. here is true if this process is the owner; otherwise address
// is the owner's address, or empty if no process owns the identity.
func (h *Host) Where(identity string) (address string, here bool) { return h.lookup.where(identity) }

// Moves returns how many requests were answered with Kind.Moved. A retried request can be counted
// twice.
func (h *Host) Moves() int64 { return h.moved.Load() }

// forwardFor is how long an actor keeps running after it has left or retired, so that it can
// forward messages that were already in transit.
const forwardFor = time.Second

// Evict sends Kind.Leave to the actors whose shards this process no longer owns, and stops these
// actors a second later. It does not wait for the actors to stop.
func (h *Host) Evict() {
	for _, pid := range h.lookup.removeForeign() {
		h.system.Root.Send(pid, h.kind.Leave)
		h.stopLater(pid)
	}
}

// Retire removes an activation, which is one running instance of an actor, and stops it a second
// later. The next message for the identity starts a new activation. Idle actors call Retire. After
// that, an actor must handle messages as it does after Kind.Leave, so that messages already in
// transit are not lost.
func (h *Host) Retire(identity string, pid *actor.PID) {
	h.lookup.remove(identity, pid)
	h.stopLater(pid)
}

func (h *Host) stopLater(pid *actor.PID) {
	time.AfterFunc(forwardFor, func() { h.system.Root.Poison(pid) })
}

// Close lets every actor handle the messages in its mailbox and then stops the actor. Finally, it
// stops the actor system. If ctx ends first, Close does not wait for the remaining actors and
// returns ctx's error.
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

// ActorCount returns how many actors are running in this process, including actors that are being
// stopped.
func (h *Host) ActorCount() int { return int(h.lookup.running.Load()) }
