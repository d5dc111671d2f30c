package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/halt"
)

// tally is what the faults met.
type tally struct {
	inFlight int // calls between their mark and the write of their outcome, at the moment of a fault
	stops    int // of these, a process that had stopped itself right there
}

// strikeAll lets the faults happen, one after the other.
func (w *world) strikeAll(ctx context.Context, all []strike) (t tally, err error) {
	for i, s := range all {
		if err := w.ledger.write(line{Do: doFault, Note: fmt.Sprintf("%d: %+v", i+1, s)}); err != nil {
			return t, err
		}
		if err := w.strike(ctx, s, &t); err != nil {
			return t, fmt.Errorf("fault %d (%s): %w", i+1, s.Kind, err)
		}
		if (i+1)%20 == 0 {
			w.say("%d faults, %d calls in flight at them, %d stops inside a call", i+1, t.inFlight, t.stops)
		}
		pause(ctx, s.Rest)
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		if err := w.revive(ctx); err != nil {
			return t, err
		}
	}
	return t, w.ledger.write(line{Do: doFaultsOver})
}

func (w *world) strike(ctx context.Context, s strike, t *tally) error {
	n := w.nodes[s.Node]
	switch s.Kind {
	case killed:
		n.current().kill()
		return w.again(ctx, n, s, t)
	case stopped:
		n.current().signal(syscall.SIGSTOP)
		return w.resume(ctx, n, s, t)
	case haltKill, haltGo, haltOutlas:
		return w.halt(ctx, n, s, t)
	default:
		return w.restartPostgres(ctx, map[string]syscall.Signal{pgFast: syscall.SIGINT, pgNow: syscall.SIGQUIT, pgKill: syscall.SIGKILL}[s.Kind], t)
	}
}

// haltWait is how long a node may take to come to the point; a node without shards never does.
const haltWait = 2500 * time.Millisecond

func (w *world) halt(ctx context.Context, n *node, s strike, t *tally) error {
	if err := n.ask(s.Point); err != nil {
		return err
	}
	for end := time.Now().Add(haltWait); !n.hit() && time.Now().Before(end); {
		pause(ctx, 5*time.Millisecond)
	}
	if n.hit() && s.Point != halt.Prepared {
		t.stops++
	}
	if s.Kind == haltKill {
		pause(ctx, s.Hold)
		n.current().kill()
		return w.again(ctx, n, s, t)
	}
	if !n.hit() { // it was not there: stop it wherever it is
		n.current().signal(syscall.SIGSTOP)
	}
	return w.resume(ctx, n, s, t)
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
	return w.query(ctx, func(c *pgx.Conn) error {
		var k int
		err := c.QueryRow(ctx, committingNow, home).Scan(&k)
		t.inFlight += k
		return err
	})
}

// restartPostgres ends the server and waits until it is back.
func (w *world) restartPostgres(ctx context.Context, sig syscall.Signal, t *tally) error {
	if err := w.count(ctx, nil, t); err != nil {
		return err
	}
	keeping, stop := context.WithCancel(ctx)
	kept := make(chan error, 1)
	before := w.server.PID()
	go func() { kept <- w.server.Keep(keeping) }()
	if err := syscall.Kill(before, sig); err != nil {
		stop()
		return errors.Join(err, <-kept)
	}
	for end := time.Now().Add(startLimit); ; pause(ctx, 30*time.Millisecond) {
		if w.server.PID() != before && w.query(ctx, func(c *pgx.Conn) error { return c.Ping(ctx) }) == nil {
			break
		}
		if ctx.Err() != nil || time.Now().After(end) {
			stop()
			return errors.Join(errors.New("Postgres did not come back"), <-kept)
		}
	}
	stop()
	return errors.Join(<-kept, w.count(ctx, nil, t))
}

// revive starts what ended without being asked to, as an operator's supervisor would.
func (w *world) revive(ctx context.Context) error {
	for _, n := range w.nodes {
		if !n.current().ended() {
			continue
		}
		n.exits++
		w.say("the node in %s ended by itself: %v", n.dir, n.current().cmd.ProcessState)
		if err := n.start(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}
