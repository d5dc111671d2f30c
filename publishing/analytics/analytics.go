// Package analytics reads channel and post statistics from platforms, stores them, and reports on
// posts.
package analytics

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/access"
	analyticsstore "crier/publishing/analytics/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
)

// Config configures Analytics.
type Config struct {
	// SnapshotRate is the maximum number of reads per second that TakeSnapshots starts for each
	// server. Outside tests, it is set to the constant SnapshotRate.
	SnapshotRate float64
}

// Deps holds the dependencies of New. All are required.
type Deps struct {
	DB         *db.DB
	Connectors *connector.Registry
	// Access opens and refreshes credentials.
	Access *access.Refresher
	Clock  clock.Clock
	Log    *slog.Logger
}

// Analytics returns channel statistics, post statistics and reports. It is safe for concurrent use.
type Analytics struct {
	cfg  Config
	deps Deps
	db   *db.DB
	// reading merges concurrent platform calls for the same channel or post.
	reading singleflight.Group
	// wait is insightWait, except in tests.
	wait     time.Duration
	requests *requestQueue
}

// New returns an Analytics. It does not start any goroutines.
func New(cfg Config, deps Deps) *Analytics {
	return &Analytics{cfg: cfg, deps: deps, db: deps.DB, wait: insightWait, requests: newRequestQueue()}
}

// Channel returns a channel's statistics for the last q.Days days in UTC. It returns stored figures
// if they are less than an hour old. Otherwise, it queries the platform. If the query fails, it
// returns the stored figures.
//
// If all stored figures are older than the window, the window is moved to end on the last day with
// figures. It is not moved if the platform's last response contained no figures.
//
// If the platform does not offer statistics, the result is empty. Channel returns NotFound if there
// is no such channel, and Invalid if the number of days is out of range.
//
// For a channel that has never been read, Channel returns Upstream if the platform cannot be
// queried, and RateLimited if too many requests are already waiting for the platform.
func (s *Analytics) Channel(
	ctx context.Context, p tenancy.Principal, q publishing.GetAnalytics,
) (publishing.Analytics, error) {
	const op = "publishing.ChannelAnalytics"
	a, err := s.deps.Access.Find(ctx, p.Org, op, q.Channel)
	if err != nil {
		return publishing.Analytics{}, err
	}
	if err := checkWindow(op, q.Days); err != nil {
		return publishing.Analytics{}, err
	}
	w := s.window(q.Days)
	return s.figuresIn(ctx, op, reading{access: a, insightTarget: targetOfChannel(a), refresh: q.Refresh}, w)
}

// figuresIn returns the statistics for a window. If the stored figures are too old, it queries the
// platform first.
func (s *Analytics) figuresIn(
	ctx context.Context, op string, r reading, w insightWindow,
) (publishing.Analytics, error) {
	stored, err := s.current(ctx, op, r, w)
	if err != nil {
		return publishing.Analytics{}, err
	}
	out, err := s.statistics(ctx, r.org(), r.of, stored, w)
	return out, pg.Fault(op, err)
}

// Post is like Channel, but returns the statistics of a post's first part. The result is empty if
// the post is not published or the platform no longer has the post.
func (s *Analytics) Post(
	ctx context.Context, p tenancy.Principal, q publishing.GetPostAnalytics,
) (publishing.PostAnalytics, error) {
	const op = "publishing.PostAnalytics"
	post, ok := id.Parse[publishing.PostTag](q.Post)
	if !ok {
		return publishing.PostAnalytics{}, publishing.NoPost(op)
	}
	r, err := analyticsstore.FindReleased(ctx, s.db, p.Org, post)
	if pg.IsNoRows(err) {
		return publishing.PostAnalytics{}, publishing.NoPost(op)
	}
	if err != nil {
		return publishing.PostAnalytics{}, pg.Fault(op, err)
	}
	if err := checkWindow(op, q.Days); err != nil {
		return publishing.PostAnalytics{}, err
	}
	if r.ID == "" || r.ID == publishing.ReleaseMissing {
		return publishing.PostAnalytics{Missing: r.ID != ""}, nil
	}
	w := s.window(q.Days)
	a, err := s.deps.Access.Channel(ctx, p.Org, r.Channel)
	// The channel was disconnected, so only stored figures are available.
	if pg.IsNoRows(err) {
		out, err := s.known(ctx, p.Org, targetOf(r).of, w)
		return publishing.PostAnalytics{Analytics: out}, pg.Fault(op, err)
	}
	if err != nil {
		return publishing.PostAnalytics{}, pg.Fault(op, err)
	}
	out, err := s.figuresIn(ctx, op, reading{access: a, insightTarget: targetOf(r), refresh: q.Refresh}, w)
	return publishing.PostAnalytics{Analytics: out}, err
}

// known returns the stored statistics without querying the platform.
func (s *Analytics) known(
	ctx context.Context, org tenancy.OrgID, of analyticsstore.InsightOf, w insightWindow,
) (publishing.Analytics, error) {
	stored, err := analyticsstore.FindInsight(ctx, s.db, org, of, w.earlier, w.last)
	if err != nil {
		return publishing.Analytics{}, err
	}
	return s.statistics(ctx, org, of, stored, w)
}

// Figures returns a channel's known figures for a UTC day. If none are known, it returns the
// figures for the most recent earlier day with known figures, or zero if there is no such day.
// Figures returns the same errors as Channel. It also returns Invalid if q.Day is zero or in the
// future.
func (s *Analytics) Figures(
	ctx context.Context, p tenancy.Principal, q publishing.GetSamples,
) (publishing.DaySamples, error) {
	const op = "publishing.Figures"
	a, err := s.deps.Access.Find(ctx, p.Org, op, q.Channel)
	if err != nil {
		return publishing.DaySamples{}, err
	}
	w := s.window(1)
	if problem := checkDay(q.Day, w.last); problem != "" {
		return publishing.DaySamples{}, &fault.Error{Kind: fault.Invalid, Op: op, Message: "The date is not valid.",
			Fields: []fault.Field{{Name: "date", Message: problem}}}
	}
	w.earlier, w.last = q.Day.AddDate(0, 0, -publishing.MaxAnalyticsDays), q.Day
	stored, err := s.current(ctx, op, reading{access: a, insightTarget: targetOfChannel(a)}, w)
	if err != nil {
		return publishing.DaySamples{}, err
	}
	out, _ := publishing.Latest(stored.Days, q.Day)
	return out, nil
}

// checkDay returns "" if figures for the day can be requested. Otherwise, it returns an
// explanation.
func checkDay(at, today time.Time) string {
	switch {
	case at.IsZero():
		return "must be a date such as 2027-03-01"
	case at.After(today):
		return "must not be after today in UTC"
	}
	return ""
}

func checkWindow(op string, days int) error {
	if days >= 1 && days <= publishing.MaxAnalyticsDays {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Op: op, Message: "The number of days is out of range.",
		Fields: []fault.Field{{Name: "date", Message: "must be from 1 to 366 days"}}}
}

// insightWindow is a window of days from first to last. earlier is the first day of the preceding
// window, which has the same length.
type insightWindow struct{ earlier, first, last time.Time }

// window returns a window of the given number of days that ends today.
func (s *Analytics) window(days int) insightWindow {
	last := publishing.DayOf(s.deps.Clock.Now())
	return insightWindow{earlier: last.AddDate(0, 0, 1-2*days), first: last.AddDate(0, 0, 1-days), last: last}
}

// statistics returns the metrics for a window. A platform may not respond, or may report figures
// late. If the window has no known figures as a result, it is moved to end on the last day with
// known figures. It is not moved if the platform's last response contained no figures.
func (s *Analytics) statistics(
	ctx context.Context, org tenancy.OrgID, of analyticsstore.InsightOf, stored analyticsstore.Insight, w insightWindow,
) (publishing.Analytics, error) {
	if stored.ReadAt == nil {
		return publishing.Analytics{}, nil
	}
	out := publishing.Analytics{AsOf: *stored.ReadAt}
	if stored.LastDay != nil && stored.LastDay.Before(w.first) && !stored.Empty {
		w = w.endingOn(*stored.LastDay)
		var err error
		if stored, err = analyticsstore.FindInsight(ctx, s.db, org, of, w.earlier, w.last); err != nil {
			return publishing.Analytics{}, err
		}
	}
	out.Metrics = publishing.Metrics(stored.Days, w.first, w.last)
	return out, nil
}

// endingOn returns a window of the same length that ends on the given day.
func (w insightWindow) endingOn(day time.Time) insightWindow {
	moved := w.last.Sub(day)
	return insightWindow{earlier: w.earlier.Add(-moved), first: w.first.Add(-moved), last: day}
}
