package post

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/access"
	"crier/publishing/connector"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// maxRecent is the maximum number of recent items requested from a platform.
const maxRecent = 50

// Missing helps find a post that was published without the platform returning an id. It returns the
// items recently published on the post's channel. It returns no items for any other post, or if the
// platform cannot list recent items.
//
// It returns NotFound if the post does not exist, Unauthenticated if the channel must be
// reconnected, and Upstream if the platform fails.
func (s *Posts) Missing(ctx context.Context, p tenancy.Principal, post string) ([]publishing.RemoteItem, error) {
	const op = "publishing.Missing"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return nil, publishing.NoPost(op)
	}
	r, err := poststore.FindRelease(ctx, s.db, p.Org, parsed)
	if pg.IsNoRows(err) {
		return nil, publishing.NoPost(op)
	}
	if err != nil {
		return nil, pg.Fault(op, err)
	}
	if r.ReleaseID == nil || *r.ReleaseID != publishing.ReleaseMissing {
		return nil, nil
	}
	a, err := s.deps.Access.Channel(ctx, p.Org, r.Channel)
	if pg.IsNoRows(err) {
		return nil, nil // the channel was disconnected
	}
	if err != nil {
		return nil, pg.Fault(op, err)
	}
	c, _ := s.deps.Connectors.Get(a.Channel.Connector)
	lister, ok := connector.ListerOf(c)
	if !ok {
		return nil, nil
	}
	var out []publishing.RemoteItem
	err = s.deps.Access.Use(ctx, a, func(ctx context.Context, c *access.Channel) error {
		items, err := lister.Recent(ctx, c.Session, maxRecent)
		out = nil
		for _, item := range items {
			out = append(out, publishing.RemoteItem(item))
		}
		return err
	})
	if err != nil {
		s.deps.Log.Warn("cannot list the posts on a platform", "org", p.Org, "post", parsed, "error", err)
		return nil, access.Fault(op, err)
	}
	return out, nil
}

// SetRelease stores the id that a published post has on its platform. Example:
// at://did:plc:abc/app.bsky.feed.post/3k...
//
// It returns NotFound if the post does not exist, Invalid if the id cannot be stored, and Forbidden
// if the principal is an agent that may change only drafts. It returns Conflict if the post already
// has an id, is scheduled, or is being published.
//
// SetRelease writes no audit entry, because the change is recorded in the post's timeline.
func (s *Posts) SetRelease(ctx context.Context, p tenancy.Principal, post, release string) error {
	const op = "publishing.SetRelease"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return publishing.NoPost(op)
	}
	if err := publishing.MayQueue(op, p); err != nil {
		return err
	}
	if err := checkRelease(release); err != nil {
		if _, found := poststore.FindRelease(ctx, s.db, p.Org, parsed); pg.IsNoRows(found) {
			return publishing.NoPost(op)
		}
		return err
	}
	err := s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		r, err := poststore.LockRelease(ctx, tx, parsed)
		if err != nil {
			return err
		}
		if !isReleaseSettable(r.State, r.ReleaseID) {
			return fault.New(
				fault.Conflict, op,
				"The post already has a release id, or is scheduled or being published: make it a draft first.",
			)
		}
		return poststore.SetRelease(ctx, tx, parsed, release, tenancy.ActorOf(p))
	})
	if err != nil {
		return db.PostFault(op, err)
	}
	return nil
}

// maxRelease is the maximum length of a release id, in bytes.
const maxRelease = 1024

// checkRelease returns an Invalid fault if the release id cannot be stored.
func checkRelease(release string) error {
	if release != "" && len(release) <= maxRelease && publishing.Storable(release) && release != publishing.ReleaseMissing {
		return nil
	}
	return &fault.Error{
		Kind: fault.Invalid, Op: "publishing.CheckRelease", Message: "The release id is not valid.",
		Fields: []fault.Field{{
			Name:    "releaseId",
			Message: "must be the post's id on the platform: 1 to 1024 bytes, and not the word missing",
		}},
	}
}

// isReleaseSettable reports whether users may set a post's release id. The id can be set if none is
// known and the post is neither scheduled nor being published. A post with an id counts as
// published, so it can be queued only with republish.
func isReleaseSettable(state publishing.State, release *string) bool {
	switch state {
	case publishing.StateQueue, publishing.StateWaiting, publishing.StatePublishing, publishing.StateUnknown:
		return false
	}
	return release == nil || *release == "" || *release == publishing.ReleaseMissing
}
