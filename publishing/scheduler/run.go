package scheduler

import (
	"context"
	"time"

	"crier/publishing"
	"crier/publishing/access"
	"crier/publishing/connector"
	"crier/publishing/pictures"
	"crier/publishing/scheduler/dispatch"
)

// run holds the state for sending or reconciling one post. It is used by a single goroutine.
type run struct {
	*Sender
	work      dispatch.Work
	connector connector.Connector
	session   *connector.Session
	sealed    []byte // the credential as stored
	refreshed bool   // the credential was refreshed; at most once per run
	// pictures holds the derived pictures that replace images, keyed by image id.
	pictures map[publishing.MediaID]pictures.Derived
	yield    func(ctx context.Context, d time.Duration) error
}

// operatorWait is how long a post waits before the next attempt if this process's settings are
// wrong.
const operatorWait = time.Minute

// newRun looks up the connector and decrypts the credential. If the post cannot be sent now, newRun
// returns an outcome instead of a run.
func (s *Sender) newRun(w dispatch.Work) (*run, *dispatch.Outcome) {
	out := dispatch.Outcome{Org: w.Org, Post: w.Post, Token: w.Token, Result: dispatch.ResultError}
	c, ok := s.deps.Connectors.Get(w.Channel.Connector)
	switch {
	case w.Disconnected:
		out.Error, out.Code = "The channel was disconnected.", publishing.CodeChannelDisabled
		return nil, &out
	case w.Channel.Disabled:
		out.Error, out.Code = "The channel was disabled when the post was due.", publishing.CodeChannelDisabled
		return nil, &out
	case len(w.Parts) == 0:
		out.Error, out.Code = "The post has no content.", publishing.CodeRejected
		return nil, &out
	}
	// The problem is in this process's settings, not in the post. The post waits until the settings
	// are corrected or another process claims it. During a rollout, other processes may have
	// different settings.
	if !ok {
		s.deps.Log.Error("this process does not support a channel's platform: "+
			"check that its settings and version match those of the other processes",
			"channel", w.Channel.ID, "platform", w.Channel.Connector)
		out.Result, out.After = dispatch.ResultRetry, operatorWait
		out.Error = "This instance does not support the channel's platform."
		return nil, &out
	}
	credential, err := s.deps.Keyring.Open(w.Credential, w.Org.String())
	if err != nil {
		s.deps.Log.Error("a credential cannot be opened: check that ENCRYPTION_KEYS has the key that sealed it",
			"channel", w.Channel.ID, "error", err)
		out.Result, out.After = dispatch.ResultRetry, operatorWait
		out.Error = "The channel's credentials cannot be decrypted with the keys of this instance."
		return nil, &out
	}
	session := &connector.Session{
		Env:     connector.Env{HTTP: s.deps.HTTP, Clock: s.deps.Clock},
		Account: connector.AccountOf(w.Channel), Credential: credential,
	}
	return &run{Sender: s, work: w, connector: c, session: session, sealed: w.Credential}, nil
}

// refresh replaces the channel's credential with a new one and stores it. See
// access.Refresher.Refresh.
func (r *run) refresh(ctx context.Context) error {
	r.refreshed = true
	c := &access.Channel{
		Org: r.work.Org, ID: r.work.Channel.ID, Connector: r.connector, Session: r.session, Sealed: r.sealed,
	}
	destination, err := r.deps.Access.Refresh(ctx, c)
	r.sealed = c.Sealed
	if err != nil {
		return err
	}
	if destination != "" {
		r.work.Channel.Destination = destination
	}
	return nil
}
