package post

import (
	"context"
	"slices"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// repeat starts the series requested by a create command. A series has a template that is separate
// from its posts, so that a single occurrence can be changed.
func (s *Posts) repeat(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, cmd publishing.CreatePosts,
	entries []checked, plans []plan, quota poststore.PostQuota,
) error {
	if cmd.Repeat.Days == 0 {
		return nil
	}
	for i, pl := range plans {
		e := entries[i]
		if err := s.replaceSeries(ctx, tx, p, e, pl, quota); err != nil {
			return err
		}
		e.parts = slices.Clone(e.parts)
		for j := range e.parts {
			e.parts[j].id = ""
		}
		post, group := id.New[publishing.PostTag](), id.New[publishing.GroupTag]()
		template := build(p, cmd, e, post, group, publishing.StateDraft)
		root := pl.posts[0]
		marked, err := poststore.TemplateMarked(ctx, tx, root.ID)
		if err != nil {
			return err
		}
		err = poststore.Repeat(ctx, tx, root.ID, cmd.Repeat, e.channel.Timezone, template)
		if fault.Is(err, fault.Invalid) {
			return entryFault(e, "This server does not know the channel's time zone "+connector.Quote(e.channel.Timezone)+
				": connect the channel again with another one.")
		}
		if err != nil {
			return err
		}
		if publishing.MustAsk(p) { // nobody has approved the occurrences that would follow the draft
			if err := poststore.MarkTemplate(ctx, tx, root.ID, poststore.TemplateHeld); err != nil {
				return err
			}
			continue
		}
		if !pl.needsApproval && (!marked || root.State == publishing.StateQueue) {
			continue
		}
		if err := poststore.MarkTemplate(ctx, tx, root.ID, pl.held.template()); err != nil {
			return err
		}
	}
	return nil
}

// replaceSeries prepares a replaced post's series for a change. It deletes the other stored
// occurrences that have not ended yet. If the series has not stopped and the post is not its next
// occurrence, replaceSeries returns Invalid.
func (s *Posts) replaceSeries(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, e checked, pl plan,
	quota poststore.PostQuota,
) error {
	for _, old := range pl.old {
		if old.Series.IsZero() {
			continue
		}
		// If the current occurrence has just ended, the next occurrence must be stored first.
		// Invalid means that the time zone is unknown. This error is ignored, because the change
		// replaces the time zone.
		if _, err := poststore.Advance(ctx, tx, old.Series, true, quota); err != nil && !fault.Is(err, fault.Invalid) {
			return err
		}
		next, over, err := poststore.NextOf(ctx, tx, old.Series)
		if err != nil {
			return err
		}
		if !over && next != old.Occurrence {
			return entryFault(e, "This is not the next occurrence of a repeated post: omit inter to change "+
				"only this one, or change the next one to change all that follow.")
		}
		if err := s.deletePending(ctx, tx, "publishing.CreatePosts", p, old); err != nil {
			return err
		}
	}
	return nil
}
