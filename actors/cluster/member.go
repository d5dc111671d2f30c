// Package cluster is how organizations find their actors: the processes that run, the shards that each of them schedules, and the actor system.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	clusterstore "crier/actors/cluster/store"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/publishing"
)

// The roles of a process.
const (
	RoleEdge   = "edge"
	RoleWorker = "worker"
)

// Deps of a member. Changed is called when shards were gained, Lost when some were given away, before anybody else can
// have them.
type Deps struct {
	DB      *pg.DB
	Home    *Home
	Log     *slog.Logger
	Changed func()
	Lost    func()
}

// Member is this process in the cluster: it renews its lease, holds its share of the shards, and knows who holds the
// others. Its methods are safe for concurrent use.
type Member struct {
	ID        uuid.UUID // of this start of the process
	cfg       Config
	deps      Deps
	store     *clusterstore.Store
	lease     atomic.Pointer[publishing.Lease]
	owners    atomic.Pointer[map[int16]owner]
	seen      atomic.Int64
	beaten    atomic.Pointer[time.Time]
	stop      context.CancelFunc
	done      sync.WaitGroup
	leaving   atomic.Bool
	suspended atomic.Bool
	wake      chan struct{}
	freed     sync.Once
	free      chan struct{} // closed when every shard was released for good
}

type owner struct {
	id      uuid.UUID
	address string
}

// Join makes this process a member and starts its heartbeat. address is where its actors are reached, "" for nowhere.
func Join(ctx context.Context, cfg Config, address string, deps Deps) (*Member, error) {
	me := clusterstore.Node{ID: uuid.Must(uuid.NewV7()), Home: deps.Home.ID, Address: address, Roles: cfg.Roles}
	m := &Member{
		ID: me.ID, cfg: cfg, deps: deps, store: clusterstore.New(deps.DB, me, cfg.TTL, cfg.callLimit()),
		wake: make(chan struct{}, 1), free: make(chan struct{}),
	}
	m.lease.Store(&publishing.Lease{Holder: m.ID})
	m.owners.Store(&map[int16]owner{})
	if err := m.join(ctx); err != nil {
		return nil, errors.Join(err, m.store.Close(ctx))
	}
	beat, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = cancel
	m.done.Go(func() { m.run(beat) })
	return m, nil
}

// joinTries is how often a start asks a Postgres that does not answer within the limit of a heartbeat, which is short
// for a start.
const joinTries = 3

func (m *Member) join(ctx context.Context) (err error) {
	for range joinTries {
		if err = m.begin(ctx); err == nil || !pg.IsAway(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (m *Member) begin(ctx context.Context) error {
	if err := m.store.Forget(ctx); err != nil {
		return err
	}
	if _, err := m.renew(ctx, false); err != nil {
		return err
	}
	_, err := m.look(ctx)
	return err
}

// Lease is what may be scheduled now; whether it still holds is decided by every claim itself. While suspended it is
// empty.
func (m *Member) Lease() publishing.Lease {
	if m.suspended.Load() {
		return publishing.Lease{Holder: m.ID}
	}
	return *m.lease.Load()
}

// LastBeat is when the request that last renewed the lease was sent.
func (m *Member) LastBeat() time.Time { return *m.beaten.Load() }

// Suspend gives every shard to the others and takes none until Resume. It does not wait: from now on Lease is empty
// here, Lost is called soon, and the others get the shards as soon as Postgres can be reached. The process stays a
// member and keeps its heartbeat. Without others, nobody has the shards meanwhile.
func (m *Member) Suspend(reason string) {
	if m.suspended.Swap(true) {
		return
	}
	m.deps.Log.Warn("this process gives its shards away and takes none for now", "reason", reason)
	m.nudge()
}

// Resume ends Suspend: the process takes its share of the shards again. It does not wait.
func (m *Member) Resume() {
	if !m.suspended.Swap(false) {
		return
	}
	m.deps.Log.Info("this process takes shards again")
	m.nudge()
}

// Place returns who holds a shard: this process, or the address of another; neither when nobody does, or nobody who can
// be reached.
func (m *Member) Place(shard int16) (address string, here bool) {
	o := (*m.owners.Load())[shard]
	return o.address, o.id == m.ID
}

// Seen is how many living processes there are.
func (m *Member) Seen() int { return int(m.seen.Load()) }

// calm is how often the shards are looked at without a reason.
const calm = 5

func (m *Member) run(ctx context.Context) {
	look := false
	for beats := 1; ; beats++ {
		look = m.rest(ctx) || look || beats%calm == 0
		if ctx.Err() != nil {
			return
		}
		look = !m.beat(ctx, look)
	}
}

// rest waits until the next beat, or until there is news; true means that there is.
func (m *Member) rest(ctx context.Context) bool {
	wait, cancel := context.WithTimeout(ctx, m.cfg.Beat)
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

// beat renews the lease, and looks at the shards when there is reason to. It returns false when that failed, so that
// they must be looked at next time. A lease that ends because Postgres is away needs nothing here: every claim checks
// the lease in Postgres.
func (m *Member) beat(ctx context.Context, look bool) bool {
	leaving := m.leaving.Load()
	found, err := m.renew(ctx, leaving || m.suspended.Load())
	if err != nil {
		if ctx.Err() == nil {
			m.deps.Log.Warn("the lease could not be renewed", "error", err)
		}
		return !look
	}
	if found.Lapsed {
		m.deps.Log.Warn("the lease had lapsed")
	}
	if leaving {
		m.freed.Do(func() { close(m.free) })
	}
	if !look && !found.Lapsed && !found.Fresh && !found.Orphans {
		return true
	}
	call, cancel := context.WithTimeout(ctx, m.cfg.callLimit()) // all of it together, so that the next beat is in time
	defer cancel()
	moving, err := m.look(call)
	if moving {
		m.nudge()
	}
	if err != nil && ctx.Err() == nil {
		m.deps.Log.Warn("shards could not be looked up", "error", err)
	}
	return err == nil
}

// renew renews the lease. leaving gives every shard back, here at once, whether Postgres answers or not.
func (m *Member) renew(ctx context.Context, leaving bool) (clusterstore.Beat, error) {
	if leaving {
		m.drop()
	}
	asked := clock.System{}.Now()
	found, err := m.store.Beat(ctx, leaving)
	if err == nil {
		m.beaten.Store(&asked)
	}
	return found, err
}

func (m *Member) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// look brings the shards nearer to how they should be shared, and learns who holds what.
func (m *Member) look(ctx context.Context) (moving bool, err error) {
	nodes, shards, err := m.store.View(ctx)
	if err != nil {
		return false, err
	}
	take, give := plan(m.ID, nodes, shards)
	if len(give) > 0 {
		m.hold(nodes, shards, give)
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
		if nodes, shards, err = m.store.View(ctx); err != nil {
			return true, err
		}
	}
	m.hold(nodes, shards, nil)
	return len(give) > 0, nil
}

// hold keeps who holds the shards, as View returned it. except is what this process is about to give away.
func (m *Member) hold(nodes []clusterstore.Node, shards []clusterstore.Shard, except []int16) {
	living := map[uuid.UUID]string{}
	for _, n := range nodes {
		living[n.ID] = n.Address
	}
	owners := map[int16]owner{}
	for _, s := range shards {
		address, ok := living[s.Owner]
		if ok && !(s.Owner == m.ID && slices.Contains(except, s.Shard)) {
			owners[s.Shard] = owner{s.Owner, address}
		}
	}
	m.seen.Store(int64(len(nodes)))
	m.set(owners)
}

// drop lets every shard of this process go and keeps what is known of the others.
func (m *Member) drop() {
	owners := maps.Clone(*m.owners.Load())
	maps.DeleteFunc(owners, func(_ int16, o owner) bool { return o.id == m.ID })
	m.set(owners)
}

func (m *Member) set(owners map[int16]owner) {
	next := &publishing.Lease{Holder: m.ID}
	for _, shard := range slices.Sorted(maps.Keys(owners)) {
		if owners[shard].id == m.ID {
			next.Shards = append(next.Shards, shard)
		}
	}
	before := m.lease.Swap(next).Shards // while suspended, Lease is empty although not all is given back yet
	m.owners.Store(&owners)
	if m.deps.Lost != nil && beyond(before, next.Shards) {
		m.deps.Lost()
	}
	if m.deps.Changed != nil && beyond(next.Shards, before) {
		m.deps.Changed()
	}
}

// beyond returns true when a has a shard that b has not.
func beyond(a, b []int16) bool {
	return slices.ContainsFunc(a, func(s int16) bool { return !slices.Contains(b, s) })
}

// Release gives every shard to the others, at once and for good; the process stays a member for what it has under way.
func (m *Member) Release(ctx context.Context) error {
	m.leaving.Store(true)
	m.nudge()
	select {
	case <-m.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave stops the heartbeat, gives the shards back and ends the membership. The connection is closed in any case.
func (m *Member) Leave(ctx context.Context) error {
	m.stop()
	m.done.Wait()
	m.lease.Store(&publishing.Lease{Holder: m.ID})
	return errors.Join(m.store.Leave(ctx), m.store.Close(ctx))
}
