package channel

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/db"
	"crier/tenancy"
)

// disownLife is how long the person who granted access can disconnect a channel after it is
// connected.
const disownLife = 7 * 24 * time.Hour

// disownBound is the context to which the Keyring binds Disown tokens.
const disownBound = "disown a channel"

// disowning is the content of a Disown token. At is channel.connected_at in Unix microseconds, the
// column's precision.
type disowning struct {
	Org     tenancy.OrgID        `json:"org"`
	Channel publishing.ChannelID `json:"channel"`
	At      int64                `json:"at"`
	Until   time.Time            `json:"until"`
}

// disownToken returns a Disown token for a channel that was just connected, and the token's expiry
// time.
func (s *Channels) disownToken(c publishing.Channel) (token string, until time.Time, err error) {
	until = s.deps.Clock.Now().Add(disownLife).UTC().Truncate(time.Second)
	token, err = s.sealToken(disownBound, disowning{
		Org: c.Org, Channel: c.ID, At: c.ConnectedAt.UnixMicro(), Until: until,
	})
	return token, until, err
}

// Disown disconnects a channel at the request of the person who granted access to its account, and
// adds a notification for the members. token is the Disown field of publishing.ChannelConnected. No
// session is needed.
//
// Disown can be repeated. It does nothing if the channel is already disconnected or its account has
// been connected again. It returns Invalid for an invalid token and Gone for an expired one.
func (s *Channels) Disown(ctx context.Context, token string) (out publishing.Disowned, err error) {
	const op = "publishing.Disown"
	wrong := fault.New(fault.Invalid, op, "This link does not belong to a connected account.")
	var d disowning
	if !s.openToken(disownBound, token, &d) {
		return out, wrong
	}
	if !s.deps.Clock.Now().Before(d.Until) {
		return out, fault.New(fault.Gone, op, "The account can no longer be disconnected here. Remove Crier from the apps "+
			"listed in your account settings on the platform.")
	}
	err = s.db.InOrg(ctx, d.Org, func(tx *db.Tx) error {
		out, err = channelstore.Disown(ctx, tx, d.Channel, time.UnixMicro(d.At), s.deps.Posts.EndOfChannel)
		if err != nil || !out.Disconnected {
			return err
		}
		guest := tenancy.Principal{Org: d.Org, Via: tenancy.ViaGuest, Name: "guest"}
		err = s.db.Audit(ctx, tx, guest, tenancy.ActionChannelDisowned, out.Connector+" "+out.Channel)
		if err != nil {
			return err
		}
		return s.deps.Notices.Add(ctx, tx, s.disownNotification(d.Channel))
	})
	if pg.IsNoRows(err) { // the organization was purged
		return out, wrong
	}
	if err == nil && out.Disconnected && s.deps.Disowned != nil {
		s.deps.Disowned(ctx, out)
	}
	return out, pg.Fault(op, err)
}

// disownNotification returns the notification to list. Deps.Disowned queues the emails.
func (s *Channels) disownNotification(channel publishing.ChannelID) publishing.Notification {
	now := s.deps.Clock.Now()
	reason := "The person who granted access said that it was a mistake, so the account was disconnected."
	return publishing.Notification{
		ID: id.New[publishing.NotificationTag](), Kind: publishing.NotifyReconnect, Channel: channel, Reason: &reason,
		CreatedAt: now, LastAt: now, ClosedAt: &now,
	}
}
