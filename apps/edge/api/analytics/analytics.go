// Package analytics provides the endpoints for statistics and reports.
package analytics

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// Deps holds an API's dependencies.
type Deps struct {
	Analytics Analytics
	Reports   Reports
	Clock     clock.Clock
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// Analytics returns the statistics of channels and posts. Callers pass ids exactly as the client
// sent them.
//
// Each method returns NotFound if the channel or the post does not exist or belongs to another
// organization. It returns Invalid if the requested days are out of range. It returns RateLimited
// if too many of the organization's requests are waiting for platforms. It returns Upstream if no
// statistics are stored and the platform cannot be queried. It can also return Unavailable and
// Internal.
type Analytics interface {
	// Channel returns a channel's statistics for the last q.Days days.
	Channel(ctx context.Context, p tenancy.Principal, q publishing.GetAnalytics) (publishing.Analytics, error)
	// Post returns a post's statistics for the last q.Days days.
	Post(ctx context.Context, p tenancy.Principal, q publishing.GetPostAnalytics) (publishing.PostAnalytics, error)
	// Figures returns a channel's figures for a given day. If there are none for that day, it
	// returns the figures for the most recent earlier day that has some. If no such day exists, the
	// result has a zero Day.
	Figures(ctx context.Context, p tenancy.Principal, q publishing.GetSamples) (publishing.DaySamples, error)
}

const defaultAnalyticsDays = 7

// Metric holds the values of one statistic over a number of days.
type Metric struct {
	Label string        `json:"label" doc:"Name of the statistic on the platform."`
	Data  []MetricPoint `json:"data" nullable:"false" doc:"Days with a known value, earliest first. Days that the platform has not reported yet are omitted."`
	// PercentageChange holds publishing.Metric.Change.
	PercentageChange float64 `json:"percentageChange" doc:"Change in percent. Counts are compared with the same days one period earlier, using only the days in data that were complete when the platform was queried. The change is 0 if one of the earlier days is unknown. For a level such as followers, the last day in data is compared with the first. An increase from 0 counts as 100."`
}

// MetricPoint is the value for one day.
type MetricPoint struct {
	Total string `json:"total" doc:"A decimal number."`
	Date  string `json:"date" format:"date" doc:"A day in UTC."`
}

// MissingRelease is the response for a post whose id on the platform is unknown.
type MissingRelease struct {
	Missing bool `json:"missing" enum:"true" doc:"Always true. The platform did not return an id for the post, so there are no statistics."`
}

type analyticsOutput struct {
	LastModified string `header:"Last-Modified" doc:"When the platform was last queried successfully. If the platform does not respond, this can be more than an hour ago, and the metrics are the last known ones."`
	Body         any
}

func describeAnalytics(summary string, errors ...int) huma.Operation {
	d := route.Describe("Analytics and reports", summary, errors...)
	d.Description = "The platform is queried at most once an hour. It is also queried once a day, even without a " +
		"request, to build up a history. If the platform does not respond, the last known metrics are returned with " +
		"their dates; 502 is returned only if none are known."
	d.SkipValidateParams = true // see analyticsDays
	return d
}

type channelAnalyticsInput struct {
	Integration string `path:"integration" doc:"Channel id."`
	Date        string `query:"date" doc:"Number of days up to and including today, from 1 to 366 (default 7), or the first day, such as 2027-03-01. Days are in UTC."`
}

// ChannelAnalytics returns the endpoint that gets a channel's statistics.
func (a *API) ChannelAnalytics() route.Endpoint {
	d := describeAnalytics("Get a channel's statistics", 400, 404, 502)
	d.Description += " The list is empty if the platform has no statistics."
	return route.JSON(d, func(ctx context.Context, in *channelAnalyticsInput) (*analyticsOutput, error) {
		return a.channelAnalytics(ctx, in.Integration, in.Date, "")
	}, route.Answer[[]Metric](http.StatusOK, "OK"))
}

type sessionAnalyticsInput struct {
	Integration string `path:"integration" doc:"Channel id."`
	Date        string `query:"date" doc:"Number of days up to and including today, from 1 to 366 (default 7), or the first day, such as 2027-03-01. Days are in UTC."`
	Refresh     string `query:"refresh" doc:"true refreshes metrics that are more than a minute old."`
}

// ChannelAnalyticsInSession is like ChannelAnalytics, but for the application API, where a person
// can also request fresh statistics.
func (a *API) ChannelAnalyticsInSession() route.Endpoint {
	d := describeAnalytics("Get a channel's statistics", 400, 404, 502)
	d.Tags = []string{"Analytics"}
	return route.JSON(d, func(ctx context.Context, in *sessionAnalyticsInput) (*analyticsOutput, error) {
		return a.channelAnalytics(ctx, in.Integration, in.Date, in.Refresh)
	}, route.Answer[[]Metric](http.StatusOK, "OK"))
}

func (a *API) channelAnalytics(ctx context.Context, channel, date, refresh string) (*analyticsOutput, error) {
	days, err := a.analyticsDays(date)
	if err != nil {
		return nil, err
	}
	found, err := a.deps.Analytics.Channel(ctx, request.Principal(ctx), publishing.GetAnalytics{
		Channel: channel, Days: days, Refresh: refresh == "true",
	})
	if err != nil {
		return nil, err
	}
	return metricsOutput(found), nil
}

type postAnalyticsInput struct {
	PostID string `path:"postId" doc:"Post id."`
	Date   string `query:"date" doc:"Number of days up to and including today, from 1 to 366 (default 7), or the first day, such as 2027-03-01. Days are in UTC."`
}

// PostAnalytics returns the endpoint that gets a post's statistics. The endpoint is also part of
// the application API.
func (a *API) PostAnalytics() route.Endpoint {
	d := describeAnalytics("Get a post's statistics", 400, 404, 502)
	d.Description += " For a thread, the statistics cover only the first part, from the time it was last published. " +
		"The list is empty if the post is not published, or if the platform has reported nothing for these days, for " +
		"example because the post no longer exists there. The response is {missing: true} if the platform did not " +
		"return an id for the post; see GET /posts/{id}/missing."
	return route.JSON(d, a.postAnalytics, route.AnswerEither[[]Metric, MissingRelease](http.StatusOK, "OK"))
}

func (a *API) postAnalytics(ctx context.Context, in *postAnalyticsInput) (*analyticsOutput, error) {
	days, err := a.analyticsDays(in.Date)
	if err != nil {
		return nil, err
	}
	found, err := a.deps.Analytics.Post(ctx, request.Principal(ctx), publishing.GetPostAnalytics{
		Post: in.PostID, Days: days,
	})
	if err != nil {
		return nil, err
	}
	if found.Missing {
		return &analyticsOutput{Body: MissingRelease{Missing: true}}, nil
	}
	return metricsOutput(found.Analytics), nil
}

// analyticsDays returns the number of days in the window that date describes. date is either a
// number of days, such as 30, or the window's first day, such as 2027-03-01. analyticsDays returns
// Invalid if date is neither, or if it is a day in the future.
func (a *API) analyticsDays(date string) (int, error) {
	date = strings.TrimSpace(date)
	if date == "" {
		return defaultAnalyticsDays, nil
	}
	if n, err := strconv.Atoi(date); err == nil {
		return n, nil // the use case checks the range
	}
	first, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return 0, badDate("must be a number of days or a day such as 2027-03-01")
	}
	today := publishing.DayOf(a.deps.Clock.Now())
	if first.After(today) {
		return 0, badDate("must not be after today in UTC")
	}
	return int(today.Sub(first)/(24*time.Hour)) + 1, nil
}

func badDate(message string) error {
	return &fault.Error{
		Kind: fault.Invalid, Op: "analytics.analytics", Message: "The date is not valid.",
		Fields: []fault.Field{{Name: "date", Message: message}},
	}
}

func metricsOutput(found publishing.Analytics) *analyticsOutput {
	out := []Metric{}
	for _, m := range found.Metrics {
		metric := Metric{Label: m.Label, Data: []MetricPoint{}, PercentageChange: m.Change}
		for _, p := range m.Points {
			metric.Data = append(metric.Data, MetricPoint{
				Total: strconv.FormatFloat(p.Value, 'f', -1, 64), Date: p.Day.Format(time.DateOnly),
			})
		}
		out = append(out, metric)
	}
	answer := &analyticsOutput{Body: out}
	if !found.AsOf.IsZero() {
		answer.LastModified = found.AsOf.UTC().Format(http.TimeFormat)
	}
	return answer
}

type figuresInput struct {
	ID   string `path:"id" doc:"Channel id."`
	Date string `query:"date" required:"true" doc:"A day in UTC, such as 2027-03-01. It must not be in the future."`
}

type figuresOutput struct{ Body map[string]any }

// Figures returns the endpoint that gets a channel's figures for one day.
func (a *API) Figures() route.Endpoint {
	d := describeAnalytics("Get a channel's metrics for one day", 400, 404, 502)
	d.Description += " The response contains a date and the metrics that the platform reported for it, such as " +
		"impressions, likes, reposts and followers. If nothing is known about the requested day, the date is the " +
		"most recent earlier day with known metrics. If no metrics are known at all, the response contains only the " +
		"requested date."
	return route.JSON(d, a.figures, route.Content(http.StatusOK, "OK", "application/json", figuresSchema()))
}

// figuresSchema returns the schema for the figures of one day: a date, and numbers whose names
// vary.
//
// TypeScript has no type for this kind of object. If the schema used additionalProperties, the
// generated code would not compile or would reject every response. The schema uses
// unevaluatedProperties instead, which validators treat the same way. Code generators ignore it and
// use only the common names, which the schema lists.
func figuresSchema() *huma.Schema {
	s := &huma.Schema{
		Type: huma.TypeObject, Required: []string{"date"},
		Properties: map[string]*huma.Schema{
			"date": {Type: huma.TypeString, Format: "date", Description: "The day of the metrics."},
		},
		Extensions: map[string]any{"unevaluatedProperties": &huma.Schema{Type: huma.TypeNumber, Format: "double"}},
	}
	for _, name := range []string{"followers", "following", "impressions", "likes", "posts", "reposts"} {
		s.Properties[name] = &huma.Schema{
			Type: huma.TypeNumber, Format: "double", Description: "Absent if the platform has not reported this " +
				"metric.",
		}
	}
	return s
}

func (a *API) figures(ctx context.Context, in *figuresInput) (*figuresOutput, error) {
	at, err := time.Parse(time.DateOnly, in.Date)
	if err != nil {
		at = time.Time{} // the use case rejects the zero day after it has found the channel
	}
	found, err := a.deps.Analytics.Figures(ctx, request.Principal(ctx), publishing.GetSamples{Channel: in.ID, Day: at})
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for label, value := range found.Values() {
		out[memberName(label)] = value
	}
	out["date"] = at.Format(time.DateOnly)
	if !found.Day.IsZero() {
		out["date"] = found.Day.Format(time.DateOnly)
	}
	return &figuresOutput{Body: out}, nil
}

// memberName converts a label to the name of a JSON member: "Page views" becomes pageViews.
func memberName(label string) string {
	words := strings.FieldsFunc(label, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range words {
		runes := []rune(w)
		if i == 0 {
			runes[0] = unicode.ToLower(runes[0])
		} else {
			runes[0] = unicode.ToUpper(runes[0])
		}
		words[i] = string(runes)
	}
	return strings.Join(words, "")
}
