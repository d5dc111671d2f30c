package post

import (
	"context"
	"errors"
	"slices"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// Get returns a post's thread with its timeline. The post can be the root or any follower. It
// returns NotFound if the post does not exist.
func (s *Posts) Get(ctx context.Context, p tenancy.Principal, post string) (publishing.PostDetail, error) {
	const op = "publishing.GetPost"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return publishing.PostDetail{}, publishing.NoPost(op)
	}
	roots, err := s.rootsOf(ctx, p.Org, parsed)
	if err != nil {
		return publishing.PostDetail{}, pg.Fault(op, err)
	}
	if len(roots) == 0 {
		return publishing.PostDetail{}, publishing.NoPost(op)
	}
	threads, err := s.threads(ctx, p.Org, roots)
	if err != nil {
		return publishing.PostDetail{}, pg.Fault(op, err)
	}
	events, err := poststore.Events(ctx, s.db, p.Org, roots[0].Group)
	if err != nil {
		return publishing.PostDetail{}, pg.Fault(op, err)
	}
	approval, err := s.deps.Approvals.StatusOf(ctx, p.Org, roots[0].ID)
	return publishing.PostDetail{Thread: threads[0], Events: events, Approval: approval}, pg.Fault(op, err)
}

// rootsOf returns the root of the thread that contains a post. The thread may be an occurrence that
// is not stored yet. If there is no such post, rootsOf returns an empty slice.
func (s *Posts) rootsOf(ctx context.Context, org tenancy.OrgID, post publishing.PostID) ([]publishing.Post, error) {
	roots, err := poststore.Root(ctx, s.db, org, post)
	if err != nil || len(roots) > 0 {
		return roots, err
	}
	roots, err = poststore.Projected(ctx, s.db, org, post)
	if err != nil || len(roots) > 0 {
		return roots, err
	}
	return poststore.Root(ctx, s.db, org, post) // a later occurrence may have been stored since
}

// FindRoot implements approval.Threads.
func (s *Posts) FindRoot(
	ctx context.Context, org tenancy.OrgID, post publishing.PostID,
) (root publishing.PostID, found bool, err error) {
	roots, err := s.rootsOf(ctx, org, post)
	if err != nil || len(roots) == 0 {
		return root, false, err
	}
	return roots[0].ID, true, nil
}

// FindThread implements approval.Threads.
func (s *Posts) FindThread(
	ctx context.Context, org tenancy.OrgID, post publishing.PostID,
) (thread publishing.Thread, found bool, err error) {
	roots, err := poststore.Root(ctx, s.db, org, post)
	if err != nil || len(roots) == 0 {
		return thread, false, err
	}
	threads, err := s.threads(ctx, org, roots)
	if err != nil {
		return thread, false, err
	}
	return threads[0], true, nil
}

// List returns the threads in a date range or on a page. It returns Invalid if there are more than
// publishing.MaxListed posts in the range, or if the response would exceed
// publishing.MaxListedBytes.
func (s *Posts) List(ctx context.Context, p tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error) {
	const op = "publishing.ListPosts"
	customer, ok := id.Parse[publishing.CustomerTag](q.Customer)
	if q.Customer != "" && !ok {
		return publishing.ThreadPage{}, nil // no channel belongs to a customer with an invalid id
	}
	var page publishing.ThreadPage
	var roots []publishing.Post
	var err error
	if q.Page != nil {
		roots, page.Total, err = poststore.RootPage(ctx, s.db, p.Org, *q.Page, customer)
		page.HasMore = (q.Page.Number+1)*q.Page.Limit < page.Total
	} else {
		roots, err = poststore.Roots(ctx, s.db, p.Org, q, customer, publishing.MaxListed+1)
	}
	if err != nil {
		return publishing.ThreadPage{}, listFault(op, err)
	}
	if len(roots) > publishing.MaxListed {
		return publishing.ThreadPage{}, fault.New(fault.Invalid, op,
			"The range contains more than 10,000 posts; request a shorter one.")
	}
	page.Threads, err = s.threads(ctx, p.Org, roots)
	if err != nil {
		return publishing.ThreadPage{}, listFault(op, err)
	}
	return page, nil
}

func listFault(op string, err error) error {
	if errors.Is(err, poststore.ErrTooMuch) {
		return fault.New(fault.Invalid, op,
			"These posts have more than 8 MB of text and settings; request a shorter range, or fewer posts per page.")
	}
	return pg.Fault(op, err)
}

// threads returns the threads of the given roots, with their parts, followers, channels and media.
// It returns poststore.ErrTooMuch if the threads exceed publishing.MaxListedBytes. Parts shared by
// several later occurrences are counted once per occurrence.
func (s *Posts) threads(ctx context.Context, org tenancy.OrgID, roots []publishing.Post) ([]publishing.Thread, error) {
	if len(roots) == 0 {
		return nil, nil
	}
	whole, err := poststore.ReadThreadData(ctx, s.db, org, roots)
	if err != nil {
		return nil, err
	}
	out := make([]publishing.Thread, len(roots))
	left := publishing.MaxListedBytes
	for i, r := range roots {
		r.Parts = whole.Parts[r.Group]
		if r.Projected != nil {
			template := r.Projected.Template
			r.Settings, r.Parts = whole.Settings[template], projectedParts(r, whole.Parts[template])
			for _, part := range r.Parts {
				left -= publishing.ListedPart * (1 + len(part.Media))
			}
			if left < 0 {
				return nil, poststore.ErrTooMuch
			}
		}
		if r.ReleaseID == nil && r.State == publishing.StateError && len(r.Parts) > 0 {
			// The thread failed midway. If its first part was published, use that part's id and
			// URL.
			r.ReleaseID, r.ReleaseURL = r.Parts[0].ReleaseID, r.Parts[0].ReleaseURL
		}
		out[i] = publishing.Thread{
			Root: r, Followers: whole.Followers[r.Group], Channel: whole.Channels[r.Channel], Media: whole.Media,
			Tags: tagsOf(r, whole.Tags),
		}
	}
	return out, nil
}

func tagsOf(root publishing.Post, known map[publishing.TagID]publishing.Tag) (out []publishing.Tag) {
	for _, t := range root.Tags {
		if tag, ok := known[t]; ok {
			out = append(out, tag)
		}
	}
	return out
}

// projectedParts returns the parts of a later occurrence. They have the ids that they will have
// once the occurrence is stored.
func projectedParts(root publishing.Post, template []publishing.Part) []publishing.Part {
	out := slices.Clone(template)
	for i := range out {
		out[i].ID = publishing.Occurrence(out[i].ID, root.Occurrence)
		if i == 0 {
			out[i].ID = id.FromUUID[publishing.PartTag](root.ID.UUID())
		}
	}
	return out
}
