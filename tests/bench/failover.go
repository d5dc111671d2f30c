package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	failoverRate = 100 // posts a second
	failoverLoad = 8   // clients that call the API meanwhile, each twenty times a second at most
	leaseDefault = 10 * time.Second
)

// failover kills one of three processes under a steady stream. Its floor is the lease: so long nobody may take over.
func failover(ctx context.Context, r *rig) error {
	count := failoverRate * r.opts.seconds
	return r.with(ctx, func(b *base) (err error) {
		nodes, err := b.serveAll(ctx, 3)
		if err != nil {
			return err
		}
		all, err := b.people(ctx, 300, 1)
		if err != nil {
			return errors.Join(err, stopAll(nodes))
		}
		due := now().Add(r.opts.ahead + time.Duration(count/100)*time.Second).Truncate(time.Second)
		at := func(i int) time.Time {
			return due.Add(time.Duration(i) * time.Second / failoverRate).Truncate(time.Millisecond)
		}
		c := newClient(nodes[0], bookers)
		_, err = drive(bookers, func(i int) bool { return i >= count }, func(i int) error {
			return c.book(ctx, all[i%len(all)], 0, at(i), content(all[i%len(all)].first, i/len(all)+1, at(i)))
		})
		if err = errors.Join(err, stopAll(nodes)); err != nil {
			return err
		}
		aheadBy := due.Sub(now())
		b.platform.begin(20 * time.Millisecond)
		if nodes, err = b.serveAll(ctx, 3); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stopAll(nodes[1:])) }()
		if err := until(ctx, due); err != nil {
			return err
		}
		front := newFront(ctx, nodes)
		calls := front.load(ctx, all)
		killed := due.Add(time.Duration(r.opts.seconds) * time.Second / 3)
		if err := until(ctx, killed); err != nil {
			return err
		}
		if err := nodes[0].cmd.Process.Kill(); err != nil {
			return err
		}
		_ = nodes[0].cmd.Wait() // it was killed
		if err := until(ctx, due.Add(time.Duration(r.opts.seconds)*time.Second)); err != nil {
			return err
		}
		_, waited := (burst{posts: count}).published(ctx, b)
		answered, failures := calls()
		s := b.platform.end()
		var published int
		if err := errors.Join(waited, b.super.QueryRow(ctx, `select count(*) from post where state = 'PUBLISHED' and due >= $1 and due < $2`, due, at(count)).Scan(&published)); err != nil {
			return err
		}
		longest := time.Duration(0)
		for _, d := range s.late {
			longest = max(longest, d)
		}
		line := m{
			"bench": "failover", "unit": "ms of the latest post", "ours": ms(longest), "floor": ms(leaseDefault), "ratio": ms(longest) / ms(leaseDefault), "posts": count, "postsPerSecond": failoverRate, "bookedAheadSeconds": aheadBy.Seconds(), "restarts": 1,
			"lost": count - published, "twice": s.twice, "outOfOrder": s.outOfOrder, "apiCalls": answered, "apiErrors": len(failures),
		}
		if len(failures) > 0 {
			line["firstApiError"] = failures[0].Error()
		}
		return r.emit(line)
	})
}

// serveAll starts processes that share the work.
func (b *base) serveAll(ctx context.Context, n int) (nodes []*node, err error) {
	for i := range n {
		one, err := b.serve(ctx, append(b.opts.settings, unlimited, "CLUSTER_LISTEN=127.0.0.1:0", "CRIER_HOME="+b.path(fmt.Sprint("home-", i)), "FILES_DIR="+filepath.Join(b.dir, "files"))...)
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

// front hands requests to the processes as a balancer does: to those that /health says are well, and to another one when a connection cannot be had.
type front struct {
	nodes []*node
	well  []atomic.Bool
	next  atomic.Int64
}

const probe = 200 * time.Millisecond

func newFront(ctx context.Context, nodes []*node) *front {
	f := &front{nodes: nodes, well: make([]atomic.Bool, len(nodes))}
	for i, n := range nodes {
		f.well[i].Store(true)
		go func() {
			for wait(ctx, probe) == nil {
				short, cancel := context.WithTimeout(ctx, time.Second)
				f.well[i].Store(n.get(short, "http://"+n.address+"/health", io.Discard) == nil)
				cancel()
			}
		}()
	}
	return f
}

// dial finds a process that takes the connection.
func (f *front) dial(ctx context.Context, network, _ string) (conn net.Conn, err error) {
	err = errors.New("no process is well")
	for range f.nodes {
		i := int(f.next.Add(1)) % len(f.nodes)
		if f.well[i].Load() {
			if conn, err = new(net.Dialer).DialContext(ctx, network, f.nodes[i].address); err == nil {
				return conn, nil
			}
		}
	}
	return nil, err
}

// load calls the API, each request once, on a connection of its own, until it is told to stop.
func (f *front) load(ctx context.Context, all []tenant) (stop func() (answered int, failures []error)) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var calls int
	var wrong []error
	var group sync.WaitGroup
	for user := range failoverLoad {
		c := &client{&http.Client{Transport: &http.Transport{DialContext: f.dial, DisableKeepAlives: true}, Timeout: 30 * time.Second}, "http://crier.bench/public/v1"}
		group.Go(func() {
			for i := user; wait(ctx, 50*time.Millisecond) == nil; i += failoverLoad {
				t := all[i%len(all)]
				var err error
				if i%2 == 0 {
					err = c.call(context.WithoutCancel(ctx), t.key, http.MethodGet, "/integrations", nil, http.StatusOK)
				} else {
					later := now().Add(24 * time.Hour)
					err = c.book(context.WithoutCancel(ctx), t, 0, later, content(t.first, 0, later))
				}
				mu.Lock()
				if calls++; err != nil {
					wrong = append(wrong, err)
				}
				mu.Unlock()
			}
		})
	}
	return func() (int, []error) {
		cancel()
		group.Wait()
		return calls, wrong
	}
}

// list is what the platform says when it is asked for what an account has: posts since a time, the newest first, by pages.
func (p *platform) list(query map[string][]string) string {
	since, err := time.Parse(time.RFC3339Nano, strings.Join(query["since"], ""))
	if err != nil {
		since = time.Time{}
	}
	before := strings.TrimPrefix(strings.Join(query["before"], ""), "p")
	p.mu.Lock()
	defer p.mu.Unlock()
	end := len(p.seen.posts)
	if n, err := strconv.Atoi(before); err == nil {
		end = min(end, n-1)
	}
	var out []string
	for i := end - 1; i >= 0 && len(out) < 100 && !p.seen.posts[i].at.Before(since); i-- {
		x := p.seen.posts[i]
		out = append(out, fmt.Sprintf(`{"id":"p%d","url":"%s/p/%d","createdAt":%q,"key":%q,"text":""}`, i+1, p.address, i+1, x.at.Format(time.RFC3339Nano), x.key))
	}
	return `{"posts":[` + strings.Join(out, ",") + `]}`
}
