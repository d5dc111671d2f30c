package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/pg"
	publishingdb "crier/publishing/db"
	"crier/publishing/purge"
	"crier/tenancy"
)

const oneDay = 24 * time.Hour

// defaultRetention has the default retention periods.
var defaultRetention = purge.Retention{Keys: 30 * oneDay, Events: 180 * oneDay, Deleted: 30 * oneDay}

// monthOfPosts inserts a month of posts that ends $4 days ago. Every post was created by a request
// with an idempotency key, was published, and has a timeline. One in ten was deleted a day later.
const monthOfPosts = `
with made as (
  select gen_random_uuid() as id, $2::uuid[] as channels, i, now() - ($4::float8 + 1 + (1 - i::float8 / $3) * 29) * interval '1 day' as at
  from generate_series(1, $3::int) i
), posts as (
  insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date, release_id, created_at, updated_at, deleted_at)
  select $1, id, id, channels[1 + i % cardinality(channels)], $5, 'PUBLISHED', at, at, 'release', at, case when i % 10 = 0 then at + interval '1 day' else at end,
    case when i % 10 = 0 then at + interval '1 day' end from made returning id
), parts as (
  insert into part (org_id, id, post_id, position, content) select $1, id, id, 0, repeat('some words ', 20) from made
), publications as (
  insert into publication (org_id, id, post_id, group_id, part_id, position, created_at, phase, release_id, done_at, claimed_at)
  select $1, id, id, id, id, 0, at, 'done', 'release', at, at from made
), events as (
  insert into post_event (org_id, post_id, at, event, by) select $1, id, at, e, 'bench' from made cross join unnest(array['written', 'claimed', 'confirmed']) e
), keys as (
  insert into idempotency (org_id, key, request_hash, body, created_at)
  select $1, id::text, 'hash', jsonb_build_array(jsonb_build_object('post', id, 'channel', id)), at from made
)
select count(*) from posts`

// insertMonth inserts a month of posts that ended daysAgo days ago.
func (b *testDB) insertMonth(ctx context.Context, t *tenant, posts, daysAgo int) error {
	if _, err := b.super.Exec(ctx, monthOfPosts, t.org.UUID(), t.channels, posts, daysAgo,
		int16(tenancy.Shard(t.org))); err != nil {
		return err
	}
	return b.settle(ctx)
}

// prune deletes the rows whose retention period had ended before now minus ago, and returns how
// long it took.
func (b *testDB) prune(ctx context.Context, db *pg.DB, ago time.Duration) (time.Duration, error) {
	then := purge.Retention{Keys: defaultRetention.Keys + ago, Events: defaultRetention.Events + ago,
		Deleted: defaultRetention.Deleted + ago}
	began := now()
	p := purge.NewPruner(then, publishingdb.New(db))
	for _, kind := range p.Kinds() {
		if _, err := p.Prune(ctx, kind); err != nil {
			return 0, fmt.Errorf("%s: %w", kind, err)
		}
	}
	return now().Sub(began), b.settle(ctx)
}

// size is the size of a table.
type size struct {
	Rows int64   `json:"rows"`
	MB   float64 `json:"mb"` // including indexes
}

func (b *testDB) sizes(ctx context.Context) (map[string]size, error) {
	out := map[string]size{}
	for _, table := range []string{"post", "part", "publication", "post_event", "idempotency"} {
		var s size
		err := b.super.QueryRow(ctx, "select (select count(*) from "+table+`),
			round(pg_total_relation_size($1::text::regclass) / 1048576.0, 1)::float8`,
			table).Scan(&s.Rows, &s.MB)
		if err != nil {
			return nil, err
		}
		out[table] = s
	}
	return out, nil
}

// retention shows that tables stay within their bounds over two years, and what pruning costs
// during a burst. The bound for keys and events is their size after one year. Posts that were not
// deleted are kept with their publications.
func retention(ctx context.Context, r *rig) error {
	return errors.Join(r.withDB(ctx, func(b *testDB) error { return b.twoYears(ctx) }), pruneBeside(ctx, r))
}

func (b *testDB) twoYears(ctx context.Context) error {
	posts := b.opts.year
	db, err := pg.Open(ctx, pg.Config{URL: b.server.URL(b.name)})
	if err != nil {
		return err
	}
	defer db.Close()
	all, err := b.createTenants(ctx, 1, 10)
	if err != nil {
		return err
	}
	var bound map[string]size
	for year := 1; year <= 2; year++ {
		var took time.Duration
		for month := 1; month <= 12; month++ {
			daysAgo := 24*30 - ((year-1)*12+month)*30
			if err := b.insertMonth(ctx, &all[0], posts/12, daysAgo); err != nil {
				return err
			}
			t, err := b.prune(ctx, db, time.Duration(daysAgo)*oneDay)
			if err != nil {
				return err
			}
			took += t
		}
		tables, err := b.sizes(ctx)
		if err != nil {
			return err
		}
		line := m{
			"bench": "retention", "year": year, "postsAYear": posts, "keysAYear": posts, "eventsAYear": 3 * posts,
			"tables": tables, "pruneSeconds": took.Seconds(),
		}
		if bound != nil {
			line["withinBound"] = withinBounds(bound, tables)
		}
		bound = tables
		if err := b.emit(line); err != nil {
			return err
		}
	}
	return nil
}

// withinBounds reports whether the second year left no more keys and events than the first and at
// most twice as many posts, with a tolerance of 1 % for rows and 10 % for bytes.
func withinBounds(first, second map[string]size) bool {
	factors := map[string]float64{"idempotency": 1, "post_event": 1, "post": 2, "part": 2, "publication": 2}
	for table, times := range factors {
		moreRows := float64(second[table].Rows) > 1.01*times*float64(first[table].Rows)
		if moreRows || second[table].MB > 1.1*times*first[table].MB {
			return false
		}
	}
	return true
}

// pruneBeside measures the same burst without and with pruning in turn, and reports the lowest
// value of each figure. The processor time per post excludes an idle span, and therefore the
// pruning itself.
func pruneBeside(ctx context.Context, r *rig) error {
	const rounds = 3
	old := 12 * (r.opts.year / 12)
	x := burst{posts: min(20_000, r.opts.posts), organizations: min(2000, r.opts.organizations), channels: 2}
	x.prepare = func(ctx context.Context, b *testDB, all []tenant) error {
		return b.insertMonth(ctx, &all[0], old, 300)
	}
	var left int64
	x.ended = func(ctx context.Context, b *testDB) error {
		s, err := b.sizes(ctx)
		left = s["post_event"].Rows + s["idempotency"].Rows
		return err
	}
	line := m{
		"bench": "retention", "posts": x.posts, "organizations": x.organizations,
		"channels": x.organizations * x.channels, "rounds": rounds, "oldRows": 3 * old,
	}
	lowest := func(name string, v float64) {
		if best, ok := line[name].(float64); !ok || v < best {
			line[name] = v
		}
	}
	for range rounds {
		for _, c := range []struct {
			name     string
			settings []string
		}{
			{name: "Without", settings: []string{
				"IDEMPOTENCY_KEY_RETENTION=0s", "EVENT_RETENTION=0s", "DELETED_POST_RETENTION=0s",
			}},
			{name: "With", settings: nil},
		} {
			x.settings = c.settings
			out, err := x.run(ctx, r)
			if err != nil {
				return err
			}
			if left == 0 {
				return errors.New("everything was pruned before the burst was over; use a larger -year")
			}
			lowest("cpuMsPerPost"+c.name, x.per(out.used.cpu()))
			lowest("latenessP99Ms"+c.name, ms(quantile(out.late, .99)))
			lowest("allPublishedMs"+c.name, ms(out.span))
			line["oldRowsLeft"+c.name] = left
		}
	}
	for _, name := range []string{"cpuMsPerPost", "latenessP99Ms", "allPublishedMs"} {
		with, _ := line[name+"With"].(float64)
		without, _ := line[name+"Without"].(float64)
		line[name+"Ratio"] = with / without
	}
	return r.emit(line)
}
