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

// Deps are the dependencies of an API.
type Deps struct {
	Slots Slots
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// Slots are the use cases of posting times. Methods return NotFound for a channel that does not
// exist or belongs to another organization, or whose id does not parse.
type Slots interface {
	// Find returns the first free posting time of a channel and holds it for publishing.SlotHold.
	// It returns Conflict if there is none.
	Find(ctx context.Context, p tenancy.Principal, channel string) (time.Time, error)
	// FindAny returns the first posting time of any channel at which no channel has a post, and
	// holds it for all of them. It returns Conflict if there is none.
	FindAny(ctx context.Context, p tenancy.Principal) (time.Time, error)
	// Plan returns the queue plan of a channel.
	Plan(ctx context.Context, p tenancy.Principal, channel string) (publishing.ChannelPlan, error)
	// SetPlan replaces the queue plan of a channel. It returns Invalid for invalid times.
	SetPlan(
		ctx context.Context, p tenancy.Principal, channel string, cmd publishing.SetQueuePlan,
	) (publishing.ChannelPlan, error)
}

// Slot is a free posting time.
type Slot struct {
	Date string `json:"date" format:"date-time" doc:"Send it as the date of the post."`
}

type slotOutput struct{ Body Slot }

// slotDoc describes what both slot endpoints do.
const slotDoc = "A post, a draft or an occurrence of a repeated post takes its minute unless it has failed. " +
	"The call holds the time for two minutes, so that no other call names it; a post at that time ends the hold, and " +
	"nothing is refused because of it. It looks 366 days ahead, and answers 409 when there is no posting time or no " +
	"free one."

type slotInput struct {
	ID string `path:"id" doc:"Channel id."`
}

// FindSlot returns the endpoint that finds the next free posting time of a channel.
func (a *API) FindSlot() route.Endpoint {
	d := route.Describe("Posting times", "Find the next free posting time of a channel", 404, 409)
	d.Description = slotDoc
	return route.JSON(d, func(ctx context.Context, in *slotInput) (*slotOutput, error) {
		at, err := a.deps.Slots.Find(ctx, request.Principal(ctx), in.ID)
		return slot(at, err)
	})
}

// FindAnySlot returns the endpoint that finds the next posting time at which no channel has a post.
func (a *API) FindAnySlot() route.Endpoint {
	d := route.Describe("Posting times", "Find the next posting time of any channel at which no channel has a post", 409)
	d.Description = slotDoc + " Posting times of disabled channels do not count, and the time is held for all channels."
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

// PostingTime is one time of a queue plan.
type PostingTime struct {
	Time int   `json:"time" doc:"Minutes after midnight."`
	Days []int `json:"days,omitempty" minItems:"1" maxItems:"7" doc:"Days of the week, 0 (Sunday) to 6 (Saturday). Without it every day."`
}

// IntegrationTimeDto is the body that sets the posting times of a channel.
type IntegrationTimeDto struct {
	Time     []PostingTime `json:"time" maxItems:"100" nullable:"false" doc:"At most 100 times; none for a channel without posting times."`
	Timezone string        `json:"timezone,omitempty" maxLength:"64" doc:"New time zone of the channel: an IANA name, or minutes east of UTC. Without it the channel keeps its zone. Posts that repeat already keep theirs."`
}

// QueuePlan has the posting times of a channel.
type QueuePlan struct {
	Time     []PostingTime `json:"time" doc:"In their order; times without days are of every day."`
	Timezone string        `json:"timezone" doc:"The zone of the times: an IANA name, or a fixed offset such as +05:30."`
	Next     []string      `json:"next" doc:"The next ten posting times, taken ones too."`
}

type planOutput struct{ Body QueuePlan }

// planDoc describes the times of a queue plan.
const planDoc = "Times are minutes after midnight by the clocks of the channel's time zone, through all changes of " +
	"its clocks: a time that is skipped is later by the size of the jump, and of a time that comes twice the first counts."

// QueuePlan returns the endpoint that reads the posting times of a channel.
func (a *API) QueuePlan() route.Endpoint {
	d := route.Describe("Posting times", "Read the posting times of a channel", 404)
	d.Description = planDoc + " A new channel has 09:20, 14:10 and 19:00 in its time zone. If nobody has chosen one, " +
		"neither for it nor for the organization, it has 02:00, 06:40 and 11:40 in UTC."
	return route.JSON(d, func(ctx context.Context, in *slotInput) (*planOutput, error) {
		return plan(a.deps.Slots.Plan(ctx, request.Principal(ctx), in.ID))
	})
}

type setPlanInput struct {
	ID   string `path:"id" doc:"Channel id."`
	Body IntegrationTimeDto
}

// SetQueuePlan returns the endpoint that replaces the posting times of a channel.
func (a *API) SetQueuePlan() route.Endpoint {
	d := route.Describe("Posting times", "Set the posting times of a channel", 400, 404, 413)
	d.Description = planDoc + " What is scheduled already keeps its time."
	return route.JSON(d, func(ctx context.Context, in *setPlanInput) (*planOutput, error) {
		return plan(a.setPlan(ctx, in, false))
	})
}

// SetTimes returns the endpoint that replaces the posting times of a channel with minutes of UTC,
// as older clients send them.
func (a *API) SetTimes() route.Endpoint {
	d := route.Describe("Posting times", "Set the posting times of a channel in UTC", 400, 404, 413)
	d.DefaultStatus = http.StatusCreated
	d.Description = "Without timezone, times are minutes after 00:00 UTC, from a day before to a day after. They are " +
		"stored as the times that clocks in the channel's time zone show at this moment, and follow its clocks from " +
		"then on; days are those of UTC. With timezone it is the same as PUT /integrations/{id}/queue-plan."
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
			// An invalid day yields the empty set, which the use case refuses.
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
