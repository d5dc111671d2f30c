package edgetest

import (
	"context"

	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// Analytics implements the statistics port. Tests can embed it in their own fakes.
type Analytics struct{ *World }

func (a Analytics) Channel(
	_ context.Context, _ tenancy.Principal, q publishing.GetAnalytics,
) (publishing.Analytics, error) {
	return publishing.Analytics{
		Metrics: []publishing.Metric{{
			Label: "Page views", Points: []publishing.MetricPoint{{Day: Day, Value: float64(q.Days)}}, Change: 12.5,
		}},
		AsOf: Day,
	}, a.note(q.Channel)
}

func (a Analytics) Post(
	_ context.Context, _ tenancy.Principal, q publishing.GetPostAnalytics,
) (publishing.PostAnalytics, error) {
	return publishing.PostAnalytics{Missing: q.Days == 30}, a.note(q.Post)
}

func (a Analytics) Figures(
	_ context.Context, _ tenancy.Principal, q publishing.GetSamples,
) (publishing.DaySamples, error) {
	if q.Day.IsZero() {
		return publishing.DaySamples{}, fault.New(fault.Invalid, "figures", "date is required")
	}
	return publishing.DaySamples{
		Day: q.Day, Counts: map[string]float64{"Page views": 3}, Levels: map[string]float64{"Followers": 1.5},
	}, a.note(q.Channel)
}

func (a Analytics) Report(_ context.Context, _ tenancy.Principal, q publishing.GetReport) (publishing.Report, error) {
	out := publishing.Report{From: Day, To: Day, Days: make([]publishing.DayReport, q.Days)}
	if q.Customer != "" {
		out.Customer = &publishing.Customer{Name: "Acme"}
	}
	return out, a.note(q.Customer)
}
