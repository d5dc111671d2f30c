package cluster

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// lookup knows where identities live and which of this process's actors are awake. It never starts an actor that
// belongs elsewhere.
type lookup struct {
	system *actor.ActorSystem
	kind   Kind
	place  atomic.Pointer[func(shard int16) (address string, here bool)]

	running atomic.Int64 // actors that have not stopped, those that have to go among them

	mu     sync.Mutex
	pids   map[string]*actor.PID
	closed bool
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
	l.running.Add(1)
	pid := l.system.Root.Spawn(l.props(identity))
	l.pids[identity] = pid
	return pid
}

// props makes an actor that is forgotten when it stops, for whatever reason.
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

func (l *lookup) awake(identity string) *actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pids[identity]
}

// strangers takes the actors that do not belong here out of the map.
func (l *lookup) strangers() (out []*actor.PID) {
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

// remove forgets an activation.
func (l *lookup) remove(identity string, pid *actor.PID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.pids[identity]; known != nil && known.Equal(pid) {
		delete(l.pids, identity)
	}
}

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
