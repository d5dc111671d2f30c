package post

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/pictures"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// ChangeStatus moves all posts of a thread to DRAFT or QUEUE, and returns the new state of the
// root. A post that is already queued keeps its place.
//
// It returns NotFound, Quota if the plan allows no more posts in the billing month of the post, and
// Invalid for an unknown status or a post that breaks its platform's rules. It returns Conflict if
// the post is being published, if it is or may be published and Republish is not set, or if its
// content is not what was approved and Override is not set.
func (s *Posts) ChangeStatus(
	ctx context.Context, p tenancy.Principal, post string, cmd publishing.ChangeStatus,
) (publishing.StatusChanged, error) {
	const op = "publishing.ChangeStatus"
	out := publishing.StatusChanged{State: publishing.StateDraft}
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return out, publishing.NoPost(op)
	}
	if err := cmd.Validate(); err != nil {
		if _, found := s.Get(ctx, p, post); found != nil {
			return out, found
		}
		return out, err
	}
	var entry checked
	if cmd.To == publishing.CreateSchedule {
		out.State = publishing.StateQueue
		detail, err := s.recheck(ctx, p, post)
		if err != nil {
			return out, err
		}
		entry = storedEntry(detail)
	}
	var due *time.Time
	var pictures []pictures.Key
	err := s.db.InOrg(ctx, p.Org, func(tx *db.Tx) error {
		m, err := s.move(ctx, tx, p, parsed, out.State, cmd)
		if err != nil {
			return err
		}
		due, out.Post, out.Approval = m.due, m.root, m.held.ApprovalEffect
		if m.moved && out.State == publishing.StateQueue {
			if pictures, err = s.checker.wantPictures(ctx, tx, entry); err != nil {
				return err
			}
		}
		return s.deps.Approvals.NotifyEnded(ctx, tx, m.held.ended, contentChanged)
	})
	if err != nil {
		return out, db.PostFault(op, err)
	}
	s.deps.Pictures.Add(p.Org, pictures)
	if due != nil && out.State == publishing.StateQueue {
		s.deps.Waker.Wake(ctx, p.Org, *due)
	}
	return out, nil
}

// movement is the result of move.
type movement struct {
	root publishing.PostID
	// due is when the first post is due.
	due *time.Time
	// moved is false for a group that was already queued, which keeps its place in the queue.
	moved bool
	held  heldApproval
}

// move changes the state of the group of a post. If the group is queued, a pending request for
// approval ends.
//
// It returns NotFound if the post is gone, Invalid if its channel is gone, Conflict if the state
// does not allow the move or an approval does not let the principal make it, and Quota if the plan
// allows no more posts.
func (s *Posts) move(
	ctx context.Context, tx *db.Tx, p tenancy.Principal,
	post publishing.PostID, to publishing.State, cmd publishing.ChangeStatus,
) (out movement, err error) {
	const op = "publishing.ChangeStatus"
	quota := poststore.PostQuota{}
	if to == publishing.StateQueue {
		quota, err = poststore.ReadPostQuota(ctx, tx, s.deps.Quota)
		if err != nil {
			return out, err
		}
	}
	group, stored, err := groupOf(ctx, tx, post)
	if err != nil {
		return out, err
	}
	there := 1
	if to == publishing.StateQueue {
		there, err = poststore.HoldChannels(ctx, tx, nil, group)
		if err != nil {
			return out, err
		}
	}
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return out, err
	}
	if len(posts) == 0 {
		return out, publishing.NoPost(op)
	}
	if there == 0 {
		return out, publishing.Disconnected(op)
	}
	out.root = rootOf(posts).ID
	at := s.goesOut(rootOf(posts).PublishDate)
	if to == publishing.StateQueue && queued(posts) {
		return out, checkStored(ctx, quota, op, at, stored)
	}
	before, err := quota.Count(ctx, at)
	if err != nil {
		return out, err
	}
	if err := movable(posts, to, cmd.Republish); err != nil {
		return out, err
	}
	if to == publishing.StateQueue {
		complete, err := poststore.HoldMedia(ctx, tx, group)
		if err != nil {
			return out, err
		}
		if !complete {
			const message = "A file of this post was deleted: remove it from the post first."
			return out, fault.New(fault.Invalid, op, message)
		}
		const reason = "The post was scheduled without waiting for the answer."
		if err := s.deps.Approvals.VoidPending(ctx, tx, p, out.root, reason, true); err != nil {
			return out, err
		}
		out.held, err = s.holdSchedule(ctx, tx, p, group, out.root, cmd.Override)
		if err != nil {
			return out, err
		}
	}
	keepUnknown := to == publishing.StateDraft && !cmd.Republish
	out.moved = true
	out.due, err = poststore.Move(ctx, tx, posts, to, keepUnknown, publishing.ActorOf(p))
	if err != nil {
		return out, err
	}
	return out, quota.Check(ctx, op, at, before)
}

// checkStored checks the quota after the given number of posts was stored in the queue at a time.
func checkStored(
	ctx context.Context, quota poststore.PostQuota, op string, at time.Time, stored int,
) error {
	n, err := quota.Count(ctx, at)
	if err != nil || stored == 0 {
		return err
	}
	return quota.Check(ctx, op, at, n-stored)
}

// queued reports whether every post is waiting for its time and none may have been sent.
func queued(posts []poststore.PostStatus) bool {
	for _, p := range posts {
		if p.OutcomeUnknown || p.State != publishing.StateQueue && p.State != publishing.StateWaiting {
			return false
		}
	}
	return true
}

// movable applies publishing.Move to every post of a group. If a part of one post is published, all
// posts count as published.
func movable(posts []poststore.PostStatus, to publishing.State, republish bool) error {
	published := false
	for _, p := range posts {
		published = published || p.Published
	}
	for _, p := range posts {
		if err := publishing.Move(p.State, to, p.OutcomeUnknown, published, republish); err != nil {
			return err
		}
	}
	return nil
}

// recheck applies the rules of a stored post's channel as if the post were new, and returns the
// post.
func (s *Posts) recheck(ctx context.Context, p tenancy.Principal, post string) (publishing.PostDetail, error) {
	detail, err := s.Get(ctx, p, post)
	if err != nil {
		return publishing.PostDetail{}, err
	}
	if problems, _ := s.checker.channelRules(ctx, storedEntry(detail)); len(problems) > 0 {
		return publishing.PostDetail{}, contentFault(problems)
	}
	return detail, nil
}

// storedEntry returns a stored post in the form of a request's entry whose references were found.
func storedEntry(d publishing.PostDetail) checked {
	entry := checked{channel: d.Channel, settings: d.Root.Settings}
	for _, part := range d.Root.Parts {
		entry.parts = append(entry.parts, checkedPart{
			content: part.Content, plain: part.Content.Plain(), media: attached(d, part),
		})
	}
	return entry
}

func attached(d publishing.PostDetail, part publishing.Part) (out []dispatch.AttachedMedium) {
	for _, m := range part.Media {
		out = append(out, dispatch.AttachedMedium{Medium: d.Media[m.Media], Alt: m.Alt})
	}
	return out
}
