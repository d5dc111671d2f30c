package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/platform/paste"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/access"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
)

const (
	// stateLife is how long a state is valid. After an OAuth sign-in, it is also how long the
	// account can be chosen with just the state.
	stateLife = time.Hour
	// pendingLife is how long the account can be chosen after an OAuth sign-in.
	pendingLife = 24 * time.Hour
	// maxTries limits how often a form can be submitted with one state, because each submission
	// calls the platform.
	maxTries = 10
	// connectsAtOnce limits an organization's concurrent connection attempts in one process.
	connectsAtOnce = 4
	connectWait    = time.Second
	connectRetry   = 5 * time.Second
)

// Begin starts a connection attempt. For an OAuth platform, it returns the URL at which a person
// grants access. For a platform with a form, it returns a state that is valid for one hour and ten
// form submissions. A state connects at most one channel.
//
// Begin returns Forbidden for agents. It returns Invalid if the platform is unknown or has no
// application, or if the channel to reconnect does not exist. If cmd.UnknownIsNotFound is set, it
// returns NotFound for an unknown platform instead. If the attempt would add a channel and the plan
// allows no more, Begin returns Quota.
func (s *Channels) Begin(ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect) (string, error) {
	const op = "publishing.BeginConnect"
	if err := noAgent(op, p); err != nil {
		return "", err
	}
	c, ok := s.deps.Connectors.Get(cmd.Connector)
	if !ok {
		return "", unknownPlatform(op, cmd)
	}
	authorizer, byOAuth := connector.AuthorizerOf(c)
	if !byOAuth && cmd.OAuthOnly {
		return "", fault.New(fault.Invalid, op, c.Describe().Name+" is connected with a form in the dashboard.")
	}
	st := channelstore.ConnectState{
		Org: p.Org, Connector: cmd.Connector, Person: p.Person, Key: p.Key, Actor: p.Name, Impersonator: p.Impersonator,
		ImpersonatorName: p.ImpersonatorName, Session: p.Session, Onboarding: cmd.Onboarding, ReturnURL: cmd.ReturnURL,
		ExpiresAt: s.deps.Clock.Now().Add(stateLife),
	}
	if cmd.Refresh == "" {
		if err := s.mayConnect(ctx, p.Org, op); err != nil {
			return "", err
		}
	} else {
		channel, err := channelstore.ChannelOfAccount(ctx, s.db, p.Org, cmd.Connector, cmd.Refresh)
		if pg.IsNoRows(err) {
			return "", fault.New(fault.Invalid, op, "There is no such channel to reconnect.")
		}
		if err != nil {
			return "", pg.Fault(op, err)
		}
		st.Channel = channel
	}
	state, err := secret.Token("", 43)
	if err != nil {
		return "", pg.Fault(op, err)
	}
	if byOAuth {
		return s.beginOAuth(ctx, authorizer, st, state)
	}
	return state, pg.Fault(op, channelstore.SaveState(ctx, s.db, secret.HashToken(state), st))
}

// noAgent returns Forbidden if an agent tries to connect or disconnect a channel.
func noAgent(op string, p tenancy.Principal) error {
	return publishing.NoAgent(op, p, "connect or disconnect channels")
}

// mayConnect returns Quota if the plan allows no more channels. It runs before the platform is
// called, so that the person learns about the limit early. The authoritative check happens when the
// channel is stored.
func (s *Channels) mayConnect(ctx context.Context, org tenancy.OrgID, op string) error {
	if s.deps.Quota == nil {
		return nil
	}
	ctx = pg.Whole(ctx) // the plan limits the number of all channels
	err := s.db.InOrg(ctx, org, func(tx *db.Tx) error {
		present, err := channelstore.CountChannels(ctx, tx)
		if err != nil {
			return err
		}
		return s.checkPlan(ctx, tx, op, present)
	})
	return db.Fault(op, err)
}

// checkPlan returns Quota if the organization already has as many channels as its plan allows.
func (s *Channels) checkPlan(ctx context.Context, tx *db.Tx, op string, present int) error {
	limits, err := db.Limits(ctx, tx, s.deps.Quota)
	if err != nil || present < limits.Channels {
		return err
	}
	return limits.OverLimit(op, tenancy.LimitChannels, present, limits.Channels, "Disconnect one and start over,")
}

// unknownPlatform returns the fault for a platform without a connector.
func unknownPlatform(op string, cmd publishing.BeginConnect) error {
	kind := fault.Invalid
	if cmd.UnknownIsNotFound {
		kind = fault.NotFound
	}
	for _, planned := range connector.PlannedPlatforms() {
		if planned.ID == cmd.Connector {
			return fault.New(kind, op, planned.Name+" is planned but not available yet.")
		}
	}
	if cmd.OAuthOnly {
		return fault.New(kind, op, "There is no such platform on this instance.")
	}
	return fault.New(kind, op, "There is no platform "+connector.Quote(cmd.Connector)+" on this instance.")
}

// Finish signs in to the platform with the form's fields or redeems an OAuth code, and then stores
// the channel. It needs no session.
//
// A successful sign-in or ten form submissions use up the state. This keeps callers from guessing
// passwords or making this instance call arbitrary hosts. If the organization already has four
// connection attempts in progress, Finish returns RateLimited. A rate-limited form submission still
// counts toward the ten.
//
// Finish returns Invalid if the state, the form or the credential is not accepted. It returns Quota
// or Conflict if a channel limit is reached. It also returns Conflict if the person did not grant
// every permission.
func (s *Channels) Finish(ctx context.Context, cmd publishing.FinishConnect) (publishing.ChannelConnected, error) {
	const op = "publishing.FinishConnect"
	c, ok := s.deps.Connectors.Get(cmd.Connector)
	if !ok {
		return publishing.ChannelConnected{}, fault.New(fault.Invalid, op,
			"There is no platform "+connector.Quote(cmd.Connector)+" on this instance.")
	}
	if _, ok := connector.AuthorizerOf(c); ok {
		return s.finishOAuth(ctx, c, cmd)
	}
	fields, err := formFields(c.Describe(), cmd.Fields)
	if err != nil {
		return publishing.ChannelConnected{}, err
	}
	st, err := channelstore.TryState(ctx, s.db, secret.HashToken(cmd.State), cmd.Connector, maxTries)
	if pg.IsNoRows(err) {
		return publishing.ChannelConnected{}, fault.New(fault.Invalid, op,
			fmt.Sprintf("This connection attempt is unknown, is older than an hour or was tried %d times; start over.",
				maxTries))
	}
	if err != nil {
		return publishing.ChannelConnected{}, pg.Fault(op, err)
	}
	leave, err := s.acquireConnect(ctx, st.Org)
	if err != nil {
		return publishing.ChannelConnected{}, err
	}
	defer leave()
	// This deadline must not apply to database calls; see pg.IsAway.
	connecting, cancel := context.WithTimeout(ctx, s.cfg.PlatformTimeout)
	defer cancel()
	env := connector.Env{HTTP: s.deps.HTTP, Clock: s.deps.Clock}
	connected, err := c.Connect(outbound.WithOwner(connecting, st.Org.String()), env, fields)
	if err != nil {
		s.deps.Log.Warn("a channel could not be connected", "org", st.Org, "connector", cmd.Connector, "error", err)
		return publishing.ChannelConnected{}, ConnectFault(op, err)
	}
	switch err := channelstore.TakeState(ctx, s.db, st.Org, secret.HashToken(cmd.State)); {
	case pg.IsNoRows(err):
		return publishing.ChannelConnected{}, usedState(op)
	case err != nil:
		return publishing.ChannelConnected{}, pg.Fault(op, err)
	}
	return s.storeChannel(ctx, st, st.By(), cmd.Zone, connected)
}

// acquireConnect waits until the organization has fewer than connectsAtOnce connection attempts in
// progress. The caller must call leave once. If the wait takes longer than connectWait,
// acquireConnect returns RateLimited.
func (s *Channels) acquireConnect(ctx context.Context, org tenancy.OrgID) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	leave, err = s.connects.Enter(ctx, org)
	if err != nil {
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "publishing.FinishConnect", RetryAfter: connectRetry, Err: err,
			Message: "Your organization is connecting too many channels at the same time; try again in a few seconds.",
		}
	}
	return leave, nil
}

func usedState(op string) error {
	return fault.New(fault.Invalid, op, "This connection attempt has already been used; start over.")
}

// storeChannel stores the connected account as a channel. by is the principal recorded in the audit
// log. storeChannel returns Invalid if the channel to reconnect no longer exists or belongs to a
// different account. If a channel limit is reached, it returns Quota or Conflict.
func (s *Channels) storeChannel(
	ctx context.Context, st channelstore.ConnectState, by tenancy.Principal, zone tenancy.ZoneRequest,
	got connector.Connected,
) (publishing.ChannelConnected, error) {
	const op = "publishing.FinishConnect"
	ctx = pg.Whole(ctx) // channels are counted, and an account has only one
	old, err := channelstore.ChannelOfAccount(ctx, s.db, st.Org, st.Connector, got.Account.ID)
	if err != nil && !pg.IsNoRows(err) {
		return publishing.ChannelConnected{}, pg.Fault(op, err)
	}
	if !st.Channel.IsZero() && old != st.Channel {
		return publishing.ChannelConnected{}, s.anotherAccount(ctx, st)
	}
	timezone, err := s.timezone(ctx, st.Org, zone, !old.IsZero())
	if err != nil {
		return publishing.ChannelConnected{}, pg.Fault(op, err)
	}
	sealed, err := s.deps.Keyring.Seal(got.Credential, st.Org.String())
	if err != nil {
		return publishing.ChannelConnected{}, pg.Fault(op, err)
	}
	a := got.Account
	channel := publishing.Channel{
		ID: st.Pending, Org: st.Org, Connector: st.Connector, Name: a.Name, Profile: a.Profile,
		Picture: a.Picture, AccountID: a.ID, Account: orEmpty(a.Data), Grade: a.Grade, Timezone: timezone,
		Destination: a.Destination, AppID: st.AppID,
	}
	if channel.ID.IsZero() {
		channel.ID = id.New[publishing.ChannelTag]()
	}
	var stored publishing.Channel
	var next *time.Time
	// InOrgAs confirms that whoever started the attempt still has access. The access may have been
	// lost while the platform was responding.
	err = s.db.InOrgAs(ctx, st.By(), func(tx *db.Tx) (err error) {
		stored, next, err = channelstore.Connect(ctx, tx, channel, sealed, s.refreshAt(st.Connector, got),
			func(tx *db.Tx, present int) error { return s.checkChannels(ctx, tx, op, present) })
		if err != nil {
			return err
		}
		return s.db.Audit(ctx, tx, by, tenancy.ActionChannelConnected, stored.Connector+" "+stored.Name)
	})
	channel = stored
	if err != nil {
		return publishing.ChannelConnected{}, db.Fault(op, err)
	}
	if next != nil {
		s.deps.Waker.Wake(ctx, st.Org, *next)
	}
	done := publishing.ChannelConnected{
		Channel: channel, By: st.By(), Onboarding: st.Onboarding, ReturnURL: st.ReturnURL,
	}
	done.Disown, done.DisownUntil, err = s.disownToken(channel)
	return done, pg.Fault(op, err)
}

// checkChannels returns Quota if the plan's channel limit is reached, and Conflict if
// Config.MaxChannels is reached.
func (s *Channels) checkChannels(ctx context.Context, tx *db.Tx, op string, present int) error {
	if err := s.checkPlan(ctx, tx, op, present); err != nil {
		return err
	}
	if present >= s.cfg.MaxChannels {
		return fault.New(fault.Conflict, op, fmt.Sprintf("Your organization has reached its limit of %d "+
			"channels. Disconnect one and start over, or ask whoever runs this instance for more.", s.cfg.MaxChannels))
	}
	return nil
}

// refreshAt returns the time at which a new channel's credential must be refreshed, or nil for
// never.
func (s *Channels) refreshAt(platform string, got connector.Connected) *time.Time {
	c, ok := s.deps.Connectors.Get(platform)
	if !ok {
		return nil
	}
	return access.RefreshAt(c.Describe().RefreshLead, s.deps.Clock.Now(), got.ExpiresAt)
}

// anotherAccount returns the fault for reconnecting a channel with a different account.
func (s *Channels) anotherAccount(ctx context.Context, st channelstore.ConnectState) error {
	const op = "publishing.FinishConnect"
	switch _, err := channelstore.ChannelOfAccount(ctx, s.db, st.Org, st.Connector, st.Channel.String()); {
	case pg.IsNoRows(err):
		return publishing.Disconnected(op)
	case err != nil:
		return pg.Fault(op, err)
	}
	return fault.New(fault.Invalid, op,
		"These credentials open a different account from the channel's; nothing was changed.")
}

// timezone returns the zone for a channel that is being connected. It returns "" if the channel
// keeps its current zone or gets the default one. A UTC offset is valid only for today, so it does
// not change an existing channel's zone.
func (s *Channels) timezone(
	ctx context.Context, org tenancy.OrgID, asked tenancy.ZoneRequest, exists bool,
) (string, error) {
	if !asked.IsOffset {
		return asked.Name, nil
	}
	if exists {
		return "", nil
	}
	organization, err := db.OrganizationZone(ctx, s.db, org)
	if err != nil {
		return "", err
	}
	return asked.Resolve(organization, s.deps.Clock.Now()), nil
}

func orEmpty(data json.RawMessage) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage(`{}`)
	}
	return data
}

// formFields cleans pasted values with package paste and replaces empty values with the fields'
// defaults. A password is cleaned only if its field is declared as a Word. formFields returns
// Invalid for a value that cannot be stored.
func formFields(d connector.Descriptor, sent map[string]string) (map[string]string, error) {
	fields := maps.Clone(sent)
	if fields == nil {
		fields = map[string]string{}
	}
	for _, f := range d.Fields {
		switch {
		case f.Word:
			fields[f.Key] = paste.Word(fields[f.Key])
		case f.Type != "password":
			fields[f.Key] = paste.Line(fields[f.Key])
		}
		if fields[f.Key] == "" && f.DefaultValue != "" {
			fields[f.Key] = f.DefaultValue
		}
		if !publishing.Storable(fields[f.Key]) {
			return nil, fault.New(fault.Invalid, "publishing.formFields",
				"The form's fields must be valid UTF-8 without NUL characters.")
		}
	}
	return fields, nil
}

// ConnectFault returns the fault for a failed sign-in with a form. The person enters the host in
// the form, so the fault is Invalid if the host is down, does not run the platform, or rejects the
// credential. The fault is RateLimited if the host asks the client to wait.
func ConnectFault(op string, err error) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return fault.Wrap(fault.Internal, op, "", err)
	}
	switch {
	case e.After > 0 || e.Status == http.StatusTooManyRequests:
		return &fault.Error{
			Kind: fault.RateLimited, Op: op, Message: e.Public, RetryAfter: min(e.After, time.Hour), Err: err,
		}
	case e.Kind == connector.KindTransient || e.Kind == connector.KindUnknown,
		errors.Is(err, outbound.ErrBlocked):
		// A blocked host is reported like a host that does not exist, to keep the private network's
		// host names secret.
		return fault.Wrap(fault.Invalid, op, e.Public+" Check what you typed, or try again later.", err)
	default:
		return fault.Wrap(fault.Invalid, op, e.Public, err)
	}
}
