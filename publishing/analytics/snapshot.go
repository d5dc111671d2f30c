package analytics

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"crier/platform/clock"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/access"
	analyticsstore "crier/publishing/analytics/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
)

const (
	// snapshotPosts and snapshotPostAge limit which posts are read along with their channel. These
	// are the channel's latest posts, at most a week old.
	snapshotPosts   = 10
	snapshotPostAge = 7 * 24 * time.Hour
	// snapshotOrgs is how many organizations are processed concurrently. The channels of one
	// organization are read one at a time.
	snapshotOrgs = 16
	// snapshotBatch, snapshotServerBatch and snapshotOrgBatch are the maximum numbers of channels
	// in one batch: in total, per server, and per organization. At SnapshotRate, a full server
	// batch takes less than five minutes.
	snapshotBatch       = 400
	snapshotServerBatch = 100
	snapshotOrgBatch    = 25
	// snapshotOrgTime limits the total time of an organization's calls in a batch, not counting the
	// time spent waiting for a turn. The remaining channels are left for later.
	snapshotOrgTime = 2 * time.Minute
	// snapshotFailures is how many times in a row a server may fail before its remaining channels
	// are left for later. A call that takes snapshotSlow or longer counts as a failure.
	snapshotFailures = 3
	snapshotSlow     = insightTime / 2
	// snapshotAgain is the time after which a channel that was taken but not tried is due again.
	snapshotAgain = time.Hour
	// snapshotRest is the first part of each UTC day. No snapshot is due then, because platforms
	// are still completing the previous day's figures.
	snapshotRest = 2 * time.Hour
)

// SnapshotRate is how many reads per second TakeSnapshots starts for each server. See also
// requestRate. Bluesky servers have the lowest documented limit per client: 3,000 calls in five
// minutes.
const SnapshotRate = 4

// TakeSnapshots reads and stores the statistics of all channels whose daily snapshot is due, and of
// their latest posts. Each channel is due at its own time of day. TakeSnapshots returns the number
// of channels read, even if it also returns an error. It returns only database errors.
//
// Channels on a failing server or in a slow organization are postponed by an hour. Other channels
// are not delayed. A channel that fails more often waits longer, and channels with fewer failures
// go first.
//
// If ctx ends or the process crashes, channels that were taken but not read are due again an hour
// later. Only one process should call TakeSnapshots at a time, because the rate limit applies per
// process.
func (s *Analytics) TakeSnapshots(ctx context.Context) (int, error) {
	platforms := s.analysts()
	sweep := &snapshotSweep{Analytics: s, servers: newServerQueues(s.cfg.SnapshotRate, 1)}
	for {
		now := s.deps.Clock.Now()
		due, err := analyticsstore.SnapshotsDue(ctx, s.db, analyticsstore.SnapshotBatch{
			Platforms: platforms, OfOrg: snapshotOrgBatch, OfServer: snapshotServerBatch, Total: snapshotBatch,
			Now: now, Again: now.Add(snapshotAgain),
		})
		if err != nil || len(due) == 0 {
			return sweep.done, err
		}
		if err := sweep.batch(ctx, due); err != nil || sweep.isOver() {
			return sweep.done, err
		}
	}
}

// errNoTurn means that a channel was not read because ctx would end before the channel's turn.
var errNoTurn = errors.New("no time is left for snapshots")

// errInactive means that the channel was disconnected, or its organization lost access, while the
// snapshot was waiting.
var errInactive = errors.New("the channel is not active")

// analysts returns the platforms that have statistics.
func (s *Analytics) analysts() []string {
	out := []string{}
	for _, c := range s.deps.Connectors.All() {
		if _, ok := connector.AnalystOf(c); ok {
			out = append(out, c.Describe().ID)
		}
	}
	return out
}

// snapshotSweep is the state of one call to TakeSnapshots.
type snapshotSweep struct {
	*Analytics
	// servers holds queues that are joined but never left, because their failure counts are needed
	// until the sweep ends.
	servers *serverQueues

	mu   sync.Mutex // protects the fields below
	done int
	over bool // no more channels are read
}

func (s *snapshotSweep) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// end stops the sweep from reading any more channels. Calls in progress continue.
func (s *snapshotSweep) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// batch reads the given channels, one channel per organization at a time. After a database error,
// it starts no further reads. It returns the first such error.
func (s *snapshotSweep) batch(ctx context.Context, due []analyticsstore.DueSnapshot) error {
	byOrg := map[tenancy.OrgID][]analyticsstore.DueSnapshot{}
	for _, d := range due {
		byOrg[d.Org] = append(byOrg[d.Org], d)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(snapshotOrgs)
	for _, channels := range byOrg {
		group.Go(func() error { return s.organization(ctx, channels) })
	}
	return group.Wait()
}

func (s *snapshotSweep) organization(ctx context.Context, channels []analyticsstore.DueSnapshot) error {
	visit := &snapshotVisit{snapshotSweep: s}
	for _, d := range channels {
		if ctx.Err() != nil || s.isOver() || visit.spent >= snapshotOrgTime {
			return nil
		}
		server := s.servers.join(d.Destination)
		if server.isFailing() {
			continue
		}
		err := visit.channel(ctx, d, server)
		if errors.Is(err, errNoTurn) {
			s.end()
			return nil
		}
		if pg.IsEnvironment(err) && !pg.IsOrgBusy(err) && ctx.Err() == nil {
			return err
		}
		if err != nil {
			s.deps.Log.WarnContext(ctx, "cannot store a channel's statistics",
				"org", d.Org, "channel", d.Channel, "error", err)
		}
	}
	return nil
}

// snapshotVisit is one organization's part of a batch. Only one goroutine uses it.
type snapshotVisit struct {
	*snapshotSweep
	// spent is the total time of the calls so far.
	spent time.Duration
}

// channel reads and stores the statistics of a channel and its latest posts. It returns a database
// error or errNoTurn.
func (s *snapshotVisit) channel(ctx context.Context, d analyticsstore.DueSnapshot, server *serverQueue) error {
	now := s.deps.Clock.Now()
	source, err := analyticsstore.FindSnapshotSource(
		ctx, s.db, d.Org, d.Channel, now.Add(-snapshotPostAge), snapshotPosts,
	)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	next := nextSnapshot(d.Channel, now)
	if !source.Active {
		return analyticsstore.PutOffSnapshot(ctx, s.db, d.Org, d.Channel, next)
	}
	r := reading{access: source.Access, insightTarget: targetOfChannel(source.Access), last: source.ReadAt, lastDay: source.LastDay}
	days, err := s.ask(ctx, server, &r)
	if errors.Is(err, errInactive) {
		return analyticsstore.PutOffSnapshot(ctx, s.db, d.Org, d.Channel, next)
	}
	if err != nil {
		return s.notRead(ctx, source.Access, d.Channel, now, err)
	}
	all := []analyticsstore.ReadInsight{{InsightOf: r.of, Days: days, Next: &next}}
	all = append(all, s.posts(ctx, server, r.access, source.Posts)...)
	if err := analyticsstore.SaveInsights(ctx, s.db, d.Org, now, all); err != nil {
		return err
	}
	s.mu.Lock()
	s.done++
	s.mu.Unlock()
	return nil
}

// posts reads the statistics of the given posts. If the platform fails on one post or the
// organization's time runs out, posts skips the rest.
func (s *snapshotVisit) posts(
	ctx context.Context, server *serverQueue, a db.Access, posts []analyticsstore.Released,
) (out []analyticsstore.ReadInsight) {
	for _, p := range posts {
		if s.spent >= snapshotOrgTime {
			break
		}
		r := reading{access: a, insightTarget: targetOf(p)}
		days, err := s.ask(ctx, server, &r)
		if errors.Is(err, errNoTurn) || errors.Is(err, errInactive) {
			break
		}
		if err != nil {
			s.postNotRead(ctx, r, err)
			break
		}
		a = r.access
		out = append(out, analyticsstore.ReadInsight{InsightOf: r.of, Days: days})
	}
	return out
}

// postNotRead logs why a post was not read. If the platform requested a wait, postNotRead also
// stores the failure.
func (s *snapshotVisit) postNotRead(ctx context.Context, r reading, err error) {
	s.deps.Log.WarnContext(ctx, "cannot read a post's statistics",
		"org", r.org(), "post", r.of.Post, "error", err)
	failure := failureOf(s.deps.Clock.Now(), err)
	if failure.Again == nil {
		return
	}
	if err := analyticsstore.InsightFailed(ctx, s.db, r.org(), r.of, failure); err != nil {
		s.deps.Log.ErrorContext(ctx, "cannot store that reading statistics failed",
			"org", r.org(), "post", r.of.Post, "error", err)
	}
}

// notRead logs and stores why a channel was not read. It returns a database error or errNoTurn.
func (s *snapshotVisit) notRead(
	ctx context.Context, a db.Access, channel publishing.ChannelID, now time.Time, err error,
) error {
	if errors.Is(err, errNoTurn) || ctx.Err() != nil {
		return errNoTurn
	}
	s.deps.Log.WarnContext(ctx, "cannot read a channel's statistics for the daily snapshot",
		"org", a.Channel.Org, "channel", channel, "connector", a.Channel.Connector, "error", err)
	return analyticsstore.SnapshotFailed(ctx, s.db, a.Channel.Org, channel, failureOf(now, err))
}

// ask waits for a turn at the server and then reads the days since the last read. It updates r with
// the credential it used, because a refresh may have replaced the previous credential.
//
// ask returns errNoTurn if ctx ends before the turn comes. The wait can take minutes, so ask checks
// the channel again afterward and returns errInactive if the channel may no longer be read. The
// sweep runs in its own goroutines, so ask converts a panic in a connector to an error.
func (s *snapshotVisit) ask(
	ctx context.Context, server *serverQueue, r *reading,
) (days []publishing.DaySamples, err error) {
	if server.pace.Wait(ctx) != nil {
		return nil, errNoTurn
	}
	active, err := analyticsstore.ChannelActive(ctx, s.db, r.org(), r.access.Channel.ID)
	if err != nil {
		return nil, err
	}
	if !active {
		return nil, errInactive
	}
	c, _ := s.deps.Connectors.Get(r.access.Channel.Connector)
	var ok bool
	if r.analyst, ok = connector.AnalystOf(c); !ok {
		return nil, nil
	}
	began := clock.Boot()
	ctx, cancel := context.WithTimeout(ctx, insightTime)
	defer cancel()
	err = s.deps.Access.Read(ctx, r.access, func(ctx context.Context, c *access.Channel) (err error) {
		r.access.Credential = c.Sealed
		days, err = r.ask(ctx, c.Session, s.deps.Clock.Now())
		return err
	})
	took := clock.Boot() - began
	s.spent += took
	server.answered(err, took)
	return days, err
}

// nextSnapshot returns the time at which the channel's next snapshot after now is due. Each channel
// has a fixed time of day, so that calls to a platform are spread over the day. A late snapshot,
// even one after midnight, does not delay later snapshots.
func nextSnapshot(channel publishing.ChannelID, now time.Time) time.Time {
	raw := channel.UUID()
	spread := uint64(24*time.Hour - snapshotRest)
	at := publishing.DayOf(now).Add(snapshotRest + time.Duration(binary.BigEndian.Uint64(raw[8:])%spread))
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}
