package post

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// Delete deletes a post's thread. Parts that have been published stay on the platform, and a post
// that is currently being published may still appear there. Delete returns NotFound if there is no
// such post, and Forbidden if the principal is an agent that may delete only drafts.
//
// If the post is repeated, only this occurrence is skipped. Delete tries to store the next
// occurrence before it returns. If that fails, the sweep stores it later.
func (s *Posts) Delete(ctx context.Context, p tenancy.Principal, post string) error {
	const op = "publishing.DeletePost"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return publishing.NoPost(op)
	}
	var deleted []poststore.PostStatus
	err := s.db.InOrgToWrite(ctx, p, func(tx *db.Tx) error {
		group, _, err := groupOf(ctx, tx, parsed)
		if err != nil {
			return err
		}
		deleted, err = s.deleteGroup(ctx, tx, op, p, group)
		if err != nil {
			return err
		}
		return mayDelete(ctx, tx, op, p, deleted)
	})
	if err != nil {
		return db.PostFault(op, err)
	}
	s.follow(ctx, p.Org, deleted)
	return nil
}

// DeleteGroup deletes all posts in a group. If the post is repeated, its series ends. The other
// stored occurrences that have not ended yet are deleted too, and no further occurrences follow.
// DeleteGroup returns NotFound if there is no such group. It returns Forbidden for an agent that
// may delete only drafts if the group or its series contains other posts to delete.
func (s *Posts) DeleteGroup(ctx context.Context, p tenancy.Principal, group string) error {
	const op = "publishing.DeleteGroup"
	parsed, ok := id.Parse[publishing.GroupTag](group)
	if !ok {
		return fault.New(fault.NotFound, op, "There is no such group of posts.")
	}
	err := s.db.InOrgToWrite(ctx, p, func(tx *db.Tx) error { return s.deleteSeries(ctx, tx, op, p, parsed) })
	if fault.Is(db.PostFault(op, err), fault.NotFound) {
		return fault.New(fault.NotFound, op, "There is no such group of posts.")
	}
	return db.PostFault(op, err)
}

// postDeleted is the reason stored if deleting a post ends a pending approval request.
const postDeleted = "The post was deleted."

// deleteGroup deletes a group's posts, ends any pending approval request for them, and returns each
// post's previous state. It returns NotFound if the group has no posts, and Forbidden if the
// principal may not delete them.
func (s *Posts) deleteGroup(
	ctx context.Context, tx *db.Tx, op string, p tenancy.Principal, group publishing.GroupID,
) ([]poststore.PostStatus, error) {
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return nil, err
	}
	if len(posts) == 0 {
		return nil, publishing.NoPost(op)
	}
	if err := mayChange(op, p, posts); err != nil {
		return nil, err
	}
	if err := s.deps.Approvals.VoidPending(ctx, tx, p, rootOf(posts).ID, postDeleted, false); err != nil {
		return nil, err
	}
	return posts, poststore.Delete(ctx, tx, posts)
}

// lockOrMaterialize locks a group's posts. If the group is a later occurrence that is not stored
// yet, lockOrMaterialize stores it first.
func lockOrMaterialize(
	ctx context.Context, tx *db.Tx, group publishing.GroupID,
) ([]poststore.PostStatus, error) {
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil || len(posts) > 0 {
		return posts, err
	}
	if _, _, err := poststore.Materialize(ctx, tx, group.UUID(), true); err != nil {
		return nil, err
	}
	return poststore.LockGroup(ctx, tx, group)
}

func (s *Posts) deleteSeries(
	ctx context.Context, tx *db.Tx, op string, p tenancy.Principal, group publishing.GroupID,
) error {
	posts, err := lockOrMaterialize(ctx, tx, group)
	if err != nil {
		return err
	}
	if err := mayChange(op, p, posts); err != nil {
		return err
	}
	for _, post := range posts {
		if post.Series.IsZero() {
			continue
		}
		if err := mayEndSeries(ctx, tx, op, p, post); err != nil {
			return err
		}
		if err := poststore.EndSeries(ctx, tx, post.Series); err != nil {
			return err
		}
		if err := s.deletePending(ctx, tx, op, p, post); err != nil {
			return err
		}
	}
	if len(posts) == 0 {
		return nil
	}
	if err := s.deps.Approvals.VoidPending(ctx, tx, p, rootOf(posts).ID, postDeleted, false); err != nil {
		return err
	}
	return poststore.Delete(ctx, tx, posts)
}

// deletePending deletes the other stored occurrences of a post's series, except those that have
// ended.
func (s *Posts) deletePending(
	ctx context.Context, tx *db.Tx, op string, p tenancy.Principal, of poststore.PostStatus,
) error {
	groups, err := poststore.Pending(ctx, tx, of.Series, of.Occurrence)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if _, err := s.deleteGroup(ctx, tx, op, p, g); err != nil {
			return err
		}
	}
	return nil
}

// follow stores the occurrences that follow the deleted ones, so that lists show them immediately.
// Errors are only logged, because the sweep stores any missing occurrence later.
func (s *Posts) follow(ctx context.Context, org tenancy.OrgID, deleted []poststore.PostStatus) {
	for _, p := range deleted {
		if p.Series.IsZero() {
			continue
		}
		if _, err := poststore.AdvanceSeries(ctx, s.db, org, p.Series, true, s.deps.Quota); err != nil {
			s.deps.Log.Warn("the next occurrence of a repeated post is left to the sweep",
				"org", org, "series", p.Series, "error", err)
		}
	}
}

// EndOfChannel ends all series of a channel that is being disconnected. It also deletes the
// channel's posts, except published and failed ones. The caller must have locked the channel.
func (s *Posts) EndOfChannel(ctx context.Context, tx *db.Tx, channel publishing.ChannelID) error {
	return poststore.EndOfChannel(ctx, tx, channel)
}
