// Package access decrypts channels' credentials and refreshes them, both before they expire and
// when a platform rejects them. All code that calls a platform for a channel refreshes through this
// package, so that only one refresh of a channel runs at a time.
package access

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/limit"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	accessstore "crier/publishing/access/store"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
)

// Deps holds the dependencies of New. Only Apps is optional.
type Deps struct {
	DB         *db.DB
	Keyring    *secret.Keyring
	Connectors *connector.Registry
	HTTP       connector.HTTP
	Clock      clock.Clock
	Log        *slog.Logger
	// Apps holds the instance's OAuth applications, keyed by platform family.
	Apps map[string]connector.App
	// Timeout limits one call to a platform.
	Timeout time.Duration
}

// Refresher opens and refreshes credentials. It is safe for concurrent use.
type Refresher struct {
	deps Deps
	db   *db.DB
	// uses limits each organization's concurrent calls to Use.
	uses *limit.PerKey[tenancy.OrgID]
}

// New returns a Refresher. It does not start any goroutines.
func New(deps Deps) *Refresher {
	return &Refresher{deps: deps, db: deps.DB, uses: limit.New[tenancy.OrgID](usesAtOnce)}
}

const (
	// usesAtOnce is the maximum number of concurrent calls to Use per organization in one process.
	// Without this limit, a platform that does not respond could tie up all of an organization's
	// requests.
	usesAtOnce = 2
	useWait    = time.Second
	useRetry   = 5 * time.Second
	// storeGrace is how long to keep retrying if a new credential cannot be stored. A new
	// credential that is not stored is lost, because the platform returns it only once.
	storeGrace = 30 * time.Second
	// poll is how often to check whether another process has finished a refresh.
	poll = 100 * time.Millisecond
)

// Channel is an opened channel. Its Session holds the decrypted credential.
type Channel struct {
	Org       tenancy.OrgID
	ID        publishing.ChannelID
	Connector connector.Connector
	Session   *connector.Session
	// Sealed is the credential in encrypted form, as stored in the database.
	Sealed []byte
}

// Refresh replaces the channel's credential with a new one and stores the new credential before
// returning. If another process has stored a new credential in the meantime, Refresh adopts that
// credential instead. destination is the new destination of the channel's posts, or "" if the
// destination has not changed.
//
// Only one refresh of a channel runs at a time across all processes; other callers wait for its
// result. A refresh continues even if ctx is canceled, because the platform may already have
// replaced the credential.
//
// If the process ends before it has stored the new credential, the next refresh tries the old
// credential once more. If the platform then rejects the old credential, Refresh returns an error
// that has KindReauth and gives the reason.
//
// Refresh also returns an error with KindReauth if the channel's application no longer exists.
// connector.KindOf returns the kind of an error. See also Flag.
func (k *Refresher) Refresh(ctx context.Context, c *Channel) (destination string, err error) {
	refresher, ok := c.Connector.(connector.Refresher)
	if !ok {
		return "", reauth("The platform no longer accepts this channel's credentials; reconnect the channel.")
	}
	// The credential must be stored even if the channel has been hidden from the caller in the
	// meantime.
	ctx, cancel := context.WithTimeout(pg.Whole(context.WithoutCancel(ctx)), k.deps.Timeout)
	defer cancel()
	state, err := k.begin(ctx, c)
	if err != nil {
		return "", err
	}
	if !state.Begun {
		return "", k.adopt(c, state)
	}
	c.Session.App, err = k.appOf(ctx, c, state.AppID)
	if err != nil {
		k.end(ctx, c, state, false)
		return "", err
	}
	fresh, err := refresher.Refresh(outbound.WithOwner(ctx, c.Org.String()), c.Session)
	if err != nil {
		return "", k.failed(ctx, c, state, err)
	}
	return fresh.Destination, k.keep(ctx, c, fresh)
}

// begin waits until no other refresh of the channel is running. Begun is false in the returned
// state if the credential has been replaced in the meantime or the channel must be reconnected.
func (k *Refresher) begin(ctx context.Context, c *Channel) (accessstore.RefreshState, error) {
	for {
		state, err := accessstore.BeginRefresh(ctx, k.db, c.Org, c.ID, c.Sealed, k.deps.Timeout+storeGrace)
		if pg.IsNoRows(err) {
			return state, transient("The channel has been disconnected.", nil)
		}
		if err != nil {
			return state, transient("The channel's credentials could not be refreshed.", err)
		}
		if state.Begun || state.Needed || string(state.Credential) != string(c.Sealed) {
			return state, nil
		}
		if err := clock.Sleep(ctx, poll); err != nil {
			return state, transient("The channel's credentials are being refreshed.", err)
		}
	}
}

// adopt switches to the credential that another process has stored. If there is none, adopt returns
// an error saying that the channel must be reconnected.
func (k *Refresher) adopt(c *Channel, state accessstore.RefreshState) error {
	if string(state.Credential) == string(c.Sealed) {
		return reauth(state.Reason)
	}
	opened, err := k.deps.Keyring.Open(state.Credential, c.Org.String())
	if err != nil {
		return &connector.Error{
			Kind: connector.KindOperator, Err: err,
			Public: "The channel's credentials cannot be decrypted with the keys of this instance.",
		}
	}
	c.Session.Credential, c.Sealed = opened, state.Credential
	return nil
}

// failed ends a refresh that returned no credential. Unless the platform rejected the refresh,
// failed records that the platform may have replaced the credential.
func (k *Refresher) failed(ctx context.Context, c *Channel, state accessstore.RefreshState, err error) error {
	kind := connector.KindOf(err, false)
	k.end(ctx, c, state, kind == connector.KindTransient || kind == connector.KindUnknown)
	var e *connector.Error
	if kind != connector.KindReauth || !state.Interrupted || !errors.As(err, &e) {
		return err
	}
	lost := *e
	lost.Public = "An earlier refresh of this channel's credentials was interrupted and its result was lost; " +
		"reconnect the channel."
	return &lost
}

// end records that a refresh has ended, even if ctx is canceled.
func (k *Refresher) end(ctx context.Context, c *Channel, state accessstore.RefreshState, lost bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeGrace)
	defer cancel()
	if err := accessstore.EndRefresh(ctx, k.db, c.Org, c.ID, state.Run, c.Sealed, lost); err != nil {
		k.deps.Log.Error("cannot store the end of a credential refresh", "channel", c.ID, "error", err)
	}
}

// keep stores a new credential, even if ctx is canceled. If the database does not respond, keep
// retries for storeGrace.
func (k *Refresher) keep(ctx context.Context, c *Channel, fresh connector.Refreshed) error {
	sealed, err := k.deps.Keyring.Seal(fresh.Credential, c.Org.String())
	if err != nil {
		return err
	}
	at := RefreshAt(c.Connector.Describe().RefreshLead, k.deps.Clock.Now(), fresh.ExpiresAt)
	renewal := accessstore.Renewal{
		Destination: fresh.Destination, Name: fresh.Name, Profile: fresh.Profile, Picture: fresh.Picture,
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeGrace)
	defer cancel()
	for {
		stored, err := accessstore.SwapCredential(ctx, k.db, c.Org, c.ID, c.Sealed, sealed, renewal, at)
		if err == nil && !stored {
			return k.replaced(ctx, c, sealed)
		}
		if err == nil {
			c.Session.Credential, c.Sealed = fresh.Credential, sealed
			return nil
		}
		k.deps.Log.Error("cannot store a new credential; retrying", "channel", c.ID, "error", err)
		if clock.Sleep(ctx, 2*poll) != nil {
			return transient("The channel's new credentials could not be stored.", err)
		}
	}
}

// replaced handles a swap that changed nothing because the stored credential was not the expected
// one. The stored credential may already be the new one, if an earlier attempt stored it but its
// response was lost.
func (k *Refresher) replaced(ctx context.Context, c *Channel, sealed []byte) error {
	now, err := accessstore.ChannelAccess(ctx, k.db, c.Org, c.ID)
	if err != nil {
		return transient("The channel has been reconnected in the meantime.", err)
	}
	if string(now.Credential) != string(sealed) {
		return transient("The channel has been reconnected in the meantime.", nil)
	}
	return k.adopt(c, accessstore.RefreshState{Credential: now.Credential})
}

// RefreshAt returns the time at which to refresh a credential that expires at the given time, or
// nil if the credential is not refreshed ahead of time. A short-lived credential is refreshed
// halfway through its lifetime. Otherwise, it would be refreshed constantly.
func RefreshAt(lead time.Duration, now, expires time.Time) *time.Time {
	if lead <= 0 || expires.IsZero() {
		return nil
	}
	life := max(expires.Sub(now), 0)
	at := now.Add(max(life-lead, life/2))
	return &at
}

// Flag checks whether err has KindReauth or KindDisconnect and, if so, records that the channel
// must be reconnected. The channel's posts then stay in the queue until the channel is reconnected.
// For any other error, Flag does nothing.
func (k *Refresher) Flag(ctx context.Context, c *Channel, err error) {
	var e *connector.Error
	if !errors.As(err, &e) || e.Kind != connector.KindReauth && e.Kind != connector.KindDisconnect {
		return
	}
	ctx, cancel := context.WithTimeout(pg.Whole(context.WithoutCancel(ctx)), storeGrace)
	defer cancel()
	if err := accessstore.Park(ctx, k.db, c.Org, c.ID, c.Sealed, e.Public); err != nil {
		k.deps.Log.Error("cannot mark a channel as needing to be reconnected",
			"channel", c.ID, "error", err)
	}
}

func reauth(public string) error { return &connector.Error{Kind: connector.KindReauth, Public: public} }

func transient(public string, err error) error {
	return &connector.Error{Kind: connector.KindTransient, Public: public, Err: err}
}

// Open decrypts a channel's credential and returns the opened channel.
func (k *Refresher) Open(a db.Access) (*Channel, error) {
	c, ok := k.deps.Connectors.Get(a.Channel.Connector)
	if !ok {
		return nil, &connector.Error{
			Kind: connector.KindOperator, Public: "This instance does not support the channel's platform.",
		}
	}
	var credential json.RawMessage
	credential, err := k.deps.Keyring.Open(a.Credential, a.Channel.Org.String())
	if err != nil {
		return nil, &connector.Error{
			Kind: connector.KindOperator, Err: err,
			Public: "The channel's credentials cannot be decrypted with the keys of this instance.",
		}
	}
	return &Channel{
		Org: a.Channel.Org, ID: a.Channel.ID, Connector: c, Sealed: a.Credential,
		Session: &connector.Session{
			Env:     connector.Env{HTTP: k.deps.HTTP, Clock: k.deps.Clock},
			Account: connector.AccountOf(a.Channel), Credential: credential,
		},
	}, nil
}

// Use calls a platform for a channel. It calls fn and, if the platform rejects the credential,
// calls fn once more with a new credential. It must therefore be safe to call fn twice. If the
// channel must be reconnected, Use flags the channel. If the channel is already flagged, Use does
// not call fn.
//
// Use returns the error from the last call. If two other calls for the organization are still in
// progress after a one-second wait, it returns RateLimited.
func (k *Refresher) Use(ctx context.Context, a db.Access, fn func(context.Context, *Channel) error) error {
	leave, err := k.enter(ctx, a.Channel.Org)
	if err != nil {
		return err
	}
	defer leave()
	return k.use(ctx, a, fn, false)
}

// Read is like Use, but for calls that only read, such as statistics. A platform may reject a
// credential for such calls but accept it for posts. Read therefore flags the channel only if the
// platform rejects a refresh. Read ignores the organization's limit, so the caller must limit the
// number of concurrent calls.
func (k *Refresher) Read(ctx context.Context, a db.Access, fn func(context.Context, *Channel) error) error {
	return k.use(ctx, a, fn, true)
}

func (k *Refresher) use(
	ctx context.Context, a db.Access, fn func(context.Context, *Channel) error, reading bool,
) error {
	if a.Channel.RefreshNeeded {
		reason := a.Channel.RefreshReason
		if reason == "" {
			reason = "The platform no longer accepts this channel's credentials; reconnect the channel."
		}
		return reauth(reason)
	}
	c, err := k.Open(a)
	if err != nil {
		return err
	}
	err = k.call(ctx, c, fn)
	flag := !reading
	if connector.KindOf(err, false) == connector.KindReauth && err != nil {
		if _, err = k.Refresh(ctx, c); err == nil {
			err = k.call(ctx, c, fn)
		} else if _, ok := c.Connector.(connector.Refresher); ok {
			flag = true
		}
	}
	if flag {
		k.Flag(ctx, c, err)
	}
	return err
}

func (k *Refresher) enter(ctx context.Context, org tenancy.OrgID) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, useWait)
	defer cancel()
	leave, err = k.uses.Enter(ctx, org)
	if err != nil {
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "access.Use", RetryAfter: useRetry, Err: err,
			Message: "Your organization is waiting for too many platforms to answer; try again in a few seconds.",
		}
	}
	return leave, nil
}

func (k *Refresher) call(ctx context.Context, c *Channel, fn func(context.Context, *Channel) error) error {
	ctx, cancel := context.WithTimeout(outbound.WithOwner(ctx, c.Org.String()), k.deps.Timeout)
	defer cancel()
	return fn(ctx, c)
}

// Park records that the platform has rejected a channel's credential. The channel's posts then stay
// in the queue until the channel is reconnected. refused is the rejected credential in sealed form,
// and reason is a human-readable sentence. Park does nothing if the credential has been replaced in
// the meantime. It returns any Postgres error.
func (k *Refresher) Park(
	ctx context.Context, org tenancy.OrgID, channel publishing.ChannelID, refused []byte, reason string,
) error {
	return accessstore.Park(ctx, k.db, org, channel, refused, reason)
}
