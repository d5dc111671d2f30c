package edgetest

import (
	"context"
	"encoding/json"
	"errors"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Channels implements the ports of channels and connects. Tests can embed it in their own fakes.
type Channels struct{ *World }

func (c Channels) List(_ context.Context, _ tenancy.Principal, customer string) ([]publishing.Channel, error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Customer = customer
	return []publishing.Channel{c.Thread.Channel}, c.Err
}

func (c Channels) Disconnect(_ context.Context, _ tenancy.Principal, channel string) error {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Disconnected = channel
	return errors.Join(sql(channel), c.Err)
}

func (c Channels) Customers(context.Context, tenancy.Principal) ([]publishing.Customer, error) {
	return []publishing.Customer{{Name: "A customer"}}, c.note()
}

func (c Channels) Platform(
	_ context.Context, _ tenancy.Principal, channel string,
) (connector.Descriptor, []connector.Tool, error) {
	return connector.Descriptor{Rules: "Be nice.", MaxLength: 500, Unit: connector.Graphemes}, nil, c.note(channel)
}

func (c Channels) Trigger(_ context.Context, _ tenancy.Principal, cmd publishing.TriggerTool) (json.RawMessage, error) {
	return json.RawMessage(`[{"id":"cats"}]`), c.note(cmd.Channel)
}
