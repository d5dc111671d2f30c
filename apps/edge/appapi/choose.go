package appapi

import (
	"cmp"
	"context"
	"net/http"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
)

// Page is an account that a connect by OAuth can choose.
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

// ChooseRequest is the body that chooses the account of a connect by OAuth. One of page, pageId and id is needed.
type ChooseRequest struct {
	Page   string `json:"page,omitempty" maxLength:"1024" doc:"Id of one of the pages."`
	PageID string `json:"pageId,omitempty" maxLength:"1024" doc:"The same as page."`
	ID     string `json:"id,omitempty" maxLength:"1024" doc:"The same as page."`
}

func (r ChooseRequest) candidate() (string, error) {
	chosen := cmp.Or(r.Page, r.PageID, r.ID)
	if chosen == "" {
		return "", &fault.Error{Kind: fault.Invalid, Op: "appapi.choose", Message: "No page was chosen.",
			Fields: []fault.Field{{Name: "page", Message: "is required"}}}
	}
	return chosen, nil
}

// ChooseAnswer is the answer to the choice of an account.
type ChooseAnswer struct {
	Success bool `json:"success" doc:"Always true."`
}

type chooseOutput struct{ Body ChooseAnswer }

type chooseInput struct {
	ID   string `path:"id" doc:"Id of the channel whose account is to be chosen."`
	Body ChooseRequest
}

// Choose returns the endpoint with which a member chooses the account of a connect by OAuth.
func (a *API) Choose() route.Endpoint {
	d := describe("Channels", "Choose the account of a new channel", 400, 402, 404, 409, 413, 502)
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
	return &chooseOutput{Body: ChooseAnswer{Success: true}}, nil
}

// ChooseByStateRequest is ChooseRequest for a caller who has the state of the connect.
type ChooseByStateRequest struct {
	ChooseRequest
	State string `json:"state" minLength:"1" maxLength:"1000"`
}

type chooseByStateInput struct {
	ID   string `path:"id" doc:"Id of the channel whose account is to be chosen."`
	Body ChooseByStateRequest
}

// ChooseByState returns the endpoint with which the state of a connect chooses its account, within an hour.
func (a *API) ChooseByState() route.Endpoint {
	d := describe("Channels", "Choose the account of a new channel, without a session", 400, 402, 404, 409, 413, 429, 502)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.chooseByState)
}

func (a *API) chooseByState(ctx context.Context, in *chooseByStateInput) (*chooseOutput, error) {
	if err := a.admitLink(ctx, in.Body.State); err != nil {
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
	return &chooseOutput{Body: ChooseAnswer{Success: true}}, nil
}

// Function returns the endpoint that runs a tool of the platform of a channel, as POST /integration-trigger/{id} does.
func (a *API) Function() route.Endpoint {
	d := describe("Channels", "Run a tool of a channel; false when the platform fails", 400, 404, 413)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.function)
}

// IntegrationFunctionDto is the body of POST /integrations/function.
type IntegrationFunctionDto struct {
	Name string         `json:"name,omitempty" maxLength:"100" doc:"Required."`
	ID   string         `json:"id" doc:"Channel id."`
	Data map[string]any `json:"data,omitempty" doc:"The members that the tool declares."`
}

type functionInput struct{ Body IntegrationFunctionDto }

type functionOutput struct{ Body any }

func (a *API) function(ctx context.Context, in *functionInput) (*functionOutput, error) {
	cmd := publishing.TriggerTool{Channel: in.Body.ID, Name: in.Body.Name, Data: in.Body.Data}
	out, err := a.deps.Tools.Trigger(ctx, request.Principal(ctx), cmd)
	switch {
	case fault.Is(err, fault.Upstream), fault.Is(err, fault.Unauthenticated):
		return &functionOutput{Body: false}, nil
	case err != nil:
		return nil, err
	}
	return &functionOutput{Body: out}, nil
}
