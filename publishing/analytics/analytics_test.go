package analytics_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	accessstore "crier/publishing/access/store"
	"crier/publishing/analytics"
	analyticsstore "crier/publishing/analytics/store"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/connector"
	"crier/tenancy"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// gauged is a platform with statistics. Its followers are 1,000 plus the day of the year, its
// impressions are the day of the month.
type gauged struct {
	publishtest.Platform
	clock clock.Clock

	mu     sync.Mutex
	err    error // returned instead of statistics
	asked  []string
	before func(ctx context.Context) // called when a call begins, unless it is nil
	lag    int                       // the number of days until a day is reported
	// judge, if set, returns the error of a call; replace, if set, is its response.
	judge   func(*connector.Session) error
	replace []connector.Series
}

func (g *gauged) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

// calls returns the calls to the platform since the last time, such as "channel 03-01 03-05".
func (g *gauged) calls() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.asked
	g.asked = nil
	return out
}

func (g *gauged) answer(
	ctx context.Context, s *connector.Session, what string, since, until time.Time,
) ([]connector.Series, error) {
	g.mu.Lock()
	g.asked = append(g.asked, fmt.Sprintf("%s %s %s", what, since.Format("01-02"), until.Format("01-02")))
	err, before := g.err, g.before
	g.mu.Unlock()
	if before != nil {
		before(ctx)
	}
	if err == nil && g.judge != nil {
		err = g.judge(s)
	}
	if err != nil || g.replace != nil {
		return g.replace, err
	}
	followers, impressions := connector.Series{Label: "followers", Level: true}, connector.Series{Label: "impressions"}
	for at := since; !at.After(until); at = at.AddDate(0, 0, 1) {
		if at.AddDate(0, 0, g.lag).After(g.clock.Now()) {
			break
		}
		impressions.Points = append(impressions.Points, connector.Point{Day: at, Value: float64(at.Day())})
		followers.Points = append(followers.Points, connector.Point{Day: at, Value: float64(1000 + at.YearDay())})
	}
	return []connector.Series{followers, impressions}, nil
}

func (g *gauged) Channel(ctx context.Context, s *connector.Session, since, until time.Time) ([]connector.Series, error) {
	return g.answer(ctx, s, "channel", since, until)
}

func (g *gauged) Post(
	ctx context.Context, s *connector.Session, ref connector.Ref, since, until time.Time,
) ([]connector.Series, error) {
	return g.answer(ctx, s, ref.ID, since, until)
}

// analyticsRig is a member with a channel of a gauged platform. Its clock starts at noon on March
// 10, 2027.
type analyticsRig struct {
	*publishtest.Rig
	who       tenancy.Principal
	platform  *gauged
	channel   publishing.ChannelID
	analytics *analytics.Analytics

	mu  sync.Mutex
	now time.Time
}

func newAnalyticsRig(t *testing.T) *analyticsRig {
	t.Helper()
	r := &analyticsRig{Rig: publishtest.NewRig(t), now: time.Date(2027, time.March, 10, 12, 0, 0, 0, time.UTC)}
	r.Deps.Clock = clock.Func(func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.now
	})
	r.platform = &gauged{clock: r.Deps.Clock}
	r.Register(r.platform)
	r.who = r.Organization()
	r.channel = r.Connect(r.who.Org)
	r.analytics = r.process()
	return r
}

// process returns the use cases of another process.
func (r *analyticsRig) process() *analytics.Analytics {
	cfg := publishtest.Limits
	cfg.SnapshotRate = 1e6
	return r.Deps.Analytics(cfg)
}

func (r *analyticsRig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *analyticsRig) read(days int) (publishing.Analytics, error) {
	return r.analytics.Channel(r.Context(), r.who, publishing.GetAnalytics{Channel: r.channel.String(), Days: days})
}

// impressions returns the days of a window with their impressions, followed by the change, such as
// "03-09:9 03-10:10 80".
func (r *analyticsRig) impressions(days int) string {
	r.Helper()
	out, err := r.read(days)
	r.OK(err)
	var text []string
	for _, m := range out.Metrics {
		if m.Label != "impressions" {
			continue
		}
		for _, p := range m.Points {
			text = append(text, fmt.Sprintf("%s:%v", p.Day.Format("01-02"), p.Value))
		}
		text = append(text, fmt.Sprint(m.Change))
	}
	return strings.Join(text, " ")
}

func (r *analyticsRig) want(got, want string) {
	r.Helper()
	if got != want {
		r.Errorf("got %q, want %q", got, want)
	}
}

func away() error {
	return &connector.Error{Kind: connector.KindTransient, Public: "The platform does not answer."}
}

func TestAnalytics_PlatformIsCalledOnceAnHour(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	// Without today, the window has 8+9 and the one before it 5+6.
	r.want(r.impressions(3), "03-08:8 03-09:9 03-10:10 54.55")
	r.want(fmt.Sprint(r.platform.calls()), "[channel 09-11 03-10]")
	r.pass(59 * time.Minute)
	r.want(r.impressions(1), "03-10:10 0")
	r.want(fmt.Sprint(r.platform.calls()), "[]")
	r.pass(time.Minute)
	r.want(r.impressions(1), "03-10:10 0")
	// The seven days before may have been incomplete when they were read.
	r.want(fmt.Sprint(r.platform.calls()), "[channel 03-03 03-10]")

	again := publishing.GetAnalytics{Channel: r.channel.String(), Days: 1, Refresh: true}
	_, err := r.analytics.Channel(r.Context(), r.who, again)
	r.OK(err)
	r.want(fmt.Sprint(r.platform.calls()), "[]") // the last call was less than a minute ago
	r.pass(time.Minute)
	_, err = r.analytics.Channel(r.Context(), r.who, again)
	r.OK(err)
	r.want(fmt.Sprint(r.platform.calls()), "[channel 03-03 03-10]")
}

func TestAnalytics_OutageShowsLastFiguresThenCurrentOnes(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.impressions(1)
	read := r.now
	r.platform.fail(away())
	r.pass(48 * time.Hour)
	r.want(r.impressions(4), "03-09:9 03-10:10 80")    // 9 against 5: the tenth was incomplete
	r.want(r.impressions(2), "03-09:9 03-10:10 28.57") // the last known days, 9 against 7
	out, err := r.read(4)
	r.OK(err)
	if !out.AsOf.Equal(read) {
		t.Errorf("got the time of reading %v, want %v", out.AsOf, read)
	}
	day, err := r.analytics.Figures(t.Context(), r.who, publishing.GetSamples{Channel: r.channel.String(), Day: publishing.DayOf(r.now)})
	r.OK(err)
	if day.Day.Day() != 10 || !maps.Equal(day.Values(), map[string]float64{"impressions": 10, "followers": 1069}) {
		t.Errorf("got %+v, want the figures of the tenth", day)
	}
	r.platform.fail(nil)
	r.pass(time.Minute)
	r.want(r.impressions(4), "03-09:9 03-10:10 03-11:11 03-12:12 66.67")
	day, err = r.analytics.Figures(t.Context(), r.who, publishing.GetSamples{Channel: r.channel.String(), Day: publishing.DayOf(r.now)})
	r.OK(err)
	r.want(day.Day.Format(time.DateOnly), "2027-03-12")
}

func TestAnalytics_FailureIsReportedIfNothingIsKnown(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.platform.fail(away())
	for range 2 { // the second request makes no call
		if _, err := r.read(7); !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("got the error %v, want the reason of the platform", err)
		}
	}
	r.want(fmt.Sprint(r.platform.calls()), "[channel 09-11 03-10]")
	r.platform.fail(nil)
	r.pass(time.Minute)
	r.want(r.impressions(1), "03-10:10 0")

	r.Tenant(r.who.Org, `update channel set refresh_needed = true where id = $1`, r.channel)
	r.platform.calls()
	r.pass(time.Hour)
	r.want(r.impressions(1), "03-10:10 0")
	r.want(fmt.Sprint(r.platform.calls()), "[]") // the channel must be reconnected first
}

func TestAnalytics_ConcurrentRequestsShareOneCall(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	begun, release := make(chan struct{}, 1), make(chan struct{})
	r.platform.before = func(context.Context) {
		begun <- struct{}{}
		<-release
	}
	results := make(chan error, 10)
	for range cap(results) {
		go func() {
			_, err := r.read(7)
			results <- err
		}()
	}
	<-begun
	close(release)
	for range cap(results) {
		r.OK(<-results)
	}
	r.want(fmt.Sprint(r.platform.calls()), "[channel 09-11 03-10]")
}

func TestAnalytics_RequestDoesNotWaitForHangingPlatform(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.impressions(1)
	r.pass(time.Hour)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	r.platform.before = func(context.Context) { <-release }
	r.analytics.SetWait(time.Millisecond)
	if out, err := r.read(1); err != nil || len(out.Metrics) != 2 {
		t.Errorf("got %+v, %v, want the last figures", out, err)
	}
}

// An organization that requests the figures of many channels of a slow platform leaves room for
// others, and still gets all its figures in the end.
func TestAnalytics_ManyRequestsOfOneOrganizationLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	other := r.Organization()
	theirs := r.Connect(other.Org)
	r.Tenant(other.Org, `update channel_queue set destination = 'slow' where channel_id = $1`, theirs)
	begun, release := make(chan struct{}, 20), make(chan struct{})
	r.platform.judge = func(s *connector.Session) error {
		if strings.HasPrefix(s.Account.ID, "slow") {
			begun <- struct{}{}
			<-release
		}
		return nil
	}
	pace := r.analytics.SetPace("slow", 5) // one more than an organization may use at once
	results := make(chan error, 12)
	for range cap(results) {
		c := r.channelOn(r.who.Org, "slow")
		go func() {
			_, err := r.analytics.Channel(r.Context(), r.who, publishing.GetAnalytics{Channel: c.String(), Days: 7})
			results <- err
		}()
	}
	for range 4 {
		<-begun
	}
	_, err := r.analytics.Channel(r.Context(), other, publishing.GetAnalytics{Channel: theirs.String(), Days: 7})
	r.OK(err)
	pace.SetBurst(100)
	pace.SetLimit(rate.Inf)
	close(release)
	for range cap(results) {
		r.OK(<-results)
	}
}

// A request that waits in a server's queue does not count as a failure of the server, and does not
// delay other servers.
func TestAnalytics_EachServerHasItsOwnQueue(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.analytics.SetPace("busy", 1)
	ask := func(c publishing.ChannelID) error {
		_, err := r.analytics.Channel(r.Context(), r.who, publishing.GetAnalytics{Channel: c.String(), Days: 7})
		return err
	}
	first, second := r.channelOn(r.who.Org, "busy"), r.channelOn(r.who.Org, "busy")
	r.OK(ask(first))
	if err := ask(second); !fault.Is(err, fault.RateLimited) {
		t.Errorf("got the error %v, want RateLimited", err)
	}
	r.OK(ask(r.channelOn(r.who.Org, "idle")))
	named := r.channelOn(r.who.Org, "busy,made-up")
	if err := ask(named); !fault.Is(err, fault.RateLimited) {
		t.Errorf("with another name beside it: got the error %v, want RateLimited", err)
	}
	r.analytics.SetPace("busy", 1)
	r.OK(ask(second)) // not delayed, because nothing has failed
}

// A platform that asks for a pause is left alone for that time. Requests for which nothing is known
// return its error.
func TestAnalytics_RetryAfterIsHonored(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.impressions(1)
	r.platform.calls()
	r.platform.fail(&connector.Error{Kind: connector.KindTransient, Status: 429, After: 30 * time.Hour, Public: "Slow down."})
	r.pass(2 * time.Hour)
	r.want(r.impressions(1), "03-10:10 0")
	r.platform.fail(nil)
	r.pass(23 * time.Hour)
	r.impressions(1)
	r.snapshots()
	r.want(fmt.Sprint(r.platform.calls()), "[channel 03-03 03-10]")
	r.pass(time.Hour) // a full day, which is the longest pause
	r.want(r.impressions(1), "03-11:11 0")

	first, second := r.publish(r.channel, march10, "first"), r.publish(r.channel, march10, "second")
	r.platform.fail(&connector.Error{Kind: connector.KindTransient, Status: 429, After: time.Hour, Public: "Slow down."})
	ask := func(post publishing.PostID) {
		t.Helper()
		_, err := r.analytics.Post(r.Context(), r.who, publishing.GetPostAnalytics{Post: post.String(), Days: 7})
		if !fault.Is(err, fault.Upstream) {
			t.Errorf("got the error %v, want that the platform asks to wait", err)
		}
	}
	r.platform.calls()
	ask(first)
	r.pass(time.Minute)
	ask(second) // a post of the same channel
	ask(first)
	r.want(fmt.Sprint(r.platform.calls()), "[first 03-10 03-11]")
	a, err := accessstore.ChannelAccess(r.Context(), r.Store, r.who.Org, r.channel)
	r.OK(err)
	_, _, err = channelstore.ConnectChannel(r.Context(), r.Store, a.Channel, a.Credential, nil, nil)
	r.OK(err)
	r.platform.fail(nil)
	r.post(second) // the channel was reconnected
}

// If a platform asks for a pause while a snapshot reads a post, the rest of its channel waits too.
func TestSnapshots_RetryAfterIsHonored(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	post := r.publish(r.channel, march10, "remote")
	r.platform.judge = func(*connector.Session) error {
		if len(r.platform.asked) == 1 {
			return nil
		}
		return &connector.Error{Kind: connector.KindTransient, Status: 429, After: 30 * time.Hour, Public: "Slow down."}
	}
	if n := r.snapshots(); n != 1 {
		t.Errorf("got %d channels read, want one", n)
	}
	r.want(fmt.Sprint(r.platform.calls()), "[channel 09-11 03-10 remote 03-10 03-10]")
	for range 23 {
		r.pass(time.Hour)
		r.impressions(1)
		r.snapshots()
		_, err := r.analytics.Post(r.Context(), r.who, publishing.GetPostAnalytics{Post: post.String(), Days: 7})
		if !fault.Is(err, fault.Upstream) {
			t.Errorf("got the error %v, want that the platform asks to wait", err)
		}
	}
	r.want(fmt.Sprint(r.platform.calls()), "[]")
}

// Figures that a platform reports days later are shown, whatever the window and the time of day.
func TestAnalytics_LateFiguresAreShown(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.platform.lag = 3
	for range 30 {
		day := r.now.AddDate(0, 0, -3)
		r.want(r.impressions(1), fmt.Sprintf("%s:%d %v", day.Format("01-02"), day.Day(), change(day.Day(), day.Day()-1)))
		r.pass(7 * time.Hour)
	}
	r.platform.fail(away())
	r.pass(3 * 24 * time.Hour)
	if got := r.impressions(7); strings.Count(got, ":") == 0 {
		t.Errorf("in an outage: got %q, want the last known days", got)
	}
}

func change(now, before int) float64 {
	return math.Round(float64(now-before)/float64(before)*1e4) / 100
}

// Days on which the platform did not know the post leave no gap.
func TestAnalytics_MissedDaysAreReadLater(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	post := r.publish(r.channel, march10, "remote")
	r.post(post)
	r.platform.fail(&connector.Error{Kind: connector.KindContent, Status: 404, Public: "There is no such post."})
	for range 6 {
		r.pass(24 * time.Hour)
		r.post(post)
	}
	r.platform.fail(nil)
	r.pass(24 * time.Hour)
	if out := r.post(post); len(out.Metrics) != 2 || len(out.Metrics[0].Points) != 8 {
		t.Errorf("got %+v, want the eight days since the tenth", out)
	}
}

// A post that the platform no longer knows has no figures in a window that began later. During an
// outage the last figures are shown instead.
func TestAnalytics_OnlyAnOutageMovesTheWindow(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	post := r.publish(r.channel, march10, "remote")
	r.post(post)
	r.pass(40 * 24 * time.Hour)
	r.platform.fail(away())
	if out := r.post(post); len(out.Metrics) != 2 || !out.AsOf.Equal(r.now.AddDate(0, 0, -40)) {
		t.Errorf("in an outage: got %+v, want the figures of then", out)
	}
	r.pass(time.Hour)
	r.platform.fail(&connector.Error{Kind: connector.KindContent, Status: 404, Public: "There is no such post."})
	if out := r.post(post); len(out.Metrics) != 0 || !out.AsOf.Equal(r.now) {
		t.Errorf("gone from the platform: got %+v, want nothing", out)
	}
}

// A post that is published again while its platform is being called, and the call fails, has no
// figures yet.
func TestAnalytics_RepublishedDuringAnOutage(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	post := r.publish(r.channel, march10, "first")
	r.post(post)
	r.pass(40 * 24 * time.Hour)
	r.platform.fail(away())
	r.platform.before = func(context.Context) {
		r.Tenant(r.who.Org, `update post set release_id = 'second' where id = $1`, post)
		of := analyticsstore.InsightOf{Channel: r.channel, Post: post, Release: "second"}
		r.OK(analyticsstore.SaveInsights(r.Context(), r.Store, r.who.Org, r.now, []analyticsstore.ReadInsight{{InsightOf: of}}))
	}
	if out := r.post(post); len(out.Metrics) != 0 {
		t.Errorf("got %+v, want no figures of the first publication", out)
	}
}

// If a day was incomplete when the platform last reported it, it is never compared.
func TestAnalytics_IncompleteDayIsNotCompared(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	post := r.publish(r.channel, march10.AddDate(0, 0, -9), "remote")
	r.post(post)
	r.platform.fail(&connector.Error{Kind: connector.KindContent, Status: 404, Public: "There is no such post."})
	r.pass(24 * time.Hour)
	out, err := r.analytics.Post(r.Context(), r.who, publishing.GetPostAnalytics{Post: post.String(), Days: 2})
	r.OK(err)
	if len(out.Metrics) != 2 || out.Metrics[1].Change != 0 {
		t.Errorf("got %+v, want no change of impressions", out.Metrics)
	}
}

// A post that was published again has only the figures of its new publication, even if an old call
// ends late.
func TestAnalytics_RepublishedPostStartsOver(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	post := r.publish(r.channel, march10.AddDate(0, 0, -3), "first")
	if out := r.post(post); len(out.Metrics) != 2 || len(out.Metrics[0].Points) != 4 {
		t.Fatalf("got %+v, want four days", out)
	}
	r.Tenant(r.who.Org, `update post set release_id = 'second', publish_date = $2, due = $2 where id = $1`, post, march10)
	r.platform.calls()
	if out := r.post(post); len(out.Metrics) != 2 || len(out.Metrics[0].Points) != 1 {
		t.Errorf("got %+v, want one day", out)
	}
	r.want(fmt.Sprint(r.platform.calls()), "[second 03-10 03-10]") // within the hour
	late := analyticsstore.ReadInsight{
		InsightOf: analyticsstore.InsightOf{Channel: r.channel, Post: post, Release: "first"},
		Days:      []publishing.DaySamples{{Day: march10, Counts: map[string]float64{"impressions": 465}}},
	}
	r.OK(analyticsstore.SaveInsights(r.Context(), r.Store, r.who.Org, r.now, []analyticsstore.ReadInsight{late}))
	r.OK(analyticsstore.InsightFailed(r.Context(), r.Store, r.who.Org, late.InsightOf, analyticsstore.InsightFailure{At: r.now, Problem: "late"}))
	if out := r.post(post); len(out.Metrics) != 2 || len(out.Metrics[1].Points) != 1 || out.Metrics[1].Points[0].Value != 10 {
		t.Errorf("after a late answer: got %+v, want the figures of the second publication", out)
	}
}

// If a platform changes its labels with every response, the latest labels of a day are kept.
func TestAnalytics_LabelsPerDayAreBounded(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	for round := range 9 {
		r.platform.replace = nil
		for i := range 20 {
			label := fmt.Sprint(strings.Repeat("x", 90), " ", round, " ", i)
			r.platform.replace = append(r.platform.replace, connector.Series{Label: label, Points: []connector.Point{{Day: march10, Value: 1}}})
		}
		out, err := r.read(1)
		r.OK(err)
		if n := len(out.Metrics); n < 20 {
			t.Errorf("round %d: got %d metrics, want those of the last answer", round, n)
		}
		r.pass(time.Hour)
	}
	r.want(fmt.Sprint(len(r.platform.calls())), "9")
}

// A platform that hangs is not mistaken for a failure of the database, and is left alone for a
// minute.
func TestAnalytics_HangingPlatformIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.platform.fail(context.DeadlineExceeded) // the error of a call that reached its deadline
	for range 2 {
		if _, err := r.read(7); !fault.Is(err, fault.Upstream) {
			t.Errorf("got the error %v, want that the platform could not be asked", err)
		}
	}
	r.want(fmt.Sprint(r.platform.calls()), "[channel 09-11 03-10]")
}

// A platform may refuse statistics to a credential that it accepts for posts.
func TestAnalytics_RefusedReadingKeepsChannelPublishing(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.platform.fail(&connector.Error{Kind: connector.KindReauth, Status: 401, Public: "Insights are not allowed."})
	if _, err := r.read(7); !fault.Is(err, fault.Upstream) {
		t.Errorf("got the error %v, want the reason of the platform", err)
	}
	r.snapshots()
	a, err := accessstore.ChannelAccess(t.Context(), r.Store, r.who.Org, r.channel)
	r.OK(err)
	if a.Channel.RefreshNeeded {
		t.Error("the channel must be connected again, want it unchanged")
	}
}

func TestAnalytics_RefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	stranger := r.Organization()
	channel := r.channel.String()
	for name, ask := range map[string]func() error{
		"a channel of somebody else": func() error {
			_, err := r.analytics.Channel(t.Context(), stranger, publishing.GetAnalytics{Channel: channel, Days: 7})
			return err
		},
		"figures of somebody else": func() error {
			_, err := r.analytics.Figures(t.Context(), stranger, publishing.GetSamples{Channel: channel, Day: march10})
			return err
		},
		"an id that does not parse": func() error {
			_, err := r.analytics.Channel(t.Context(), r.who, publishing.GetAnalytics{Channel: "x", Days: 7})
			return err
		},
		"a post that is not there": func() error {
			post := id.New[publishing.PostTag]().String()
			_, err := r.analytics.Post(t.Context(), r.who, publishing.GetPostAnalytics{Post: post, Days: 7})
			return err
		},
	} {
		if err := ask(); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got the error %v, want NotFound", name, err)
		}
	}
	for _, days := range []int{-1, 0, 367} {
		_, err := r.analytics.Channel(t.Context(), r.who, publishing.GetAnalytics{Channel: channel, Days: days})
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%d days: got the error %v, want Invalid", days, err)
		}
	}
	_, err := r.analytics.Figures(t.Context(), r.who, publishing.GetSamples{Channel: channel, Day: march10.AddDate(0, 0, 1)})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("tomorrow: got the error %v, want Invalid", err)
	}
	if calls := r.platform.calls(); len(calls) != 0 {
		t.Errorf("got the calls %v, want none", calls)
	}
}

var march10 = time.Date(2027, time.March, 10, 0, 0, 0, 0, time.UTC)

// publish stores a post that was published at the given time, with the platform's id.
func (r *analyticsRig) publish(channel publishing.ChannelID, at time.Time, release string) publishing.PostID {
	r.Helper()
	p := fixture.Post(r.who.Org, channel, at)[0]
	r.Insert(r.who.Org, p)
	r.Tenant(r.who.Org, `update post set state = 'PUBLISHED', release_id = $2 where id = $1`, p.ID, release)
	return p.ID
}

func (r *analyticsRig) post(post publishing.PostID) publishing.PostAnalytics {
	r.Helper()
	out, err := r.analytics.Post(r.Context(), r.who, publishing.GetPostAnalytics{Post: post.String(), Days: 30})
	r.OK(err)
	return out
}

func TestAnalytics_PostsAreReadFromTheirFirstDay(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	post := r.publish(r.channel, march10.AddDate(0, 0, -3), "remote")
	if out := r.post(post); len(out.Metrics) != 2 || len(out.Metrics[0].Points) != 4 || out.Missing {
		t.Errorf("got %+v, want four days", out)
	}
	r.want(fmt.Sprint(r.platform.calls()), "[remote 03-07 03-10]")
	if out := r.post(r.publish(r.channel, march10, publishing.ReleaseMissing)); !out.Missing {
		t.Errorf("without the platform's id: got %+v, want missing", out)
	}
	scheduled := fixture.Post(r.who.Org, r.channel, march10)[0]
	r.Insert(r.who.Org, scheduled)
	if out := r.post(scheduled.ID); out.Missing || len(out.Metrics) != 0 {
		t.Errorf("not published: got %+v, want nothing", out)
	}
	r.platform.fail(&connector.Error{Kind: connector.KindContent, Status: 404, Public: "There is no such post."})
	if out := r.post(r.publish(r.channel, march10, "gone")); out.Missing || len(out.Metrics) != 0 {
		t.Errorf("gone from the platform: got %+v, want nothing", out)
	}
	r.platform.fail(&connector.Error{Kind: connector.KindContent, Status: 400, Public: "Not allowed."})
	refused := r.publish(r.channel, march10, "refused").String()
	if _, err := r.analytics.Post(t.Context(), r.who, publishing.GetPostAnalytics{Post: refused, Days: 7}); !fault.Is(err, fault.Upstream) {
		t.Errorf("refused by the platform: got the error %v, want its reason", err)
	}
	r.platform.calls()
	r.pass(2 * time.Hour)
	r.Tenant(r.who.Org, `update channel set deleted_at = now(), credential = null where id = $1`, r.channel)
	if out := r.post(post); len(out.Metrics) != 2 {
		t.Errorf("of a channel that is disconnected: got %+v, want what was read", out)
	}
	if calls := r.platform.calls(); slices.Contains(calls, "remote 03-07 03-10") {
		t.Errorf("got the calls %v of a disconnected channel, want none", calls)
	}
}
