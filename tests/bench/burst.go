package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// burst is a set of posts that are due at the same time.
type burst struct {
	posts, organizations int
	// channels is the number per organization.
	channels int
	latency  time.Duration
	// rows is the number of posts already in the table, half of them published and half due next
	// month.
	rows     int
	settings []string
	// prepare adds other rows. It may be nil.
	prepare func(context.Context, *testDB, []tenant) error
	// ended checks the database after the last post. It may be nil.
	ended func(context.Context, *testDB) error
}

// result is the measurement of a burst.
type result struct {
	// span is the time from the due time until Postgres has the last post as published.
	span time.Duration
	late []time.Duration
	// sent is the lateness of the last post when it reached the platform.
	sent time.Duration
	// used is the total cost of the burst, less what an idle service would have used. It includes
	// deferred.
	used cost
	// deferred is the part of used after the last post, for example for notifications and metrics.
	deferred   cost
	twice      int
	outOfOrder int
}

func (x burst) per(d time.Duration) float64 { return ms(d) / float64(x.posts) }

// rate returns the number of posts published per second.
func (x burst) rate(out result) float64 { return float64(x.posts) / out.span.Seconds() }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// quantile returns the q-quantile of sorted durations.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Inserting takes at most a second per fillRate posts. The service starts ahead of the due time, so
// that it finds the posts.
const (
	fillRate = 1500
	ahead    = startUp + idleSpan + 4*time.Second
)

// run fills a new database while the service runs, restarts the service and measures the burst.
func (x burst) run(ctx context.Context, r *rig) (out result, err error) {
	err = r.withDB(ctx, func(b *testDB) error {
		first, err := b.serve(ctx)
		if err != nil {
			return err
		}
		all, err := x.fill(ctx, b)
		if err != nil {
			return errors.Join(err, first.stop())
		}
		due := now().Add(ahead + time.Duration(x.posts/fillRate)*time.Second).Truncate(time.Second)
		_, err = b.insertPosts(ctx, x.posts, spread(all, due))
		err = errors.Join(err, first.stop())
		if err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		out, err = x.watch(ctx, b, due)
		return err
	})
	return out, err
}

// fill inserts the tenants and all rows except the posts of the burst.
func (x burst) fill(ctx context.Context, b *testDB) ([]tenant, error) {
	all, err := b.createTenants(ctx, x.organizations, x.channels)
	if err != nil {
		return nil, err
	}
	if err := b.history(ctx, all, x.rows); err != nil {
		return nil, err
	}
	if x.prepare == nil {
		return all, nil
	}
	return all, x.prepare(ctx, b, all)
}

// history inserts posts with other due times on the same channels.
func (b *testDB) history(ctx context.Context, all []tenant, rows int) error {
	past, future := spread(all, now().Add(-30*24*time.Hour)), spread(all, now().Add(30*24*time.Hour))
	_, err := b.insertPosts(ctx, rows, func(i int) booking {
		if i%2 == 0 {
			x := past(i / 2)
			x.done = true
			return x
		}
		return future(i / 2)
	})
	if err != nil {
		return err
	}
	return b.settle(ctx)
}

// A service first has startUp for its start-up work, which is not counted, just as the floor's
// connections are not. Then it is measured for idleSpan, and its idle use is subtracted from the
// cost of the burst. Afterward it has deferSpan for the work that it deferred during the burst,
// which is counted.
const (
	startUp   = 3 * time.Second
	idleSpan  = 8 * time.Second
	deferSpan = 8 * time.Second
)

func (x burst) watch(ctx context.Context, b *testDB, due time.Time) (out result, err error) {
	b.platform.begin(x.latency)
	n, err := b.serve(ctx, append(x.settings, b.opts.settings...)...)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	if err := wait(ctx, startUp); err != nil {
		return out, err
	}
	idle, err := b.idleCost(ctx, n, idleSpan)
	if err != nil {
		return out, err
	}
	before, err := b.cost(ctx, n)
	if err != nil {
		return out, err
	}
	if err := untilDue(ctx, due); err != nil {
		return out, err
	}
	profiled := b.profiled(ctx, n)
	end, err := x.published(ctx, b)
	if err != nil {
		return out, err
	}
	out.span = end.Sub(due)
	after, err := b.cost(ctx, n)
	if err != nil {
		return out, err
	}
	if err := errors.Join(profiled(), wait(ctx, deferSpan)); err != nil {
		return out, err
	}
	rested, err := b.cost(ctx, n)
	if err != nil {
		return out, err
	}
	if x.ended != nil {
		if err := x.ended(ctx, b); err != nil {
			return out, err
		}
	}
	if err := b.allPublished(ctx); err != nil {
		return out, err
	}
	out.deferred = rested.since(after).less(idle, rested.at.Sub(after.at), idleSpan)
	out.used = rested.since(before).less(idle, rested.at.Sub(before.at), idleSpan)
	s := b.platform.end()
	slices.Sort(s.late)
	out.late, out.sent, out.twice, out.outOfOrder = s.late, s.end.Sub(due), s.twice, s.outOfOrder
	return out, nil
}

// unfinished uses only indexes, because a scan of the whole table would count as the service's
// work.
const unfinished = `select (select count(*) from post where state in ('PUBLISHING', 'UNKNOWN'))
	+ (select count(*) from generate_series(0, 255) x(shard) cross join lateral (select 1 from post p where p.shard = x.shard and p.state = 'QUEUE' and p.deleted_at is null and p.due <= now()) due)`

// published waits until Postgres has every post as published and returns the time. It queries
// Postgres only after the platform has received all posts.
func (x burst) published(ctx context.Context, b *testDB) (time.Time, error) {
	patience, cancel := context.WithTimeout(ctx, 5*time.Minute+time.Duration(x.posts)*time.Millisecond)
	defer cancel()
	for {
		if b.platform.count() >= x.posts {
			var left int
			if err := b.super.QueryRow(patience, unfinished).Scan(&left); err != nil {
				return time.Time{}, err
			}
			if left == 0 {
				return now(), nil
			}
		}
		if err := wait(patience, 10*time.Millisecond); err != nil {
			return time.Time{}, fmt.Errorf("%d of %d posts reached the platform: %w", b.platform.count(), x.posts, err)
		}
	}
}

// allPublished returns an error if a due post is not published. It reads the whole table, so it is
// called after the measurement.
func (b *testDB) allPublished(ctx context.Context) error {
	var others int
	const late = "select count(*) from post where state <> 'PUBLISHED' and due <= now() and deleted_at is null"
	err := b.super.QueryRow(ctx, late).Scan(&others)
	if err != nil {
		return err
	}
	if others > 0 {
		return fmt.Errorf("%d posts that were due are not published", others)
	}
	return nil
}

// line returns the figures that every burst reports.
func (x burst) line(name string, out result) m {
	line := m{
		"bench": name, "posts": x.posts, "organizations": x.organizations, "channels": x.organizations * x.channels,
		"latencyMs": x.latency.Milliseconds(), "grade": grade,
		"allPublishedMs": ms(out.span), "latenessP50Ms": ms(quantile(out.late, .5)),
		"latenessP99Ms": ms(quantile(out.late, .99)), "latenessMaxMs": ms(quantile(out.late, 1)),
		"twice": out.twice, "outOfOrder": out.outOfOrder,
	}
	out.used.addTo(line, x.posts)
	line["deferredCpuMsPerPost"], line["deferredStatementsPerPost"] = x.per(out.deferred.cpu()),
		float64(out.deferred.statements)/float64(x.posts)
	return line
}

// dueBurst measures a large burst of many organizations, without and with a slow platform. Without
// latency, bursts and floors alternate, and each line compares the means so far, because on a
// shared machine one burst may be 50 % faster than the next. The floor of a round uses the best of
// several numbers of connections.
func dueBurst(ctx context.Context, r *rig) error {
	x := burst{posts: r.opts.posts, organizations: r.opts.organizations, channels: 2}
	var ours, floors []float64
	emit := func(out result) error {
		line := x.line("due_burst", out)
		line["unit"], line["ours"], line["floor"], line["ratio"] = "posts/s", mean(ours), mean(floors),
			mean(ours)/mean(floors)
		line["rounds"], line["eachOurs"], line["eachFloor"] = len(ours), ours, floors
		return r.emit(line)
	}
	for range max(1, r.opts.rounds) {
		floor, err := x.floor(ctx, r)
		if err != nil {
			return err
		}
		out, err := x.run(ctx, r)
		if err != nil {
			return err
		}
		ours, floors = append(ours, x.rate(out)), append(floors, floor)
		if err := emit(out); err != nil {
			return err
		}
	}
	x.latency = 200 * time.Millisecond
	out, err := x.run(ctx, r)
	if err != nil {
		return err
	}
	ours = []float64{x.rate(out)}
	return emit(out)
}

func mean(rates []float64) (m float64) {
	for _, r := range rates {
		m += r / float64(len(rates))
	}
	return m
}

// peerBurst measures a burst of a size for which figures of other schedulers exist. Its floor is
// the processor time per post of the loop, without calls to a platform.
func peerBurst(ctx context.Context, r *rig) error {
	x := burst{posts: 300, organizations: 50, channels: 1}
	out, err := x.run(ctx, r)
	if err != nil {
		return err
	}
	floor, connections, err := x.cheapest(ctx, r)
	if err != nil {
		return err
	}
	line := x.line("peer_burst", out)
	ours := x.per(out.used.cpu())
	line["unit"], line["ours"], line["floor"], line["ratio"] = "CPU-ms/post", ours, floor, ours/floor
	line["firstOutMs"], line["allOutMs"] = ms(quantile(out.late, 0)), ms(out.sent)
	line["floorConnections"] = connections
	return r.emit(line)
}

// growth measures the same small burst with a growing number of rows in the table.
func growth(ctx context.Context, r *rig) error {
	type costs struct{ cpu, statements, time float64 }
	at := map[int]costs{}
	for _, rows := range []int{1_000, 10_000, 100_000, 1_000_000} {
		if rows > r.opts.rows {
			break
		}
		x := burst{posts: min(5000, r.opts.posts), organizations: 500, channels: 2, rows: rows}
		out, err := x.run(ctx, r)
		if err != nil {
			return err
		}
		at[rows] = costs{cpu: x.per(out.used.cpu()), statements: float64(out.used.statements) / float64(x.posts),
			time: x.per(out.span)}
		line := x.line("growth", out)
		base := at[min(rows, 10_000)]
		line["unit"], line["ours"], line["floor"], line["ratio"], line["rows"] = "CPU-ms/post", at[rows].cpu,
			base.cpu, at[rows].cpu/base.cpu, rows
		line["statementsRatio"], line["timeRatio"] = at[rows].statements/base.statements, at[rows].time/base.time
		if err := r.emit(line); err != nil {
			return err
		}
	}
	return nil
}
