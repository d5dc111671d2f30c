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

// Config configures the use cases.
type Config struct {
	// SnapshotRate is how many readings a second TakeSnapshots begins at one server, see SnapshotRate.
	SnapshotRate float64
}

// Deps holds the dependencies of New. All are required.
type Deps struct {
	DB         *db.DB
	Connectors *connector.Registry
	// Access opens and refreshes credentials.
	Access *access.Keeper
	Clock  clock.Clock
	Log    *slog.Logger
}

// Analytics are the use cases of the statistics of channels and posts. It is safe for concurrent use.
type Analytics struct {
	cfg  Config
	deps Deps
	db   *db.DB
	// reading has one call of a platform for each channel or post.
	reading singleflight.Group
	// wait is insightWait.
	wait     time.Duration
	requests *requestQueue
}

// New returns the use cases. It starts no goroutine.
func New(cfg Config, deps Deps) *Analytics {
	return &Analytics{cfg: cfg, deps: deps, db: deps.DB, wait: insightWait, requests: newRequestQueue()}
}

// Channel returns the statistics of a channel in the last days of UTC. What was read within an hour is returned as it is
// stored, and otherwise the platform is asked. When that fails, the stored figures are returned; if none is in the window
// and the platform has not answered that it has none, it ends with the last known day instead of today. A platform without statistics has
// none. It returns NotFound,
// Invalid for a number of days that is out of range, Upstream when the platform cannot be asked and nothing is stored,
// and RateLimited when nothing is stored and too many requests wait for the platform.
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

// figuresIn returns the statistics of a window, after it has asked the platform where what is stored is too old.
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

// Post returns the statistics of the first part of a post, as Channel does. A post that is not published has none, and
// neither has one that the platform no longer knows.
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
	if pg.IsNoRows(err) { // the channel was disconnected: what was read before is all that there is
		out, err := s.known(ctx, p.Org, targetOf(r).of, w)
		return publishing.PostAnalytics{Analytics: out}, pg.Fault(op, err)
	}
	if err != nil {
		return publishing.PostAnalytics{}, pg.Fault(op, err)
	}
	out, err := s.figuresIn(ctx, op, reading{access: a, insightTarget: targetOf(r), refresh: q.Refresh}, w)
	return publishing.PostAnalytics{Analytics: out}, err
}

// known returns the statistics that are stored.
func (s *Analytics) known(
	ctx context.Context, org tenancy.OrgID, of analyticsstore.InsightOf, w insightWindow,
) (publishing.Analytics, error) {
	stored, err := analyticsstore.FindInsight(ctx, s.db, org, of, w.earlier, w.last)
	if err != nil {
		return publishing.Analytics{}, err
	}
	return s.statistics(ctx, org, of, stored, w)
}

// Figures returns what is known of a channel on a day of UTC or, where nothing is, on the last known day before. The day
// of the result is zero when nothing is known of any. It returns NotFound and Upstream as Channel does, and Invalid for
// no day and for one that has not begun.
func (s *Analytics) Figures(
	ctx context.Context, p tenancy.Principal, q publishing.GetFigures,
) (publishing.DayFigures, error) {
	const op = "publishing.Figures"
	a, err := s.deps.Access.Find(ctx, p.Org, op, q.Channel)
	if err != nil {
		return publishing.DayFigures{}, err
	}
	w := s.window(1)
	if problem := checkDay(q.Day, w.last); problem != "" {
		return publishing.DayFigures{}, &fault.Error{Kind: fault.Invalid, Op: op, Message: "The date is not valid.",
			Fields: []fault.Field{{Name: "date", Message: problem}}}
	}
	w.earlier, w.last = q.Day.AddDate(0, 0, -publishing.MaxAnalyticsDays), q.Day
	stored, err := s.current(ctx, op, reading{access: a, insightTarget: targetOfChannel(a)}, w)
	if err != nil {
		return publishing.DayFigures{}, err
	}
	out, _ := publishing.Latest(stored.Days, q.Day)
	return out, nil
}

// checkDay returns why figures of a day cannot be asked for, or "".
func checkDay(at, today time.Time) string {
	switch {
	case at.IsZero():
		return "must be a day such as 2027-03-01"
	case at.After(today):
		return "must not be after today, by the clocks of UTC"
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

// insightWindow is a window of days. earlier is the first day of the window before it.
type insightWindow struct{ earlier, first, last time.Time }

// window returns the window of so many days that ends today.
func (s *Analytics) window(days int) insightWindow {
	last := publishing.DayOf(s.deps.Clock.Now())
	return insightWindow{earlier: last.AddDate(0, 0, 1-2*days), first: last.AddDate(0, 0, 1-days), last: last}
}

// statistics returns the metrics of a window. If nothing of it is known, because the platform does not answer or tells its
// figures later, it ends with the last known day, but not after an answer without any figures.
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

// endingOn returns the window of the same length that ends on a day.
func (w insightWindow) endingOn(day time.Time) insightWindow {
	moved := w.last.Sub(day)
	return insightWindow{earlier: w.earlier.Add(-moved), first: w.first.Add(-moved), last: day}
}
