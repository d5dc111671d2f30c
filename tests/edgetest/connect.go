package edgetest

import (
	"context"
	"errors"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

func (c Channels) Catalogue() []connector.Descriptor {
	return []connector.Descriptor{{
		ID: "sandbox", Name: "Sandbox", Editor: "normal",
		Fields: []connector.Field{{Key: "name", Label: "Name", Type: "text", Validation: ".+"}},
	}}
}

func (c Channels) Platforms(context.Context, tenancy.Principal) ([]publishing.Platform, error) {
	return []publishing.Platform{{
		ID: "sandbox", Name: "Sandbox", Capabilities: []string{"text"}, Abilities: []string{}, Authorized: true,
	}}, c.note()
}

func (c Channels) Authorize(
	ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect, force bool,
) (publishing.Authorized, error) {
	url, err := c.Begin(ctx, p, cmd)
	if !force {
		url = ""
	}
	return publishing.Authorized{URL: url}, err
}

func (c Channels) Begin(_ context.Context, _ tenancy.Principal, cmd publishing.BeginConnect) (string, error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Begun = cmd
	if err := sql(cmd.Refresh, cmd.ReturnURL); err != nil {
		return "", err
	}
	return "the-state", c.Err
}

func (c Channels) Finish(_ context.Context, cmd publishing.FinishConnect) (publishing.ChannelConnected, error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Finished = cmd
	return publishing.ChannelConnected{Channel: c.Thread.Channel, Onboarding: true}, c.Err
}

func (c Channels) Started(context.Context, string, string) (publishing.ConnectRequest, error) {
	return publishing.ConnectRequest{}, c.note()
}

func (c Channels) HoldCode(publishing.FinishConnect) (string, error) { return "held", c.note() }

func (c Channels) ReleaseCode(string, string) (publishing.FinishConnect, error) {
	return publishing.FinishConnect{}, c.note()
}

func (c Channels) Disown(context.Context, string) (publishing.Disowned, error) {
	return publishing.Disowned{Disconnected: true}, c.note()
}

func (c Channels) Choose(
	_ context.Context, _ tenancy.Principal, cmd publishing.ChooseAccount,
) (publishing.ChannelConnected, error) {
	return publishing.ChannelConnected{Channel: c.Thread.Channel}, errors.Join(sql(cmd.Candidate), c.note(cmd.Channel))
}

func (c Channels) ChooseByState(
	_ context.Context, _ string, cmd publishing.ChooseAccount,
) (publishing.ChannelConnected, error) {
	return publishing.ChannelConnected{Channel: c.Thread.Channel},
		errors.Join(sql(cmd.State, cmd.Candidate), c.note(cmd.Channel))
}

func (c Channels) Apps(context.Context, tenancy.Principal) ([]publishing.PlatformApp, error) {
	return []publishing.PlatformApp{{
		Family: "sandbox-oauth", Name: "Sandbox", Platforms: []string{"sandbox-oauth"},
	}}, c.note()
}

func (c Channels) App(_ context.Context, _ tenancy.Principal, family string) (publishing.PlatformApp, error) {
	return publishing.PlatformApp{
		Family: "sandbox-oauth", Name: "Sandbox", Platforms: []string{"sandbox-oauth"},
	}, c.note(family)
}

func (c Channels) SetApp(
	ctx context.Context, p tenancy.Principal, cmd publishing.SetPlatformApp,
) (publishing.PlatformApp, int, error) {
	app, err := c.App(ctx, p, cmd.Family)
	return app, 0, errors.Join(sql(cmd.ClientID, cmd.Secret), err)
}

func (c Channels) DeleteApp(
	ctx context.Context, p tenancy.Principal, family string,
) (publishing.PlatformApp, int, error) {
	app, err := c.App(ctx, p, family)
	return app, 0, err
}
