package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"crier/tenancy"
)

// unlimited is the setting that puts the rate limit of the API out of reach.
const unlimited = "API_LIMIT=1000000000"

// pool returns superuser connections, for floors.
func (b *testDB) pool(ctx context.Context, connections int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(b.server.SuperURL(b.name))
	if err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.MinConns = int32(connections), int32(connections)
	return pgxpool.NewWithConfig(ctx, cfg)
}

// serving runs do with a running service and 100 organizations with two channels each.
func (r *rig) serving(ctx context.Context, do func(b *testDB, n *node, all []tenant) error) error {
	return r.withDB(ctx, func(b *testDB) (err error) {
		n, err := b.serve(ctx, append(r.opts.settings, unlimited)...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.stop()) }()
		all, err := b.createTenants(ctx, 100, 2)
		if err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		return do(b, n, all)
	})
}

// creating measures POST /posts. Its floor is the same inserts in one transaction, with the same
// number of connections.
func creating(ctx context.Context, r *rig) error {
	return r.serving(ctx, func(b *testDB, n *node, all []tenant) error {
		span := time.Duration(r.opts.seconds) * time.Second / 6
		due := now().Add(30 * 24 * time.Hour)
		for _, users := range []int{1, 8, 32} {
			c := newClient(n, users)
			line, err := b.requests(ctx, n, users, span,
				func(i int) error { return c.book(ctx, all[i%len(all)], i%2, due, content(i, 1, due)) },
				func() (load, error) { return b.inserting(ctx, users, span, all, due) })
			if err != nil {
				return err
			}
			line["bench"] = "create"
			if err := r.emit(line); err != nil {
				return err
			}
		}
		return nil
	})
}

// requests measures calls to the service by a number of concurrent users, then the floor.
func (b *testDB) requests(
	ctx context.Context, n *node, users int, span time.Duration, call func(i int) error, bare func() (load, error),
) (m, error) {
	before, err := b.cost(ctx, n)
	if err != nil {
		return nil, err
	}
	ours, err := drive(users, untilOver(span), call)
	if err != nil {
		return nil, err
	}
	after, err := b.cost(ctx, n)
	if err != nil {
		return nil, err
	}
	floor, err := bare()
	used := after.since(before)
	return m{
		"clients": users, "unit": "requests/s", "ours": ours.rate, "floor": floor.rate, "ratio": ours.rate / floor.rate,
		"p50Ms": ms(ours.p50), "p99Ms": ms(ours.p99), "floorP50Ms": ms(floor.p50), "floorP99Ms": ms(floor.p99),
		"cpuMsPerRequest":      ms(used.cpu()) / float64(ours.calls),
		"statementsPerRequest": float64(used.statements) / float64(ours.calls),
	}, err
}

func (b *testDB) inserting(
	ctx context.Context, users int, span time.Duration, all []tenant, due time.Time,
) (load, error) {
	pool, err := b.pool(ctx, users)
	if err != nil {
		return load{}, err
	}
	defer pool.Close()
	return drive(users, untilOver(span), func(i int) error {
		t, id := all[i%len(all)], uuid.Must(uuid.NewV7())
		batch := &pgx.Batch{}
		batch.Queue(`insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date)
			values ($1, $2, $2, $3, $4, 'QUEUE', $5, $5)`,
			t.org.UUID(), id, t.channels[i%2], tenancy.Shard(t.org), due)
		batch.Queue(`insert into part (org_id, id, post_id, position, content) values ($1, $2, $2, 0, $3)`,
			t.org.UUID(), id, content(i, 1, due))
		batch.Queue(`insert into post_event (org_id, post_id, event, by) values ($1, $2, 'written', 'bench')`,
			t.org.UUID(), id)
		return pool.SendBatch(ctx, batch).Close()
	})
}

// monthPosts is the number of posts in a busy month.
const monthPosts = 2000

// reading measures the calendar and the list of channels. Its floors are queries for the same rows.
func reading(ctx context.Context, r *rig) error {
	return r.serving(ctx, func(b *testDB, n *node, all []tenant) error {
		from := now().Truncate(24 * time.Hour)
		mine := all[:1]
		if _, err := b.insertPosts(ctx, monthPosts, func(i int) booking {
			return spread(mine, from.Add(time.Hour+time.Duration(i)*20*time.Minute))(i)
		}); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		month := url.Values{"startDate": {from.Format(time.RFC3339)},
			"endDate": {from.Add(31 * 24 * time.Hour).Format(time.RFC3339)}}
		for _, x := range []struct{ name, path, sql string }{
			{name: "posts", path: "/posts?" + month.Encode(), sql: `select p.id, p.group_id, p.state, p.publish_date,
				p.release_id, p.release_url, a.content, c.id, c.name, c.picture, c.connector from post p
				join part a on a.org_id = p.org_id and a.post_id = p.id join channel c on c.org_id = p.org_id and c.id = p.channel_id
				where p.org_id = $1 and p.deleted_at is null and p.publish_date between now() - interval '1 day' and now() + interval '31 days' order by p.publish_date`},
			{
				name: "integrations", path: "/integrations",
				sql: `select id, name, connector, picture, disabled, profile from channel
					where org_id = $1 and deleted_at is null`,
			},
		} {
			if err := b.reading(ctx, n, mine[0], x.name, x.path, x.sql); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *testDB) reading(ctx context.Context, n *node, t tenant, name, path, sql string) error {
	const users = 8
	span := time.Duration(b.opts.seconds) * time.Second / 6
	c := newClient(n, users)
	pool, err := b.pool(ctx, users)
	if err != nil {
		return err
	}
	defer pool.Close()
	get := func(int) error { return c.call(ctx, t.key, http.MethodGet, path, nil, http.StatusOK) }
	line, err := b.requests(ctx, n, users, span, get, func() (load, error) {
		return drive(users, untilOver(span), func(int) error {
			rows, err := pool.Query(ctx, sql, t.org.UUID())
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowToMap)
			return err
		})
	})
	if err != nil {
		return err
	}
	line["bench"], line["what"] = "read", name
	return b.emit(line)
}
