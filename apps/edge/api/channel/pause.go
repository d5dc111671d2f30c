package channel

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// Pauses suspends and resumes publishing.
type Pauses interface {
	// Pause pauses or resumes publishing. Once a call that pauses channels has returned, no new
	// calls to platforms are made for these channels. Pause returns NotFound if the organization
	// has no such channel or customer, and Forbidden if the person may not pause the organization.
	Pause(ctx context.Context, p tenancy.Principal, cmd publishing.SetPause) (publishing.PauseResult, error)
}

// PauseChannel returns the endpoint that pauses or resumes a channel. Once the endpoint has
// responded to a pause, no new calls to the platform are made for the channel.
func (a *API) PauseChannel() route.Endpoint {
	return a.pauseOne(publishing.PauseChannel, "Pause or resume publishing on a channel")
}

// PauseCustomer returns the endpoint that pauses or resumes a customer's channels. A channel that
// was paused individually stays paused when its customer is resumed.
func (a *API) PauseCustomer() route.Endpoint {
	return a.pauseOne(publishing.PauseCustomer, "Pause or resume publishing on a group's channels")
}

func (a *API) pauseOne(scope publishing.PauseScope, summary string) route.Endpoint {
	return route.JSON(route.Describe("Channels", summary, 400, 404, 413),
		func(ctx context.Context, in *pauseOneInput) (*pauseOutput, error) {
			return a.pause(ctx, scope, in.ID, in.Body.Paused)
		})
}

// PauseOrganization returns the endpoint that pauses or resumes the organization.
func (a *API) PauseOrganization() route.Endpoint {
	return route.JSON(
		route.Describe("Settings", "Pause or resume publishing for the whole organization", 400, 413),
		func(ctx context.Context, in *pauseAllInput) (*pauseOutput, error) {
			return a.pause(ctx, publishing.PauseOrganization, "", in.Body.Paused)
		})
}

// PauseRequest is the body of the routes that pause or resume publishing.
type PauseRequest struct {
	Paused bool `json:"paused" doc:"true pauses publishing, false resumes it."`
}

type pauseOneInput struct {
	ID   string `path:"id" doc:"Id of the channel or the channel group."`
	Body PauseRequest
}

type pauseAllInput struct{ Body PauseRequest }

// HeldPost is a post that a pause holds back. Content is an excerpt from the post's text.
type HeldPost struct {
	ID          string      `json:"id"`
	Date        string      `json:"date" format:"date-time"`
	Content     string      `json:"content"`
	Integration HeldChannel `json:"integration"`
}

// HeldChannel identifies the channel of a HeldPost.
type HeldChannel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// PauseResponse is the response to a request that pauses or resumes publishing. A channel publishes
// only if neither the channel itself, nor its group, nor the organization is paused.
type PauseResponse struct {
	Paused   bool       `json:"paused"`
	Held     int        `json:"held" doc:"Number of due posts that the pause holds back."`
	InFlight int        `json:"inFlight" doc:"Number of posts whose call to the platform had already started. These posts are not stopped."`
	Missed   int        `json:"missed" doc:"After resuming, the number of posts that failed because they were held back for too long."`
	Posts    []HeldPost `json:"posts" doc:"The first 20 scheduled posts, by date."`
}

type pauseOutput struct{ Body PauseResponse }

func (a *API) pause(ctx context.Context, scope publishing.PauseScope, id string, paused bool) (*pauseOutput, error) {
	cmd := publishing.SetPause{Scope: scope, ID: id, Paused: paused}
	res, err := a.deps.Pauses.Pause(ctx, request.Principal(ctx), cmd)
	if err != nil {
		return nil, err
	}
	out := PauseResponse{
		Paused: res.Paused, Held: res.Held, InFlight: res.InFlight, Missed: res.Missed,
		Posts: make([]HeldPost, 0, len(res.Posts)),
	}
	for _, p := range res.Posts {
		out.Posts = append(out.Posts, HeldPost{
			ID: p.ID.String(), Date: record.FormatTime(p.PublishDate), Content: res.Texts[p.ID],
			Integration: HeldChannel{ID: p.Channel.String(), Name: res.Channels[p.Channel]},
		})
	}
	return &pauseOutput{Body: out}, nil
}
