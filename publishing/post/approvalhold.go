package post

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// heldApproval is the effect of a change on an approval. The requester and the approver are
// notified about ended at the end of the transaction (notifyEnded), because notifying locks the
// organization's notifications.
type heldApproval struct {
	publishing.ApprovalEffect
	// approved means that the post is approved with its new content.
	approved bool
	// ended is the approval that has ended, or nil.
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

// holdApproval applies a change of the content of a locked group to its approval; before is the
// group before the change. If the content is the same, for example only the time has changed, the
// approval stays. Otherwise the approval ends and a post in the queue becomes a draft, unless the
// principal overrides that. It returns Forbidden if the principal may not override.
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
		return out, poststore.ApproveContent(ctx, tx, group) // followers are inserted anew
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
	out.ended, err = s.endInForce(ctx, tx, p, root.ID, inQueue, reason)
	out.Void = out.ended != nil
	return out, err
}

const overridden = "The post was changed after its approval, and an administrator has overridden that."

// holdSchedule is holdApproval for a locked draft that is about to be scheduled unchanged. It
// returns Conflict if the content is not what was approved.
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
	out.ended, err = s.endInForce(ctx, tx, p, root, true, overridden)
	out.Void = out.ended != nil
	return out, err
}

// overrideApproval frees a locked group from its approval, records that in the audit log, and returns the address of the
// administrator who answers for the override: the person, or the creator of the key. It returns
// Forbidden if there is no such administrator.
func (s *Posts) overrideApproval(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, group publishing.GroupID, root publishing.PostID,
) (email string, err error) {
	if err := publishing.MayOverride(p); err != nil {
		return "", err
	}
	email, err = poststore.ManagerEmail(ctx, tx, p.Person)
	if pg.IsNoRows(err) {
		return "", fault.New(fault.Forbidden, "publishing.Override", "An approval can be overridden only in the name of an "+
			"administrator, and the creator of this API key is not an administrator.")
	}
	if err != nil {
		return "", err
	}
	if err := poststore.FreeContent(ctx, tx, group); err != nil {
		return "", err
	}
	return email, s.db.Audit(ctx, tx, p, tenancy.ActionApprovalOverridden, "post "+root.String()+" by "+email)
}

// endInForce ends the approval under which a post is published, and returns it, or nil if there is
// none. The approval of a series remains in force for the other occurrences: it ends only for this
// one, if it was in the queue.
func (s *Posts) endInForce(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, inQueue bool, reason string,
) (*publishing.Approval, error) {
	a, err := poststore.ApprovalInForce(ctx, tx, root)
	if pg.IsNoRows(err) || err == nil && a.Post != root && !inQueue {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now, isOwn := s.deps.Clock.Now(), a.Post == root
	a.Post, a.Status, a.ResolvedAt = root, publishing.ApprovalVoid, &now
	if isOwn {
		ended, err := poststore.EndApproval(ctx, tx, a, publishing.ApprovalApproved)
		if err != nil || !ended {
			return nil, err
		}
		if err := s.tellGuest(ctx, tx, a); err != nil {
			return nil, err
		}
	}
	if err := poststore.AddApprovalEvent(
		ctx, tx, root, publishing.EventApprovalVoid, publishing.ActorOf(p), reason,
	); err != nil {
		return nil, err
	}
	return &a, s.deps.Events.AddEvent(ctx, tx, publishing.WebhookApprovalResolved, root, voidData(a))
}

// tellGuest queues a mail to a guest whose approval has ended, because guests get no notifications.
func (s *Posts) tellGuest(ctx context.Context, tx *db.Tx, a publishing.Approval) error {
	if s.deps.ReviewMails == nil || a.ReviewerEmail == nil || !a.ResolvedBy.IsZero() {
		return nil
	}
	return poststore.AddReviewTask(ctx, tx, s.deps.ReviewMails, ReviewEndedTask, a.ID)
}

// notifyEnded notifies the requester and the member who approved that an approval has ended.
func (s *Posts) notifyEnded(ctx context.Context, tx *db.Tx, ended *publishing.Approval, reason string) error {
	if ended == nil {
		return nil
	}
	for _, n := range endedNotifications(*ended, reason) {
		if err := s.deps.Notices.Add(ctx, tx, n); err != nil {
			return err
		}
	}
	return nil
}

// withdrawApproved takes back the approval of a post. The post becomes a draft if it is in the
// queue, and so does every queued occurrence of its series. It returns Conflict while one of them
// is being published.
func (s *Posts) withdrawApproved(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, root publishing.PostID, approval publishing.ApprovalID,
) (*publishing.Approval, error) {
	group, err := poststore.GroupOf(ctx, tx, root)
	if err != nil {
		return nil, err
	}
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return nil, err
	}
	groups := []publishing.GroupID{group}
	if of := rootOf(posts); !of.Series.IsZero() {
		others, err := poststore.Pending(ctx, tx, of.Series, of.Occurrence)
		if err != nil {
			return nil, err
		}
		groups = append(groups, others...)
		if err := poststore.MarkTemplate(ctx, tx, root, poststore.TemplateHeld); err != nil {
			return nil, err
		}
	}
	for _, g := range groups {
		if err := s.unschedule(ctx, tx, p, g, approval); err != nil {
			return nil, err
		}
	}
	return s.endInForce(ctx, tx, p, root, true, withdrawn)
}

const withdrawn = "The request was withdrawn."

// unschedule takes the posts of a group out of the queue if they are published under an approval,
// and frees them from it.
func (s *Posts) unschedule(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, group publishing.GroupID, approval publishing.ApprovalID,
) error {
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil || len(posts) == 0 {
		return err
	}
	root := rootOf(posts)
	inForce, err := poststore.ApprovalInForce(ctx, tx, root.ID)
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
		if _, err := poststore.Move(ctx, tx, posts, publishing.StateDraft, true, publishing.ActorOf(p)); err != nil {
			return err
		}
	}
	return poststore.FreeContent(ctx, tx, group)
}
