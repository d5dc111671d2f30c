// Package slot provides the endpoints for posting times.
package slot

import (
	"context"
	"net/http"
	"time"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// Deps holds an API's dependencies.
type Deps struct {
	Slots Slots
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// Slots finds free posting times and manages queue plans. Methods return NotFound if the channel
// does not exist or belongs to another organization, or if its id does not parse.
type Slots interface {
	// Find returns a channel's first free posting time and holds it for publishing.SlotHold. It
	// returns Conflict if no posting time is free.
	Find(ctx context.Context, p tenancy.Principal, channel string) (time.Time, error)
	// FindAny finds the first of all channels' posting times at which no channel has a post. It
	// holds that time for all channels. It returns Conflict if there is no such time.
	FindAny(ctx context.Context, p tenancy.Principal) (time.Time, error)
	// Plan returns a channel's queue plan.
	Plan(ctx context.Context, p tenancy.Principal, channel string) (publishing.ChannelPlan, error)
	// SetPlan replaces a channel's queue plan. It returns Invalid for invalid times.
	SetPlan(
		ctx context.Context, p tenancy.Principal, channel string, cmd publishing.SetQueuePlan,
	) (publishing.ChannelPlan, error)
}

// Slot is a free posting time.
type Slot struct {
	Date string `json:"date" format:"date-time" doc:"A free posting time. Send it as the date of a post."`
}

type slotOutput struct{ Body Slot }

// slotDoc describes what both slot endpoints do.
const slotDoc = "A time is taken if a post, a draft or an occurrence of a repeated post is dated in the same minute. " +
	"Failed posts do not take up a time. The call holds the returned time for two minutes, so that no other call " +
	"returns it. Creating a post at that time, or moving one to it, ends the hold. A hold never causes a request to " +
	"be rejected. The search covers the next 366 days. 409: there is no posting time, or none is free."

type slotInput struct {
	ID string `path:"id" doc:"Channel id."`
}

// FindSlot returns the endpoint that finds a channel's next free posting time.
func (a *API) FindSlot() route.Endpoint {
	d := route.Describe("Posting times", "Find a channel's next free posting time", 404, 409)
	d.Description = slotDoc
	return route.JSON(d, func(ctx context.Context, in *slotInput) (*slotOutput, error) {
		at, err := a.deps.Slots.Find(ctx, request.Principal(ctx), in.ID)
		return slot(at, err)
	})
}

// FindAnySlot returns the endpoint that finds the next posting time at which no channel has a post.
func (a *API) FindAnySlot() route.Endpoint {
	d := route.Describe("Posting times", "Find the next posting time that is free on all channels", 409)
	d.Description = slotDoc + " Posting times of disabled channels are ignored, and the time is held for all channels."
	return route.JSON(d, func(ctx context.Context, _ *struct{}) (*slotOutput, error) {
		at, err := a.deps.Slots.FindAny(ctx, request.Principal(ctx))
		return slot(at, err)
	})
}

func slot(at time.Time, err error) (*slotOutput, error) {
	if err != nil {
		return nil, err
	}
	return &slotOutput{Body: Slot{Date: record.FormatTime(at)}}, nil
}

// PostingTime is one time in a queue plan.
type PostingTime struct {
	Time int   `json:"time" doc:"Minutes after midnight."`
	Days []int `json:"days,omitempty" minItems:"1" maxItems:"7" doc:"Days of the week, from 0 (Sunday) to 6 (Saturday). If absent, the time applies to every day."`
}

// IntegrationTimeDto is the request body for setting a channel's posting times.
type IntegrationTimeDto struct {
	Time     []PostingTime `json:"time" maxItems:"100" nullable:"false" doc:"The posting times, at most 100. An empty list removes all posting times."`
	Timezone string        `json:"timezone,omitempty" maxLength:"64" doc:"New time zone of the channel: an IANA name, or minutes east of UTC. If absent, the channel's time zone is unchanged. Existing repeated posts keep their time zone."`
}

// QueuePlan holds a channel's posting times.
type QueuePlan struct {
	Time     []PostingTime `json:"time" doc:"The times, in order. A time without days applies to every day."`
	Timezone string        `json:"timezone" doc:"Time zone of the times: an IANA name, or a fixed offset such as +05:30."`
	Next     []string      `json:"next" doc:"The next ten posting times, including times that are already taken."`
}

type planOutput struct{ Body QueuePlan }

// planDoc describes the times of a queue plan.
const planDoc = "Times are minutes after midnight in the channel's time zone and follow the clock changes of that " +
	"time zone. If a clock change skips a time, the time moves later by the length of the change. If a time occurs " +
	"twice, its first occurrence is used."

// QueuePlan returns the endpoint that gets a channel's posting times.
func (a *API) QueuePlan() route.Endpoint {
	d := route.Describe("Posting times", "Get a channel's posting times", 404)
	d.Description = planDoc + " By default, a channel has the posting times 09:20, 14:10 and 19:00 in its time zone. " +
		"If no time zone was chosen for the channel or the organization, the default posting times are 02:00, 06:40 " +
		"and 11:40 UTC."
	return route.JSON(d, func(ctx context.Context, in *slotInput) (*planOutput, error) {
		return plan(a.deps.Slots.Plan(ctx, request.Principal(ctx), in.ID))
	})
}

type setPlanInput struct {
	ID   string `path:"id" doc:"Channel id."`
	Body IntegrationTimeDto
}

// SetQueuePlan returns the endpoint that replaces a channel's posting times.
func (a *API) SetQueuePlan() route.Endpoint {
	d := route.Describe("Posting times", "Set a channel's posting times", 400, 404, 413)
	d.Description = planDoc + " Posts that are already scheduled keep their times."
	return route.JSON(d, func(ctx context.Context, in *setPlanInput) (*planOutput, error) {
		return plan(a.setPlan(ctx, in, false))
	})
}

// SetTimes returns the endpoint that older clients use to replace a channel's posting times. These
// clients send times as minutes after midnight UTC.
func (a *API) SetTimes() route.Endpoint {
	d := route.Describe("Posting times", "Set a channel's posting times in UTC", 400, 404, 413)
	d.DefaultStatus = http.StatusCreated
	d.Description = "Without timezone, times are minutes after 00:00 UTC, within one day before and one day after, " +
		"and days are in UTC. The times are converted using the current UTC offset of the channel's time zone and " +
		"then follow that time zone. With timezone, this is the same as PUT /integrations/{id}/queue-plan."
	return route.JSON(d, func(ctx context.Context, in *setPlanInput) (*record.NamedOutput, error) {
		if _, err := a.setPlan(ctx, in, in.Body.Timezone == ""); err != nil {
			return nil, err
		}
		return record.NewNamed(in.ID), nil
	})
}

func (a *API) setPlan(ctx context.Context, in *setPlanInput, utc bool) (publishing.ChannelPlan, error) {
	cmd := publishing.SetQueuePlan{UTC: utc, Times: make([]publishing.QueueTime, len(in.Body.Time))}
	zone, err := tenancy.ParseZone(in.Body.Timezone)
	if err != nil {
		return publishing.ChannelPlan{}, err
	}
	cmd.Zone = zone
	for i, t := range in.Body.Time {
		days := publishing.EveryDay
		if len(t.Days) > 0 {
			// If a day is invalid, WeekdaysOf returns the empty set, which the use case rejects.
			days, _ = publishing.WeekdaysOf(t.Days)
		}
		cmd.Times[i] = publishing.QueueTime{Minute: t.Time, Days: days}
	}
	out, err := a.deps.Slots.SetPlan(ctx, request.Principal(ctx), in.ID, cmd)
	return out, record.WithJSONNames(err)
}

func plan(p publishing.ChannelPlan, err error) (*planOutput, error) {
	if err != nil {
		return nil, err
	}
	out := QueuePlan{Time: make([]PostingTime, len(p.Times)), Timezone: p.Timezone, Next: make([]string, len(p.Next))}
	for i, t := range p.Times {
		out.Time[i].Time = t.Minute
		if t.Days != publishing.EveryDay {
			out.Time[i].Days = t.Days.Days()
		}
	}
	for i, at := range p.Next {
		out.Next[i] = record.FormatTime(at)
	}
	return &planOutput{Body: out}, nil
}
