package channel

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/connector"
	"crier/tenancy"
)

func noChoice(op string) error {
	return fault.New(
		fault.Invalid, op, "There is no account to choose: the choice was already made, or has expired. Start over.",
	)
}

// Choose finishes an OAuth connection attempt with the candidate that a member of the organization
// has chosen. It returns NotFound for an unknown id, and Invalid if the channel is already
// connected or the candidate is not offered. If a channel limit is reached, it returns Quota or
// Conflict. After an error, the member can choose again.
func (s *Channels) Choose(
	ctx context.Context, p tenancy.Principal, cmd publishing.ChooseAccount,
) (publishing.ChannelConnected, error) {
	const op = "publishing.ChooseAccount"
	none := publishing.ChannelConnected{}
	if err := noAgent(op, p); err != nil {
		return none, err
	}
	channel, ok := id.Parse[publishing.ChannelTag](cmd.Channel)
	if !ok {
		return none, publishing.NoChannel(op)
	}
	st, err := channelstore.UsePending(ctx, s.db, p.Org, channel)
	if pg.IsNoRows(err) {
		switch _, err := s.deps.Access.Channel(ctx, p.Org, channel); {
		case pg.IsNoRows(err):
			return none, publishing.NoChannel(op)
		case err != nil:
			return none, pg.Fault(op, err)
		}
		return none, fault.New(fault.Invalid, op, "This channel is already connected.")
	}
	if err != nil {
		return none, pg.Fault(op, err)
	}
	return s.choose(ctx, st, p, cmd.Candidate)
}

// ChooseByState is like Choose, but for a caller who presents the state instead of signing in. If
// platform or cmd.Channel is not empty, it must match the connection attempt.
func (s *Channels) ChooseByState(
	ctx context.Context, platform string, cmd publishing.ChooseAccount,
) (publishing.ChannelConnected, error) {
	const op = "publishing.ChooseAccount"
	none := publishing.ChannelConnected{}
	hash := secret.HashToken(cmd.State)
	found, err := channelstore.PeekState(ctx, s.db, hash)
	if pg.IsNoRows(err) || err == nil && platform != "" && found.Connector != platform {
		return none, noChoice(op)
	}
	if err != nil {
		return none, pg.Fault(op, err)
	}
	st, err := channelstore.UseState(ctx, s.db, hash, found.Connector, true)
	if pg.IsNoRows(err) {
		return none, noChoice(op)
	}
	if err != nil {
		return none, pg.Fault(op, err)
	}
	if cmd.Channel != "" && cmd.Channel != st.Pending.String() {
		return none, errors.Join(publishing.NoChannel(op), s.restore(ctx, st))
	}
	return s.choose(ctx, st, st.By(), cmd.Candidate)
}

// choose selects a candidate on behalf of the given principal. The caller must have used up the
// state already. If choose fails, it restores the state.
func (s *Channels) choose(
	ctx context.Context, st channelstore.ConnectState, by tenancy.Principal, candidate string,
) (publishing.ChannelConnected, error) {
	const op = "publishing.ChooseAccount"
	var offered []connector.Candidate
	err := json.Unmarshal(st.Candidates, &offered)
	if err == nil && !slices.ContainsFunc(offered, func(c connector.Candidate) bool { return c.ID == candidate }) {
		err = fault.New(fault.Invalid, op, "Choose one of the accounts that the platform offers.")
	}
	var done publishing.ChannelConnected
	if err == nil {
		done, err = s.selectInTurn(ctx, st, by, candidate)
	}
	if err != nil {
		return publishing.ChannelConnected{ReturnURL: st.ReturnURL}, errors.Join(err, s.restore(ctx, st))
	}
	return done, nil
}

// restore stores a used-up state again.
func (s *Channels) restore(ctx context.Context, st channelstore.ConnectState) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	return channelstore.SaveState(ctx, s.db, st.Hash, st)
}

const restoreTimeout = 5 * time.Second

// selectInTurn calls acquireConnect and then selectAccount.
func (s *Channels) selectInTurn(
	ctx context.Context, st channelstore.ConnectState, by tenancy.Principal, candidate string,
) (publishing.ChannelConnected, error) {
	leave, err := s.acquireConnect(ctx, st.Org)
	if err != nil {
		return publishing.ChannelConnected{}, err
	}
	defer leave()
	return s.selectAccount(ctx, st, by, candidate)
}

// mayChoose returns Quota if the candidate is not yet connected and the plan allows no more
// channels. The check runs before the platform is called, because a choice may consume a token that
// the platform accepts only once.
func (s *Channels) mayChoose(ctx context.Context, st channelstore.ConnectState, candidate string) error {
	const op = "publishing.ChooseAccount"
	_, err := channelstore.ChannelOfAccount(ctx, s.db, st.Org, st.Connector, candidate)
	if pg.IsNoRows(err) {
		return s.mayConnect(ctx, st.Org, op)
	}
	return pg.Fault(op, err)
}

// selectAccount requests access to a candidate from the platform and stores the channel. The caller
// must call acquireConnect first and must call leave afterward.
func (s *Channels) selectAccount(
	ctx context.Context, st channelstore.ConnectState, by tenancy.Principal, candidate string,
) (publishing.ChannelConnected, error) {
	const op = "publishing.ChooseAccount"
	none := publishing.ChannelConnected{}
	c, ok := s.deps.Connectors.Get(st.Connector)
	a, byOAuth := connector.AuthorizerOf(c)
	if !ok || !byOAuth {
		return none, fault.New(fault.Invalid, op, "This instance no longer supports the platform.")
	}
	app, err := s.appOf(ctx, a, st)
	if err != nil {
		return none, err
	}
	credential, err := s.deps.Keyring.Open(st.Credential, st.Org.String())
	if err != nil {
		return none, pg.Fault(op, err)
	}
	if err := s.mayChoose(ctx, st, candidate); err != nil {
		return none, err
	}
	call, cancel := context.WithTimeout(outbound.WithOwner(ctx, st.Org.String()), s.cfg.PlatformTimeout)
	defer cancel()
	got, err := a.Select(call, s.env(), app, credential, candidate)
	if err != nil {
		s.logRefusal(st, err)
		return none, oauthFault(op, err)
	}
	if got.Account.ID != candidate {
		return none, fault.New(fault.Upstream, op, "The platform opened a different account from the chosen one.")
	}
	return s.storeChannel(ctx, st, by, tenancy.ZoneRequest{Name: st.Timezone}, got)
}
