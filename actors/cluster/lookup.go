package cluster

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// lookup finds the process that runs an identity's actor, and keeps track of this process's actors.
// It never starts an actor whose shard another process owns.
type lookup struct {
	system *actor.ActorSystem
	kind   Kind

	running atomic.Int64 // actors that have not stopped, including those that are being stopped

	mu     sync.Mutex
	pids   map[string]*actor.PID
	closed bool
}

// where implements Host.Where. An invalid identity has no owner, except in a process that owns
// every shard.
func (l *lookup) where(identity string) (address string, here bool) {
	if l.kind.Place == nil {
		return "", true
	}
	shard, ok := l.kind.Shard(identity)
	if !ok {
		return "", false
	}
	return l.kind.Place(shard)
}

// activate returns an identity's actor, starting the actor if necessary. It returns nil if another
// process owns the identity's shard or the host is closed.
func (l *lookup) activate(identity string) *actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, here := l.where(identity); !here || l.closed {
		return nil
	}
	if pid := l.pids[identity]; pid != nil {
		return pid
	}
	l.running.Add(1)
	pid := l.system.Root.Spawn(l.props(identity))
	l.pids[identity] = pid
	return pid
}

// props returns the actor.Props for an identity's actor. When the actor stops, it is removed from
// l.pids.
func (l *lookup) props(identity string) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return l.kind.Produce(identity) },
		actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				next(ctx, envelope)
				if _, stopped := envelope.Message.(*actor.Stopped); stopped {
					l.running.Add(-1)
					l.remove(identity, ctx.Self())
				}
			}
		}))
}

// active returns an identity's actor, or nil if the actor is not running.
func (l *lookup) active(identity string) *actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pids[identity]
}

// removeForeign removes and returns the actors whose shards this process no longer owns. It does
// not stop these actors.
func (l *lookup) removeForeign() (out []*actor.PID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for identity, pid := range l.pids {
		if _, here := l.where(identity); !here {
			out = append(out, pid)
			delete(l.pids, identity)
		}
	}
	return out
}

// remove removes an activation from the map unless a later activation has replaced it.
func (l *lookup) remove(identity string, pid *actor.PID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.pids[identity]; known != nil && known.Equal(pid) {
		delete(l.pids, identity)
	}
}

// close returns the running actors and prevents new ones from starting.
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
