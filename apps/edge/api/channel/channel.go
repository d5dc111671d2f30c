// Package channel provides the endpoints for connected channels, their groups, tools and pauses.
package channel

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// Deps holds an API's dependencies.
type Deps struct {
	Channels Channels
	Tools    Tools
	Pauses   Pauses
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// ListChannels returns the endpoint that lists the connected channels. If a query has both group
// and customer, group takes precedence.
func (a *API) ListChannels() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Channels", "List the connected channels"),
		"Without group, the channels of all groups are listed. Use a channel's id as integration.id in POST /posts. "+
			"A channel with refreshNeeded publishes nothing until it is reconnected."), a.listChannels)
}

type channelsInput struct {
	Group    string `query:"group" doc:"Only the channels of this channel group."`
	Customer string `query:"customer" doc:"Same as group."`
}

type channelsOutput struct{ Body []record.Channel }

func (a *API) listChannels(ctx context.Context, in *channelsInput) (*channelsOutput, error) {
	customer := in.Group
	if customer == "" {
		customer = in.Customer
	}
	list, err := a.deps.Channels.List(ctx, request.Principal(ctx), customer)
	if err != nil {
		return nil, err
	}
	out := &channelsOutput{Body: make([]record.Channel, 0, len(list))}
	for _, c := range list {
		out.Body = append(out.Body, record.ChannelRecord(c))
	}
	return out, nil
}

// DeleteChannel returns the endpoint that disconnects a channel and deletes its scheduled posts.
func (a *API) DeleteChannel() route.Endpoint {
	d := route.Describe("Channels",
		"Disconnect a channel and delete its scheduled posts; published posts stay on the platform", 404,
	)
	d.Description = "The service deletes its access to the account. If you connect the account again, it becomes a " +
		"new channel without this channel's statistics. Statistics of posts are kept but no longer updated. To hold " +
		"posts back instead, pause the channel in the dashboard."
	return route.JSON(d, a.deleteChannel)
}

type channelInput struct {
	ID string `path:"id" doc:"Channel id."`
}

func (a *API) deleteChannel(ctx context.Context, in *channelInput) (*record.NamedOutput, error) {
	if err := a.deps.Channels.Disconnect(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return record.NewNamed(in.ID), nil
}

// IsConnected returns the endpoint that checks an API key. The route's guards check the key before
// the handler runs, so the handler always succeeds.
func (a *API) IsConnected() route.Endpoint {
	d := route.Describe("The key", "Check the API key")
	d.Description = "Use this operation to test an API key and the URL of the service. It changes nothing."
	return route.JSON(d, func(context.Context, *struct{}) (*connectedOutput, error) {
		return &connectedOutput{Body: Connected{Connected: true}}, nil
	})
}

// Connected is the response to GET /is-connected. The value is always true, because a request with
// an invalid key is rejected with 401.
type Connected struct {
	Connected bool `json:"connected" doc:"Always true, because an invalid key returns 401."`
}

type connectedOutput struct{ Body Connected }

// ListGroups returns the endpoint that lists the channel groups.
func (a *API) ListGroups() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Customers", "List the channel groups"),
		"A channel group contains the channels of one customer, such as an agency's client. Use its id as group in "+
			"GET /integrations and GET /posts."), a.listGroups)
}

type groupsOutput struct{ Body []record.Customer }

func (a *API) listGroups(ctx context.Context, _ *struct{}) (*groupsOutput, error) {
	list, err := a.deps.Channels.Customers(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &groupsOutput{Body: make([]record.Customer, 0, len(list))}
	for _, c := range list {
		out.Body = append(out.Body, record.Customer{ID: c.ID.String(), Name: c.Name})
	}
	return out, nil
}

// Channels lists and disconnects channels, and lists customers.
type Channels interface {
	// List returns the organization's channels or, if customer is not empty, that customer's
	// channels. If the customer does not exist, List returns no channels.
	List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error)
	// Disconnect disconnects a channel and deletes its scheduled posts. It returns NotFound if the
	// organization has no such channel.
	Disconnect(ctx context.Context, p tenancy.Principal, channel string) error
	// Customers returns the organization's customers.
	Customers(ctx context.Context, p tenancy.Principal) ([]publishing.Customer, error)
}
