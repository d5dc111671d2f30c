package publicv1

import (
	"context"
	"net/http"
	"strings"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
)

type channelsInput struct {
	Group    string `query:"group" doc:"Only the channels of this channel group."`
	Customer string `query:"customer" doc:"The same as group."`
}

type channelsOutput struct{ Body []Channel }

func (m mount) channels() {
	op := m.operation("list-channels", http.MethodGet, "/integrations", "List the connected channels")
	route.JSON(m.t.JSON, op, func(ctx context.Context, in *channelsInput) (*channelsOutput, error) {
		customer := in.Group
		if customer == "" {
			customer = in.Customer
		}
		list, err := m.deps.Channels.List(ctx, request.Principal(ctx), customer)
		if err != nil {
			return nil, err
		}
		out := &channelsOutput{Body: make([]Channel, 0, len(list))}
		for _, c := range list {
			out.Body = append(out.Body, ChannelRecord(c))
		}
		return out, nil
	})
}

type channelInput struct {
	ID string `path:"id" doc:"Channel id."`
}

func (m mount) disconnect() {
	op := m.operation("delete-channel", http.MethodDelete, "/integrations/{id}",
		"Disconnect a channel and remove the posts scheduled to it; what is published stays", 404)
	route.JSON(m.t.JSON, op, func(ctx context.Context, in *channelInput) (*namedOutput, error) {
		if err := m.deps.Channels.Disconnect(ctx, request.Principal(ctx), in.ID); err != nil {
			return nil, err
		}
		return &namedOutput{Body: Named{ID: strings.ToLower(in.ID)}}, nil // all answers have ids in lower case
	})
}

// Connected is the answer of GET /is-connected.
type Connected struct {
	Connected bool `json:"connected"`
}

type connectedOutput struct{ Body Connected }

func (m mount) connected() {
	op := m.operation("is-connected", http.MethodGet, "/is-connected", "Check that the key works")
	route.JSON(m.t.JSON, op, func(context.Context, *struct{}) (*connectedOutput, error) {
		return &connectedOutput{Body: Connected{Connected: true}}, nil
	})
}
