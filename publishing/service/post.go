package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// Posts carries out what is asked about posts.
type Posts struct {
	core
	mu      sync.Mutex
	running map[string]chan struct{} // idempotency keys under way in this process
}

// NewPosts makes the service.
func NewPosts(cfg Config, deps Deps) *Posts {
	return &Posts{core: newCore(cfg, deps), running: map[string]chan struct{}{}}
}

func internal(op string, err error) error {
	return pg.Fault(op, err)
}

func noPost(op string) error { return fault.New(fault.NotFound, op, "There is no such post.") }

// inOrg runs fn in a transaction of the organization. Whatever waits behind a post that no longer holds its channel is looked at at once.
func (s *Posts) inOrg(ctx context.Context, org tenancy.OrgID, fn func(*publishingstore.Tx) error) error {
	freed := false
	err := s.store.InOrg(ctx, org, func(tx *publishingstore.Tx) error {
		err := fn(tx)
		freed = tx.Freed()
		return err
	})
	if err == nil && freed {
		s.deps.Waker.Wake(ctx, org, time.Time{})
	}
	return err
}

// groupOf finds the group of a post; a later occurrence is stored now, to be skipped or changed by itself.
func groupOf(ctx context.Context, tx *publishingstore.Tx, post publishing.PostID) (publishing.GroupID, error) {
	group, err := tx.GroupOf(ctx, post)
	if pg.IsNoRows(err) {
		group, _, err = tx.Materialize(ctx, post.UUID(), false)
	}
	return group, err
}

// Delete removes the whole group of a post. Of a repeated post it skips this occurrence, and the next one is written
// right after it.
func (s *Posts) Delete(ctx context.Context, p tenancy.Principal, post string) error {
	const op = "publishing.DeletePost"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return noPost(op)
	}
	var deleted []publishingstore.Standing
	err := s.inOrg(ctx, p.Org, func(tx *publishingstore.Tx) error {
		group, err := groupOf(ctx, tx, parsed)
		if err != nil {
			return err
		}
		deleted, err = s.deleteGroup(ctx, tx, group)
		return err
	})
	if err != nil {
		return s.ended(op, err)
	}
	s.follow(ctx, p.Org, deleted)
	return nil
}

// DeleteGroup removes every post of a group. A repeated post ends with it: what is pending goes too, and nothing follows.
func (s *Posts) DeleteGroup(ctx context.Context, p tenancy.Principal, group string) error {
	const op = "publishing.DeleteGroup"
	parsed, ok := id.Parse[publishing.GroupTag](group)
	if !ok {
		return fault.New(fault.NotFound, op, "There is no such group of posts.")
	}
	err := s.inOrg(ctx, p.Org, func(tx *publishingstore.Tx) error { return s.deleteSeries(ctx, tx, parsed) })
	if fault.Is(s.ended(op, err), fault.NotFound) {
		return fault.New(fault.NotFound, op, "There is no such group of posts.")
	}
	return s.ended(op, err)
}

// deleteGroup deletes the posts of a group and returns how they stood.
func (s *Posts) deleteGroup(ctx context.Context, tx *publishingstore.Tx, group publishing.GroupID) ([]publishingstore.Standing, error) {
	posts, err := tx.LockGroup(ctx, group)
	if err != nil {
		return nil, err
	}
	if len(posts) == 0 {
		return nil, noPost("publishing.deleteGroup")
	}
	return posts, tx.Delete(ctx, posts)
}

func (s *Posts) deleteSeries(ctx context.Context, tx *publishingstore.Tx, group publishing.GroupID) error {
	posts, err := tx.LockGroup(ctx, group)
	if err == nil && len(posts) == 0 {
		if _, _, err = tx.Materialize(ctx, group.UUID(), true); err == nil {
			posts, err = tx.LockGroup(ctx, group)
		}
	}
	if err != nil {
		return err
	}
	for _, p := range posts {
		if p.Series.IsZero() {
			continue
		}
		if err := tx.EndSeries(ctx, p.Series); err != nil {
			return err
		}
		if err := s.deletePending(ctx, tx, p); err != nil {
			return err
		}
	}
	return tx.Delete(ctx, posts)
}

// deletePending removes the occurrences of a post's series that are booked beside it.
func (s *Posts) deletePending(ctx context.Context, tx *publishingstore.Tx, of publishingstore.Standing) error {
	groups, err := tx.Pending(ctx, of.Series, of.Occurrence)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if _, err := s.deleteGroup(ctx, tx, g); err != nil {
			return err
		}
	}
	return nil
}

// ended gives an error of a transaction its public form.
func (s *Posts) ended(op string, err error) error {
	if err == nil || fault.KindOf(err) != fault.Internal {
		return err
	}
	if pg.IsNoRows(err) {
		return noPost(op)
	}
	return internal(op, err)
}

// by names who acted, for the timeline.
func by(p tenancy.Principal) string {
	if p.Via == tenancy.ViaKey {
		return "key " + p.Key.String()
	}
	return "person " + p.Person.String()
}

// Get reads one post with its timeline. A follower's id answers its group.
func (s *Posts) Get(ctx context.Context, p tenancy.Principal, post string) (publishing.PostDetail, error) {
	const op = "publishing.GetPost"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return publishing.PostDetail{}, noPost(op)
	}
	roots, err := s.store.Root(ctx, p.Org, parsed)
	if err == nil && len(roots) == 0 {
		roots, err = s.store.Coming(ctx, p.Org, parsed)
	}
	if err == nil && len(roots) == 0 {
		roots, err = s.store.Root(ctx, p.Org, parsed) // a coming occurrence may have been stored meanwhile
	}
	if err != nil {
		return publishing.PostDetail{}, internal(op, err)
	}
	if len(roots) == 0 {
		return publishing.PostDetail{}, noPost(op)
	}
	threads, err := s.threads(ctx, p.Org, roots)
	if err != nil {
		return publishing.PostDetail{}, internal(op, err)
	}
	events, err := s.store.Events(ctx, p.Org, roots[0].Group)
	return publishing.PostDetail{Thread: threads[0], Events: events}, internal(op, err)
}

// List answers the threads of a range or of a page.
func (s *Posts) List(ctx context.Context, p tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error) {
	const op = "publishing.ListPosts"
	customer, ok := id.Parse[publishing.CustomerTag](q.Customer)
	if q.Customer != "" && !ok {
		return publishing.ThreadPage{}, nil // no channel belongs to a group that cannot exist
	}
	var page publishing.ThreadPage
	var roots []publishing.Post
	var err error
	if q.Page != nil {
		roots, page.Total, err = s.store.RootPage(ctx, p.Org, *q.Page, customer)
		page.HasMore = (q.Page.Number+1)*q.Page.Limit < page.Total
	} else {
		roots, err = s.store.Roots(ctx, p.Org, q, customer, publishing.MaxListed+1)
	}
	if err == nil && len(roots) > publishing.MaxListed {
		return page, fault.New(fault.Invalid, op, "The range holds more than 10,000 posts; ask for a shorter one.")
	}
	if err == nil {
		page.Threads, err = s.threads(ctx, p.Org, roots)
	}
	if errors.Is(err, publishingstore.ErrTooMuch) {
		return publishing.ThreadPage{}, fault.New(fault.Invalid, op, "These posts hold more than 8 MB of text and settings; ask for a shorter range, or for fewer posts a page.")
	}
	return page, internal(op, err)
}

// threads reads what hangs on roots. It returns ErrTooMuch when that is more than publishing.MaxListedBytes, the parts of
// a later occurrence counted for each.
func (s *Posts) threads(ctx context.Context, org tenancy.OrgID, roots []publishing.Post) ([]publishing.Thread, error) {
	if len(roots) == 0 {
		return nil, nil
	}
	whole, err := s.store.Whole(ctx, org, roots)
	if err != nil {
		return nil, err
	}
	out := make([]publishing.Thread, len(roots))
	left := publishing.MaxListedBytes
	for i, r := range roots {
		r.Parts = whole.Parts[r.Group]
		if r.Coming != nil {
			r.Settings, r.Parts = whole.Settings[r.Coming.Template], coming(r, whole.Parts[r.Coming.Template])
			for _, part := range r.Parts {
				left -= publishing.ListedPart * (1 + len(part.Media))
			}
			if left < 0 {
				return nil, publishingstore.ErrTooMuch
			}
		}
		if r.ReleaseID == nil && r.State == publishing.StateError && len(r.Parts) > 0 {
			r.ReleaseID, r.ReleaseURL = r.Parts[0].ReleaseID, r.Parts[0].ReleaseURL // the thread broke off; what is out stays to be found
		}
		out[i] = publishing.Thread{Root: r, Followers: whole.Followers[r.Group], Channel: whole.Channels[r.Channel], Media: whole.Media}
	}
	return out, nil
}

// coming are the parts that a later occurrence will have.
func coming(root publishing.Post, template []publishing.Part) []publishing.Part {
	out := slices.Clone(template)
	for i := range out {
		out[i].ID = publishing.Occurrence(out[i].ID, root.Occurrence)
		if i == 0 {
			out[i].ID = id.FromUUID[publishing.PartTag](root.ID.UUID())
		}
	}
	return out
}

// create checks everything before anything is written.
func (s *Posts) create(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error) {
	if err := cmd.Validate(); err != nil {
		return publishing.CreateResult{}, err
	}
	entries, err := s.resolve(ctx, p, cmd)
	if err != nil {
		return publishing.CreateResult{}, err
	}
	for attempt := time.Duration(0); ; attempt++ {
		out, due, err := s.write(ctx, p, cmd, entries)
		switch {
		case err == publishingstore.ErrKeyBusy && attempt < keyWait/keyPoll:
			if clock.Sleep(ctx, keyPoll) != nil {
				return out, keyBusy()
			}
		case err == publishingstore.ErrKeyBusy:
			return out, keyBusy()
		case err == publishingstore.ErrKeyTaken:
			out, _, err := s.remembered(ctx, p, cmd)
			return out, err
		case err != nil:
			return s.refused(ctx, p, cmd, err)
		default:
			if due != nil {
				s.deps.Waker.Wake(ctx, p.Org, *due)
			}
			return out, nil
		}
	}
}

// refused is the end of a write that failed: with the first answer, if what stood in the way was the same request on another node.
func (s *Posts) refused(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts, cause error) (publishing.CreateResult, error) {
	if cmd.IdempotencyKey != "" {
		if r, found, err := s.remembered(ctx, p, cmd); err == nil && found {
			return r, nil
		}
	}
	return publishing.CreateResult{}, s.ended("publishing.CreatePosts", cause)
}

// trimmed treats the empty strings that some clients send as absent.
func trimmed(s string) string { return strings.TrimSpace(s) }

// follow stores the occurrences that follow deleted ones, so that a list shows them at once. An error is logged and not
// returned: the sender stores what is missing within a minute.
func (s *Posts) follow(ctx context.Context, org tenancy.OrgID, deleted []publishingstore.Standing) {
	for _, p := range deleted {
		if p.Series.IsZero() {
			continue
		}
		if _, err := s.store.Advance(ctx, org, p.Series, true); err != nil {
			s.deps.Log.Warn("the next occurrence of a repeated post is left to the sweep",
				"org", org, "series", p.Series, "error", err)
		}
	}
}
