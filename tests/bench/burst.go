package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// burst is posts that all fall due at one instant.
type burst struct {
	posts, organizations, channels int // channels of each organization
	latency                        time.Duration
	rows                           int // posts already in the table, half of them published and half due next month
	settings                       []string
	prepare                        func(context.Context, *base, []tenant) error // fills in more; nil for nothing
	ended                          func(context.Context, *base) error           // looks at the database when all are out; nil for nothing
}

// result of a burst.
type result struct {
	span       time.Duration // from the due time until Postgres knows the last post as published
	late       []time.Duration
	sent       time.Duration // lateness of the last post at the platform
	used       cost
	twice      int
	outOfOrder int
}

func (b burst) per(d time.Duration) float64 { return ms(d) / float64(b.posts) }

// rate is how many posts were published in a second.
func (b burst) rate(out result) float64 { return float64(b.posts) / out.span.Seconds() }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// quantile of sorted durations.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Filling in takes a second for so many posts at least; the service starts so long before the posts' time and finds them there.
const (
	fillRate = 1500
	ahead    = 12 * time.Second
)

// run fills a fresh database while the service runs, starts the service anew and watches the burst.
func (x burst) run(ctx context.Context, r *rig) (out result, err error) {
	err = r.with(ctx, func(b *base) error {
		first, err := b.serve(ctx)
		if err != nil {
			return err
		}
		all, err := b.people(ctx, x.organizations, x.channels)
		if err == nil {
			err = b.history(ctx, all, x.rows)
		}
		if err == nil && x.prepare != nil {
			err = x.prepare(ctx, b, all)
		}
		if err != nil {
			return errors.Join(err, first.stop())
		}
		due := now().Add(ahead + time.Duration(x.posts/fillRate)*time.Second).Truncate(time.Second)
		_, err = b.book(ctx, x.posts, spread(all, due))
		if err = errors.Join(err, first.stop()); err != nil {
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

// history fills in posts of other times on the same channels.
func (b *base) history(ctx context.Context, all []tenant, rows int) error {
	past, future := spread(all, now().Add(-30*24*time.Hour)), spread(all, now().Add(30*24*time.Hour))
	_, err := b.book(ctx, rows, func(i int) booking {
		if i%2 == 0 {
			x := past(i / 2)
			x.done = true
			return x
		}
		return future(i / 2)
	})
	if err == nil {
		err = b.settle(ctx)
	}
	return err
}

// startUp is how long a service does what it does once. As with the connections of the floor, that is not counted; what it
// does ahead of the posts' time is.
const startUp = 2 * time.Second

// idleSpan is how long the service is watched after a burst, to take off what it uses anyway.
const idleSpan = 10 * time.Second

func (x burst) watch(ctx context.Context, b *base, due time.Time) (out result, err error) {
	b.platform.begin(x.latency)
	n, err := b.serve(ctx, append(x.settings, b.opts.settings...)...)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	if err := wait(ctx, startUp); err != nil {
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
	if err == nil && x.ended != nil {
		err = x.ended(ctx, b)
	}
	if err != nil {
		return out, err
	}
	if err := errors.Join(profiled(), wait(ctx, 2*time.Second)); err != nil {
		return out, err
	}
	quiet, err := b.cost(ctx, n)
	if err == nil {
		err = wait(ctx, idleSpan)
	}
	if err != nil {
		return out, err
	}
	idle, err := b.cost(ctx, n)
	if err == nil {
		err = b.allPublished(ctx)
	}
	out.used = after.since(before).less(idle.since(quiet), after.at.Sub(before.at), idle.at.Sub(quiet.at))
	s := b.platform.end()
	slices.Sort(s.late)
	out.late, out.sent, out.twice, out.outOfOrder = s.late, s.end.Sub(due), s.twice, s.outOfOrder
	return out, err
}

// unfinished counts by the indexes alone: looking through the whole table would be counted as the service's work.
const unfinished = `select (select count(*) from post where state in ('PUBLISHING', 'UNKNOWN'))
	+ (select count(*) from generate_series(0, 255) x(shard) cross join lateral (select 1 from post p where p.shard = x.shard and p.state = 'QUEUE' and p.deleted_at is null and p.due <= now()) due)`

// published waits until every post is, as Postgres says. It asks only when the platform has seen them all.
func (x burst) published(ctx context.Context, b *base) (time.Time, error) {
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

// allPublished returns an error when a post that was due is anything but published. It reads the whole table, so it is asked last.
func (b *base) allPublished(ctx context.Context) error {
	var others int
	err := b.super.QueryRow(ctx, `select count(*) from post where state <> 'PUBLISHED' and due <= now() and deleted_at is null`).Scan(&others)
	if err == nil && others > 0 {
		err = fmt.Errorf("%d posts that were due are not published", others)
	}
	return err
}

// line is what every burst tells.
func (x burst) line(name string, out result) m {
	line := m{
		"bench": name, "posts": x.posts, "organizations": x.organizations, "channels": x.organizations * x.channels, "latencyMs": x.latency.Milliseconds(), "grade": grade,
		"allPublishedMs": ms(out.span), "latenessP50Ms": ms(quantile(out.late, .5)), "latenessP99Ms": ms(quantile(out.late, .99)), "latenessMaxMs": ms(quantile(out.late, 1)),
		"twice": out.twice, "outOfOrder": out.outOfOrder,
	}
	out.used.tell(line, x.posts)
	return line
}

// dueBurst is very many posts of very many organizations, without and with a platform that takes its time. Without it,
// bursts and floors take turns, and each line compares the means so far: where others use the machine, too, one burst is
// up to half as fast again as the next. The floor of a round is that of its best number of connections.
func dueBurst(ctx context.Context, r *rig) error {
	x := burst{posts: r.opts.posts, organizations: r.opts.organizations, channels: 2}
	var ours, floors []float64
	tell := func(out result) error {
		line := x.line("due_burst", out)
		line["unit"], line["ours"], line["floor"], line["ratio"] = "posts/s", mean(ours), mean(floors), mean(ours)/mean(floors)
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
		if err := tell(out); err != nil {
			return err
		}
	}
	x.latency = 200 * time.Millisecond
	out, err := x.run(ctx, r)
	if err != nil {
		return err
	}
	ours = []float64{x.rate(out)}
	return tell(out)
}

func mean(rates []float64) (m float64) {
	for _, r := range rates {
		m += r / float64(len(rates))
	}
	return m
}

// peerBurst is a burst of a size that other schedulers were measured with. Its floor is the loop's processor time a post, which has no platform to call.
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
	line["unit"], line["ours"], line["floor"], line["ratio"], line["firstOutMs"], line["allOutMs"] = "CPU-ms/post", x.per(out.used.cpu()), floor, x.per(out.used.cpu())/floor, ms(quantile(out.late, 0)), ms(out.sent)
	line["floorConnections"] = connections
	return r.emit(line)
}

// growth is the same small burst beside ever more rows.
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
		at[rows] = costs{x.per(out.used.cpu()), float64(out.used.statements) / float64(x.posts), x.per(out.span)}
		line := x.line("growth", out)
		base := at[min(rows, 10_000)]
		line["unit"], line["ours"], line["floor"], line["ratio"], line["rows"] = "CPU-ms/post", at[rows].cpu, base.cpu, at[rows].cpu/base.cpu, rows
		line["statementsRatio"], line["timeRatio"] = at[rows].statements/base.statements, at[rows].time/base.time
		if err := r.emit(line); err != nil {
			return err
		}
	}
	return nil
}
