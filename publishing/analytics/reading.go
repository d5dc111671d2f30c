package analytics

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/text"
	"crier/publishing"
	"crier/publishing/access"
	analyticsstore "crier/publishing/analytics/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
)

const (
	// insightAge is the maximum age of stored figures that are returned without querying the
	// platform.
	insightAge = time.Hour
	// insightPause is how long to wait after a failure before the platform is queried again. If the
	// caller requests a refresh, figures older than insightPause are read again.
	insightPause = time.Minute
	// insightOverlap is how many days before the last known day are read again. Platforms can
	// report or complete a day's figures several days late.
	insightOverlap = 7
	// insightWait is how long a request waits for the platform if it can fall back on stored
	// figures. insightTurn is how long a read waits for its turn. insightTime is how long the
	// platform then has to respond.
	insightWait = 5 * time.Second
	insightTurn = 8 * time.Second
	insightTime = 20 * time.Second
	// insightAgain limits how long a platform can make the service wait before the next query.
	insightAgain = 24 * time.Hour
	maxProblem   = 1000 // bytes, see analyticsstore.InsightFailure
	// storeTime is the time limit for storing a failure. A failure is stored even if the request
	// has ended.
	storeTime = 10 * time.Second
)

// insightTarget identifies what the statistics describe, either a channel or a post. For a post,
// ref and published are set.
type insightTarget struct {
	of        analyticsstore.InsightOf
	ref       connector.Ref
	published time.Time
}

func targetOfChannel(a db.Access) insightTarget {
	return insightTarget{of: analyticsstore.InsightOf{Channel: a.Channel.ID}}
}

func targetOf(r analyticsstore.Released) insightTarget {
	return insightTarget{
		of:  analyticsstore.InsightOf{Channel: r.Channel, Post: r.Post, Release: r.ID},
		ref: connector.Ref{ID: r.ID, URL: r.URL, Data: r.Data}, published: r.PublishedOn,
	}
}

// reading is one query for a target's statistics.
type reading struct {
	access db.Access
	insightTarget
	analyst connector.Analyst
	// last is when the target was last read, or nil if it never was. lastDay is the last day with
	// known figures, or nil if there is none.
	last, lastDay *time.Time
	// refresh requests figures that are no older than insightPause.
	refresh bool
}

func (r reading) org() tenancy.OrgID { return r.access.Channel.Org }

// current returns the stored figures. If they are too old, it queries the platform first. If the
// platform cannot be queried and the target has never been read, current returns an error.
func (s *Analytics) current(
	ctx context.Context, op string, r reading, w insightWindow,
) (analyticsstore.Insight, error) {
	c, _ := s.deps.Connectors.Get(r.access.Channel.Connector)
	var ok bool
	if r.analyst, ok = connector.AnalystOf(c); !ok {
		return analyticsstore.Insight{}, nil
	}
	stored, err := analyticsstore.FindInsight(ctx, s.db, r.org(), r.of, w.earlier, w.last)
	if err != nil {
		return stored, pg.Fault(op, err)
	}
	if !isStale(stored, s.deps.Clock.Now(), r.refresh) {
		return stored, neverRead(op, stored)
	}
	r.last, r.lastDay = stored.ReadAt, stored.LastDay
	if err := s.readOnce(ctx, r); err != nil {
		if stored.ReadAt != nil {
			return stored, nil
		}
		return stored, upstreamFault(op, err)
	}
	if stored, err = analyticsstore.FindInsight(ctx, s.db, r.org(), r.of, w.earlier, w.last); err != nil {
		return stored, pg.Fault(op, err)
	}
	return stored, neverRead(op, stored)
}

// neverRead returns nil if the target has been read before. Otherwise, it returns an error
// explaining why the target could not be read.
func neverRead(op string, stored analyticsstore.Insight) error {
	switch {
	case stored.ReadAt != nil:
		return nil
	case stored.Problem == "":
		return fault.New(fault.Upstream, op,
			"The platform asked Crier to wait before the next request; try again later.")
	}
	return fault.New(fault.Upstream, op, stored.Problem)
}

// readOnce calls read once for all concurrent callers with the same target. It waits until read
// returns or ctx ends. If the target was read before, it waits for at most insightWait. read
// continues even after readOnce has stopped waiting.
func (s *Analytics) readOnce(ctx context.Context, r reading) error {
	detached := pg.Whole(context.WithoutCancel(ctx)) // callers with other narrowings share the result
	result := s.reading.DoChan(r.of.Channel.String()+r.of.Post.String()+r.of.Release, func() (any, error) {
		stored, err := analyticsstore.FindInsight(detached, s.db, r.org(), r.of, time.Time{}, time.Time{})
		if err != nil || !isStale(stored, s.deps.Clock.Now(), r.refresh) {
			return nil, err // another call has finished in the meantime
		}
		return nil, s.read(detached, r)
	})
	if r.last != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.wait)
		defer cancel()
	}
	select {
	case r := <-result:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isStale(stored analyticsstore.Insight, now time.Time, refresh bool) bool {
	age := insightAge
	if refresh {
		age = insightPause
	}
	if stored.ReadAt != nil && now.Sub(*stored.ReadAt) < age || stored.AgainAt != nil && now.Before(*stored.AgainAt) {
		return false
	}
	return stored.TriedAt == nil || now.Sub(*stored.TriedAt) >= insightPause
}

// read waits for its turn, queries the platform, and stores either the figures or the reason for
// the failure. It returns any error from the platform or the database. If its turn does not come
// within insightTurn, it returns RateLimited.
func (s *Analytics) read(ctx context.Context, r reading) error {
	leave, err := s.requests.enter(ctx, r.org(), r.access.Destination)
	if err != nil {
		return err
	}
	defer leave()
	now := s.deps.Clock.Now()
	days, err := s.askNow(ctx, r, now)
	if err != nil {
		s.failed(ctx, r, now, err)
		return err
	}
	err = analyticsstore.SaveInsights(
		ctx, s.db, r.org(), now, []analyticsstore.ReadInsight{{InsightOf: r.of, Days: days}},
	)
	if pg.IsRefused(err) {
		err = &connector.Error{
			Kind: connector.KindOperator, Public: "The statistics from the platform cannot be stored.", Err: err,
		}
		s.failed(ctx, r, now, err)
	}
	return err
}

func (s *Analytics) askNow(ctx context.Context, r reading, now time.Time) (days []publishing.DaySamples, err error) {
	ctx, cancel := context.WithTimeout(ctx, insightTime)
	defer cancel()
	err = s.deps.Access.Read(ctx, r.access, func(ctx context.Context, c *access.Channel) (err error) {
		days, err = r.ask(ctx, c.Session, now)
		return err
	})
	return days, err
}

// ask reads figures from a platform, starting insightOverlap days before the last known day. It
// reads at most publishing.AnalyticsHistory days. If the platform no longer has the post, ask
// returns no figures.
func (r reading) ask(
	ctx context.Context, session *connector.Session, now time.Time,
) ([]publishing.DaySamples, error) {
	until := publishing.DayOf(now)
	since := until.AddDate(0, 0, -publishing.AnalyticsHistory)
	if r.last != nil && r.lastDay != nil {
		known := publishing.DayOf(*r.last)
		if r.lastDay.Before(known) {
			known = publishing.DayOf(*r.lastDay)
		}
		since = latest(since, known.AddDate(0, 0, -insightOverlap))
	}
	if r.of.Post.IsZero() {
		series, err := r.analyst.Channel(ctx, session, since, until)
		return figuresOf(series, since, until, now), err
	}
	since = latest(since, publishing.DayOf(r.published))
	if since.After(until) {
		since = until
	}
	series, err := r.analyst.Post(ctx, session, r.ref, since, until)
	var e *connector.Error
	if errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusGone) {
		return nil, nil
	}
	return figuresOf(series, since, until, now), err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// figuresOf groups the points of all series by day. It ignores days outside the range from since to
// until.
func figuresOf(series []connector.Series, since, until, now time.Time) []publishing.DaySamples {
	byDay := map[time.Time]publishing.DaySamples{}
	for _, one := range series {
		for _, point := range one.Points {
			at := publishing.DayOf(point.Day)
			if at.Before(since) || at.After(until) {
				continue
			}
			f, ok := byDay[at]
			if !ok {
				f = publishing.DaySamples{
					Day: at, Counts: map[string]float64{}, Levels: map[string]float64{},
					Whole: at.Before(publishing.DayOf(now)),
				}
				byDay[at] = f
			}
			if one.Level {
				f.Levels[one.Label] = point.Value
			} else {
				f.Counts[one.Label] = point.Value
			}
		}
	}
	out := make([]publishing.DaySamples, 0, len(byDay))
	for _, f := range byDay {
		out = append(out, f)
	}
	return out
}

// failed logs and stores the reason why statistics could not be read. It does so even if ctx has
// ended.
func (s *Analytics) failed(ctx context.Context, r reading, now time.Time, err error) {
	s.deps.Log.WarnContext(ctx, "cannot read a channel's statistics",
		"org", r.org(), "channel", r.of.Channel, "connector", r.access.Channel.Connector, "error", err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	if err := analyticsstore.InsightFailed(ctx, s.db, r.org(), r.of, failureOf(now, err)); err != nil {
		s.deps.Log.ErrorContext(ctx, "cannot store that reading statistics failed",
			"org", r.org(), "channel", r.of.Channel, "error", err)
	}
}

func failureOf(now time.Time, err error) analyticsstore.InsightFailure {
	out := analyticsstore.InsightFailure{At: now, Problem: text.Line(publicOf(err), maxProblem)}
	var e *connector.Error
	if errors.As(err, &e) && e.After > 0 {
		again := now.Add(min(e.After, insightAgain))
		out.Again = &again
	}
	return out
}

// publicOf returns a human-readable sentence explaining why a platform could not be queried.
func publicOf(err error) string {
	var e *connector.Error
	if errors.As(err, &e) && strings.TrimSpace(e.Public) != "" {
		return strings.TrimSpace(e.Public)
	}
	return "The request to the platform failed."
}

// upstreamFault returns the fault for figures that cannot be read. The fault is never
// Unauthenticated, because the caller of the API is authenticated.
func upstreamFault(op string, err error) error {
	if fault.Is(err, fault.RateLimited) {
		return err
	}
	var e *connector.Error
	if !errors.As(err, &e) && pg.IsEnvironment(err) && !errors.Is(err, context.DeadlineExceeded) {
		return pg.Fault(op, err)
	}
	return fault.Wrap(fault.Upstream, op, publicOf(err), err)
}
