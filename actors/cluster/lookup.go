package cluster

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/eventstream"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// lookup finds an actor where its shard is: in this process, or by asking the process that holds it. It never starts an actor that belongs elsewhere.
type lookup struct {
	system      *actor.ActorSystem
	kind        Kind
	built       *cluster.ActivatedKind
	terminating *eventstream.Subscription
	place       atomic.Pointer[func(shard int16) (address string, here bool)]

	mu     sync.Mutex
	pids   map[string]*actor.PID
	closed bool
}

// Get finds or starts the actor of an identity; nil when nobody can be asked for it now.
func (l *lookup) Get(ci *cluster.ClusterIdentity) *actor.PID {
	address, here := l.where(ci.Identity)
	switch {
	case here:
		return l.local(ci.Identity)
	case address == "":
		return nil
	}
	answer, err := l.system.Root.RequestFuture(actor.NewPID(address, door(l.kind.Name)), wrapperspb.String(ci.Identity), lookupTime).Result()
	if pid, ok := answer.(*actor.PID); ok && err == nil {
		return pid
	}
	return nil
}

func (l *lookup) where(identity string) (address string, here bool) {
	place := l.place.Load()
	if place == nil {
		return "", true
	}
	shard, ok := l.kind.Shard(identity)
	if !ok {
		return "", false
	}
	return (*place)(shard)
}

// local finds or starts an actor that belongs here; nil when it does not, or when the host is closed.
func (l *lookup) local(identity string) *actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, here := l.where(identity); !here || l.closed {
		return nil
	}
	if pid := l.pids[identity]; pid != nil {
		return pid
	}
	pid := l.system.Root.Spawn(cluster.WithClusterIdentity(l.built.Props, cluster.NewClusterIdentity(identity, l.kind.Name)))
	l.pids[identity] = pid
	return pid
}

func (l *lookup) awake(identity string) *actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pids[identity]
}

// strangers takes the actors that do not belong here out of the map.
func (l *lookup) strangers() map[string]*actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]*actor.PID{}
	for identity, pid := range l.pids {
		if _, here := l.where(identity); !here {
			out[identity] = pid
			delete(l.pids, identity)
		}
	}
	return out
}

// RemovePid forgets an actor that stopped.
func (l *lookup) RemovePid(ci *cluster.ClusterIdentity, pid *actor.PID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.pids[ci.Identity]; known != nil && known.Equal(pid) {
		delete(l.pids, ci.Identity)
	}
}

// Setup has nothing to do: the host builds the kind itself.
func (l *lookup) Setup(*cluster.Cluster, []string, bool) {}

// Shutdown lets no new actor start.
func (l *lookup) Shutdown() { l.close() }

func (l *lookup) close() []*actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	out := make([]*actor.PID, 0, len(l.pids))
	for _, pid := range l.pids {
		out = append(out, pid)
	}
	return out
}

func (l *lookup) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pids)
}
