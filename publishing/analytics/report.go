package analytics

import (
	"context"
	"slices"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	analyticsstore "crier/publishing/analytics/store"
	"crier/publishing/db"
	"crier/tenancy"
)

// Report returns the results for posts from the last q.Days days, in the organization's time zone.
// It covers either the whole organization or a single customer. Report returns Invalid if the
// number of days is out of range, and NotFound if the customer does not exist.
func (s *Analytics) Report(
	ctx context.Context, p tenancy.Principal, q publishing.GetReport,
) (publishing.Report, error) {
	const op = "publishing.Report"
	noCustomer := fault.New(fault.NotFound, op, "There is no such customer.")
	customer, ok := id.Parse[publishing.CustomerTag](q.Customer)
	if q.Customer != "" && (!ok || customer.IsZero()) {
		return publishing.Report{}, noCustomer
	}
	if q.Days < 1 || q.Days > publishing.MaxReportDays {
		return publishing.Report{}, &fault.Error{Kind: fault.Invalid, Op: op, Message: "The number of days is out of range.",
			Fields: []fault.Field{{Name: "days", Message: "must be from 1 to 365"}}}
	}
	name, err := db.OrganizationZone(ctx, s.db, p.Org)
	if err != nil {
		return publishing.Report{}, pg.Fault(op, err)
	}
	zone, err := tenancy.LoadZone(name)
	if err != nil {
		zone = time.UTC // this server does not know the zone
	}
	now := s.deps.Clock.Now()
	days := lastDays(now, q.Days, zone)
	data, err := analyticsstore.Report(ctx, s.db, p.Org, customer, days)
	if err != nil {
		return publishing.Report{}, pg.Fault(op, err)
	}
	if q.Customer != "" && data.Customer == nil {
		return publishing.Report{}, noCustomer
	}
	out := report(data, days)
	out.To = now
	return out, nil
}

// lastDays returns the start of each of the last n days, ending with the day that contains now,
// followed by the end of that day.
func lastDays(now time.Time, n int, zone *time.Location) []time.Time {
	year, month, today := now.In(zone).Date()
	days := make([]time.Time, 0, n+1)
	for i := today - n + 1; i <= today+1; i++ {
		days = append(days, startOfDay(year, month, i, zone))
	}
	return days
}

// startOfDay returns the first instant of a day. In some zones, clocks go forward at midnight, so
// midnight does not exist on that day.
func startOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	want := time.Date(year, month, day, 12, 0, 0, 0, zone).Day()
	at := time.Date(year, month, day, 0, 0, 0, 0, zone)
	for at.Day() != want {
		at = at.Add(15 * time.Minute)
	}
	return at
}

func report(data analyticsstore.ReportData, days []time.Time) publishing.Report {
	last := len(days) - 1
	out := publishing.Report{From: days[0], Customer: data.Customer, Errors: data.Errors}
	for _, start := range days[:last] {
		out.Days = append(out.Days, publishing.DayReport{Start: start})
	}
	platforms := map[string]publishing.PlatformReport{}
	for _, c := range data.Counts {
		n := publishing.PostCounts{Draft: c.Draft, Scheduled: c.Scheduled, Published: c.Published, Failed: c.Failed}
		switch {
		case c.Platform != nil:
			platforms[*c.Platform] = publishing.PlatformReport{Platform: *c.Platform, Posts: n}
			out.Posts.Draft += n.Draft
			out.Posts.Scheduled += n.Scheduled
			out.Posts.Published += n.Published
			out.Posts.Failed += n.Failed
		case c.Day != nil && *c.Day < last:
			out.Days[*c.Day].Posts = n
		}
	}
	for _, c := range data.Channels {
		of := platforms[c.Platform]
		of.Platform, of.Channels = c.Platform, c.Total
		platforms[c.Platform] = of
		out.Channels.Total += c.Total
		out.Channels.Active += c.Active
		out.Channels.Disabled += c.Disabled
		out.Channels.RefreshNeeded += c.RefreshNeeded
	}
	for _, of := range platforms {
		out.Platforms = append(out.Platforms, of)
	}
	slices.SortFunc(
		out.Platforms, func(a, b publishing.PlatformReport) int { return strings.Compare(a.Platform, b.Platform) },
	)
	return out
}
