package connect

import (
	"context"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// ListConnectors returns the endpoint that lists the platforms of this instance.
func (a *API) ListConnectors() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Connecting channels", "List the platforms"),
		"Use POST /connectors/{id}/authorize to connect an account on a platform."), a.listConnectors)
}

// Connector is a platform. A planned platform cannot be connected yet.
type Connector struct {
	ID           string   `json:"id" doc:"Id of the platform, used in other requests and responses."`
	Name         string   `json:"name" doc:"Display name."`
	Authorized   bool     `json:"authorized" doc:"Whether accounts can be connected. This requires a configured application, unless the platform does not need one."`
	Capabilities []string `json:"capabilities" doc:"Any of text, image and video."`
	Features     []string `json:"features" doc:"Any of oauth, refresh, analytics, tools and list."`
	Planned      bool     `json:"planned,omitempty" doc:"true if the platform is not available yet. Such platforms are listed only with planned=true."`
}

type connectorsInput struct {
	Planned string `query:"planned" doc:"true also lists planned platforms."`
}

type connectorsOutput struct{ Body []Connector }

func (a *API) listConnectors(ctx context.Context, in *connectorsInput) (*connectorsOutput, error) {
	list, err := a.deps.Connectors.Platforms(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &connectorsOutput{Body: make([]Connector, 0, len(list))}
	for _, p := range list {
		out.Body = append(out.Body, Connector{
			ID: p.ID, Name: p.Name, Authorized: p.Authorized, Capabilities: p.Capabilities, Features: p.Abilities,
		})
	}
	if in.Planned != "true" {
		return out, nil
	}
	for _, p := range connector.PlannedPlatforms() {
		out.Body = append(out.Body, Connector{
			ID: p.ID, Name: p.Name, Capabilities: []string{}, Features: []string{}, Planned: true,
		})
	}
	return out, nil
}

// Connectors lists platforms and starts connecting channels.
type Connectors interface {
	// Platforms returns the platforms of this instance.
	Platforms(ctx context.Context, p tenancy.Principal) ([]publishing.Platform, error)
	// Begin starts connecting a channel and returns the URL at which a person grants access. It
	// returns Invalid if the platform is unknown, has no application or is connected with a form.
	// It also returns Invalid if the channel to reconnect does not exist. It returns Quota if the
	// organization has reached its limit on channels, unless a channel is being reconnected.
	Begin(ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect) (string, error)
	// Authorize is like Begin, but returns NotFound for an unknown platform. It returns an empty
	// URL if an existing channel on the platform works. It ignores existing channels if force is
	// true or cmd reconnects a channel.
	Authorize(
		ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect, force bool,
	) (publishing.Authorized, error)
}
