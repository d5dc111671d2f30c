package analytics

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// Reports provides reports on posts and channels.
type Reports interface {
	// Report counts the posts from the last q.Days days by outcome, and the channels by state. It
	// returns NotFound if the customer does not exist or belongs to another organization, or if the
	// customer's id does not parse.
	Report(ctx context.Context, p tenancy.Principal, q publishing.GetReport) (publishing.Report, error)
}

const defaultReportDays = 30

// PostCounts holds the number of posts in each state.
type PostCounts struct {
	Total     int `json:"total" doc:"Number of posts."`
	Draft     int `json:"draft" doc:"Number of drafts."`
	Scheduled int `json:"scheduled" doc:"Number of posts that are queued, are being published, or have an outcome that is not known yet."`
	Published int `json:"published" doc:"Number of published posts."`
	Failed    int `json:"failed" doc:"Number of failed posts."`
}

// ChannelCounts holds the number of channels in each state.
type ChannelCounts struct {
	Total         int `json:"total" doc:"Number of connected channels."`
	Active        int `json:"active" doc:"Number of channels that are enabled and do not need to be reconnected."`
	Disabled      int `json:"disabled" doc:"Number of disabled channels."`
	RefreshNeeded int `json:"refreshNeeded" doc:"Channels that must be reconnected."`
}

// PlatformReport holds the counts for one platform in a report.
type PlatformReport struct {
	Identifier string `json:"identifier" doc:"Id of the platform."`
	Channels   int    `json:"channels" doc:"Number of connected channels on the platform."`
	Scheduled  int    `json:"scheduled" doc:"Number of scheduled posts on the platform."`
	Published  int    `json:"published" doc:"Number of published posts on the platform."`
	Failed     int    `json:"failed" doc:"Number of failed posts on the platform."`
}

// DayReport holds the counts for one day in a report.
type DayReport struct {
	Date      string `json:"date" format:"date" doc:"The day, such as 2027-03-01."`
	Scheduled int    `json:"scheduled" doc:"Number of scheduled posts on this day."`
	Published int    `json:"published" doc:"Number of published posts on this day."`
	Failed    int    `json:"failed" doc:"Number of failed posts on this day."`
}

// RecentError is a post that failed.
type RecentError struct {
	PostID        string `json:"postId" doc:"The post that failed."`
	IntegrationID string `json:"integrationId" doc:"The post's channel."`
	Name          string `json:"name" doc:"Name of the channel."`
	Identifier    string `json:"identifier" doc:"Id of the platform."`
	Message       string `json:"message" doc:"Why the post failed."`
	Date          string `json:"date" format:"date-time" doc:"When the post was due."`
}

// Report is the response from Overview and CustomerReport.
type Report struct {
	Days         int              `json:"days" doc:"Number of days in the report, including today."`
	From         string           `json:"from" format:"date-time" doc:"Start of the first day."`
	To           string           `json:"to" format:"date-time" doc:"The time of the request."`
	Customer     *ReportCustomer  `json:"customer,omitempty" doc:"The customer; only in a customer report."`
	Posts        PostCounts       `json:"posts" doc:"Posts in these days, by state."`
	Channels     ChannelCounts    `json:"channels" doc:"Channels of the organization or customer."`
	ByPlatform   []PlatformReport `json:"byPlatform" nullable:"false" doc:"The same numbers for each platform."`
	ByDay        []DayReport      `json:"byDay" nullable:"false" doc:"One entry per day, earliest first."`
	RecentErrors []RecentError    `json:"recentErrors" nullable:"false" doc:"Up to 20 errors, newest first."`
}

// ReportCustomer identifies the customer that a report covers.
type ReportCustomer struct {
	ID   string `json:"id" doc:"Id of the customer."`
	Name string `json:"name" doc:"Name of the customer."`
}

type reportOutput struct{ Body Report }

type overviewInput struct {
	Days route.OptionalInt `query:"days" doc:"Number of days up to and including today, from 1 to 365 (default 30)."`
}

type customerReportInput struct {
	CustomerID string            `path:"customerId" doc:"Id of a group."`
	Days       route.OptionalInt `query:"days" doc:"Number of days up to and including today, from 1 to 365 (default 30)."`
}

func describeReport(summary string, errors ...int) huma.Operation {
	d := route.Describe("Analytics and reports", summary, errors...)
	d.Description = "Each post is counted on its date, and a thread counts as one post. Scheduled posts and drafts " +
		"dated after today are also counted, except in byDay. Days are in the organization's time zone. An " +
		"occurrence of a repeated post is counted once it is the next occurrence."
	d.SkipValidateParams = true // see route.OptionalInt
	return d
}

// Overview returns the endpoint that reports on the organization's posts and channels.
func (a *API) Overview() route.Endpoint {
	return route.JSON(describeReport("Count posts over recent days", 400),
		func(ctx context.Context, in *overviewInput) (*reportOutput, error) { return a.report(ctx, "", in.Days) })
}

// CustomerReport returns the endpoint that reports on one customer's posts and channels.
func (a *API) CustomerReport() route.Endpoint {
	return route.JSON(describeReport("Count a channel group's posts over recent days", 400, 404),
		func(ctx context.Context, in *customerReportInput) (*reportOutput, error) {
			if in.CustomerID == "" {
				return nil, fault.New(fault.NotFound, "analytics.customerReport", "There is no such customer.")
			}
			return a.report(ctx, in.CustomerID, in.Days)
		})
}

func (a *API) report(ctx context.Context, customer string, asked route.OptionalInt) (*reportOutput, error) {
	days, wrong := asked.Between("days", 1, publishing.MaxReportDays, defaultReportDays)
	if len(wrong) > 0 {
		return nil, &fault.Error{
			Kind: fault.Invalid, Op: "analytics.report", Message: "The query is not valid.", Fields: wrong,
		}
	}
	r, err := a.deps.Reports.Report(ctx, request.Principal(ctx), publishing.GetReport{Days: days, Customer: customer})
	if err != nil {
		return nil, err
	}
	out := Report{
		Days: days, From: record.FormatTime(r.From), To: record.FormatTime(r.To), Posts: postCounts(r.Posts),
		Channels:   ChannelCounts(r.Channels),
		ByPlatform: []PlatformReport{}, ByDay: []DayReport{}, RecentErrors: []RecentError{},
	}
	if r.Customer != nil {
		out.Customer = &ReportCustomer{ID: r.Customer.ID.String(), Name: r.Customer.Name}
	}
	for _, p := range r.Platforms {
		out.ByPlatform = append(out.ByPlatform, PlatformReport{
			Identifier: p.Platform, Channels: p.Channels, Scheduled: p.Posts.Scheduled, Published: p.Posts.Published,
			Failed: p.Posts.Failed,
		})
	}
	for _, d := range r.Days {
		out.ByDay = append(out.ByDay, DayReport{
			Date: d.Start.Format(time.DateOnly), Scheduled: d.Posts.Scheduled, Published: d.Posts.Published,
			Failed: d.Posts.Failed,
		})
	}
	for _, e := range r.Errors {
		out.RecentErrors = append(out.RecentErrors, RecentError{
			PostID: e.Post.String(), IntegrationID: e.Channel.String(), Name: e.Name, Identifier: e.Platform,
			Message: e.Message, Date: record.FormatTime(e.Date),
		})
	}
	return &reportOutput{Body: out}, nil
}

func postCounts(n publishing.PostCounts) PostCounts {
	return PostCounts{
		Total: n.Draft + n.Scheduled + n.Published + n.Failed, Draft: n.Draft, Scheduled: n.Scheduled,
		Published: n.Published, Failed: n.Failed,
	}
}
