package service

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// heldApproval is what a change has done to an approval. Whoever asked and whoever approved are
// notified of ended at the end of the transaction (notifyEnded), because that locks the
// notifications of the organization.
type heldApproval struct {
	publishing.ApprovalEffect
	// approved means that the post is approved with its new content.
	approved bool
	// ended is the approval that has ended, nil if none has.
	ended *publishing.Approval
}

// template returns what becomes of the template of a series that begins with the changed post.
func (h heldApproval) template() publishingstore.TemplateMark {
	switch {
	case h.approved:
		return publishingstore.TemplateApproved
	case h.OverriddenBy != "":
		return publishingstore.TemplateFree
	}
	return publishingstore.TemplateHeld
}

// holdApproval follows a change of the content of a locked group, which was before as it was
// approved then. The same content, for example at another time, keeps its approval. Otherwise the
// approval ends, and a post in the queue becomes a draft, unless the principal overrides that. It
// returns Forbidden for a principal who may not.
func (c core) holdApproval(
	ctx context.Context, tx *publishingstore.Tx, p tenancy.Principal, group publishing.GroupID,
	before publishingstore.Content, override bool,
) (out heldApproval, err error) {
	content, err := tx.Content(ctx, group)
	if err != nil {
		return out, err
	}
	if content.IsApproved(before) {
		out.approved = true
		return out, tx.ApproveContent(ctx, group) // followers are new posts
	}
	posts, err := tx.LockGroup(ctx, group)
	if err != nil {
		return out, err
	}
	root, reason := rootOf(posts), "The post was changed after its approval."
	inQueue := root.State == publishing.StateQueue
	switch {
	case inQueue && override:
		reason = overridden
		if out.OverriddenBy, err = overrideApproval(ctx, tx, p, group); err != nil {
			return out, err
		}
	case inQueue:
		out.Draft = true
		if _, err := tx.Move(ctx, posts, publishing.StateDraft, true, by(p)); err != nil {
			return out, err
		}
	}
	if out.OverriddenBy == "" {
		if err := tx.RejectContent(ctx, group); err != nil {
			return out, err
		}
	}
	out.ended, err = c.endInForce(ctx, tx, p, root.ID, inQueue, reason)
	out.Void = out.ended != nil
	return out, err
}

const overridden = "The post was changed after its approval, and an administrator has overridden that."

// holdSchedule is holdApproval for a locked draft that is about to be scheduled as it is. It
// returns Conflict for content that is not what was approved.
func (c core) holdSchedule(
	ctx context.Context, tx *publishingstore.Tx, p tenancy.Principal, group publishing.GroupID,
	root publishing.PostID, override bool,
) (out heldApproval, err error) {
	content, err := tx.Content(ctx, group)
	if err != nil {
		return out, err
	}
	switch {
	case !content.NeedsApproval():
		return out, tx.MarkTemplate(ctx, root, publishingstore.TemplateFree)
	case content.IsApproved(content):
		out.approved = true
		return out, nil
	case !override:
		return out, fault.New(fault.Conflict, "publishing.ChangeStatus", "The content of the post is not what was "+
			"approved: ask for its approval again, or send override: true as an administrator.")
	}
	if out.OverriddenBy, err = overrideApproval(ctx, tx, p, group); err != nil {
		return out, err
	}
	if err := tx.MarkTemplate(ctx, root, publishingstore.TemplateFree); err != nil {
		return out, err
	}
	out.ended, err = c.endInForce(ctx, tx, p, root, true, overridden)
	out.Void = out.ended != nil
	return out, err
}

// overrideApproval frees a locked group from its approval, and returns the address of the
// administrator who answers for that: the person, or the creator of the key. It returns Forbidden
// when there is none.
func overrideApproval(
	ctx context.Context, tx *publishingstore.Tx, p tenancy.Principal, group publishing.GroupID,
) (email string, err error) {
	if err := publishing.MayOverride(p); err != nil {
		return "", err
	}
	email, err = tx.ManagerEmail(ctx, p.Person)
	if pg.IsNoRows(err) {
		return "", fault.New(fault.Forbidden, "publishing.Override", "An approval is overridden in the name of an "+
			"administrator, and whoever made this API key is none.")
	}
	if err != nil {
		return "", err
	}
	return email, tx.FreeContent(ctx, group)
}

// endInForce ends the approval under which a post goes out, and returns it; nil when there is none.
// That of a series stays with its other occurrences, and ends for this one alone, if that was in
// the queue.
func (c core) endInForce(
	ctx context.Context, tx *publishingstore.Tx, p tenancy.Principal, root publishing.PostID, inQueue bool, reason string,
) (*publishing.Approval, error) {
	a, err := tx.ApprovalInForce(ctx, root)
	if pg.IsNoRows(err) || err == nil && a.Post != root && !inQueue {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now, isOwn := c.deps.Clock.Now(), a.Post == root
	a.Post, a.Status, a.ResolvedAt = root, publishing.ApprovalVoid, &now
	if isOwn {
		ended, err := tx.EndApproval(ctx, a, publishing.ApprovalApproved)
		if err != nil || !ended {
			return nil, err
		}
	}
	if err := tx.AddApprovalEvent(ctx, root, publishing.EventApprovalVoid, by(p), reason); err != nil {
		return nil, err
	}
	return &a, tx.AddWebhookEvent(ctx, publishing.WebhookApprovalResolved, root, voidData(a))
}

// notifyEnded notifies whoever asked and the member who approved of an approval that has ended.
func notifyEnded(ctx context.Context, tx *publishingstore.Tx, ended *publishing.Approval, reason string) error {
	if ended == nil {
		return nil
	}
	for _, n := range endedNotifications(*ended, reason) {
		if err := tx.AddNotification(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// withdrawApproved takes back the approval of a post, which becomes a draft if it is in the queue,
// as do the occurrences of its series that are. It returns Conflict while one of them is being
// published.
func (c core) withdrawApproved(
	ctx context.Context, tx *publishingstore.Tx, p tenancy.Principal, root publishing.PostID, approval publishing.ApprovalID,
) (*publishing.Approval, error) {
	group, err := tx.GroupOf(ctx, root)
	if err != nil {
		return nil, err
	}
	posts, err := tx.LockGroup(ctx, group)
	if err != nil {
		return nil, err
	}
	groups := []publishing.GroupID{group}
	if of := rootOf(posts); !of.Series.IsZero() {
		others, err := tx.Pending(ctx, of.Series, of.Occurrence)
		if err != nil {
			return nil, err
		}
		groups = append(groups, others...)
		if err := tx.MarkTemplate(ctx, root, publishingstore.TemplateHeld); err != nil {
			return nil, err
		}
	}
	for _, g := range groups {
		if err := c.unschedule(ctx, tx, p, g, approval); err != nil {
			return nil, err
		}
	}
	return c.endInForce(ctx, tx, p, root, true, withdrawn)
}

const withdrawn = "The request was withdrawn."

// unschedule takes the posts of a group out of the queue, if they go out under an approval, and
// frees them from it.
func (c core) unschedule(
	ctx context.Context, tx *publishingstore.Tx, p tenancy.Principal, group publishing.GroupID, approval publishing.ApprovalID,
) error {
	posts, err := tx.LockGroup(ctx, group)
	if err != nil || len(posts) == 0 {
		return err
	}
	root := rootOf(posts)
	inForce, err := tx.ApprovalInForce(ctx, root.ID)
	if pg.IsNoRows(err) || err == nil && inForce.ID != approval {
		return nil
	}
	if err != nil {
		return err
	}
	if root.State.Claimed() {
		return movable(posts, publishing.StateDraft, false)
	}
	if root.State == publishing.StateQueue {
		if _, err := tx.Move(ctx, posts, publishing.StateDraft, true, by(p)); err != nil {
			return err
		}
	}
	return tx.FreeContent(ctx, group)
}
