package post

import (
	"context"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// heldApproval describes how a change affects an approval. If the approval has ended, the requester
// and the approver are notified at the end of the transaction, because Approvals.NotifyEnded locks
// the organization's notifications.
type heldApproval struct {
	publishing.ApprovalEffect
	// approved means that the post is approved with its new content.
	approved bool
	// ended is the approval that has ended, or nil if none has.
	ended *publishing.Approval
}

// template returns the mark for the template of a series that begins with the changed post.
func (h heldApproval) template() poststore.TemplateMark {
	switch {
	case h.approved:
		return poststore.TemplateApproved
	case h.OverriddenBy != "":
		return poststore.TemplateFree
	}
	return poststore.TemplateHeld
}

// holdApproval updates a locked group's approval after a change to the group. before is the content
// before the change. If the content is the same, for example because only the time has changed, the
// approval stays in force. Otherwise the approval ends, and a post in the queue becomes a draft
// unless override is set. It returns Forbidden if the principal may not override the approval of a
// post in the queue.
func (s *Posts) holdApproval(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, group publishing.GroupID,
	before poststore.Content, override bool,
) (out heldApproval, err error) {
	content, err := poststore.ContentOf(ctx, tx, group)
	if err != nil {
		return out, err
	}
	if content.IsApproved(before) {
		out.approved = true
		return out, poststore.ApproveContent(ctx, tx, group) // new follower rows lack the approval
	}
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return out, err
	}
	root, reason := rootOf(posts), "The post was changed after its approval."
	inQueue := root.State == publishing.StateQueue
	switch {
	case inQueue && override:
		reason = overridden
		if out.OverriddenBy, err = s.overrideApproval(ctx, tx, p, group, root.ID); err != nil {
			return out, err
		}
	case inQueue:
		out.Draft = true
		if _, err := poststore.Move(ctx, tx, posts, publishing.StateDraft, true, publishing.ActorOf(p)); err != nil {
			return out, err
		}
	}
	if out.OverriddenBy == "" {
		if err := poststore.RejectContent(ctx, tx, group); err != nil {
			return out, err
		}
	}
	out.ended, err = s.deps.Approvals.EndInForce(ctx, tx, p, root.ID, inQueue, reason)
	out.Void = out.ended != nil
	return out, err
}

const overridden = "The post was changed after its approval, and an administrator overrode the approval."

// holdSchedule is like holdApproval, but for a locked draft that is about to be scheduled
// unchanged. It returns Conflict if the content is not what was approved and override is not set.
func (s *Posts) holdSchedule(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, group publishing.GroupID,
	root publishing.PostID, override bool,
) (out heldApproval, err error) {
	content, err := poststore.ContentOf(ctx, tx, group)
	if err != nil {
		return out, err
	}
	switch {
	case !content.NeedsApproval():
		return out, poststore.MarkTemplate(ctx, tx, root, poststore.TemplateFree)
	case content.IsApproved(content):
		out.approved = true
		return out, nil
	case !override:
		return out, fault.New(fault.Conflict, "publishing.ChangeStatus", "The content of the post is not what was "+
			"approved: request approval again, or send override: true as an administrator.")
	}
	if out.OverriddenBy, err = s.overrideApproval(ctx, tx, p, group, root); err != nil {
		return out, err
	}
	if err := poststore.MarkTemplate(ctx, tx, root, poststore.TemplateFree); err != nil {
		return out, err
	}
	out.ended, err = s.deps.Approvals.EndInForce(ctx, tx, p, root, true, overridden)
	out.Void = out.ended != nil
	return out, err
}

// overrideApproval allows a locked group to be published without approval, and records the override
// in the audit log. It returns the email address of the administrator responsible for the override:
// the person, or the creator of the API key. It returns Forbidden if there is no such
// administrator.
func (s *Posts) overrideApproval(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, group publishing.GroupID, root publishing.PostID,
) (email string, err error) {
	email, err = s.deps.Approvals.MayOverride(ctx, tx, p)
	if err != nil {
		return "", err
	}
	if err := poststore.FreeContent(ctx, tx, group); err != nil {
		return "", err
	}
	return email, s.db.Audit(ctx, tx, p, tenancy.ActionApprovalOverridden, "post "+root.String()+" by "+email)
}
