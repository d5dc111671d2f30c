package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// run executes one run: it books posts, injects faults, waits until all posts have ended and
// returns the verdict. Progress and findings are written to out. The error concerns the run itself;
// findings are in the verdict.
func run(ctx context.Context, s settings, out io.Writer) (v verdict, err error) {
	dir, err := os.MkdirTemp("", "crier-crash-")
	if err != nil {
		return v, err
	}
	if !s.Keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	w, err := newHarness(ctx, s, dir, out)
	if err != nil {
		return v, err
	}
	met, err := w.play(ctx)
	if err := errors.Join(err, w.close()); err != nil {
		w.logf("the files of the run are in %s", dir)
		return v, err
	}
	lines, err := readLines[line](filepath.Join(dir, "ledger.jsonl"))
	if err != nil {
		return v, err
	}
	var journal []entry
	for _, s := range []sandbox{w.platform, w.drillPlatform} {
		more, err := readLines[entry](s.journal)
		if err != nil {
			return v, err
		}
		journal = append(journal, more...)
	}
	v = judge(lines, journal)
	v.DueDuringFaults = shareDueDuringFaults(lines)
	v.partial = len(s.Only) > 0
	v.InFlight, v.StopsCommitting, v.Seed, v.Nodes, v.Lease, v.Deadline = met.inFlight, met.stops, s.Seed, s.Nodes,
		lease.String(), deadline.String()
	for i, f := range v.findings {
		if i == 40 {
			w.logf("and %d more", len(v.findings)-i)
			break
		}
		w.logf("%s", f)
	}
	if s.Keep {
		w.logf("the files of the run are in %s", dir)
	}
	return v, nil
}

// play executes the run until the last post has ended.
func (w *harness) play(ctx context.Context) (met tally, err error) {
	organizations := min(16, 2+w.s.Posts/100)
	p := newPlan(w.s, organizations*perOrganization)
	if err := w.populate(ctx, organizations, p.Faults); err != nil {
		return met, err
	}
	// The due times depend on start, which must be fixed before the first booking.
	booking := max(10*time.Second, time.Duration(w.s.Posts)*10*time.Millisecond)
	t := &traffic{
		harness: w, start: time.Now().Add(booking + w.s.Ahead).Truncate(time.Millisecond),
		ids: map[int]string{}, pauseTargets: map[string]*pauseTarget{}, stale: map[string]int{}, last: w.s.Posts,
	}
	w.logf("booking %d posts on %d channels", w.s.Posts, len(w.channels))
	if err := t.book(ctx, p.Bookings); err != nil {
		return met, err
	}
	if left := time.Until(t.start); left < w.s.Ahead {
		return met, fmt.Errorf("booking took too long on this machine: the first posts are due in %s", left)
	}
	w.logf("booked; the faults begin in %s", time.Until(t.start).Round(time.Second))
	for _, n := range w.nodes { // a process other than the one that booked must publish
		if err := errors.Join(n.kill(), n.start(ctx, 0)); err != nil {
			return met, err
		}
	}
	pause(ctx, time.Until(t.start))
	g, inner := errgroup.WithContext(ctx)
	g.Go(func() error { return t.during(inner, p.Bookings) })
	g.Go(func() error { return t.disconnect(inner, p.Disconnects) })
	g.Go(func() (err error) { met, err = t.injectAll(inner, p.Faults); return err })
	if err := g.Wait(); err != nil {
		return met, err
	}
	w.logf("the faults are over after %s", time.Since(t.start).Round(time.Second))
	// Requests to the process that was stopped last may still be carried out until their deadline.
	pause(ctx, deadline)
	if err := t.resumeAll(ctx); err != nil {
		return met, err
	}
	return met, errors.Join(t.settle(ctx, append(p.Bookings, t.extra...)), t.settleStale(ctx), t.store(ctx))
}

// store writes to the ledger, for each post, the due time in the database and whether the post may
// be on the platform.
func (t *traffic) store(ctx context.Context) error {
	numbers := map[string]int{}
	for n, id := range t.ids {
		numbers[id] = n
	}
	all, err := t.lines(ctx, func(row pgx.CollectableRow) (line, error) {
		l := line{Do: doStored}
		err := row.Scan(&l.ID, &l.Due, &l.MaybeSent)
		l.Post = numbers[l.ID]
		return l, err
	}, "select id::text, due, maybe_sent from post where due is not null")
	if err != nil {
		return err
	}
	// A post without a number belongs to a create request that never got a certain response. The
	// platform's journal shows it.
	return t.ledger.write(slices.DeleteFunc(all, func(l line) bool { return l.Post == 0 })...)
}

// settleLimit is how long the service has to end all posts after the last fault.
const settleLimit = 4 * time.Minute

// settle waits until every post has ended or settleLimit has passed, and writes the states to the
// ledger.
func (t *traffic) settle(ctx context.Context, all []booking) error {
	open := all
	for end := time.Now().Add(settleLimit); ; pause(ctx, time.Second) {
		if err := t.restartEnded(ctx); err != nil {
			return err
		}
		states := make([]line, len(open))
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(clients)
		for i, b := range open {
			g.Go(func() (err error) { states[i], err = t.read(ctx, b); return err })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		var rest []booking
		over := time.Now().After(end)
		for i, l := range states {
			if !over && (l.State == "" || l.State == "QUEUE" || l.State == "PUBLISHING" || l.State == "UNKNOWN") {
				rest = append(rest, open[i])
			} else if err := t.ledger.write(l); err != nil {
				return err
			}
		}
		if len(rest) == 0 {
			return nil
		}
		open = rest
		if len(rest) < 10 {
			t.logf("waiting for %d posts, post %d is one", len(rest), rest[0].N)
		}
	}
}

// read requests the state of one post. The state is GONE if the response is 404, and "" if there
// was no clear response.
func (t *traffic) read(ctx context.Context, b booking) (line, error) {
	l := line{Do: doRead, Post: b.N}
	a := t.client.call(ctx, http.MethodGet, "/public/v1/posts/"+t.id(b.N), t.channels[b.Channel].key, nil)
	l.Status = a.Status
	if a.Status == http.StatusNotFound {
		l.State = "GONE"
		return l, ctx.Err()
	}
	if a.Status != http.StatusOK {
		return l, ctx.Err() // the caller repeats it
	}
	var got struct {
		State string
		Posts []struct {
			ErrorCode      *string
			Error          *string
			OutcomeUnknown bool
		}
		Timeline []struct{ At, Event, Node, Reason string }
	}
	if err := a.Into(&got); err != nil {
		return l, err
	}
	l.State = got.State
	if len(got.Posts) > 0 && got.Posts[0].ErrorCode != nil {
		l.Code = *got.Posts[0].ErrorCode
	}
	if len(got.Posts) > 0 && l.State == "ERROR" && got.Posts[0].OutcomeUnknown != (l.Code == codeUnknown) {
		return l, fmt.Errorf("post %d has the code %q and outcomeUnknown %v", b.N, l.Code, got.Posts[0].OutcomeUnknown)
	}
	if l.State == "ERROR" {
		l.Note = fmt.Sprint(got.Timeline)
	}
	return l, nil
}

// shareDueDuringFaults returns the share of the posts that fell due between the first and the last
// fault, from 0 to 1.
func shareDueDuringFaults(lines []line) float64 {
	var from, to time.Time
	due := map[int]time.Time{}
	for _, l := range lines {
		switch {
		case l.Do == doFault && from.IsZero():
			from = l.At
		case l.Do == doFaultsOver:
			to = l.At
		case l.Do == doCreate && l.Ask && l.Fault == "":
			due[l.Post] = l.Due
		}
	}
	in := 0
	for _, d := range due {
		if d.After(from) && d.Before(to) {
			in++
		}
	}
	return math.Round(1000*float64(in)/math.Max(1, float64(len(due)))) / 1000
}
