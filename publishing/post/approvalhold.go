package post

import (
	"context"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// heldApproval describes how a change to a post affects its approval. If the change ends the
// approval, the requester and the approver are notified only at the end of the transaction, because
// Approvals.NotifyEnded locks the organization's notifications.
type heldApproval struct {
	publishing.ApprovalEffect
	// approved means that the post's content after the change is approved.
	approved bool
	// ended is the approval that the change has ended, or nil if none ended.
	ended *publishing.Approval
}

// template returns the mark for the template of a series that starts with the changed post.
func (h heldApproval) template() poststore.TemplateMark {
	switch {
	case h.approved:
		return poststore.TemplateApproved
	case h.OverriddenBy != "":
		return poststore.TemplateFree
	}
	return poststore.TemplateHeld
}

// holdApproval updates the approval of a locked group after the group has been changed. before is
// the content before the change. If the content is unchanged, for example because only the time was
// changed, the approval stays in force.
//
// Otherwise, the approval ends. A post in the queue then becomes a draft, unless override is set.
// holdApproval returns Forbidden if override is set for a post in the queue and the principal may
// not override its approval.
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
		if _, err := poststore.Move(ctx, tx, posts, publishing.StateDraft, true, tenancy.ActorOf(p)); err != nil {
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

// holdSchedule is like holdApproval, but is called for a locked draft that is about to be scheduled
// with unchanged content. It returns Conflict if the content differs from the approved content and
// override is not set.
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

// overrideApproval allows a locked group to be published without approval, and records this in the
// audit log. It returns the email address of the administrator responsible for the override: the
// person who is signed in or the API key's creator. It returns Forbidden in the same cases as
// Approvals.MayOverride.
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
