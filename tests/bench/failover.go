package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"

	"crier/tenancy"
)

const (
	failoverRate    = 100 // posts per second
	failoverNodes   = 3
	failoverPeople  = 300
	failoverLatency = 20 * time.Millisecond
	leaseDefault    = 10 * time.Second
)

// failover kills one of three processes under a steady stream of posts. Its floor is the lease,
// during which no other process may take over.
//
// Channels whose posts the process was sending wait longer, until those claims end, and are
// measured separately. The posts are booked through the API, and every process is restarted before
// they are due.
func failover(ctx context.Context, r *rig) error {
	lease, err := r.opts.lease()
	if err != nil {
		return err
	}
	return r.withDB(ctx, func(b *testDB) error {
		shared, err := miniredis.Run()
		if err != nil {
			return err
		}
		defer shared.Close()
		s := stream{testDB: b, count: failoverRate * r.opts.seconds, redis: "REDIS_URL=redis://" + shared.Addr()}
		if err := s.bookAll(ctx); err != nil {
			return err
		}
		line, err := s.killOne(ctx)
		if err != nil {
			return err
		}
		line["floor"], line["ratio"] = ms(lease), line["ours"].(float64)/ms(lease)
		return r.emit(line)
	})
}

// lease returns the duration of a shard's lease, which is how long a dead process keeps its shards.
func (o options) lease() (d time.Duration, err error) {
	d = leaseDefault
	for _, s := range o.settings {
		if v, ok := strings.CutPrefix(s, "LEASE_TTL="); ok && err == nil {
			d, err = time.ParseDuration(v)
		}
	}
	return d, err
}

// stream is a series of posts that are due one after the other and are published by all processes
// of one installation.
type stream struct {
	*testDB
	count int
	redis string // the REDIS_URL setting
	all   []tenant
	due   time.Time // of the first post
	// ahead is the time from the last booking to the first due time.
	ahead time.Duration
}

func (s *stream) at(i int) time.Time {
	return s.due.Add(time.Duration(i) * time.Second / failoverRate).Truncate(time.Millisecond)
}

// bookAll books all posts through the API of one process and then stops all processes.
func (s *stream) bookAll(ctx context.Context) error {
	nodes, err := s.serveAll(ctx)
	if err != nil {
		return err
	}
	s.all, err = s.createTenants(ctx, failoverPeople, 1)
	if err != nil {
		return errors.Join(err, stopAll(nodes))
	}
	s.due = now().Add(s.opts.ahead + time.Duration(s.count/100)*time.Second).Truncate(time.Second)
	c := newClient(nodes[0], bookers)
	_, err = drive(bookers, func(i int) bool { return i >= s.count }, func(i int) error {
		t := s.all[i%len(s.all)]
		return c.book(ctx, t, 0, s.at(i), content(t.first, i/len(s.all)+1, s.at(i)))
	})
	s.ahead = s.due.Sub(now())
	return errors.Join(err, stopAll(nodes))
}

// killOne starts the processes, kills one in the middle of the stream while clients call the API,
// and returns the line to print. The cost is the cost of the remaining processes.
func (s *stream) killOne(ctx context.Context) (line m, err error) {
	s.platform.begin(failoverLatency)
	nodes, err := s.serveAll(ctx)
	if err != nil {
		return nil, err
	}
	left := nodes
	defer func() { err = errors.Join(err, stopAll(left)) }()
	if err := untilDue(ctx, s.due); err != nil {
		return nil, err
	}
	before, err := s.cost(ctx, nodes[1:]...)
	if err != nil {
		return nil, err
	}
	watching, enough := context.WithCancel(ctx)
	defer enough()
	calls := callAPI(watching, nodes, s.all)
	span := time.Duration(s.opts.seconds) * time.Second
	if err := until(ctx, s.due.Add(span/3)); err != nil {
		return nil, errors.Join(err, calls().first())
	}
	lost, err := s.shardsOfOldest(ctx)
	if err != nil {
		return nil, errors.Join(err, calls().first())
	}
	killed := now()
	left = nodes[1:]
	if err := nodes[0].kill(); err != nil {
		return nil, errors.Join(err, calls().first())
	}
	claimed, err := s.claimedByOldest(ctx)
	err = errors.Join(err, until(ctx, s.due.Add(span)))
	_, waited := burst{posts: s.count}.published(ctx, s.testDB)
	// Missing posts are reported as lost.
	if waited != nil && !errors.Is(waited, context.DeadlineExceeded) {
		err = errors.Join(err, waited)
	}
	api := calls()
	if err != nil {
		return nil, err
	}
	after, err := s.cost(ctx, left...)
	if err != nil {
		return nil, err
	}
	line, err = s.outcome(ctx, lost, claimed)
	if err != nil {
		return nil, err
	}
	api.addTo(line, killed)
	after.since(before).addTo(line, s.count)
	return line, nil
}

// shardsOfOldest returns the shards of the process that started first.
func (s *stream) shardsOfOldest(ctx context.Context) (shards map[int]bool, err error) {
	rows, err := s.super.Query(ctx, `select s.shard, count(*) over () from shard s
		where s.owner = (select id from node where expires_at > now() order by started_at limit 1)
		and (select count(*) from node where expires_at > now()) = $1`, failoverNodes)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	shards = map[int]bool{}
	for rows.Next() {
		var shard, n int
		if err := rows.Scan(&shard, &n); err != nil {
			return nil, err
		}
		shards[shard] = true
	}
	if err := rows.Err(); err != nil || len(shards) > 0 {
		return shards, err
	}
	return nil, errors.New("the processes do not share the organizations")
}

// claimedByOldest returns the organizations whose posts the killed process, which started first,
// was sending.
func (s *stream) claimedByOldest(ctx context.Context) (orgs []uuid.UUID, err error) {
	err = s.super.QueryRow(ctx, `select coalesce(array_agg(org_id), '{}') from post
		where state = 'PUBLISHING' and claim_holder = (select id from node where expires_at > now() order by started_at limit 1)`).Scan(&orgs)
	return orgs, err
}

// outcome compares the posts on the platform with the booked ones. lost has the shards of the
// killed process, and claimed has the organizations whose posts it was sending.
func (s *stream) outcome(ctx context.Context, lost map[int]bool, claimed []uuid.UUID) (m, error) {
	var published int
	if err := s.super.QueryRow(ctx, `select count(*) from post where state = 'PUBLISHED' and due >= $1 and due < $2`,
		s.due, s.at(s.count)).Scan(&published); err != nil {
		return nil, err
	}
	out := s.platform.end()
	var killed, sending, others time.Duration
	hit := 0
	for i, t := range s.all {
		late := out.worst[strconv.Itoa(t.first)]
		if !lost[int(tenancy.Shard(t.org))] {
			others = max(others, late)
			continue
		}
		if i < s.count {
			hit++
		}
		if slices.Contains(claimed, t.org.UUID()) {
			sending = max(sending, late)
		} else {
			killed = max(killed, late)
		}
	}
	return m{
		"bench": "failover", "unit": "ms of the latest post", "ours": ms(max(killed, others)),
		"othersMaxMs":   ms(others),
		"organizations": min(len(s.all), s.count), "organizationsOfKilled": hit,
		"sendingAtKill": len(claimed), "sendingMaxMs": ms(sending),
		"posts": s.count, "postsPerSecond": failoverRate, "latencyMs": failoverLatency.Milliseconds(),
		"bookedAheadSeconds": s.ahead.Seconds(), "restarts": 1,
		"lost": s.count - (len(out.late) - out.twice), "notPublished": s.count - published, "twice": out.twice,
		"outOfOrder": out.outOfOrder,
	}, nil
}

// serveAll starts the processes, which share a database, a file folder and Redis.
func (s *stream) serveAll(ctx context.Context) (nodes []*node, err error) {
	for i := range failoverNodes {
		settings := append([]string{
			unlimited, "CLUSTER_LISTEN=127.0.0.1:0", "CRIER_HOME=" + s.path(fmt.Sprint("home-", i)),
			"FILES_DIR=" + s.path("files"), s.redis,
		}, s.opts.settings...)
		one, err := s.serve(ctx, settings...)
		if err != nil {
			return nil, errors.Join(err, stopAll(nodes))
		}
		nodes = append(nodes, one)
	}
	return nodes, nil
}

func stopAll(nodes []*node) (err error) {
	for _, n := range nodes {
		err = errors.Join(err, n.stop())
	}
	return err
}
