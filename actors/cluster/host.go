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

// Host runs the actors of this process. Alone it needs no socket; with one, it reaches the actors of the other
// processes, too.
//
// Only the process that owns an identity's shard knows whether its actor is awake. Another process therefore never
// addresses the actor itself: it sends its message to the owner's router, an actor of a known name, which wakes
// the actor if need be and hands the message on. So an actor that went to sleep, moved or was restarted is never taken
// for a process that does not answer.
//
// Of the library, actors and their transport are used. Who is a member and who owns what is Member's, so neither its
// cluster nor its gossip and block list is started: a process that was cut off for a while would stay blocked for ever.
type Host struct {
	system *actor.ActorSystem
	lookup *lookup
	remote *remote.Remote
	kind   Kind
	moved  atomic.Int64
}

// Kind is what a host runs.
type Kind struct {
	Name string
	// Produce makes the actor of an identity.
	Produce func(identity string) actor.Actor
	// Leave is sent to an actor that has to go. From then on it answers requests with Moved and passes other messages on
	// through Send; it is stopped a second later.
	Leave any
	// Moved answers a request that came to the wrong actor: its GetMoved() is true, and that of other answers is not.
	Moved any
	// Shard is the shard of an identity, false when it names nothing.
	Shard func(identity string) (int16, bool)
}

var (
	// ErrSilent means that a process or its actor did not answer in time.
	ErrSilent = errors.New("no answer in time")
	// ErrNowhere means that no process could be found that runs the actor.
	ErrNowhere = errors.New("no process runs the actor now")
)

func isMoved(answer any) bool {
	v, ok := answer.(interface{ GetMoved() bool })
	return ok && v.GetMoved()
}

const (
	messageLimit = 16 << 20 // a frame holds up to 1,000 messages, and a larger one would kill the connection
	queueSize    = 1024
	pingAfter    = 10 * time.Second // a connection on which nothing comes is probed after so long,
	pingLimit    = 5 * time.Second  // and is dead without an answer in this time
)

// NewHost makes a host for one kind of actor.
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
	h := &Host{system: system, lookup: &lookup{system: system, kind: kind, pids: map[string]*actor.PID{}}, kind: kind}
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

// listen opens the socket and starts the router. The library panics where others return an error.
func (h *Host) listen(rc *remote.Config) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Wrap(fault.Unavailable, "cluster.NewHost", "Cannot listen on CLUSTER_LISTEN: is another process using this address?", fmt.Errorf("%v", r))
		}
	}()
	h.remote = remote.NewRemote(h.system, rc)
	h.remote.Start()
	_, err = h.system.Root.SpawnNamed(actor.PropsFromFunc(h.route), routerName(h.kind.Name))
	return err
}

func routerName(kind string) string { return "router-" + kind }

// identityHeader names, on a message to a router, the identity that it is for.
const identityHeader = "identity"

// route is the router: it hands messages of other processes to the actors of this one. It never waits.
func (h *Host) route(ctx actor.Context) {
	if ctx.MessageHeader() == nil {
		return
	}
	identity := ctx.MessageHeader().Get(identityHeader)
	if identity == "" {
		return // a message of the actor system itself
	}
	pid := h.lookup.local(identity)
	switch {
	case pid != nil:
		h.system.Root.Send(pid, &actor.MessageEnvelope{Message: ctx.Message(), Sender: ctx.Sender()})
	case ctx.Sender() != nil:
		ctx.Respond(h.kind.Moved)
	}
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

// Request asks an actor, waking it if need be, and waits for its answer at most as long as budget. When the actor turns
// out to have moved, stopped or lost its connection, it is looked for once more. The error is ErrSilent or ErrNowhere;
// after ErrSilent the message may have arrived.
func (h *Host) Request(identity string, message any, budget time.Duration) (any, error) {
	end := clock.System{}.Now().Add(budget)
	for tries := 1; ; tries++ {
		answer, err := h.ask(identity, message, end.Sub(clock.System{}.Now()))
		if err == nil && !isMoved(answer) {
			return answer, nil
		}
		if errors.Is(err, actor.ErrTimeout) {
			return nil, ErrSilent
		}
		if err == nil {
			h.moved.Add(1)
		}
		if tries == 2 || errors.Is(err, ErrNowhere) {
			return nil, ErrNowhere
		}
	}
}

func (h *Host) ask(identity string, message any, budget time.Duration) (any, error) {
	pid, header := h.find(identity)
	if pid == nil {
		return nil, ErrNowhere
	}
	future := actor.NewFuture(h.system, max(0, budget))
	h.system.Root.Send(pid, &actor.MessageEnvelope{Header: header, Message: message, Sender: future.PID()})
	answer, err := future.Result()
	if errors.Is(err, actor.ErrDeadLetter) && header == nil {
		h.lookup.remove(identity, pid)
	}
	return answer, err
}

// Send tells an actor something, waking it if need be. The message may be lost when a process or a connection ends.
func (h *Host) Send(identity string, message any) {
	pid, header := h.find(identity)
	if pid != nil {
		h.system.Root.Send(pid, &actor.MessageEnvelope{Header: header, Message: message})
	}
}

// find returns where messages for an identity go: to its actor, or to the router of another process with a header that
// says whom it is for. It returns nil when no process owns the identity, or this one is closed.
func (h *Host) find(identity string) (*actor.PID, map[string]string) {
	address, here := h.lookup.where(identity)
	switch {
	case here:
		return h.lookup.local(identity), nil
	case address == "":
		return nil, nil
	}
	return actor.NewPID(address, routerName(h.kind.Name)), map[string]string{identityHeader: identity}
}

// SendHere tells an actor of this process something, if it is awake.
func (h *Host) SendHere(identity string, message any) {
	if pid := h.lookup.awake(identity); pid != nil {
		h.system.Root.Send(pid, message)
	}
}

// Where tells where an identity lives: in this process, or at the address of another one; neither when nobody owns it.
func (h *Host) Where(identity string) (address string, here bool) { return h.lookup.where(identity) }

// Moves is how many requests found that their actor lives elsewhere, or in another activation, by now.
func (h *Host) Moves() int64 { return h.moved.Load() }

// leaving is how long an actor that has to go still answers that it is gone.
const leaving = time.Second

// Evict stops the actors that do not belong here any more. It does not wait for them.
func (h *Host) Evict() {
	for _, pid := range h.lookup.strangers() {
		h.system.Root.Send(pid, h.kind.Leave)
		h.poison(pid)
	}
}

// Retire makes room for a new activation of an identity and stops the given one a second later. An actor calls it when
// it wants to go to sleep, and treats every message after it as after Kind.Leave: so no message is lost that was on its
// way to it.
func (h *Host) Retire(identity string, pid *actor.PID) {
	h.lookup.remove(identity, pid)
	h.poison(pid)
}

func (h *Host) poison(pid *actor.PID) {
	time.AfterFunc(leaving, func() { h.system.Root.Poison(pid) })
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
	if h.remote != nil {
		h.remote.Shutdown(false)
	}
	h.system.Shutdown()
	return errors.Join(errs...)
}

// Len is how many actors live here, those that are about to go among them.
func (h *Host) Len() int { return int(h.lookup.running.Load()) }
