package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/asynkron/protoactor-go/remote"
)

// Host runs the actors of this process. Alone, it needs no socket: the request path is the cluster's all the same.
type Host struct {
	system  *actor.ActorSystem
	cluster *cluster.Cluster
	lookup  *local
	kind    string
}

// ErrClosed is the answer of a host that is going down.
var ErrClosed = errors.New("the actor host is closed")

// NewHost makes a host for one kind of actor. The first user message of every actor is *cluster.ClusterInit with its identity.
func NewHost(kind string, produce func() actor.Actor, log *slog.Logger) *Host {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	k := cluster.NewKind(kind, actor.PropsFromProducer(produce))
	look := &local{system: system, pids: map[string]*actor.PID{}}
	c := cluster.New(system, cluster.Configure("crier", nil, look, remote.Configure("127.0.0.1", 0), cluster.WithKinds(k), cluster.WithRequestLog(false)))
	c.IdentityLookup = look
	look.kind = k.Build(c)
	look.terminating = system.EventStream.Subscribe(func(event any) {
		if gone, ok := event.(*cluster.ActivationTerminating); ok {
			look.RemovePid(gone.ClusterIdentity, gone.Pid)
		}
	})
	return &Host{system, c, look, kind}
}

// Request asks an actor, waking it if need be, and waits for its answer at most as long as timeout. It is tried once.
func (h *Host) Request(identity string, message any, timeout time.Duration) (any, error) {
	return h.cluster.Request(identity, h.kind, message, cluster.WithTimeout(timeout), cluster.WithRetryCount(1))
}

// Send tells an actor something, waking it if need be. The message may be lost.
func (h *Host) Send(identity string, message any) {
	if pid := h.lookup.Get(cluster.NewClusterIdentity(identity, h.kind)); pid != nil {
		h.system.Root.Send(pid, message)
	}
}

// Forget makes the next message to an identity look its actor up anew.
func (h *Host) Forget(identity string) { h.cluster.PidCache.Remove(identity, h.kind) }

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
	h.system.Shutdown()
	return errors.Join(errs...)
}

// local finds every actor in this process.
type local struct {
	system      *actor.ActorSystem
	kind        *cluster.ActivatedKind
	terminating *eventstream.Subscription
	mu          sync.Mutex
	pids        map[string]*actor.PID
	closed      bool
}

// Get finds or starts the actor of an identity; nil when the host is closed.
func (l *local) Get(ci *cluster.ClusterIdentity) *actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	if pid := l.pids[ci.Identity]; pid != nil {
		return pid
	}
	pid := l.system.Root.Spawn(cluster.WithClusterIdentity(l.kind.Props, ci))
	l.pids[ci.Identity] = pid
	return pid
}

// RemovePid forgets an actor that stopped.
func (l *local) RemovePid(ci *cluster.ClusterIdentity, pid *actor.PID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.pids[ci.Identity]; known != nil && known.Equal(pid) {
		delete(l.pids, ci.Identity)
	}
}

// Setup has nothing to do: the host builds the kind itself.
func (l *local) Setup(*cluster.Cluster, []string, bool) {}

// Shutdown lets no new actor start.
func (l *local) Shutdown() { l.close() }

func (l *local) close() []*actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	out := make([]*actor.PID, 0, len(l.pids))
	for _, pid := range l.pids {
		out = append(out, pid)
	}
	return out
}

// Len is how many actors live here.
func (h *Host) Len() int {
	h.lookup.mu.Lock()
	defer h.lookup.mu.Unlock()
	return len(h.lookup.pids)
}
