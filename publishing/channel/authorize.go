package channel

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/platform/text"
	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/connector"
	"crier/tenancy"
)

// CallbackPath is the path below the public URL to which platforms redirect the browser after
// authorization. The platform's identifier follows it. Example: /connect/sandbox
const CallbackPath = "/connect/"

func (s *Channels) redirectURI(platform string) string {
	return strings.TrimRight(s.cfg.BaseURL, "/") + CallbackPath + platform
}

// Authorize starts an OAuth connection attempt for a client of the public API. If the organization
// already has a working channel on the platform, it returns an empty URL instead. It always starts
// an attempt if force is true or cmd names a channel to reconnect. It returns the same errors as
// Begin.
func (s *Channels) Authorize(
	ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect, force bool,
) (publishing.Authorized, error) {
	cmd.OAuthOnly, cmd.UnknownIsNotFound = true, true
	c, ok := s.deps.Connectors.Get(cmd.Connector)
	if _, byOAuth := connector.AuthorizerOf(c); ok && byOAuth && cmd.Refresh == "" && !force {
		channels, err := channelstore.Channels(ctx, s.db, p.Org, publishing.CustomerID{})
		if err != nil {
			return publishing.Authorized{}, pg.Fault("publishing.Authorize", err)
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

// beginOAuth stores a state with a code verifier and returns the platform's authorization URL.
func (s *Channels) beginOAuth(
	ctx context.Context, a connector.Authorizer, st channelstore.ConnectState, state string,
) (string, error) {
	const op = "publishing.BeginConnect"
	app, source, err := s.deps.Access.App(ctx, st.Org, a.Family().ID)
	if err != nil {
		return "", pg.Fault(op, err)
	}
	if source == publishing.AppNone {
		return "", fault.New(fault.Invalid, op, "No application is set up for "+a.Family().Name+" yet: "+
			"add one under the provider credentials of your organization, or ask whoever runs this instance.")
	}
	verifier, err := secret.Token("", 64)
	if err != nil {
		return "", pg.Fault(op, err)
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
		return "", pg.Fault(op, err)
	}
	return url, pg.Fault(op, channelstore.SaveState(ctx, s.db, secret.HashToken(state), st))
}

// finishOAuth redeems an authorization code. It uses up the state before it calls the platform,
// because a platform may treat a second use of the code as theft and revoke the access it has
// granted. If too many of the organization's connection attempts are in progress, finishOAuth
// restores the state and does not call the platform.
func (s *Channels) finishOAuth(
	ctx context.Context, c connector.Connector, cmd publishing.FinishConnect,
) (publishing.ChannelConnected, error) {
	const op = "publishing.FinishConnect"
	none := publishing.ChannelConnected{}
	if cmd.Code == "" && cmd.Denied == "" {
		return none, fault.New(fault.Invalid, op, "The code from the platform is missing.")
	}
	if !publishing.Storable(cmd.State) || !publishing.Storable(cmd.Code) {
		return none, fault.New(fault.Invalid, op, "The state and the code must be valid UTF-8 without NUL characters.")
	}
	st, err := channelstore.UseState(ctx, s.db, secret.HashToken(cmd.State), cmd.Connector, false)
	if pg.IsNoRows(err) {
		return none, unknownState(op)
	}
	if err != nil {
		return none, pg.Fault(op, err)
	}
	none.ReturnURL, none.Onboarding = st.ReturnURL, st.Onboarding
	if cmd.Denied != "" {
		return none, fault.New(fault.Invalid, op, "You did not allow access to "+c.Describe().Name+
			", or the platform refused it ("+text.Line(cmd.Denied, 100)+"); nothing was connected.")
	}
	leave, err := s.acquireConnect(ctx, st.Org)
	if err != nil {
		return none, errors.Join(err, s.restore(ctx, st)) // the code was not redeemed
	}
	defer leave()
	got, err := s.exchange(ctx, c, st, cmd.Code)
	if err != nil {
		return none, err
	}
	if len(got.Missing) > 0 {
		return none, fault.New(fault.Conflict, op, c.Describe().Name+" did not grant every permission "+
			"that is needed; missing: "+strings.Join(got.Missing, ", ")+". Connect again and allow everything.")
	}
	if got.Connected != nil {
		return s.storeChannel(ctx, st, st.By(), cmd.Zone, *got.Connected)
	}
	done, err := s.storeCandidates(ctx, c, st, cmd, got)
	done.ReturnURL, done.Onboarding = st.ReturnURL, st.Onboarding
	return done, err
}

// exchange redeems a code with the application that was used to start the connection attempt.
func (s *Channels) exchange(
	ctx context.Context, c connector.Connector, st channelstore.ConnectState, code string,
) (connector.Authorized, error) {
	const op = "publishing.FinishConnect"
	a, _ := connector.AuthorizerOf(c) // the caller has checked this
	app, err := s.appOf(ctx, a, st)
	if err != nil {
		return connector.Authorized{}, err
	}
	verifier, err := s.deps.Keyring.Open(st.Verifier, st.Org.String())
	if err != nil {
		return connector.Authorized{}, pg.Fault(op, err)
	}
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

func (s *Channels) logRefusal(st channelstore.ConnectState, err error) {
	s.deps.Log.Warn("a channel could not be connected", "org", st.Org, "connector", st.Connector, "error", err)
}

// appOf returns the application that was used to start a connection attempt.
func (s *Channels) appOf(
	ctx context.Context, a connector.Authorizer, st channelstore.ConnectState,
) (connector.App, error) {
	const op = "publishing.FinishConnect"
	app, err := s.deps.Access.AppWith(ctx, st.Org, a.Family().ID, st.AppID)
	if err != nil {
		return app, pg.Fault(op, err)
	}
	if app.ClientID == "" {
		return app, fault.New(fault.Invalid, op, "The application for "+a.Family().Name+
			" has changed since this connection attempt began; start over.")
	}
	return app, nil
}

// oauthFault returns the fault for a failed OAuth call. If the platform did not respond, the fault
// is Upstream. The person can only start over in that case.
func oauthFault(op string, err error) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return fault.Wrap(fault.Internal, op, "", err)
	}
	switch e.Kind {
	case connector.KindTransient, connector.KindUnknown:
		return fault.Wrap(fault.Upstream, op, e.Public+" Start over in a moment.", err)
	default:
		return fault.Wrap(fault.Invalid, op, e.Public, err)
	}
}

// storeCandidates stores the accounts from which the person can choose. If there is only one
// account, storeCandidates selects it immediately. If a channel is being reconnected, it selects
// the channel's account.
func (s *Channels) storeCandidates(
	ctx context.Context, c connector.Connector, st channelstore.ConnectState, cmd publishing.FinishConnect,
	got connector.Authorized,
) (publishing.ChannelConnected, error) {
	const op = "publishing.FinishConnect"
	none := publishing.ChannelConnected{}
	zone, err := s.timezone(ctx, st.Org, cmd.Zone, !st.Channel.IsZero())
	if err != nil {
		return none, pg.Fault(op, err)
	}
	st.Pending, st.Timezone = id.New[publishing.ChannelTag](), zone
	st.Credential, err = s.deps.Keyring.Seal(got.Credential, st.Org.String())
	if err != nil {
		return none, pg.Fault(op, err)
	}
	st.Candidates, err = json.Marshal(got.Candidates)
	if err != nil {
		return none, pg.Fault(op, err)
	}
	state := cmd.State
	if cmd.OwnState {
		if state, err = secret.Token("", 43); err != nil {
			return none, pg.Fault(op, err)
		}
	}
	now := s.deps.Clock.Now()
	until := now.Add(stateLife)
	st.StateUntil, st.ExpiresAt, st.Hash = &until, now.Add(pendingLife), secret.HashToken(state)
	chosen, err := s.onlyCandidate(ctx, st, got.Candidates)
	if err != nil {
		return none, err
	}
	if chosen != "" {
		return s.selectAccount(ctx, st, st.By(), chosen)
	}
	if err := channelstore.SaveState(ctx, s.db, st.Hash, st); err != nil {
		return none, pg.Fault(op, err)
	}
	return publishing.ChannelConnected{
		Channel: publishing.Channel{
			ID: st.Pending, Org: st.Org, Connector: st.Connector, Name: c.Describe().Name, Timezone: st.Timezone,
		},
		By: st.By(), Candidates: candidates(got.Candidates), State: state,
	}, nil
}

// onlyCandidate returns the id of the candidate that can be selected without asking the person, or
// "" if the person must choose.
func (s *Channels) onlyCandidate(
	ctx context.Context, st channelstore.ConnectState, all []connector.Candidate,
) (string, error) {
	const op = "publishing.FinishConnect"
	if st.Channel.IsZero() {
		if len(all) == 1 {
			return all[0].ID, nil
		}
		return "", nil
	}
	access, err := s.deps.Access.Channel(ctx, st.Org, st.Channel)
	if pg.IsNoRows(err) {
		return "", publishing.Disconnected(op)
	}
	if err != nil {
		return "", pg.Fault(op, err)
	}
	for _, c := range all {
		if c.ID == access.Channel.AccountID {
			return c.ID, nil
		}
	}
	return "", fault.New(fault.Invalid, op,
		"This sign-in does not give access to the channel's account; nothing was changed.")
}

func candidates(all []connector.Candidate) []publishing.Candidate {
	out := make([]publishing.Candidate, 0, len(all))
	for _, c := range all {
		out = append(out, publishing.Candidate(c))
	}
	return out
}
