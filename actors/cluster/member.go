// Package cluster is how organizations find their actors: the processes that run, the shards that each of them schedules, and the actor system.
package cluster

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	clusterstore "crier/actors/cluster/store"
	"crier/platform/pg"
)

// Config of membership.
type Config struct {
	TTL  time.Duration `env:"LEASE, default=10s" doc:"How long a process that does not beat keeps its shards."`
	Beat time.Duration `env:"BEAT, default=2s" doc:"How often a process renews its lease."`
}

// Lease is what this process may schedule now.
type Lease struct {
	Holder uuid.UUID
	Shards []int16
	Epochs []int64
}

// Member is this process in the cluster: it beats, and holds the shards that no living process owns.
type Member struct {
	ID      uuid.UUID
	cfg     Config
	store   *clusterstore.Store
	log     *slog.Logger
	lease   atomic.Pointer[Lease]
	changed func()
	fenced  chan struct{}
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// Join makes this process a member and starts its beat. changed is called whenever shards were gained.
func Join(ctx context.Context, cfg Config, db *pg.DB, home *Home, address string, roles []string, log *slog.Logger, changed func()) (*Member, error) {
	m := &Member{ID: uuid.Must(uuid.NewV7()), cfg: cfg, store: clusterstore.New(db), log: log, changed: changed, fenced: make(chan struct{})}
	m.lease.Store(&Lease{Holder: m.ID})
	if err := m.store.Join(ctx, clusterstore.Node{ID: m.ID, Home: home.ID, Address: address, Roles: roles}, cfg.TTL); err != nil {
		return nil, err
	}
	if err := m.acquire(ctx); err != nil {
		return nil, err
	}
	beat, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = cancel
	m.done.Go(func() { m.run(beat) })
	return m, nil
}

// Lease is what may be scheduled now; whether it still holds is decided by every claim itself.
func (m *Member) Lease() Lease { return *m.lease.Load() }

// Fenced is closed when the cluster has declared this process gone: it must end and start anew.
func (m *Member) Fenced() <-chan struct{} { return m.fenced }

func (m *Member) run(ctx context.Context) {
	tick := time.NewTicker(m.cfg.Beat)
	defer tick.Stop()
	for beats := 1; ; beats++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !m.beat(ctx, beats%3 == 0) {
			close(m.fenced)
			return
		}
	}
}

// beat renews the lease, and now and then looks for orphaned shards. Postgres being away is no reason to end: nothing can be claimed meanwhile.
func (m *Member) beat(ctx context.Context, look bool) bool {
	call, cancel := context.WithTimeout(ctx, m.cfg.TTL)
	defer cancel()
	known, lapsed, err := m.store.Beat(call, m.ID, m.cfg.TTL)
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("the lease could not be renewed", "error", err)
		}
		return true
	}
	if !known {
		m.log.Error("this process was declared gone by the cluster")
		m.lease.Store(&Lease{Holder: m.ID})
		return false
	}
	if lapsed {
		m.log.Warn("the lease had lapsed; going on under new epochs")
	}
	if lapsed || look {
		if err := m.acquire(call); err != nil {
			m.log.Warn("shards could not be looked up", "error", err)
		}
	}
	return true
}

func (m *Member) acquire(ctx context.Context) error {
	held, err := m.store.Acquire(ctx, m.ID)
	if err != nil {
		return err
	}
	before := len(m.Lease().Shards)
	m.lease.Store(&Lease{Holder: m.ID, Shards: held.Shards, Epochs: held.Epochs})
	if len(held.Shards) > before && m.changed != nil {
		m.changed()
	}
	return nil
}

// Leave stops the beat and gives the shards back.
func (m *Member) Leave(ctx context.Context) error {
	m.stop()
	m.done.Wait()
	m.lease.Store(&Lease{Holder: m.ID})
	if err := m.store.Leave(ctx, m.ID); err != nil {
		return err
	}
	return m.store.Close(ctx)
}
