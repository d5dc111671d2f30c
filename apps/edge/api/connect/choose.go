package connect

import (
	"cmp"
	"context"
	"net/http"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// Connects handles OAuth connection attempts that still need the person's consent or a choice of
// account.
type Connects interface {
	// Choose connects the account that a member has chosen. It returns NotFound for an unknown id.
	// It returns Invalid if the channel is already connected or the account was not offered. It
	// returns Upstream if the platform fails. If Choose returns an error, the member can choose
	// again.
	Choose(
		ctx context.Context, p tenancy.Principal, cmd publishing.ChooseAccount,
	) (publishing.ChannelConnected, error)
	// ChooseByState is like Choose, but identifies the caller by the connection attempt's state. If
	// platform is not empty, it must be the attempt's platform.
	ChooseByState(
		ctx context.Context, platform string, cmd publishing.ChooseAccount,
	) (publishing.ChannelConnected, error)
	// Started returns the unfinished connection attempt with the given state. It returns Invalid if
	// there is none.
	Started(ctx context.Context, platform, state string) (publishing.ConnectRequest, error)
	// HoldCode seals cmd, including the platform's code, in a token that the caller keeps until the
	// person consents. ReleaseCode opens the token and returns the command for Finish. It returns
	// Invalid if the token is invalid or expired.
	HoldCode(cmd publishing.FinishConnect) (string, error)
	ReleaseCode(platform, token string) (publishing.FinishConnect, error)
	// Disown disconnects a channel at the request of the person who granted access to its account.
	// The call can be repeated. It returns Invalid if the token is wrong, and Gone if the token has
	// expired.
	Disown(ctx context.Context, token string) (publishing.Disowned, error)
}

// Page is one of the accounts to choose from when a channel is connected by OAuth.
type Page struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Picture string `json:"picture,omitempty"`
}

func pagesOf(all []publishing.Candidate) []Page {
	out := make([]Page, 0, len(all))
	for _, c := range all {
		out = append(out, Page(c))
	}
	return out
}

// ChooseRequest is the request body for choosing the account to connect. One of page, pageId or id
// is required.
type ChooseRequest struct {
	Page   string `json:"page,omitempty" maxLength:"1024" doc:"Id of an account in pages."`
	PageID string `json:"pageId,omitempty" maxLength:"1024" doc:"Same as page."`
	ID     string `json:"id,omitempty" maxLength:"1024" doc:"Same as page."`
}

func (r ChooseRequest) candidate() (string, error) {
	chosen := cmp.Or(r.Page, r.PageID, r.ID)
	if chosen == "" {
		return "", &fault.Error{Kind: fault.Invalid, Op: "connect.choose", Message: "No account was chosen.",
			Fields: []fault.Field{{Name: "page", Message: "is required"}}}
	}
	return chosen, nil
}

// ChooseResponse is the response to choosing an account.
type ChooseResponse struct {
	Success bool `json:"success" doc:"Always true."`
}

type chooseOutput struct{ Body ChooseResponse }

type chooseInput struct {
	ID   string `path:"id" doc:"Id of the channel to choose an account for."`
	Body ChooseRequest
}

// Choose returns the endpoint that lets a member choose the account to connect.
func (a *API) Choose() route.Endpoint {
	d := route.Describe("Connecting channels", "Choose the account for a new channel", 400, 402, 404, 409, 413, 502)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.choose)
}

func (a *API) choose(ctx context.Context, in *chooseInput) (*chooseOutput, error) {
	candidate, err := in.Body.candidate()
	if err != nil {
		return nil, err
	}
	cmd := publishing.ChooseAccount{Channel: in.ID, Candidate: candidate}
	if _, err := a.deps.Connects.Choose(ctx, request.Principal(ctx), cmd); err != nil {
		return nil, err
	}
	return &chooseOutput{Body: ChooseResponse{Success: true}}, nil
}

// ChooseByStateRequest is a ChooseRequest with the state of the connection attempt.
type ChooseByStateRequest struct {
	ChooseRequest
	State string `json:"state" minLength:"1" maxLength:"1000"`
}

type chooseByStateInput struct {
	ID   string `path:"id" doc:"Id of the channel to choose an account for."`
	Body ChooseByStateRequest
}

// ChooseByState returns the endpoint that lets a caller without a session choose the account to
// connect. The caller must know the connection attempt's state and choose within an hour.
func (a *API) ChooseByState() route.Endpoint {
	d := route.Describe("Connecting channels", "Choose the account for a new channel, without a session",
		400, 402, 404, 409, 413, 429, 502)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.chooseByState)
}

func (a *API) chooseByState(ctx context.Context, in *chooseByStateInput) (*chooseOutput, error) {
	if err := a.deps.Gate.AdmitLink(ctx, in.Body.State); err != nil {
		return nil, err
	}
	candidate, err := in.Body.candidate()
	if err != nil {
		return nil, err
	}
	cmd := publishing.ChooseAccount{Channel: in.ID, State: in.Body.State, Candidate: candidate}
	if _, err := a.deps.Connects.ChooseByState(ctx, "", cmd); err != nil {
		return nil, err
	}
	return &chooseOutput{Body: ChooseResponse{Success: true}}, nil
}
