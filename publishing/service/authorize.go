package service

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/connector"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// CallbackPath is the path below the public address to which platforms send the browser back, without the platform.
const CallbackPath = "/connect/"

func (s *Channels) redirectURI(platform string) string {
	return strings.TrimRight(s.cfg.BaseURL, "/") + CallbackPath + platform
}

// Authorize starts a connect by OAuth over the public API. Unless force or a channel to reconnect is given, it returns
// an empty URL when the organization has a channel of the platform that works. Its errors are those of Begin.
func (s *Channels) Authorize(
	ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect, force bool,
) (publishing.Authorized, error) {
	cmd.OAuthOnly, cmd.UnknownIsNotFound = true, true
	c, ok := s.deps.Connectors.Get(cmd.Connector)
	if _, byOAuth := connector.AuthorizerOf(c); ok && byOAuth && cmd.Refresh == "" && !force {
		channels, err := s.store.Channels(ctx, p.Org, publishing.CustomerID{})
		if err != nil {
			return publishing.Authorized{}, internal("publishing.Authorize", err)
		}
		healthy := func(c publishing.Channel) bool {
			return c.Connector == cmd.Connector && !c.RefreshNeeded && !c.Disabled
		}
		if slices.ContainsFunc(channels, healthy) {
			return publishing.Authorized{}, nil
		}
	}
	url, err := s.Begin(ctx, p, cmd)
	return publishing.Authorized{URL: url}, err
}

// beginOAuth stores a state with a code verifier and returns the address of the platform.
func (s *Channels) beginOAuth(
	ctx context.Context, a connector.Authorizer, st publishingstore.ConnectState, state string,
) (string, error) {
	const op = "publishing.BeginConnect"
	app, source, err := s.deps.Access.App(ctx, st.Org, a.Family().ID)
	if err != nil {
		return "", internal(op, err)
	}
	if source == publishing.AppNone {
		return "", fault.New(fault.Invalid, op, "There is no application for "+a.Family().Name+" yet: "+
			"add one under the provider credentials of your organization, or ask whoever runs this instance.")
	}
	verifier, err := secret.Token("", 64)
	if err != nil {
		return "", internal(op, err)
	}
	sum := sha256.Sum256([]byte(verifier))
	url, err := a.AuthorizeURL(connector.Authorization{
		App: app, RedirectURI: s.redirectURI(st.Connector), State: state,
		Challenge: base64.RawURLEncoding.EncodeToString(sum[:]),
	})
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "", err)
	}
	st.AppID = app.ClientID
	st.Verifier, err = s.deps.Keyring.Seal([]byte(verifier), st.Org.String())
	if err != nil {
		return "", internal(op, err)
	}
	return url, internal(op, s.store.SaveState(ctx, secret.HashToken(state), st))
}

// finishOAuth redeems the code of a connect. The state is used up before the platform is called, because a platform may
// take a second use of the code for a theft and revoke what the first one gave.
func (s *Channels) finishOAuth(
	ctx context.Context, c connector.Connector, cmd publishing.FinishConnect,
) (publishing.ChannelConnected, error) {
	const op = "publishing.FinishConnect"
	none := publishing.ChannelConnected{}
	if cmd.Code == "" && cmd.Denied == "" {
		return none, fault.New(fault.Invalid, op, "The code of the platform is missing.")
	}
	if !publishing.Storable(cmd.State) || !publishing.Storable(cmd.Code) {
		return none, fault.New(fault.Invalid, op, "The state and the code must be valid UTF-8 without NUL characters.")
	}
	st, err := s.store.UseState(ctx, secret.HashToken(cmd.State), cmd.Connector, false)
	if pg.IsNoRows(err) {
		return none, fault.New(fault.Invalid, op,
			"This connection attempt is unknown, was used, or is older than an hour; begin again.")
	}
	if err != nil {
		return none, internal(op, err)
	}
	none.ReturnURL, none.Onboarding = st.ReturnURL, st.Onboarding
	if cmd.Denied != "" {
		return none, fault.New(fault.Invalid, op, "You did not allow the access to "+c.Describe().Name+
			", or the platform refused it ("+connector.Clean(cmd.Denied, 100)+"); nothing was connected.")
	}
	got, err := s.exchange(ctx, c, st, cmd.Code)
	if err != nil {
		return none, err
	}
	if len(got.Missing) > 0 {
		return none, fault.New(fault.Conflict, op, c.Describe().Name+" did not get every permission that it needs: "+
			strings.Join(got.Missing, ", ")+". Connect again and allow everything.")
	}
	if got.Connected != nil {
		return s.storeChannel(ctx, st, cmd.Zone, *got.Connected)
	}
	done, err := s.storeCandidates(ctx, c, st, cmd, got)
	done.ReturnURL, done.Onboarding = st.ReturnURL, st.Onboarding
	return done, err
}

// exchange redeems a code with the application that the connect began with.
func (s *Channels) exchange(
	ctx context.Context, c connector.Connector, st publishingstore.ConnectState, code string,
) (connector.Authorized, error) {
	const op = "publishing.FinishConnect"
	a, _ := connector.AuthorizerOf(c) // the caller has checked it
	app, err := s.appOf(ctx, a, st)
	if err != nil {
		return connector.Authorized{}, err
	}
	verifier, err := s.deps.Keyring.Open(st.Verifier, st.Org.String())
	if err != nil {
		return connector.Authorized{}, internal(op, err)
	}
	leave, err := s.acquireConnect(ctx, st.Org)
	if err != nil {
		return connector.Authorized{}, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.PlatformTimeout)
	defer cancel()
	got, err := a.Exchange(outbound.WithOwner(ctx, st.Org.String()), s.env(), app, connector.Code{
		Code: code, Verifier: string(verifier), RedirectURI: s.redirectURI(st.Connector),
	})
	if err != nil {
		s.logRefusal(st, err)
		return got, oauthFault(op, err)
	}
	return got, nil
}

func (s *Channels) env() connector.Env { return connector.Env{HTTP: s.deps.HTTP, Clock: s.deps.Clock} }

func (s *Channels) logRefusal(st publishingstore.ConnectState, err error) {
	s.deps.Log.Warn("a channel could not be connected", "org", st.Org, "connector", st.Connector, "error", err)
}

// appOf returns the application that a connect began with.
func (s *Channels) appOf(
	ctx context.Context, a connector.Authorizer, st publishingstore.ConnectState,
) (connector.App, error) {
	const op = "publishing.FinishConnect"
	app, err := s.deps.Access.AppWith(ctx, st.Org, a.Family().ID, st.AppID)
	if err != nil {
		return app, internal(op, err)
	}
	if app.ClientID == "" {
		return app, fault.New(fault.Invalid, op, "The application for "+a.Family().Name+
			" was changed since this connection began; begin again.")
	}
	return app, nil
}

// oauthFault returns the fault for a platform that does not finish a connect. A platform that does not answer is
// Upstream: the person can only begin again.
func oauthFault(op string, err error) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return fault.Wrap(fault.Internal, op, "", err)
	}
	switch e.Kind {
	case connector.KindTransient, connector.KindUnknown:
		return fault.Wrap(fault.Upstream, op, e.Public+" Begin again in a moment.", err)
	default:
		return fault.Wrap(fault.Invalid, op, e.Public, err)
	}
}

// storeCandidates stores the accounts to choose from. It chooses at once when there is only one, and the account of the
// channel when one is reconnected.
func (s *Channels) storeCandidates(
	ctx context.Context, c connector.Connector, st publishingstore.ConnectState, cmd publishing.FinishConnect,
	got connector.Authorized,
) (publishing.ChannelConnected, error) {
	const op = "publishing.FinishConnect"
	none := publishing.ChannelConnected{}
	zone, err := s.timezone(ctx, st.Org, cmd.Zone, !st.Channel.IsZero())
	if err != nil {
		return none, internal(op, err)
	}
	st.Pending, st.Timezone = id.New[publishing.ChannelTag](), zone
	st.Credential, err = s.deps.Keyring.Seal(got.Credential, st.Org.String())
	if err != nil {
		return none, internal(op, err)
	}
	st.Candidates, err = json.Marshal(got.Candidates)
	if err != nil {
		return none, internal(op, err)
	}
	now := s.deps.Clock.Now()
	until := now.Add(stateLife)
	st.StateUntil, st.ExpiresAt, st.Hash = &until, now.Add(pendingLife), secret.HashToken(cmd.State)
	chosen, err := s.onlyCandidate(ctx, st, got.Candidates)
	if err != nil {
		return none, err
	}
	if chosen != "" {
		return s.selectAccount(ctx, st, chosen)
	}
	if err := s.store.SaveState(ctx, st.Hash, st); err != nil {
		return none, internal(op, err)
	}
	return publishing.ChannelConnected{
		Channel: publishing.Channel{
			ID: st.Pending, Org: st.Org, Connector: st.Connector, Name: c.Describe().Name, Timezone: st.Timezone,
		},
		By: st.Person, ByKey: st.Key, Candidates: candidates(got.Candidates),
	}, nil
}

// onlyCandidate returns the candidate that needs no choice, or "".
func (s *Channels) onlyCandidate(
	ctx context.Context, st publishingstore.ConnectState, all []connector.Candidate,
) (string, error) {
	const op = "publishing.FinishConnect"
	if st.Channel.IsZero() {
		if len(all) == 1 {
			return all[0].ID, nil
		}
		return "", nil
	}
	access, err := s.store.ChannelAccess(ctx, st.Org, st.Channel)
	if pg.IsNoRows(err) {
		return "", disconnected(op)
	}
	if err != nil {
		return "", internal(op, err)
	}
	for _, c := range all {
		if c.ID == access.Channel.AccountID {
			return c.ID, nil
		}
	}
	return "", fault.New(fault.Invalid, op,
		"This sign-in gives no access to the account of the channel; nothing was changed.")
}

func candidates(all []connector.Candidate) []publishing.Candidate {
	out := make([]publishing.Candidate, 0, len(all))
	for _, c := range all {
		out = append(out, publishing.Candidate(c))
	}
	return out
}

// Candidates returns the accounts to choose from, for the state of a connect. It returns Invalid when there is no such
// choice.
func (s *Channels) Candidates(ctx context.Context, platform, state string) ([]publishing.Candidate, error) {
	const op = "publishing.Candidates"
	found, raw, err := s.store.PeekState(ctx, secret.HashToken(state))
	if pg.IsNoRows(err) || err == nil && found != platform {
		return nil, noChoice(op)
	}
	if err != nil {
		return nil, internal(op, err)
	}
	var out []publishing.Candidate
	return out, internal(op, json.Unmarshal(raw, &out))
}

func noChoice(op string) error {
	return fault.New(fault.Invalid, op, "There is no account to choose: the choice was made, or is too old. Begin again.")
}

// Choose finishes a connect by OAuth with one of its candidates, for a member of the organization. It returns NotFound
// for an id that names nothing, Invalid for a channel that is connected or a candidate that is not offered, and
// Quota or Conflict at the limits of channels. After an error the choice can be made again.
func (s *Channels) Choose(
	ctx context.Context, p tenancy.Principal, cmd publishing.ChooseAccount,
) (publishing.ChannelConnected, error) {
	const op = "publishing.ChooseAccount"
	none := publishing.ChannelConnected{}
	channel, ok := id.Parse[publishing.ChannelTag](cmd.Channel)
	if !ok {
		return none, noChannel(op)
	}
	st, err := s.store.UsePending(ctx, p.Org, channel)
	if pg.IsNoRows(err) {
		switch _, err := s.store.ChannelAccess(ctx, p.Org, channel); {
		case pg.IsNoRows(err):
			return none, noChannel(op)
		case err != nil:
			return none, internal(op, err)
		}
		return none, fault.New(fault.Invalid, op, "This channel is connected already.")
	}
	if err != nil {
		return none, internal(op, err)
	}
	return s.choose(ctx, st, cmd.Candidate)
}

func noChannel(op string) error { return fault.New(fault.NotFound, op, "There is no such channel.") }

// ChooseByState is Choose for a caller who has the state of the connect. platform is checked unless it is empty, and
// cmd.Channel too.
func (s *Channels) ChooseByState(
	ctx context.Context, platform string, cmd publishing.ChooseAccount,
) (publishing.ChannelConnected, error) {
	const op = "publishing.ChooseAccount"
	none := publishing.ChannelConnected{}
	hash := secret.HashToken(cmd.State)
	found, _, err := s.store.PeekState(ctx, hash)
	if pg.IsNoRows(err) || err == nil && platform != "" && found != platform {
		return none, noChoice(op)
	}
	if err != nil {
		return none, internal(op, err)
	}
	st, err := s.store.UseState(ctx, hash, found, true)
	if pg.IsNoRows(err) {
		return none, noChoice(op)
	}
	if err != nil {
		return none, internal(op, err)
	}
	if cmd.Channel != "" && cmd.Channel != st.Pending.String() {
		return none, errors.Join(noChannel(op), s.restore(ctx, st))
	}
	return s.choose(ctx, st, cmd.Candidate)
}

// choose selects a candidate. The state was used up; after an error it is stored again.
func (s *Channels) choose(
	ctx context.Context, st publishingstore.ConnectState, candidate string,
) (publishing.ChannelConnected, error) {
	const op = "publishing.ChooseAccount"
	var offered []connector.Candidate
	err := json.Unmarshal(st.Candidates, &offered)
	if err == nil && !slices.ContainsFunc(offered, func(c connector.Candidate) bool { return c.ID == candidate }) {
		err = fault.New(fault.Invalid, op, "Choose one of the accounts that the platform offers.")
	}
	var done publishing.ChannelConnected
	if err == nil {
		done, err = s.selectAccount(ctx, st, candidate)
	}
	if err != nil {
		return publishing.ChannelConnected{ReturnURL: st.ReturnURL}, errors.Join(err, s.restore(ctx, st))
	}
	return done, nil
}

// restore stores a state again that was used up.
func (s *Channels) restore(ctx context.Context, st publishingstore.ConnectState) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	return s.store.SaveState(ctx, st.Hash, st)
}

const restoreTimeout = 5 * time.Second

// selectAccount asks the platform for the access to a candidate and stores the channel.
func (s *Channels) selectAccount(
	ctx context.Context, st publishingstore.ConnectState, candidate string,
) (publishing.ChannelConnected, error) {
	const op = "publishing.ChooseAccount"
	none := publishing.ChannelConnected{}
	c, ok := s.deps.Connectors.Get(st.Connector)
	a, byOAuth := connector.AuthorizerOf(c)
	if !ok || !byOAuth {
		return none, fault.New(fault.Invalid, op, "This instance no longer offers the platform.")
	}
	app, err := s.appOf(ctx, a, st)
	if err != nil {
		return none, err
	}
	credential, err := s.deps.Keyring.Open(st.Credential, st.Org.String())
	if err != nil {
		return none, internal(op, err)
	}
	leave, err := s.acquireConnect(ctx, st.Org)
	if err != nil {
		return none, err
	}
	defer leave()
	call, cancel := context.WithTimeout(outbound.WithOwner(ctx, st.Org.String()), s.cfg.PlatformTimeout)
	defer cancel()
	got, err := a.Select(call, s.env(), app, credential, candidate)
	if err != nil {
		s.logRefusal(st, err)
		return none, oauthFault(op, err)
	}
	if got.Account.ID != candidate {
		return none, fault.New(fault.Upstream, op, "The platform opened another account than the one that was chosen.")
	}
	return s.storeChannel(ctx, st, tenancy.ZoneRequest{Name: st.Timezone}, got)
}
