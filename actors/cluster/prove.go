package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	clusterstore "crier/actors/cluster/store"
	"crier/platform/clock"
)

const (
	probesAtOnce = 8               // addresses that are probed in parallel
	probeLimit   = 2 * time.Second // longest probe of one address
	proofsAtOnce = 64              // processes of one round; the others have the next
	proofRest    = 5 * time.Minute // longest pause between two attempts on one process
)

// prover finds out which processes are surely dead, and deletes them: their lease is over, nobody holds their lock, and
// at their address nothing listens any more, or another process does. A process that is only stopped still accepts
// connections; a lock alone may have gone with a restart of Postgres. A lost machine is silent and may never be proved
// dead, so each process is tried again after pauses that double.
//
// It runs in a goroutine of its own, since a probe may take its whole time and the heartbeat and the shards must not
// wait for it.
type prover struct {
	proverDeps
	first time.Duration // pause after the first attempt
	news  chan struct{} // one place: nodes has changed

	mu    sync.Mutex
	nodes []clusterstore.Node

	tries map[uuid.UUID]try // only run uses it
}

// proverDeps is what a prover asks: store.Dead and Deps.Refuses.
type proverDeps struct {
	unlocked func(context.Context, []uuid.UUID) ([]uuid.UUID, error)
	forget   func(context.Context, []uuid.UUID) ([]uuid.UUID, error)
	refuses  func(ctx context.Context, address string) bool
	log      *slog.Logger
}

// try is when a process is looked at next.
type try struct {
	next time.Time
	rest time.Duration
}

func newProver(first time.Duration, deps proverDeps) *prover {
	return &prover{proverDeps: deps, first: first, news: make(chan struct{}, 1), tries: map[uuid.UUID]try{}}
}

// tell gives the prover what the heartbeat has seen. It never waits.
func (p *prover) tell(nodes []clusterstore.Node) {
	p.mu.Lock()
	p.nodes = nodes
	p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default:
	}
}

func (p *prover) seen() []clusterstore.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes
}

// run looks whenever there is news and whenever a process is due, until ctx ends.
func (p *prover) run(ctx context.Context) {
	timer := time.NewTimer(proofRest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.news:
		case <-timer.C:
		}
		p.round(ctx)
		timer.Reset(p.pause())
	}
}

// round tries to prove the death of those that are due.
func (p *prover) round(ctx context.Context) {
	nodes := p.seen()
	due := p.due(nodes)
	if len(due) == 0 {
		return
	}
	unlocked, err := p.unlocked(ctx, ids(due))
	if err != nil {
		p.failed(ctx, err)
		return
	}
	due = slices.DeleteFunc(due, func(n clusterstore.Node) bool { return !slices.Contains(unlocked, n.ID) })
	dead := p.probe(ctx, due, nodes)
	if len(dead) == 0 {
		return
	}
	forgotten, err := p.forget(ctx, ids(dead))
	if err != nil {
		p.failed(ctx, err)
		return
	}
	for _, n := range dead {
		if slices.Contains(forgotten, n.ID) {
			p.log.Info("a process is gone", "node", n.ID, "address", n.Address)
		}
	}
}

func (p *prover) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		p.log.Warn("it could not be looked up which processes are gone", "error", err)
	}
}

// due picks the expired processes whose pause is over, those that have waited longest first, and starts their next
// pause. It forgets the pauses of all that are not expired.
func (p *prover) due(nodes []clusterstore.Node) (out []clusterstore.Node) {
	now := clock.System{}.Now()
	tries := map[uuid.UUID]try{}
	for _, n := range nodes {
		if n.Alive || n.Address == "" {
			continue
		}
		tries[n.ID] = p.tries[n.ID]
		if !now.Before(tries[n.ID].next) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b clusterstore.Node) int { return tries[a.ID].next.Compare(tries[b.ID].next) })
	out = out[:min(len(out), proofsAtOnce)]
	for _, n := range out {
		rest := min(max(p.first, 2*tries[n.ID].rest), proofRest)
		tries[n.ID] = try{next: now.Add(rest), rest: rest}
	}
	p.tries = tries
	return out
}

// pause is how long it is until somebody is due.
func (p *prover) pause() time.Duration {
	pause := proofRest
	now := clock.System{}.Now()
	for _, t := range p.tries {
		pause = min(pause, t.next.Sub(now))
	}
	return max(pause, p.first)
}

// probe returns those of the suspects at whose address nothing listens any more, or another process.
func (p *prover) probe(ctx context.Context, suspects, nodes []clusterstore.Node) (dead []clusterstore.Node) {
	var mu sync.Mutex
	var running sync.WaitGroup
	free := make(chan struct{}, probesAtOnce)
	for _, n := range suspects {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			probe, cancel := context.WithTimeout(ctx, probeLimit)
			defer cancel()
			if !succeeded(n, nodes) && !p.refuses(probe, n.Address) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			dead = append(dead, n)
		})
	}
	running.Wait()
	return dead
}

// succeeded tells whether a living process has the address by now.
func succeeded(gone clusterstore.Node, nodes []clusterstore.Node) bool {
	return slices.ContainsFunc(nodes, func(n clusterstore.Node) bool {
		return n.Alive && n.Address == gone.Address && n.ID != gone.ID
	})
}

func ids(nodes []clusterstore.Node) (out []uuid.UUID) {
	for _, n := range nodes {
		out = append(out, n.ID)
	}
	return out
}
