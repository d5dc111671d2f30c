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

// maxRecent is how many items of a platform are listed.
const maxRecent = 50

// Missing returns what was recently published to the channel of a post, if the platform published
// the post without naming its id. A person can find the post in that list. For other posts, and if
// the platform has no such list, it returns nothing.
//
// It returns NotFound, Unauthenticated if the channel must be reconnected, and Upstream if the
// platform fails.
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

// SetRelease stores the id under which the platform published a post. It returns NotFound, Invalid
// for an id that cannot be stored, and Conflict if an id is already known or the post is scheduled
// or being published.
//
// It leaves no audit entry: the timeline of the post has one.
func (s *Posts) SetRelease(ctx context.Context, p tenancy.Principal, post, release string) error {
	const op = "publishing.SetRelease"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return publishing.NoPost(op)
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
				fault.Conflict, op, "The post already has a release id, or is scheduled or being published: make it a draft first.",
			)
		}
		return poststore.SetRelease(ctx, tx, parsed, release, publishing.ActorOf(p))
	})
	if err != nil {
		return db.PostFault(op, err)
	}
	return nil
}

// maxRelease is the longest release id, in bytes.
const maxRelease = 1024

// checkRelease returns an Invalid fault for a release id that cannot be stored.
func checkRelease(release string) error {
	if release != "" && len(release) <= maxRelease && publishing.Storable(release) && release != publishing.ReleaseMissing {
		return nil
	}
	return &fault.Error{
		Kind: fault.Invalid, Op: "publishing.CheckRelease", Message: "The release id is not valid.",
		Fields: []fault.Field{{
			Name: "releaseId", Message: "must be the post's id on the platform: 1 to 1024 bytes, and not the word missing",
		}},
	}
}

// isReleaseSettable reports whether people may set the release id of a post: no id is known, and
// the post is not about to be published. A post with an id is published, so it is queued only with
// republish.
func isReleaseSettable(state publishing.State, release *string) bool {
	switch state {
	case publishing.StateQueue, publishing.StateWaiting, publishing.StatePublishing, publishing.StateUnknown:
		return false
	}
	return release == nil || *release == "" || *release == publishing.ReleaseMissing
}
