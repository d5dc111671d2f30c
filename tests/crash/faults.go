package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/failpoint"
)

// tally is what the faults met.
type tally struct {
	inFlight int // calls between their mark and the write of their outcome, at the moment of a fault
	stops    int // of these, a process that had stopped itself right there
}

// strikeAll lets the faults happen, one after the other.
func (t *traffic) strikeAll(ctx context.Context, all []strike) (met tally, err error) {
	began := time.Now()
	defer func() { err = errors.Join(err, t.background.Wait()) }()
	for i, s := range all {
		pause(ctx, time.Until(began.Add(s.At)))
		if err := t.revive(ctx); err != nil {
			return met, err
		}
		if err := t.ledger.write(line{Do: doFault, Code: s.Kind, Note: fmt.Sprintf("%d: %+v", i+1, s)}); err != nil {
			return met, err
		}
		if err := errors.Join(t.trouble(ctx, i), t.strike(ctx, s, &met)); err != nil {
			return met, fmt.Errorf("fault %d (%s): %w", i+1, s.Kind, err)
		}
		if (i+1)%20 == 0 {
			t.say("%d faults, %d calls in flight at them, %d stops inside a call, %d posts in two hands", i+1, met.inFlight, met.stops, t.twice)
		}
		if ctx.Err() != nil {
			return met, ctx.Err()
		}
	}
	pause(ctx, time.Until(began.Add(time.Duration(len(all))*t.s.Pace)))
	return met, t.ledger.write(line{Do: doFaultsOver})
}

func (t *traffic) strike(ctx context.Context, s strike, met *tally) error {
	if isDrill(s.Kind) {
		return t.drill(ctx, s)
	}
	return t.world.strike(ctx, s, met)
}

func (w *world) strike(ctx context.Context, s strike, t *tally) error {
	n := w.nodes[s.Node]
	switch s.Kind {
	case killed:
		return errors.Join(n.kill(), w.again(ctx, n, s, t))
	case redisLost, redisHang, cut:
		w.meanwhile(ctx, s)
		return nil
	case stopped:
		n.current().signal(syscall.SIGSTOP)
		return w.resume(ctx, n, s, t)
	case haltKill, haltGo, haltLong:
		return w.halt(ctx, n, s, t)
	case haltTwice:
		return w.haltTwice(ctx, s, t)
	default:
		return w.restartPostgres(ctx, map[string]syscall.Signal{pgFast: syscall.SIGINT, pgNow: syscall.SIGQUIT, pgKill: syscall.SIGKILL}[s.Kind], t)
	}
}

// haltWait is how long the nodes may take to come to a point.
const haltWait = 2500 * time.Millisecond

// await asks the nodes to stop at a point and waits for the first that does; nil when none did. No other node stays stopped.
func (w *world) await(ctx context.Context, nodes []*node, point string, patience time.Duration) (first *node, post string, err error) {
	for _, n := range nodes {
		err = errors.Join(err, n.ask(point))
	}
	for end := time.Now().Add(patience); first == nil && time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 5*time.Millisecond) {
		for _, n := range nodes {
			if post = n.hit(); post != "" {
				first = n
				break
			}
		}
	}
	for _, n := range nodes {
		err = errors.Join(err, n.forget())
		if n != first {
			pause(ctx, 10*time.Millisecond) // it may be at the point just now
			n.current().signal(syscall.SIGCONT)
			err = errors.Join(err, n.forget())
		}
	}
	return first, post, err
}

func (w *world) halt(ctx context.Context, n *node, s strike, t *tally) error {
	hit, _, err := w.await(ctx, w.nodes, s.Point, haltWait)
	if err != nil {
		return err
	}
	if hit != nil {
		if n = hit; s.Point != failpoint.Prepared {
			t.stops++
		}
	}
	if s.Kind == haltKill {
		pause(ctx, s.Hold)
		return errors.Join(n.kill(), w.again(ctx, n, s, t))
	}
	n.current().signal(syscall.SIGSTOP) // also when it was not at the point
	return w.resume(ctx, n, s, t)
}

// haltTwice lets a post be claimed by two nodes in turn, and the first wake up while the second has it out but not written.
func (w *world) haltTwice(ctx context.Context, s strike, t *tally) error {
	first, post, err := w.await(ctx, w.nodes, failpoint.Prepared, haltWait)
	if err != nil || first == nil {
		return err
	}
	var others []*node
	for _, n := range w.nodes {
		if n != first {
			others = append(others, n)
		}
	}
	second, _, err := w.await(ctx, others, failpoint.Answered+" "+post, 3*(deadline+lease))
	if second != nil {
		t.stops++
		err = errors.Join(err, w.count(ctx, second, t))
		w.twice++
	}
	first.current().signal(syscall.SIGCONT)
	pause(ctx, 5*time.Second) // the first learns that its claim is gone; what it spoils goes out again meanwhile
	if second != nil {
		second.current().signal(syscall.SIGCONT)
	}
	return err
}

// again starts a killed node, with another clock.
func (w *world) again(ctx context.Context, n *node, s strike, t *tally) error {
	if err := w.count(ctx, n, t); err != nil {
		return err
	}
	return n.start(ctx, s.Offset)
}

// resume lets a stopped node go on after its time.
func (w *world) resume(ctx context.Context, n *node, s strike, t *tally) error {
	err := w.count(ctx, n, t)
	pause(ctx, s.Hold)
	err = errors.Join(err, n.forget())
	n.current().signal(syscall.SIGCONT)
	return err
}

const committingNow = `select count(*) from post p where p.state = 'PUBLISHING' and p.phase = 'committing' and ($1 = '' or exists (select 1 from node n where n.id = p.claim_holder and n.home::text = $1))`

// count adds what the node has in flight; nil counts all nodes.
func (w *world) count(ctx context.Context, n *node, t *tally) error {
	home := ""
	if n != nil {
		raw, err := os.ReadFile(filepath.Join(n.dir, "home", "node.id"))
		if err != nil {
			return err
		}
		home = strings.TrimSpace(string(raw))
	}
	var calls int
	err := w.value(ctx, &calls, committingNow, home)
	t.inFlight += calls
	return err
}

// restartPostgres ends the server and waits until it is back.
func (w *world) restartPostgres(ctx context.Context, sig syscall.Signal, t *tally) error {
	if err := w.count(ctx, nil, t); err != nil {
		return err
	}
	before := w.server.PID()
	if err := syscall.Kill(before, sig); err != nil {
		return err
	}
	for end := time.Now().Add(startLimit); ; {
		if err := w.bringBack(ctx, before, end); err != nil {
			return err
		}
		if w.query(ctx, func(c *pgx.Conn) error { return c.Ping(ctx) }) == nil {
			return w.count(ctx, nil, t)
		}
	}
}

// bringBack lets the server's own keeper start it again, and sends the keeper away; one sent away too early takes the server with it.
func (w *world) bringBack(ctx context.Context, before int, end time.Time) error {
	keeping, stop := context.WithCancel(ctx)
	kept := make(chan error, 1)
	go func() { kept <- w.server.Keep(keeping) }()
	for w.server.PID() == before || w.query(ctx, func(c *pgx.Conn) error { return c.Ping(ctx) }) != nil {
		if ctx.Err() != nil || time.Now().After(end) {
			stop()
			return errors.Join(errors.New("the database did not come back"), <-kept)
		}
		pause(ctx, 30*time.Millisecond)
	}
	pause(ctx, 300*time.Millisecond)
	stop()
	return <-kept
}

// revive starts what ended without being asked to, as an operator's supervisor would.
func (w *world) revive(ctx context.Context) error {
	for _, n := range w.nodes {
		if !n.current().ended() {
			continue
		}
		state := n.current().cmd.ProcessState
		w.say("the node in %s ended by itself: %v", n.dir, state)
		if err := w.ledger.write(line{Do: doExit, Code: strconv.Itoa(state.ExitCode()), Note: n.dir}); err != nil {
			return err
		}
		if err := n.start(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}
