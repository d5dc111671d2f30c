package mcp

import (
	"context"
	"strconv"
	"time"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/record"
	"crier/platform/text"
	"crier/publishing"
)

const (
	defaultDays       = 7
	defaultReportDays = 30
	// shownPoints is the maximum number of days listed for a metric.
	shownPoints = 90
	// shownName is the maximum length of a name, in characters.
	shownName = 100
	// shownError is the maximum length of an error in a report, in characters.
	shownError = 200
)

type analyticsInput struct {
	Channel string `json:"integrationId"`
	Days    int    `json:"days"`
	Cursor  string `json:"cursor"`
}

// metricAnswer is one statistic of a channel.
type metricAnswer struct {
	Label            string        `json:"label"`
	Data             []pointAnswer `json:"data"`
	PercentageChange float64       `json:"percentageChange"`
}

// pointAnswer is the value of a day.
type pointAnswer struct {
	Total string `json:"total"`
	Date  string `json:"date"`
}

func (a otherTools) channelAnalytics() *tool {
	metric := object("A statistic.", properties{
		"label": str("The platform's name for the metric."),
		"data": list("Days with a value, earliest first.", object("A day.", properties{
			"total": str("A decimal number."), "date": str("Day in UTC, such as 2026-01-31."),
		}, "total", "date")),
		"percentageChange": {
			Type: argument.TypeNumber, Description: "Change in percent, compared with the preceding days or over the " +
				"listed days.",
		},
	}, "label", "data", "percentageChange")
	return &tool{
		name: "service_get_channel_analytics", title: "Get a channel's statistics", idempotent: true, open: true,
		description: "Get a channel's recent statistics, such as followers and impressions. The platform is queried " +
			"at most once an hour.",
		input: arguments(properties{
			"integrationId": channelID(), "cursor": cursor(),
			"days": whole("Number of days up to today.", 1, publishing.MaxAnalyticsDays).Standard(defaultDays),
		}, "integrationId"),
		output: answers(list("Statistics. Empty if the platform has none.", metric), properties{
			"nextCursor": nextCursor(),
			"truncated":  flag("true: only the newest 90 days of each statistic are listed."),
		}),
		fields: map[string]string{"date": "days"},
		run:    runner(a.runChannelAnalytics),
	}
}

func (a otherTools) runChannelAnalytics(ctx context.Context, c *call, in analyticsInput) (answer, error) {
	at, err := c.readCursor(in.Cursor)
	if err != nil {
		return answer{}, err
	}
	if in.Days == 0 {
		in.Days = defaultDays
	}
	found, err := a.deps.Analytics.Channel(ctx, c.p, publishing.GetAnalytics{Channel: in.Channel, Days: in.Days})
	if err != nil {
		return answer{}, noObject(err, "integrationId", toolListChannels)
	}
	cut, all := false, make([]metricAnswer, 0, len(found.Metrics))
	for _, m := range found.Metrics {
		points := m.Points[max(0, len(m.Points)-shownPoints):]
		cut = cut || len(points) < len(m.Points)
		one := metricAnswer{Label: text.Cut(m.Label, shownName), Data: make([]pointAnswer, 0, len(points)), PercentageChange: m.Change}
		for _, p := range points {
			one.Data = append(one.Data, pointAnswer{
				Total: strconv.FormatFloat(p.Value, 'f', -1, 64), Date: p.Day.Format(time.DateOnly),
			})
		}
		all = append(all, one)
	}
	part, next, err := page(c, at, all, func(m metricAnswer) string { return m.Label })
	return answer{Output: part, NextCursor: next, Truncated: cut}, err
}

type overviewInput struct {
	Days     int    `json:"days"`
	Customer string `json:"customerId"`
}

// overviewAnswer counts posts and channels.
type overviewAnswer struct {
	Days         int                 `json:"days"`
	From         string              `json:"from"`
	To           string              `json:"to"`
	Customer     *record.Customer    `json:"customer,omitempty"`
	Posts        map[string]int      `json:"posts"`
	Channels     map[string]int      `json:"channels"`
	ByPlatform   []map[string]any    `json:"byPlatform"`
	ByDay        []map[string]any    `json:"byDay"`
	RecentErrors []recentErrorAnswer `json:"recentErrors"`
}

// recentErrorAnswer is a post that failed.
type recentErrorAnswer struct {
	PostID        string `json:"postId"`
	IntegrationID string `json:"integrationId"`
	Name          string `json:"name"`
	Identifier    string `json:"identifier"`
	Message       string `json:"message"`
	Date          string `json:"date"`
}

func (a otherTools) overview() *tool {
	count := func(description string, names ...string) *schema {
		p := properties{}
		for _, name := range names {
			p[name] = number("Number.")
		}
		return object(description, p)
	}
	with := func(s *schema, more properties) *schema {
		for name, of := range more {
			s.Properties[name] = of
		}
		return s
	}
	return &tool{
		name: toolOverview, title: "Get an overview", idempotent: true,
		description: "Count recent posts by outcome and channels by state, and list recent errors. Drafts and " +
			"scheduled posts dated after today are counted too, except in byDay.",
		input: arguments(properties{
			"days":       whole("Number of days up to today.", 1, publishing.MaxReportDays).Standard(defaultReportDays),
			"customerId": str("Only this group's channels. Ids: " + toolListGroups + ".").From(toolListGroups),
		}),
		output: answers(object("The report.", properties{
			"days": number("Number of days."), "from": date("Start of the first day, UTC."),
			"to":       date("Time of the report, UTC."),
			"customer": object("The group.", properties{"id": str("Group id."), "name": str("Name.")}, "id", "name"),
			"posts":    count("Posts by outcome.", "total", "draft", "scheduled", "published", "failed"),
			"channels": count("Channels by state.", "total", "active", "disabled", "refreshNeeded"),
			"byPlatform": list("Posts by platform.", with(count("A platform.", "channels", "scheduled", "published", "failed"),
				properties{"identifier": str("Platform.")})),
			"byDay": list("Days with posts, earliest first.", with(count("A day.", "scheduled", "published", "failed"),
				properties{"date": str("Day, such as 2026-01-31.")})),
			"recentErrors": list("Posts that failed, newest first.", object("A post.", properties{
				"postId": str("Post id."), "integrationId": str("Channel id."), "name": str("Channel."),
				"identifier": str("Platform."),
				"message":    str("Error message from the service or the platform."), "date": date("UTC."),
			}, "postId", "message")),
		}, "days", "posts", "channels"), properties{"truncated": flag("true: the earliest days or errors were left out.")}),
		run: runner(a.runOverview),
	}
}

func (a otherTools) runOverview(ctx context.Context, c *call, in overviewInput) (answer, error) {
	if in.Days == 0 {
		in.Days = defaultReportDays
	}
	r, err := a.deps.Analytics.Report(ctx, c.p, publishing.GetReport{Days: in.Days, Customer: in.Customer})
	if err != nil {
		return answer{}, noObject(err, "customerId", toolListGroups)
	}
	out := overviewAnswer{
		Days: in.Days, From: record.FormatTime(r.From), To: record.FormatTime(r.To), Posts: counts(r.Posts),
		Channels: map[string]int{
			"total": r.Channels.Total, "active": r.Channels.Active, "disabled": r.Channels.Disabled,
			"refreshNeeded": r.Channels.RefreshNeeded,
		},
		ByPlatform: []map[string]any{}, ByDay: []map[string]any{}, RecentErrors: []recentErrorAnswer{},
	}
	out.Posts["draft"] = r.Posts.Draft
	out.Posts["total"] = r.Posts.Draft + r.Posts.Scheduled + r.Posts.Published + r.Posts.Failed
	if r.Customer != nil {
		out.Customer = &record.Customer{ID: r.Customer.ID.String(), Name: r.Customer.Name}
	}
	for _, p := range r.Platforms {
		one := map[string]any{"identifier": p.Platform, "channels": p.Channels}
		addCounts(one, p.Posts)
		out.ByPlatform = append(out.ByPlatform, one)
	}
	for _, e := range r.Errors {
		message, _ := excerpt(e.Message, shownError)
		out.RecentErrors = append(out.RecentErrors, recentErrorAnswer{
			PostID: e.Post.String(), IntegrationID: e.Channel.String(), Name: text.Cut(e.Name, shownName),
			Identifier: e.Platform,
			Message:    message, Date: record.FormatTime(e.Date),
		})
	}
	n, err := fitting(out.RecentErrors, 0)
	if err != nil {
		return answer{}, err
	}
	cut := n < len(out.RecentErrors)
	out.RecentErrors = out.RecentErrors[:n]
	rest, err := encode(out)
	if err != nil {
		return answer{}, err
	}
	days := daysWithPosts(r.Days)
	if n, err = fitting(days, costOf(rest)); err != nil {
		return answer{}, err
	}
	for i := n - 1; i >= 0; i-- {
		out.ByDay = append(out.ByDay, days[i])
	}
	return answer{Output: out, Truncated: cut || n < len(days)}, nil
}

// daysWithPosts returns the days that have posts, latest first.
func daysWithPosts(all []publishing.DayReport) (out []map[string]any) {
	for i := len(all) - 1; i >= 0; i-- {
		d := all[i]
		if d.Posts == (publishing.PostCounts{Draft: d.Posts.Draft}) {
			continue
		}
		one := map[string]any{"date": d.Start.Format(time.DateOnly)}
		addCounts(one, d.Posts)
		out = append(out, one)
	}
	return out
}

func counts(n publishing.PostCounts) map[string]int {
	return map[string]int{"scheduled": n.Scheduled, "published": n.Published, "failed": n.Failed}
}

func addCounts(to map[string]any, n publishing.PostCounts) {
	for name, value := range counts(n) {
		to[name] = value
	}
}
