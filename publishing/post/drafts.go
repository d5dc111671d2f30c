package post

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/pictures"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// Drafts gives package approval access to posts. It is safe for concurrent use.
type Drafts struct{ posts *Posts }

// NewDrafts returns a Drafts backed by posts.
func NewDrafts(posts *Posts) *Drafts { return &Drafts{posts: posts} }

// Lock implements approval.Drafts.
func (d *Drafts) Lock(
	ctx context.Context, tx *db.Tx, post publishing.PostID,
) (root publishing.PostID, publishDate time.Time, err error) {
	group, _, err := groupOf(ctx, tx, post)
	if err != nil {
		return root, publishDate, err
	}
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return root, publishDate, err
	}
	if len(posts) == 0 {
		return root, publishDate, publishing.NoPost("publishing.lockDraft")
	}
	first := rootOf(posts) // the followers wait for it
	if first.State != publishing.StateDraft {
		return root, publishDate, fault.New(fault.Conflict, "publishing.lockDraft", "Only a draft can be sent for approval.")
	}
	return first.ID, first.PublishDate, nil
}

// HoldSeries implements approval.Drafts.
func (*Drafts) HoldSeries(ctx context.Context, tx *db.Tx, root publishing.PostID) error {
	return poststore.MarkTemplate(ctx, tx, root, poststore.TemplateAsked)
}

// FreeSeries implements approval.Drafts.
func (*Drafts) FreeSeries(ctx context.Context, tx *db.Tx, root publishing.PostID) error {
	return poststore.MarkTemplate(ctx, tx, root, poststore.TemplateFree)
}

// Recheck implements approval.Drafts.
func (d *Drafts) Recheck(ctx context.Context, p tenancy.Principal, post string) (publishing.PostDetail, error) {
	return d.posts.recheck(ctx, p, post)
}

// Answer implements approval.Drafts. If an approved post cannot be scheduled, it stays an approved
// draft.
func (d *Drafts) Answer(
	ctx context.Context, tx *db.Tx, a publishing.DraftAnswer, store func(problem error) error,
) (due *time.Time, pictures []pictures.Key, err error) {
	s, schedule, problem := d.posts, a.Schedules(), a.Problem
	quota := poststore.PostQuota{}
	if schedule {
		quota, err = poststore.ReadPostQuota(ctx, tx, s.deps.Quota)
		if err != nil {
			return nil, nil, err
		}
	}
	group, err := poststore.GroupOf(ctx, tx, a.Post)
	if err != nil {
		return nil, nil, err
	}
	connected, err := poststore.HoldChannels(ctx, tx, nil, group)
	if err != nil {
		return nil, nil, err
	}
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return nil, nil, err
	}
	if len(posts) == 0 {
		return nil, nil, publishing.NoPost("publishing.answer")
	}
	if schedule && problem == nil {
		problem, err = schedulable(ctx, tx, posts, group, connected)
		if err != nil {
			return nil, nil, err
		}
	}
	if schedule && problem == nil {
		problem = quota.Room(ctx, "publishing.answer", s.goesOut(rootOf(posts).PublishDate))
		if problem != nil && !fault.Is(problem, fault.Quota) {
			return nil, nil, problem
		}
	}
	if schedule && problem == nil {
		pictures, problem = s.checker.wantPictures(ctx, tx, storedEntry(a.Draft))
		if problem != nil && !fault.Is(problem, fault.Invalid) {
			return nil, nil, problem
		}
	}
	if schedule && problem == nil {
		problem = s.takeApproved(ctx, tx, a.Approval)
		if problem != nil && !fault.Is(problem, fault.Forbidden) {
			return nil, nil, problem
		}
	}
	if err := store(problem); err != nil {
		return nil, nil, err
	}
	if a.Status == publishing.ApprovalApproved {
		if err := approve(ctx, tx, group, a.Post); err != nil {
			return nil, nil, err
		}
	}
	if !schedule || problem != nil {
		return nil, nil, nil
	}
	due, err = poststore.Move(ctx, tx, posts, publishing.StateQueue, false, a.By)
	return due, pictures, err
}

// schedulable checks whether a locked draft can be scheduled. If not, problem explains why.
func schedulable(
	ctx context.Context, tx *db.Tx, posts []poststore.PostStatus, group publishing.GroupID,
	connected int,
) (problem, err error) {
	const op = "publishing.schedulable"
	if connected == 0 {
		return publishing.Disconnected(op), nil
	}
	if err := movable(posts, publishing.StateQueue, false); err != nil {
		return err, nil
	}
	complete, err := poststore.HoldMedia(ctx, tx, group)
	if err == nil && !complete {
		problem = fault.New(fault.Invalid, op, "A file of this post was deleted.")
	}
	return problem, err
}

// approve records that a reviewer has approved a locked group's content. If the post is repeated
// and the template of its series has the same content, the template is marked as approved too.
func approve(
	ctx context.Context, tx *db.Tx, group publishing.GroupID, root publishing.PostID,
) error {
	if err := poststore.ApproveContent(ctx, tx, group); err != nil {
		return err
	}
	return poststore.MarkTemplate(ctx, tx, root, poststore.TemplateApproved)
}

// Unschedule implements approval.Drafts.
func (d *Drafts) Unschedule(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, approval publishing.ApprovalID,
) error {
	group, err := poststore.GroupOf(ctx, tx, root)
	if err != nil {
		return err
	}
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return err
	}
	if len(posts) == 0 { // deleted since its group was read
		return publishing.NoPost("publishing.Unschedule")
	}
	groups := []publishing.GroupID{group}
	if of := rootOf(posts); !of.Series.IsZero() {
		others, err := poststore.Pending(ctx, tx, of.Series, of.Occurrence)
		if err != nil {
			return err
		}
		groups = append(groups, others...)
		if err := poststore.MarkTemplate(ctx, tx, root, poststore.TemplateHeld); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := d.unscheduleGroup(ctx, tx, p, g, approval); err != nil {
			return err
		}
	}
	return nil
}

// unscheduleGroup turns a group's queued posts into drafts, and records that the group no longer
// needs approval. It does nothing if the posts are published under a different approval or under
// none. It returns Conflict if a post is being published.
func (d *Drafts) unscheduleGroup(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, group publishing.GroupID, approval publishing.ApprovalID,
) error {
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil || len(posts) == 0 {
		return err
	}
	root := rootOf(posts)
	inForce, err := d.posts.deps.Approvals.InForce(ctx, tx, root.ID)
	if err != nil || inForce != approval {
		return err
	}
	if root.State.Claimed() {
		return movable(posts, publishing.StateDraft, false)
	}
	if root.State == publishing.StateQueue {
		if _, err := poststore.Move(ctx, tx, posts, publishing.StateDraft, true, tenancy.ActorOf(p)); err != nil {
			return err
		}
	}
	return poststore.FreeContent(ctx, tx, group)
}
