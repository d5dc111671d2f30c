package analytics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/analytics"
	"crier/tenancy"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// reportRig is an organization in Kolkata, whose days begin at 18:30 UTC. Its clocks show 02:00 on
// March 4.
type reportRig struct {
	*publishtest.Rig
	who      tenancy.Principal
	a, b     publishing.ChannelID
	customer string
	reports  *analytics.Analytics
}

var reportNow = time.Date(2027, time.March, 3, 20, 30, 0, 0, time.UTC)

func newReportRig(t *testing.T) *reportRig {
	t.Helper()
	r := &reportRig{Rig: publishtest.NewRig(t)}
	r.who = r.Organization()
	r.a, r.b = r.Connect(r.who.Org), r.Connect(r.who.Org)
	r.customer = id.New[publishing.CustomerTag]().String()
	r.Tenant(r.who.Org, `update organization set timezone = 'Asia/Kolkata'`)
	r.Tenant(r.who.Org, `insert into customer (org_id, id, name) values ($1, $2, 'Acme')`, r.who.Org, r.customer)
	r.Tenant(r.who.Org, `update channel set customer_id = $1 where id = $2`, r.customer, r.b)
	r.Deps.Clock = clock.Func(func() time.Time { return reportNow })
	r.reports = r.Deps.Analytics(publishtest.Limits)
	return r
}

// add stores a thread of two posts for the given time and sets the states of both.
func (r *reportRig) add(channel publishing.ChannelID, at time.Time, first, second publishing.State) publishing.PostID {
	r.Helper()
	posts := fixture.Post(r.who.Org, channel, at, time.Hour)
	r.Insert(r.who.Org, posts...)
	for i, state := range []publishing.State{first, second} {
		r.Clock(`update post set state = $2, due = case when $2 = 'WAITING' then null else coalesce(due, now()) end,
			release_id = case when $2 = 'PUBLISHED' then 'r' end, error = case when $2 = 'ERROR' then 'Refused.' end,
			error_code = case when $2 = 'ERROR' then 'rejected' end where id = $1`, posts[i].ID, string(state))
	}
	return posts[0].ID
}

func (r *reportRig) report(days int, customer string) publishing.Report {
	r.Helper()
	out, err := r.reports.Report(r.Context(), r.who, publishing.GetReport{Days: days, Customer: customer})
	r.OK(err)
	return out
}

func TestReport_CountsThreadsByDayAndPlatform(t *testing.T) {
	t.Parallel()
	r := newReportRig(t)
	const (
		draft, queue, waiting = publishing.StateDraft, publishing.StateQueue, publishing.StateWaiting
		published, failed     = publishing.StatePublished, publishing.StateError
	)
	midnight := time.Date(2027, time.March, 3, 18, 30, 0, 0, time.UTC)
	r.add(r.a, midnight.Add(-48*time.Hour-time.Second), published, published) // before the window
	r.add(r.a, midnight.Add(-48*time.Hour), published, published)
	r.add(r.a, midnight.Add(-time.Second), published, waiting)
	second := r.add(r.a, midnight, published, failed)
	latest := r.add(r.b, midnight.Add(time.Hour), failed, waiting)
	r.add(r.b, midnight.Add(72*time.Hour), queue, waiting)
	r.add(r.b, midnight.Add(72*time.Hour), draft, draft)
	gone := r.add(r.b, midnight, failed, waiting)
	r.Tenant(r.who.Org, `update post set deleted_at = now() where group_id = (select group_id from post where id = $1)`, gone)
	r.Tenant(r.who.Org, `update channel set refresh_needed = true where id = $1`, r.b)

	all := r.report(3, "")
	if want := (publishing.PostCounts{Draft: 1, Scheduled: 2, Published: 1, Failed: 2}); all.Posts != want {
		t.Errorf("got %+v, want %+v", all.Posts, want)
	}
	if want := (publishing.ChannelCounts{Total: 2, Active: 1, RefreshNeeded: 1}); all.Channels != want {
		t.Errorf("got the channels %+v, want %+v", all.Channels, want)
	}
	if !all.From.Equal(midnight.Add(-48*time.Hour)) || !all.To.Equal(reportNow) || all.Customer != nil {
		t.Errorf("got the window %v to %v of %v, want three days", all.From, all.To, all.Customer)
	}
	days := []publishing.PostCounts{{Published: 1}, {Scheduled: 1}, {Failed: 2}}
	for i, d := range all.Days {
		if want := midnight.Add(time.Duration(i-2) * 24 * time.Hour); d.Posts != days[i] || !d.Start.Equal(want) {
			t.Errorf("day %d: got %+v, want %+v from %v on", i, d, days[i], want)
		}
	}
	if len(all.Platforms) != 1 || all.Platforms[0].Channels != 2 || all.Platforms[0].Posts != all.Posts {
		t.Errorf("got the platforms %+v, want one with everything", all.Platforms)
	}
	if len(all.Errors) != 2 || all.Errors[0].Post != latest || all.Errors[1].Post != second || all.Errors[0].Message != "Refused." {
		t.Errorf("got the errors %+v, want the latest first", all.Errors)
	}

	one := r.report(3, r.customer)
	if want := (publishing.PostCounts{Draft: 1, Scheduled: 1, Failed: 1}); one.Posts != want || one.Channels.Total != 1 || len(one.Errors) != 1 {
		t.Errorf("of the customer: got %+v, want %+v of one channel", one, want)
	}
	if one.Customer == nil || one.Customer.Name != "Acme" {
		t.Errorf("got the customer %v, want Acme", one.Customer)
	}
	if year := r.report(publishing.MaxReportDays, ""); len(year.Days) != publishing.MaxReportDays || year.Posts.Published != 2 {
		t.Errorf("of a year: got %d days and %+v, want all", len(year.Days), year.Posts)
	}
}

// In Santiago the clocks go forward at midnight on September 6, 2026, so that day begins at 01:00.
func TestReport_HasEachDayOnceWhereMidnightIsSkipped(t *testing.T) {
	t.Parallel()
	r := newReportRig(t)
	r.Tenant(r.who.Org, `update organization set timezone = 'America/Santiago'`)
	r.Deps.Clock = clock.Func(func() time.Time { return time.Date(2026, time.September, 7, 15, 0, 0, 0, time.UTC) })
	r.reports = r.Deps.Analytics(publishtest.Limits)
	first := time.Date(2026, time.September, 6, 4, 0, 0, 0, time.UTC)
	r.add(r.a, first.Add(-time.Minute), publishing.StatePublished, publishing.StatePublished)
	r.add(r.a, first, publishing.StatePublished, publishing.StatePublished)
	r.add(r.a, first, publishing.StatePublished, publishing.StatePublished)
	var got []string
	for _, d := range r.report(3, "").Days {
		got = append(got, fmt.Sprint(d.Start.Format(time.DateOnly), " ", d.Posts.Published))
	}
	if want := []string{"2026-09-05 1", "2026-09-06 2", "2026-09-07 0"}; !slices.Equal(got, want) {
		t.Errorf("got the days %q, want %q", got, want)
	}
}

func TestReport_RefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	r := newReportRig(t)
	stranger := r.Organization()
	for name, ask := range map[string]struct {
		who  tenancy.Principal
		q    publishing.GetReport
		want fault.Kind
	}{
		"no days":                        {r.who, publishing.GetReport{}, fault.Invalid},
		"too many days":                  {r.who, publishing.GetReport{Days: 366}, fault.Invalid},
		"an id that does not parse":      {r.who, publishing.GetReport{Days: 1, Customer: "x"}, fault.NotFound},
		"the zero id":                    {r.who, publishing.GetReport{Days: 1, Customer: strings.Repeat("0", 8) + "-0000-0000-0000-000000000000"}, fault.NotFound},
		"a customer that does not exist": {r.who, publishing.GetReport{Days: 1, Customer: id.New[publishing.CustomerTag]().String()}, fault.NotFound},
		"a customer of somebody else":    {stranger, publishing.GetReport{Days: 1, Customer: r.customer}, fault.NotFound},
	} {
		if _, err := r.reports.Report(t.Context(), ask.who, ask.q); !fault.Is(err, ask.want) {
			t.Errorf("%s: got the error %v, want %v", name, err, ask.want)
		}
	}
	if empty, err := r.reports.Report(t.Context(), stranger, publishing.GetReport{Days: 1}); err != nil || len(empty.Days) != 1 {
		t.Errorf("without posts: got %+v, %v, want one day", empty, err)
	}
}
