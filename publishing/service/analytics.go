package service

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/access"
	"crier/publishing/connector"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

const (
	// insightAge is how old figures may be that are returned without asking the platform.
	insightAge = time.Hour
	// insightPause is how long a platform is not asked again after a failure, and the age of figures that Refresh reads
	// again.
	insightPause = time.Minute
	// insightOverlap is how many days before the last reading are read again, because platforms complete the figures of a
	// day later.
	insightOverlap = 2
	// insightWait is how long a request waits for the platform when there are figures that it can return, and insightTime
	// how long the platform has to answer.
	insightWait = 5 * time.Second
	insightTime = 20 * time.Second
	maxProblem  = 1000 // bytes, see publishingstore.InsightFailed
	// storeTime is how long a result is tried to be stored after the request is gone.
	storeTime = 10 * time.Second
	// insightRate and insightBurst are how many calls a second, and at once, requests of all organizations make to one
	// platform. With SnapshotRate that is less than what a Bluesky server takes from one client.
	insightRate  = 4
	insightBurst = 20
)

// Analytics are the use cases of the statistics of channels and posts. It is safe for concurrent use.
type Analytics struct {
	core
	channels *Channels
	// reading has one call of a platform for each channel or post.
	reading singleflight.Group
	// wait is insightWait.
	wait time.Duration
	// pace limits the calls of requests to each platform.
	pace map[string]*rate.Limiter
}

// NewAnalytics returns the use cases. It starts no goroutine.
func NewAnalytics(cfg Config, deps Deps) *Analytics {
	s := &Analytics{
		core: newCore(cfg, deps), channels: NewChannels(cfg, deps), wait: insightWait, pace: map[string]*rate.Limiter{},
	}
	for _, platform := range s.analysts() {
		s.pace[platform] = rate.NewLimiter(insightRate, insightBurst)
	}
	return s
}

// Channel returns the statistics of a channel in the last days of UTC. What was read within an hour is returned as it is
// stored, and otherwise the platform is asked. When that fails, the stored figures are returned; if none is in the
// window, it ends with the last known day instead of today. A platform without statistics has none. It returns NotFound,
// Invalid for a number of days that is out of range, Upstream when the platform cannot be asked and nothing is stored,
// and RateLimited as access.Keeper.Use and while too many requests wait for the platform.
func (s *Analytics) Channel(
	ctx context.Context, p tenancy.Principal, q publishing.GetAnalytics,
) (publishing.Analytics, error) {
	const op = "publishing.ChannelAnalytics"
	a, err := s.channels.access(ctx, p, op, q.Channel)
	if err != nil {
		return publishing.Analytics{}, err
	}
	if err := checkWindow(op, q.Days); err != nil {
		return publishing.Analytics{}, err
	}
	w := s.window(q.Days)
	t := insightTarget{of: publishingstore.InsightOf{Channel: a.Channel.ID}}
	stored, err := s.current(ctx, op, a, t, w, q.Refresh)
	if err != nil {
		return publishing.Analytics{}, err
	}
	out, err := s.statistics(ctx, p.Org, t.of, stored, w)
	return out, internal(op, err)
}

// Post returns the statistics of the first part of a post, as Channel does. A post that is not published has none, and
// neither has one that the platform no longer knows.
func (s *Analytics) Post(
	ctx context.Context, p tenancy.Principal, q publishing.GetPostAnalytics,
) (publishing.PostAnalytics, error) {
	const op = "publishing.PostAnalytics"
	post, ok := id.Parse[publishing.PostTag](q.Post)
	if !ok {
		return publishing.PostAnalytics{}, noPost(op)
	}
	r, err := s.store.Released(ctx, p.Org, post)
	if pg.IsNoRows(err) {
		return publishing.PostAnalytics{}, noPost(op)
	}
	if err != nil {
		return publishing.PostAnalytics{}, internal(op, err)
	}
	if err := checkWindow(op, q.Days); err != nil {
		return publishing.PostAnalytics{}, err
	}
	if r.ID == "" || r.ID == publishing.ReleaseMissing {
		return publishing.PostAnalytics{Missing: r.ID != ""}, nil
	}
	w := s.window(q.Days)
	a, err := s.store.ChannelAccess(ctx, p.Org, r.Channel)
	if pg.IsNoRows(err) { // the channel was disconnected: what was read before is all that there is
		stored, err := s.store.Insight(ctx, p.Org, targetOf(r).of, w.earlier, w.last)
		if err != nil {
			return publishing.PostAnalytics{}, internal(op, err)
		}
		out, err := s.statistics(ctx, p.Org, targetOf(r).of, stored, w)
		return publishing.PostAnalytics{Analytics: out}, internal(op, err)
	}
	if err != nil {
		return publishing.PostAnalytics{}, internal(op, err)
	}
	stored, err := s.current(ctx, op, a, targetOf(r), w, q.Refresh)
	if err != nil {
		return publishing.PostAnalytics{}, err
	}
	out, err := s.statistics(ctx, p.Org, targetOf(r).of, stored, w)
	return publishing.PostAnalytics{Analytics: out}, internal(op, err)
}

// Figures returns what is known of a channel on a day of UTC or, where nothing is, on the last known day before. The day
// of the result is zero when nothing is known of any. It returns NotFound and Upstream as Channel does, and Invalid for no day and
// for one that has not begun.
func (s *Analytics) Figures(
	ctx context.Context, p tenancy.Principal, q publishing.GetFigures,
) (publishing.DayFigures, error) {
	const op = "publishing.Figures"
	a, err := s.channels.access(ctx, p, op, q.Channel)
	if err != nil {
		return publishing.DayFigures{}, err
	}
	w := s.window(1)
	if problem := checkDay(q.Day, w.last); problem != "" {
		return publishing.DayFigures{}, &fault.Error{Kind: fault.Invalid, Op: op, Message: "The date is not valid.",
			Fields: []fault.Field{{Name: "date", Message: problem}}}
	}
	w.earlier, w.last = q.Day.AddDate(0, 0, -publishing.MaxAnalyticsDays), q.Day
	stored, err := s.current(ctx, op, a, insightTarget{of: publishingstore.InsightOf{Channel: a.Channel.ID}}, w, false)
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
		return "is required, as a day such as 2027-03-01"
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

// statistics returns the metrics of a window. If nothing of it is known, because the platform has not answered for longer,
// the window ends with the last known day.
func (s *Analytics) statistics(
	ctx context.Context, org tenancy.OrgID, of publishingstore.InsightOf, stored publishingstore.Insight, w insightWindow,
) (publishing.Analytics, error) {
	if stored.LastDay != nil && stored.LastDay.Before(w.first) {
		w = w.endingOn(*stored.LastDay)
		var err error
		if stored, err = s.store.Insight(ctx, org, of, w.earlier, w.last); err != nil {
			return publishing.Analytics{}, err
		}
	}
	today := publishing.DayOf(s.deps.Clock.Now())
	out := publishing.Analytics{Metrics: publishing.Metrics(stored.Days, w.first, w.last, today)}
	if stored.ReadAt != nil {
		out.AsOf = *stored.ReadAt
	}
	return out, nil
}

// endingOn returns the window of the same length that ends on a day.
func (w insightWindow) endingOn(day time.Time) insightWindow {
	moved := w.last.Sub(day)
	return insightWindow{earlier: w.earlier.Add(-moved), first: w.first.Add(-moved), last: day}
}

// insightTarget is what the statistics are of: a channel, or a post, which has a ref and the day of its publication.
type insightTarget struct {
	of        publishingstore.InsightOf
	ref       connector.Ref
	published time.Time
}

func targetOf(r publishingstore.Released) insightTarget {
	return insightTarget{
		of:  publishingstore.InsightOf{Channel: r.Channel, Post: r.Post},
		ref: connector.Ref{ID: r.ID, URL: r.URL, Data: r.Data}, published: r.PublishedOn,
	}
}

// current returns what is stored, after it has asked the platform where that is too old. It returns an error when the
// platform cannot be asked and nothing was ever read.
func (s *Analytics) current(
	ctx context.Context, op string, a publishingstore.Access, t insightTarget, w insightWindow, refresh bool,
) (publishingstore.Insight, error) {
	org := a.Channel.Org
	c, _ := s.deps.Connectors.Get(a.Channel.Connector)
	analyst, ok := connector.AnalystOf(c)
	if !ok {
		return publishingstore.Insight{}, nil
	}
	stored, err := s.store.Insight(ctx, org, t.of, w.earlier, w.last)
	if err != nil {
		return stored, internal(op, err)
	}
	now := s.deps.Clock.Now()
	if !isStale(stored, now, refresh) {
		if stored.ReadAt == nil {
			return stored, fault.New(fault.Upstream, op, stored.Problem)
		}
		return stored, nil
	}
	if err := s.readOnce(ctx, a, analyst, t, stored.ReadAt, refresh); err != nil {
		if stored.ReadAt != nil {
			return stored, nil
		}
		return stored, upstreamFault(op, err)
	}
	stored, err = s.store.Insight(ctx, org, t.of, w.earlier, w.last)
	return stored, internal(op, err)
}

// readOnce is read for all callers that ask for the same at the same time. It does not wait longer than ctx allows and,
// when something was read before, no longer than insightWait. What it has begun goes on then.
func (s *Analytics) readOnce(
	ctx context.Context, a publishingstore.Access, analyst connector.Analyst, t insightTarget, last *time.Time, refresh bool,
) error {
	detached := context.WithoutCancel(ctx)
	result := s.reading.DoChan(t.of.Channel.String()+t.of.Post.String(), func() (any, error) {
		stored, err := s.store.Insight(detached, a.Channel.Org, t.of, time.Time{}, time.Time{})
		if err != nil || !isStale(stored, s.deps.Clock.Now(), refresh) {
			return nil, err // another call has ended since the caller looked
		}
		return nil, s.read(detached, a, analyst, t, last)
	})
	if last != nil {
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

func isStale(stored publishingstore.Insight, now time.Time, refresh bool) bool {
	age := insightAge
	if refresh {
		age = insightPause
	}
	if stored.ReadAt != nil && now.Sub(*stored.ReadAt) < age {
		return false
	}
	return stored.TriedAt == nil || now.Sub(*stored.TriedAt) >= insightPause
}

// read asks the platform and stores the answer, or why it failed. It returns the error of the platform or of the
// database.
func (s *Analytics) read(
	ctx context.Context, a publishingstore.Access, analyst connector.Analyst, t insightTarget, last *time.Time,
) error {
	now := s.deps.Clock.Now()
	days, err := s.askInTime(ctx, a, analyst, t, last, now)
	if err != nil {
		s.failed(ctx, a, t.of, now, err)
		return err
	}
	return s.store.SaveInsights(ctx, a.Channel.Org, now, []publishingstore.ReadInsight{{InsightOf: t.of, Days: days}})
}

// askInTime is ask when it is the turn of the platform and of the organization, within insightTime.
func (s *Analytics) askInTime(
	ctx context.Context, a publishingstore.Access, analyst connector.Analyst, t insightTarget, last *time.Time,
	now time.Time,
) (days []publishing.DayFigures, err error) {
	ctx, cancel := context.WithTimeout(ctx, insightTime)
	defer cancel()
	if err := s.pace[a.Channel.Connector].Wait(ctx); err != nil {
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "publishing.analytics", RetryAfter: insightTime, Err: err,
			Message: "Too many statistics of this platform are asked for; try again in a minute.",
		}
	}
	err = s.deps.Access.Read(ctx, a, func(ctx context.Context, c *access.Channel) (err error) {
		days, err = ask(ctx, analyst, c.Session, t, last, now)
		return err
	})
	return days, err
}

// ask reads the days since the last reading from a platform. A post that the platform does not know has no figures.
func ask(
	ctx context.Context, analyst connector.Analyst, session *connector.Session, t insightTarget,
	last *time.Time, now time.Time,
) ([]publishing.DayFigures, error) {
	until := publishing.DayOf(now)
	since := until.AddDate(0, 0, -publishing.AnalyticsHistory)
	if last != nil {
		since = latest(since, publishing.DayOf(*last).AddDate(0, 0, -insightOverlap))
	}
	if t.of.Post.IsZero() {
		series, err := analyst.Channel(ctx, session, since, until)
		return figuresOf(series, since, until), err
	}
	since = latest(since, publishing.DayOf(t.published))
	if since.After(until) {
		since = until
	}
	series, err := analyst.Post(ctx, session, t.ref, since, until)
	var e *connector.Error
	if errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusGone) {
		return nil, nil
	}
	return figuresOf(series, since, until), err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// figuresOf returns the series by their days, without the days outside of the range.
func figuresOf(series []connector.Series, since, until time.Time) []publishing.DayFigures {
	byDay := map[time.Time]publishing.DayFigures{}
	for _, one := range series {
		for _, point := range one.Points {
			at := publishing.DayOf(point.Day)
			if at.Before(since) || at.After(until) {
				continue
			}
			f, ok := byDay[at]
			if !ok {
				f = publishing.DayFigures{Day: at, Counts: map[string]float64{}, Levels: map[string]float64{}}
				byDay[at] = f
			}
			if one.Level {
				f.Levels[one.Label] = point.Value
			} else {
				f.Counts[one.Label] = point.Value
			}
		}
	}
	out := make([]publishing.DayFigures, 0, len(byDay))
	for _, f := range byDay {
		out = append(out, f)
	}
	return out
}

// failed logs why a platform could not be asked, and stores it also when ctx is over. Too many calls of the organization
// are no failure of the platform.
func (s *Analytics) failed(
	ctx context.Context, a publishingstore.Access, of publishingstore.InsightOf, now time.Time, err error,
) {
	if fault.Is(err, fault.RateLimited) {
		return
	}
	s.deps.Log.WarnContext(ctx, "the statistics of a channel could not be read",
		"org", a.Channel.Org, "channel", of.Channel, "connector", a.Channel.Connector, "error", err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	problem := connector.Clean(publicOf(err), maxProblem)
	if err := s.store.InsightFailed(ctx, a.Channel.Org, of, now, problem); err != nil {
		s.deps.Log.ErrorContext(ctx, "the failure of a reading of statistics could not be stored",
			"org", a.Channel.Org, "channel", of.Channel, "error", err)
	}
}

// publicOf returns why a platform could not be asked, as a sentence for people.
func publicOf(err error) string {
	var e *connector.Error
	if errors.As(err, &e) && strings.TrimSpace(e.Public) != "" {
		return strings.TrimSpace(e.Public)
	}
	return "The platform could not be asked."
}

// upstreamFault returns the fault for figures that cannot be read. It is no Unauthenticated: the caller's own access is
// fine.
func upstreamFault(op string, err error) error {
	if fault.Is(err, fault.RateLimited) {
		return err
	}
	var e *connector.Error
	if !errors.As(err, &e) && pg.IsEnvironment(err) && !errors.Is(err, context.DeadlineExceeded) {
		return internal(op, err)
	}
	return fault.Wrap(fault.Upstream, op, publicOf(err), err)
}
