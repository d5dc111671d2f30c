// Package cluster divides the organizations among processes. A Member maintains this process's
// lease and its shards, which determine the organizations for which the process schedules posts. A
// Host runs this process's actors and sends messages to actors in other processes.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	clusterstore "crier/actors/cluster/store"
	"crier/platform/clock"
	"crier/platform/pg"
)

// The roles that a process can have. They are stored in the node.roles column.
const (
	// RoleEdge serves requests.
	RoleEdge = "edge"
	// RoleWorker owns shards and publishes their posts.
	RoleWorker = "worker"
)

// Deps holds a Member's dependencies. Changed and Lost may be nil. The heartbeat calls both
// functions, so they must not block.
type Deps struct {
	DB   *pg.DB
	Home *Home
	Log  *slog.Logger
	// Owners is updated by the Member. It belongs to only one Member.
	Owners *Owners
	// Changed is called after the process has gained shards.
	Changed func()
	// Lost is called when shards are given away, before another process can own them.
	Lost func()
}

// Member represents this process in the cluster. It renews the process's lease and owns the
// process's share of the shards. Its methods are safe for concurrent use.
type Member struct {
	*Owners

	// ID identifies this run of the process. A process that restarts is a new member.
	ID uuid.UUID

	cfg         Config
	deps        Deps
	store       *clusterstore.Store
	lastBeat    atomic.Pointer[time.Time]
	stop        context.CancelFunc
	done        sync.WaitGroup
	leaving     atomic.Bool
	releaseOnce sync.Once
	released    chan struct{} // closed when Release has given every shard back
}

// Join makes this process a member of the cluster and starts its heartbeat, which runs until Leave
// is called. address is the address at which other processes reach this process's actors, or empty
// if they cannot. Join returns an error if Postgres does not respond.
//
// A process that ends without calling Leave keeps its shards until its lease expires or the next
// process with the same Home joins.
func Join(ctx context.Context, cfg Config, address string, deps Deps) (*Member, error) {
	me := clusterstore.Node{ID: deps.Owners.id, Home: deps.Home.ID, Address: address, Roles: cfg.Roles}
	m := &Member{
		Owners: deps.Owners, ID: me.ID, cfg: cfg, deps: deps,
		store: clusterstore.New(deps.DB, me, cfg.LeaseTTL, cfg.callLimit()), released: make(chan struct{}),
	}
	if err := whileAway(ctx, m.joinOnce); err != nil {
		return nil, errors.Join(err, m.store.Close(ctx))
	}
	beat, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = cancel
	m.done.Go(func() { m.run(beat) })
	return m, nil
}

// awayTries is the maximum number of attempts to join or leave while Postgres does not respond.
// More than one attempt is needed because the statement timeout, which is chosen for heartbeats, is
// too short for joining and leaving.
const awayTries = 3

func whileAway(ctx context.Context, fn func(context.Context) error) error {
	for try := 1; ; try++ {
		err := fn(ctx)
		if !pg.IsAway(err) || ctx.Err() != nil || try == awayTries {
			return err
		}
	}
}

func (m *Member) joinOnce(ctx context.Context) error {
	if err := m.store.DeleteStale(ctx); err != nil {
		return err
	}
	if _, err := m.renew(ctx, false); err != nil {
		return err
	}
	_, err := m.rebalance(ctx)
	return err
}

// LastHeartbeat returns the time at which the last successful lease renewal was sent.
func (m *Member) LastHeartbeat() time.Time { return *m.lastBeat.Load() }

// fullScanEvery is the number of heartbeats after which the shards are read even if no notification
// has arrived.
const fullScanEvery = 5

func (m *Member) run(ctx context.Context) {
	scan := false
	for beats := 1; ; beats++ {
		scan = m.wait(ctx) || scan || beats%fullScanEvery == 0
		if ctx.Err() != nil {
			return
		}
		scan = !m.heartbeat(ctx, scan)
	}
}

// wait waits until the next heartbeat is due, a notification arrives or wakeUp is called. It
// returns true if a notification arrived or wakeUp was called.
func (m *Member) wait(ctx context.Context) bool {
	wait, cancel := context.WithTimeout(ctx, m.cfg.HeartbeatInterval)
	defer cancel()
	woken := make(chan bool, 1)
	go func() {
		select {
		case <-m.wake:
			cancel()
			woken <- true
		case <-wait.Done():
			woken <- false
		}
	}()
	notified := m.store.Wait(wait)
	cancel()
	return <-woken || notified
}

// heartbeat renews the lease. It rebalances the shards if scan is true or if any field of the
// resulting Renewal is true. It returns false if the next heartbeat must scan.
//
// If the lease expires while Postgres is unreachable, heartbeat does not need to react, because
// every claim checks the lease in Postgres.
func (m *Member) heartbeat(ctx context.Context, scan bool) bool {
	leaving := m.leaving.Load()
	found, err := m.renew(ctx, leaving || m.suspended.Load())
	if err != nil {
		if ctx.Err() == nil {
			m.deps.Log.Warn("the lease could not be renewed", "error", err)
		}
		return !scan
	}
	if found.Lapsed {
		m.deps.Log.Warn("the lease had expired")
	}
	if leaving {
		m.releaseOnce.Do(func() { close(m.released) })
	}
	if !scan && !found.Lapsed && !found.Fresh && !found.Orphans {
		return true
	}
	// A single timeout covers all statements, so that the next heartbeat is not late.
	call, cancel := context.WithTimeout(ctx, m.cfg.callLimit())
	defer cancel()
	moving, err := m.rebalance(call)
	if moving {
		m.wakeUp()
	}
	if err != nil && ctx.Err() == nil {
		m.deps.Log.Warn("the owners of the shards could not be read or changed", "error", err)
	}
	return err == nil
}

// renew renews the lease. If leaving is true, it also gives back every shard. In that case, it
// removes this process from the known owners before it calls Postgres, and does not undo this if
// the call fails.
func (m *Member) renew(ctx context.Context, leaving bool) (clusterstore.Renewal, error) {
	if leaving {
		m.dropOwn()
	}
	asked := clock.System{}.Now()
	found, err := m.store.Renew(ctx, leaving)
	if err != nil {
		return found, err
	}
	m.lastBeat.Store(&asked)
	return found, nil
}

// rebalance takes over and gives away shards as plan decides, and updates the known owners. moving
// is true if shards were given away or a change failed. In that case, another rebalance should
// follow immediately.
func (m *Member) rebalance(ctx context.Context) (moving bool, err error) {
	nodes, shards, err := m.store.View(ctx)
	if err != nil {
		return false, err
	}
	take, give := plan(m.ID, nodes, shards)
	if len(give) > 0 {
		m.setView(nodes, shards, give)
		if err := m.store.Give(ctx, give); err != nil {
			return true, err
		}
	}
	if len(take) > 0 {
		if err := m.store.Take(ctx, take); err != nil {
			return true, err
		}
	}
	if len(take)+len(give) > 0 {
		nodes, shards, err = m.store.View(ctx)
		if err != nil {
			return true, err
		}
	}
	m.setView(nodes, shards, nil)
	return len(give) > 0, nil
}

// setView updates the known owners and the number of members from the results of View. except lists
// shards that this process is about to give away. They no longer count as owned by this process.
func (m *Member) setView(nodes []clusterstore.Node, shards []clusterstore.Shard, except []int16) {
	living := map[uuid.UUID]string{}
	for _, n := range nodes {
		living[n.ID] = n.Address
	}
	owners := map[int16]owner{}
	for _, s := range shards {
		address, ok := living[s.Owner]
		if ok && !(s.Owner == m.ID && slices.Contains(except, s.Shard)) {
			owners[s.Shard] = owner{id: s.Owner, address: address}
		}
	}
	m.live.Store(int64(len(nodes)))
	m.setOwners(owners)
}

// dropOwn removes this process from the known owners. If the process owned any shards, Deps.Lost is
// called.
func (m *Member) dropOwn() { m.setOwners(m.others()) }

// setOwners replaces the owners. It calls Lost if this process lost a shard, and Changed if it
// gained one.
func (m *Member) setOwners(owners map[int16]owner) {
	before, after := m.set(owners)
	if m.deps.Lost != nil && hasOther(before, after) {
		m.deps.Lost()
	}
	if m.deps.Changed != nil && hasOther(after, before) {
		m.deps.Changed()
	}
}

func hasOther(a, b []int16) bool {
	return slices.ContainsFunc(a, func(s int16) bool { return !slices.Contains(b, s) })
}

// Release permanently gives back every shard and waits until Postgres has recorded the change. The
// process remains a member, because it may still have posts in flight. If ctx ends first, Release
// returns ctx's error, and the heartbeat keeps trying to give back the shards.
func (m *Member) Release(ctx context.Context) error {
	m.leaving.Store(true)
	m.wakeUp()
	select {
	case <-m.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave stops the heartbeat, gives back the shards and ends the membership. If Postgres does not
// respond in time, Leave retries. If it still fails, it returns the last error or ctx's error, and
// the shards become free when the lease expires. Leave always closes the connection to Postgres.
func (m *Member) Leave(ctx context.Context) error {
	m.stop()
	m.done.Wait()
	m.clear()
	return errors.Join(whileAway(ctx, m.store.Leave), m.store.Close(ctx))
}
