package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/tests/call"
)

// monthRows reads what a list shows of a month's posts.
const monthRows = `select p.id, p.group_id, p.state, p.publish_date, p.settings, p.creation_method, p.release_id, p.release_url,
	a.id as part_id, a.content, a.html, c.id as channel_id, c.name, c.picture, c.connector
	from post p
	join part a on a.org_id = p.org_id and a.post_id = p.id
	join channel c on c.org_id = p.org_id and c.id = p.channel_id
	where p.org_id = $1 and p.deleted_at is null and p.publish_date between $2 and $3
	order by p.publish_date, p.id`

// monthRow is a row of monthRows.
type monthRow struct {
	ID             [16]byte        `db:"id"`
	Group          [16]byte        `db:"group_id"`
	State          string          `db:"state"`
	PublishDate    time.Time       `db:"publish_date"`
	Settings       json.RawMessage `db:"settings"`
	CreationMethod string          `db:"creation_method"`
	ReleaseID      *string         `db:"release_id"`
	ReleaseURL     *string         `db:"release_url"`
	Part           [16]byte        `db:"part_id"`
	Content        string          `db:"content"`
	HTML           bool            `db:"html"`
	Channel        [16]byte        `db:"channel_id"`
	Name           string          `db:"name"`
	Picture        *string         `db:"picture"`
	Connector      string          `db:"connector"`
}

// listing measures GET /posts for a month of 2,000 posts. It has two floors in the same run: one
// query for the same rows over one connection, and the encoding of a response of the same size as
// JSON.
func listing(ctx context.Context, r *rig) error {
	return r.serving(ctx, func(b *testDB, n *node, all []tenant) error {
		mine, from := all[:1], now().Truncate(24*time.Hour)
		to := from.Add(31 * 24 * time.Hour)
		if _, err := b.insertPosts(ctx, monthPosts, func(i int) booking {
			return spread(mine, from.Add(time.Hour+time.Duration(i)*20*time.Minute))(i)
		}); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		idleSpan := 2 * time.Second
		idle, err := b.idleCost(ctx, n, idleSpan)
		if err != nil {
			return err
		}
		path := "/posts?" + url.Values{
			"startDate": {from.Format(time.RFC3339)}, "endDate": {to.Format(time.RFC3339)},
		}.Encode()
		for _, users := range []int{1, 8} {
			x := monthList{testDB: b, node: n, tenant: mine[0], path: path, from: from, to: to, users: users}
			if err := x.run(ctx, idle, idleSpan); err != nil {
				return err
			}
		}
		return nil
	})
}

// idleCost returns what the service and Postgres use in a time span without requests.
func (b *testDB) idleCost(ctx context.Context, n *node, span time.Duration) (cost, error) {
	before, err := b.cost(ctx, n)
	if err != nil {
		return cost{}, err
	}
	if err := wait(ctx, span); err != nil {
		return cost{}, err
	}
	after, err := b.cost(ctx, n)
	return after.since(before), err
}

// monthList lists a month of posts of one organization.
type monthList struct {
	*testDB
	node     *node
	tenant   tenant
	path     string
	from, to time.Time
	users    int
}

func (x monthList) run(ctx context.Context, idle cost, idleSpan time.Duration) error {
	c := newClient(x.node, x.users)
	a, err := call.Do(ctx, c.http, http.MethodGet, c.address+x.path, nil, "Authorization", x.tenant.key)
	if err != nil {
		return err
	}
	var answer []any
	if err := a.Into(&answer); err != nil {
		return err
	}
	if len(answer) != monthPosts {
		return fmt.Errorf("the list has %d posts, want %d", len(answer), monthPosts)
	}
	pool, err := x.pool(ctx, x.users)
	if err != nil {
		return err
	}
	defer pool.Close()
	bare := func() (cost, error) {
		return cost{crier: usageOf(os.Getpid()).cpu, postgres: treeOf(x.server.PID())}, nil
	}
	sides, err := alternate(x.users, time.Duration(x.opts.seconds)*time.Second/3, x.opts.rounds,
		side{
			name: "list", used: func() (cost, error) { return x.cost(ctx, x.node) },
			call: func(int) error { return c.call(ctx, x.tenant.key, http.MethodGet, x.path, nil, http.StatusOK) },
		},
		side{name: "query", used: bare, call: func(int) error {
			rows, err := pool.Query(ctx, monthRows, x.tenant.org.UUID(), x.from, x.to)
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowToStructByName[monthRow])
			return err
		}},
		side{name: "JSON", used: bare, call: func(int) error {
			_, err := json.Marshal(answer)
			return err
		}},
	)
	if err != nil {
		return err
	}
	ours, query, encoding := sides[0].less(idle, idleSpan), sides[1], sides[2]
	line := m{
		"bench": "list", "clients": x.users, "unit": "lists/s", "posts": monthPosts, "bytes": len(a.Body),
		"calls": len(ours.took), "meanMs": ours.meanMs(),
		"floorMeanMs": query.meanMs(), "jsonMeanMs": encoding.meanMs(),
		"cpuMs": ours.cpuMs(), "floorCpuMs": query.cpuMs(), "jsonCpuMs": encoding.cpuMs(),
		"cpuRatio": ours.cpuMs() / (query.cpuMs() + encoding.cpuMs()), "statementsPerRequest": ours.statements(),
	}
	ours.beside(query, line)
	return x.emit(line)
}
