package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/pg"
	publishingdb "crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/sqltest"
)

// queues is a new database with a lease on shard 7.
type queues struct {
	*testing.T
	db    *pg.DB
	super *pgx.Conn
	lease dispatch.Lease
}

func newQueues(t *testing.T) *queues {
	t.Helper()
	db, owner := sqltest.Open(t)
	cfg := dbtest.Super(t).Config().Copy()
	cfg.Database = owner.Config().Database
	super, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = super.Close(context.WithoutCancel(t.Context())) })
	q := &queues{T: t, db: db, super: super, lease: dispatch.Lease{Holder: uuid.New(), Shards: []int16{7}}}
	q.exec(`insert into node (id, home, address, roles, expires_at) values ($1, $1, '', '{}', now() + interval '1 hour')`, q.lease.Holder)
	q.exec(`update shard set owner = $1 where shard in (7, 8)`, q.lease.Holder)
	return q
}

func (q *queues) exec(sql string, args ...any) {
	q.Helper()
	if _, err := q.super.Exec(q.Context(), sql, args...); err != nil {
		q.Fatalf("%s: %v", sql, err)
	}
}

// channel makes a channel of a new organization with posts that become due in the given minutes,
// and returns the organization.
func (q *queues) channel(shard int, posts int, minutes int) tenancy.OrgID {
	q.Helper()
	org := id.New[tenancy.OrgTag]()
	q.exec(`insert into organization (id, name) values ($1, 'an organization')`, org)
	q.exec(`insert into channel (org_id, id, connector, name, account_id, grade, credential) values ($1, $1, 'sandbox', 'a channel', 'x', 'A', 'sealed')`, org)
	q.exec(`insert into channel_queue (channel_id, org_id, shard, connector) values ($1, $1, $2, 'sandbox')`, org, shard)
	q.exec(`insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date)
		select $1, gen_random_uuid(), gen_random_uuid(), $1, $2, 'QUEUE', date_trunc('minute', now()) + $4 * interval '1 minute', now() from generate_series(1, $3::int)`,
		org, shard, posts, minutes)
	return org
}

func TestSweep_FindsTheSameByChannels(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	names, want := map[tenancy.OrgID]string{}, map[string]bool{}
	add := func(name string, found bool, shard, posts, minutes int, change string) {
		org := q.channel(shard, posts, minutes)
		names[org] = name
		if change != "" {
			q.exec(change, org)
		}
		if found {
			want[name] = true
		}
	}
	add("due", true, 7, 3, -5, "")
	add("due soon", true, 7, 1, 5, "")
	add("due later", false, 7, 1, 30, "")
	add("too late", false, 7, 2, -120, "")
	add("of another process", false, 9, 1, -5, "")
	add("nothing due", false, 7, 0, 0, "")
	add("paused", false, 7, 1, -5, `update channel_queue set paused = true where org_id = $1`)
	add("parked", false, 7, 1, -5, `update channel_queue set parked = true where org_id = $1`)
	add("its channel waits", true, 7, 1, -5, `update channel_queue set not_before = date_trunc('minute', now()) + interval '3 minutes' where org_id = $1`)
	add("backs off", true, 7, 1, -5, `with p as (update post set not_before = date_trunc('minute', now()) + interval '3 minutes' where org_id = $1 returning id)
		update channel_queue set busy_post = p.id from p where org_id = $1`)
	add("busy", false, 7, 2, -5, `with p as (update post set state = 'DRAFT' where id = (select id from post where org_id = $1 limit 1) returning id)
		update channel_queue set busy_post = p.id from p where org_id = $1`)
	s := publishingdb.New(q.db)
	var all []map[tenancy.OrgID]time.Time
	for what, most := range map[string]int64{"by what is due": 1000, "by channels": 1} {
		next, now, err := sweepUnless(t.Context(), s, q.lease, 10*time.Minute, time.Hour, most)
		if err != nil || now.IsZero() {
			t.Fatalf("%s: at %v, %v", what, now, err)
		}
		found := map[string]bool{}
		for org := range next {
			found[names[org]] = true
		}
		if !maps.Equal(found, want) {
			t.Errorf("%s: found are %v, want %v", what, found, want)
		}
		all = append(all, next)
	}
	if !maps.EqualFunc(all[0], all[1], time.Time.Equal) {
		t.Errorf("the times differ: %v and %v", all[0], all[1])
	}
}

// counted is a node of an executed plan.
type counted struct {
	Table   string    `json:"Relation Name"`
	Rows    float64   `json:"Actual Rows"`
	Removed float64   `json:"Rows Removed by Filter"`
	Loops   float64   `json:"Actual Loops"`
	Steps   []counted `json:"Plans"`
}

func (c counted) posts() (n int) {
	if c.Table == "post" {
		n = int((c.Rows + c.Removed) * c.Loops)
	}
	for _, x := range c.Steps {
		n += x.posts()
	}
	return n
}

// posts returns how many posts a statement of the scheduler reads.
func (q *queues) posts(sql string, args ...any) int {
	q.Helper()
	c, err := q.db.Pool(pg.Clock).Acquire(q.Context())
	if err != nil {
		q.Fatal(err)
	}
	defer c.Release()
	var text []byte
	if err := c.QueryRow(q.Context(), "explain (analyze, format json) "+sql, args...).Scan(&text); err != nil {
		q.Fatal(err)
	}
	var plans []struct{ Plan counted }
	if err := json.Unmarshal(text, &plans); err != nil {
		q.Fatal(err)
	}
	return plans[0].Plan.posts()
}

// An organization may schedule any number of posts for the same moment. The sweep and the search
// for posts that are too late must not read all of them.
func TestSweep_ReadsABoundedNumberOfPosts(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	q.lease.Shards = []int16{7, 8}
	const channels, posts = 4, 2000
	for i := range channels {
		q.channel(7+i%2, posts, -5)
	}
	horizon, late := time.Minute.Milliseconds(), time.Hour.Milliseconds()
	for _, read := range []struct {
		name string
		most int
		sql  string
		args []any
	}{
		{name: "Sweep", most: 100, sql: sweep, args: []any{horizon, late, int64(100)}},
		{name: "SweepChannels", most: channels, sql: sweepChannels, args: []any{horizon, late, int64(100)}},
		{name: "FindExpire", most: 2 * 10, sql: findExpire, args: []any{int64(0), []uuid.UUID{}, 10}},
	} {
		t.Run(fmt.Sprintf("%s reads %d", read.name, read.most), func(t *testing.T) {
			got := q.posts(read.sql, append([]any{q.lease.Shards, q.lease.Holder}, read.args...)...)
			if got == 0 || got > read.most {
				t.Errorf("%d of %d posts that are due are read, want at most %d", got, channels*posts, read.most)
			}
		})
	}
}
