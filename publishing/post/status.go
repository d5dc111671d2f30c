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

// ChangeStatus moves all posts of a thread to DRAFT or QUEUE. It returns the root's new state. If
// the thread is already queued, it keeps its place in the queue.
//
// ChangeStatus returns NotFound if the post does not exist. It returns Quota if the plan allows no
// more posts in the post's billing month. It returns Invalid if the status is unknown, or if the
// post violates its platform's rules. It returns Conflict in these cases:
//
//   - The post is being published.
//   - The post has been or may have been published, and Republish is not set.
//   - The post's content differs from the approved content, and Override is not set.
//   - An approval request is pending, and the principal is not an administrator.
//
// It returns Forbidden if Override is set but the principal may not override the approval. It also
// returns Forbidden if the principal is an agent that may not queue posts, may change only drafts,
// or has reached its daily limit.
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
		if err := publishing.MayQueue(op, p); err != nil {
			return out, err
		}
		out.State = publishing.StateQueue
		detail, err := s.recheck(ctx, p, post)
		if err != nil {
			return out, err
		}
		entry = storedEntry(detail)
	}
	var due *time.Time
	var pictures []pictures.Key
	err := s.db.InOrgToWrite(ctx, p, func(tx *db.Tx) error {
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
	// due is when the first post of the group is due.
	due *time.Time
	// moved is false if the group was already queued and keeps its place in the queue.
	moved bool
	held  heldApproval
}

// move changes the state of all posts in a post's group. If it queues the group, any pending
// approval request ends.
//
// It returns NotFound if the post no longer exists. It returns Invalid if the post's channel or one
// of its files no longer exists, and Quota if the plan allows no more posts. It returns Conflict if
// the post's state or approval does not allow the move. It returns Forbidden if the principal may
// not move the post or may not override its approval.
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
	if err := mayChange(op, p, posts); err != nil {
		return out, err
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
	out.due, err = poststore.Move(ctx, tx, posts, to, keepUnknown, tenancy.ActorOf(p))
	if err != nil {
		return out, err
	}
	if to == publishing.StateQueue {
		if err := s.takeChanged(ctx, tx, op, p, posts); err != nil {
			return out, err
		}
	}
	return out, quota.Check(ctx, op, at, before)
}

// checkStored checks the quota after posts due at the given time have been added to the queue.
// stored is the number of posts added.
func checkStored(
	ctx context.Context, quota poststore.PostQuota, op string, at time.Time, stored int,
) error {
	n, err := quota.Count(ctx, at)
	if err != nil || stored == 0 {
		return err
	}
	return quota.Check(ctx, op, at, n-stored)
}

// queued reports whether all posts are waiting to be published. It returns false if any of them may
// already have been sent.
func queued(posts []poststore.PostStatus) bool {
	for _, p := range posts {
		if p.OutcomeUnknown || p.State != publishing.StateQueue && p.State != publishing.StateWaiting {
			return false
		}
	}
	return true
}

// movable applies publishing.Move to every post in a group. If any part in the group has been
// published, all posts count as published.
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

// recheck checks a stored post against the channel's rules as if the post were new. It returns the
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

// storedEntry converts a stored post to a checked entry, as if a request had contained the post.
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
