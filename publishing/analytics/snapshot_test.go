package analytics_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/analytics"
	analyticsstore "crier/publishing/analytics/store"
	"crier/publishing/connector"
	"crier/tenancy"
	"crier/tests/publishtest"
)

func (r *analyticsRig) snapshots() int {
	r.Helper()
	n, err := r.analytics.TakeSnapshots(r.Context())
	r.OK(err)
	return n
}

// channelOn connects a channel of an organization at a server.
func (r *analyticsRig) channelOn(org tenancy.OrgID, server string) publishing.ChannelID {
	r.Helper()
	c := r.Connect(org)
	r.Tenant(org, `update channel set account_id = $2 where id = $1`, c, server+" "+c.String())
	r.Tenant(org, `update channel_queue set destination = $2 where channel_id = $1`, c, server)
	return c
}

// known returns how many days are stored for a channel or a post.
func (r *analyticsRig) known(org tenancy.OrgID, of analyticsstore.InsightOf) int {
	r.Helper()
	out, err := analyticsstore.FindInsight(r.Context(), r.Store, org, of, time.Time{}, march10.AddDate(1, 0, 0))
	r.OK(err)
	return len(out.Days)
}

func TestSnapshots_ReadEachChannelOnceADay(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	recent, old := r.publish(r.channel, march10.AddDate(0, 0, -2), "recent"), r.publish(r.channel, march10.AddDate(0, 0, -8), "old")
	second := r.process() // another process, which takes snapshots at the same time
	results := make(chan int, 2)
	for _, p := range []*analytics.Analytics{r.analytics, second} {
		go func() {
			n, err := p.TakeSnapshots(r.Context())
			if err != nil {
				t.Error(err)
			}
			results <- n
		}()
	}
	if n := <-results + <-results; n != 1 {
		t.Errorf("got %d channels read, want one", n)
	}
	r.want(fmt.Sprint(r.platform.calls()), "[channel 09-11 03-10 recent 03-08 03-10]")
	post := func(p publishing.PostID, release string) analyticsstore.InsightOf {
		return analyticsstore.InsightOf{Channel: r.channel, Post: p, Release: release}
	}
	if n := r.known(r.who.Org, post(recent, "recent")); n != 3 {
		t.Errorf("got %d days of the recent post, want three", n)
	}
	if n := r.known(r.who.Org, post(old, "old")); n != 0 {
		t.Errorf("got %d days of the old post, want none", n)
	}
	days := 0
	for range 72 * 6 { // every ten minutes of the next three days
		r.pass(10 * time.Minute)
		days += r.snapshots()
	}
	if days != 3 {
		t.Errorf("got %d snapshots in three days, want one a day", days)
	}
	for range 10 { // a process that runs only every seven hours
		r.pass(7 * time.Hour)
		days += r.snapshots()
	}
	if days != 3+3 && days != 3+2 {
		t.Errorf("got %d snapshots in 70 hours, want one a day", days-3)
	}
}

func TestSnapshots_TwoDayOutageLeavesNoGap(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.snapshots()
	before := r.known(r.who.Org, analyticsstore.InsightOf{Channel: r.channel})
	r.platform.fail(away())
	for range 48 {
		r.pass(time.Hour)
		if n := r.snapshots(); n != 0 {
			t.Errorf("got %d channels read of a platform that is away", n)
		}
	}
	if calls := len(r.platform.calls()); calls > 15 {
		t.Errorf("got %d calls in two days, want one in four hours", calls)
	}
	r.platform.fail(nil)
	r.pass(4 * time.Hour)
	if n := r.snapshots(); n != 1 {
		t.Errorf("got %d channels read after the outage, want one", n)
	}
	if after := r.known(r.who.Org, analyticsstore.InsightOf{Channel: r.channel}); after != before+2 {
		t.Errorf("got %d days more, want those of the outage", after-before)
	}
	r.want(r.impressions(3), "03-10:10 03-11:11 03-12:12 40") // 10+11 against 7+8
}

// A server that hangs or fails, a channel that panics and a suspended organization do not delay
// others.
func TestSnapshots_FailuresDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	failing := r.Organization()
	for range 20 {
		r.channelOn(failing.Org, "failing.test")
	}
	r.channelOn(failing.Org, "works.test")
	panics := r.Organization()
	bad, good := r.channelOn(panics.Org, "bad.test"), r.channelOn(panics.Org, "works.test")
	suspended := r.Organization()
	held := r.channelOn(suspended.Org, "works.test")
	r.Gate(`update organization set suspended_at = now() where id = $1`, suspended.Org)
	r.platform.judge = func(s *connector.Session) error {
		switch {
		case len(s.Account.ID) > 12 && s.Account.ID[:12] == "failing.test":
			return away()
		case s.Account.ID == "bad.test "+bad.String():
			panic("a bad row")
		}
		return nil
	}
	// The rig's own and two on works.test, without the suspended organization's.
	if n := r.snapshots(); n != 3 {
		t.Errorf("got %d channels read, want three", n)
	}
	calls := r.platform.calls()
	if n := len(calls); n != 3+3+1 {
		t.Errorf("got the calls %v, want three of the server that fails", calls)
	}
	if at := r.nextOf(held); at.Equal(r.now.Add(time.Hour)) {
		t.Errorf("the channel of the suspended organization is due at %v, an hour later, want its time of the day", at)
	}
	if n := r.known(panics.Org, analyticsstore.InsightOf{Channel: good}); n == 0 {
		t.Error("got no figures of the channel beside one that panics")
	}
}

// nextOf returns when the next snapshot of a channel is due.
func (r *analyticsRig) nextOf(channel publishing.ChannelID) (at time.Time) {
	r.Helper()
	r.OK(r.DB.WriteRole(r.Context(), pg.Clock, func(b *pgx.Batch) {
		b.Queue(`select next_at from insight where subject = $1`, channel).QueryRow(func(row pgx.Row) error { return row.Scan(&at) })
	}))
	return at
}

// Channels that always fail and are older than the others of their server delay them only once.
func TestSnapshots_FailingChannelsComeLast(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	org := r.Organization().Org
	bad := map[string]bool{}
	for range 6 {
		bad["shared.test "+r.channelOn(org, "shared.test").String()] = true
	}
	var good []publishing.ChannelID
	for range 5 {
		good = append(good, r.channelOn(org, "shared.test"))
	}
	r.platform.judge = func(s *connector.Session) error {
		if bad[s.Account.ID] {
			return away()
		}
		return nil
	}
	for range 4 * 6 {
		r.snapshots()
		r.pass(10 * time.Minute)
	}
	for _, c := range good {
		if r.known(org, analyticsstore.InsightOf{Channel: c}) == 0 {
			t.Errorf("nothing is known of the channel %v after four hours, want its snapshot", c)
		}
	}
}

func TestSnapshots_TakeFewChannelsOfAnOrganizationAtATime(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	for range 30 {
		r.channelOn(r.who.Org, "works.test")
	}
	other := r.Organization()
	r.channelOn(other.Org, "works.test")
	due := r.due(analyticsstore.SnapshotBatch{OfOrg: 25})
	if n := len(slices.DeleteFunc(due, func(d analyticsstore.DueSnapshot) bool { return d.Org != other.Org })); n != 1 {
		t.Errorf("got %d channels of the other organization, want one", n)
	}
	if rest := r.due(analyticsstore.SnapshotBatch{OfOrg: 25}); len(rest) != 6 {
		t.Errorf("got %d channels by the next call, want the six that are left", len(rest))
	}
	r.pass(2 * time.Hour)
	if none := r.due(analyticsstore.SnapshotBatch{OfOrg: 25, Platforms: []string{"another"}}); len(none) != 0 {
		t.Errorf("got %d channels of other platforms, want none", len(none))
	}
}

func TestSnapshots_TakeFewChannelsOfAServerAtATime(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	for range 3 {
		org := r.Organization().Org
		r.channelOn(org, "large.test")
		r.channelOn(org, "large.test")
	}
	r.channelOn(r.Organization().Org, "small.test")
	of := map[string]int{}
	for _, d := range r.due(analyticsstore.SnapshotBatch{OfOrg: 25, OfServer: 4}) {
		of[d.Destination]++
	}
	if of["large.test"] != 4 || of["small.test"] != 1 {
		t.Errorf("got %v channels of the servers, want four of the large one and that of the small one", of)
	}
}

// due takes the channels whose snapshot is due now and makes them due again in an hour.
func (r *analyticsRig) due(q analyticsstore.SnapshotBatch) []analyticsstore.DueSnapshot {
	r.Helper()
	q.Now, q.Again, q.Total = r.Deps.Clock.Now(), r.Deps.Clock.Now().Add(time.Hour), 400
	if q.Platforms == nil {
		q.Platforms = []string{"sandbox"}
	}
	if q.OfServer == 0 {
		q.OfServer = 400
	}
	out, err := analyticsstore.SnapshotsDue(r.Context(), r.Store, q)
	r.OK(err)
	return out
}

// When the time is up, channels that were not read are due later, and that does not count as a
// failure of their platform.
func TestSnapshots_TimeLimitIsNotAFailure(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	for range 5 {
		r.channelOn(r.Organization().Org, "one.test")
	}
	cfg := publishtest.Limits
	cfg.SnapshotRate = 1e-6 // the second call would come too late
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n, err := r.Deps.Analytics(cfg).TakeSnapshots(ctx)
	// One of this server, and the rig's own channel on another server if it came first.
	if n != 1 && n != 2 || err != nil {
		t.Errorf("got %d channels read, %v, want one of the server and no error", n, err)
	}
	if calls := len(r.platform.calls()); calls != n {
		t.Errorf("got %d calls, want %d", calls, n)
	}
	r.pass(time.Hour)
	// The daily time of a channel that was read may fall within the hour. One that failed is due
	// later.
	if due := r.due(analyticsstore.SnapshotBatch{OfOrg: 25}); len(due) < 6-n {
		t.Errorf("got %d channels that are due an hour later, want the %d others", len(due), 6-n)
	}
}

// A response is stored only as far as it can be returned: without numbers that JSON cannot hold and
// without days that were not requested.
func TestSnapshots_BadValuesAreDropped(t *testing.T) {
	t.Parallel()
	r := newAnalyticsRig(t)
	r.platform.replace = badSeries(march10)
	if n := r.snapshots(); n != 1 {
		t.Fatalf("got %d channels read, want one", n)
	}
	out, err := r.read(7)
	r.OK(err)
	if len(out.Metrics) != 1 || len(out.Metrics[0].Points) != 1 || out.Metrics[0].Points[0].Value != 5 {
		t.Errorf("got %+v, want the one good value", out.Metrics)
	}
}

// badSeries returns one good value, for the given day, and every kind of bad one.
func badSeries(day time.Time) []connector.Series {
	points := []connector.Point{{Day: day.Add(time.Hour), Value: 5}}
	for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
		points = append(points, connector.Point{Day: day.AddDate(0, 0, -i-1), Value: v})
	}
	points = append(points, connector.Point{Day: day.AddDate(0, 0, 1), Value: 1}, connector.Point{Value: 1})
	return []connector.Series{
		{Label: "good\x00", Points: points}, {Label: "\n", Points: points[:1]}, {Label: "empty"},
	}
}

// A server that responds slowly would hold up a batch.
func TestSnapshots_SlowServerIsLeftAlone(t *testing.T) {
	t.Parallel()
	if analytics.IsLeftAlone(10, 9*time.Second) || !analytics.IsLeftAlone(3, 10*time.Second) {
		t.Error("want a server left alone after three answers in a row that take ten seconds, and none before")
	}
}

// A channel is not read further once it is disconnected, or once its organization is suspended or
// deleted.
func TestSnapshots_StopWhenTheChannelIsNoLongerActive(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"disconnected": `update channel set deleted_at = now(), credential = null where org_id = $1`,
		"suspended":    `update organization set suspended_at = now() where id = $1`,
		"deleted":      `update organization set deleted_at = now() where id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAnalyticsRig(t)
			r.publish(r.channel, march10.AddDate(0, 0, -2), "recent")
			r.platform.before = func(ctx context.Context) {
				if name == "disconnected" {
					r.Tenant(r.who.Org, sql, r.who.Org)
					return
				}
				r.OK(r.DB.InRole(ctx, pg.Gate, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, sql, r.who.Org)
					return err
				}))
			}
			r.snapshots()
			r.want(fmt.Sprint(r.platform.calls()), "[channel 09-11 03-10]")
		})
	}
}
