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

// tally counts what the faults interrupted.
type tally struct {
	// inFlight counts calls that were between their committing mark and the write of their outcome
	// when a fault struck.
	inFlight int
	// stops counts processes that stopped at a failpoint within such a call.
	stops int
}

// injectAll injects the faults in order.
func (t *traffic) injectAll(ctx context.Context, all []fault) (met tally, err error) {
	began := time.Now()
	defer func() { err = errors.Join(err, t.background.Wait()) }()
	for i, s := range all {
		pause(ctx, time.Until(began.Add(s.At)))
		if err := t.restartEnded(ctx); err != nil {
			return met, err
		}
		if err := t.ledger.write(line{Do: doFault, Code: s.Kind, Note: fmt.Sprintf("%d: %+v", i+1, s)}); err != nil {
			return met, err
		}
		if err := errors.Join(t.degradePlatform(ctx, i), t.inject(ctx, s, &met)); err != nil {
			return met, fmt.Errorf("fault %d (%s): %w", i+1, s.Kind, err)
		}
		if (i+1)%20 == 0 {
			t.logf("%d faults, %d calls in flight at them, %d stops inside a call, %d posts claimed by two nodes",
				i+1, met.inFlight, met.stops, t.claimedTwice)
		}
		if ctx.Err() != nil {
			return met, ctx.Err()
		}
	}
	pause(ctx, time.Until(began.Add(time.Duration(len(all))*t.s.Pace)))
	return met, t.ledger.write(line{Do: doFaultsOver})
}

func (t *traffic) inject(ctx context.Context, s fault, met *tally) error {
	if isDrill(s.Kind) {
		return t.drill(ctx, s)
	}
	return t.harness.inject(ctx, s, met)
}

func (w *harness) inject(ctx context.Context, s fault, t *tally) error {
	n := w.nodes[s.Node]
	switch s.Kind {
	case killed:
		return errors.Join(n.kill(), w.restart(ctx, n, s, t))
	case redisLost, redisHang, cut:
		w.startNetworkFault(ctx, s)
		return nil
	case stopped:
		n.current().signal(syscall.SIGSTOP)
		return w.continueNode(ctx, n, s, t)
	case haltKill, haltGo, haltLong:
		return w.stopAtFailpoint(ctx, n, s, t)
	case haltTwice:
		return w.stopTwoNodes(ctx, s, t)
	default:
		signals := map[string]syscall.Signal{pgFast: syscall.SIGINT, pgNow: syscall.SIGQUIT, pgKill: syscall.SIGKILL}
		return w.restartPostgres(ctx, signals[s.Kind], t)
	}
}

// failpointWait is how long the nodes have to reach a failpoint.
const failpointWait = 2500 * time.Millisecond

// awaitFailpoint asks the nodes to stop at a failpoint and returns the first node that stops, or
// nil if none stops in time. All other nodes continue.
func (w *harness) awaitFailpoint(
	ctx context.Context, nodes []*node, point string, patience time.Duration,
) (first *node, post string, err error) {
	for _, n := range nodes {
		err = errors.Join(err, n.requestStop(point))
	}
	end := time.Now().Add(patience)
	for ; first == nil && time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 5*time.Millisecond) {
		for _, n := range nodes {
			post = n.stoppedAt()
			if post != "" {
				first = n
				break
			}
		}
	}
	for _, n := range nodes {
		err = errors.Join(err, n.cancelStop())
		if n != first {
			pause(ctx, 10*time.Millisecond) // the node may be stopping right now
			n.current().signal(syscall.SIGCONT)
			err = errors.Join(err, n.cancelStop())
		}
	}
	return first, post, err
}

func (w *harness) stopAtFailpoint(ctx context.Context, n *node, s fault, t *tally) error {
	hit, _, err := w.awaitFailpoint(ctx, w.nodes, s.Point, failpointWait)
	if err != nil {
		return err
	}
	if hit != nil {
		n = hit
		if s.Point != failpoint.Prepared {
			t.stops++
		}
	}
	if s.Kind == haltKill {
		pause(ctx, s.Hold)
		return errors.Join(n.kill(), w.restart(ctx, n, s, t))
	}
	n.current().signal(syscall.SIGSTOP) // even if it did not reach the failpoint
	return w.continueNode(ctx, n, s, t)
}

// stopTwoNodes makes two nodes claim the same post one after the other. It resumes the first node
// after the second has sent the post and before the second writes the outcome.
func (w *harness) stopTwoNodes(ctx context.Context, s fault, t *tally) error {
	first, post, err := w.awaitFailpoint(ctx, w.nodes, failpoint.Prepared, failpointWait)
	if err != nil || first == nil {
		return err
	}
	var others []*node
	for _, n := range w.nodes {
		if n != first {
			others = append(others, n)
		}
	}
	second, _, err := w.awaitFailpoint(ctx, others, failpoint.Answered+" "+post, 3*(deadline+lease))
	if second != nil {
		t.stops++
		err = errors.Join(err, w.countInFlight(ctx, second, t))
		w.claimedTwice++
	}
	first.current().signal(syscall.SIGCONT)
	// The first node finds its claim lost. A second publication would happen in this time.
	pause(ctx, 5*time.Second)
	if second != nil {
		second.current().signal(syscall.SIGCONT)
	}
	return err
}

// restart restarts a killed node with another clock offset.
func (w *harness) restart(ctx context.Context, n *node, s fault, t *tally) error {
	if err := w.countInFlight(ctx, n, t); err != nil {
		return err
	}
	return n.start(ctx, s.Offset)
}

// continueNode resumes a stopped node after the fault's hold time.
func (w *harness) continueNode(ctx context.Context, n *node, s fault, t *tally) error {
	err := w.countInFlight(ctx, n, t)
	pause(ctx, s.Hold)
	err = errors.Join(err, n.cancelStop())
	n.current().signal(syscall.SIGCONT)
	return err
}

const committingNow = `select count(*) from post p where p.state = 'PUBLISHING' and p.phase = 'committing'
	and ($1 = '' or exists (select 1 from node n where n.id = p.claim_holder and n.home::text = $1))`

// countInFlight adds the number of calls in flight on the node to the tally. If n is nil, it counts
// all nodes.
func (w *harness) countInFlight(ctx context.Context, n *node, t *tally) error {
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

// restartPostgres ends the server with a signal and waits until the server is back.
func (w *harness) restartPostgres(ctx context.Context, sig syscall.Signal, t *tally) error {
	if err := w.countInFlight(ctx, nil, t); err != nil {
		return err
	}
	before := w.server.PID()
	if err := syscall.Kill(before, sig); err != nil {
		return err
	}
	for end := time.Now().Add(startLimit); ; {
		if err := w.superviseUntilBack(ctx, before, end); err != nil {
			return err
		}
		if w.query(ctx, func(c *pgx.Conn) error { return c.Ping(ctx) }) == nil {
			return w.countInFlight(ctx, nil, t)
		}
	}
}

// superviseUntilBack runs the server's supervisor until the server has restarted. If the supervisor
// were cancelled too early, it would stop the server.
func (w *harness) superviseUntilBack(ctx context.Context, before int, end time.Time) error {
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

// restartEnded restarts nodes whose process ended on its own, as an operator's supervisor would.
func (w *harness) restartEnded(ctx context.Context) error {
	for _, n := range w.nodes {
		if !n.current().ended() {
			continue
		}
		state := n.current().cmd.ProcessState
		w.logf("the node in %s ended by itself: %v", n.dir, state)
		if err := w.ledger.write(line{Do: doExit, Code: strconv.Itoa(state.ExitCode()), Note: n.dir}); err != nil {
			return err
		}
		if err := n.start(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}
