package post

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// ChangeSettings merges the members of cmd.Settings into the settings of a post and its followers.
// Members set to null are removed. If the post is repeated, only this occurrence changes. The posts
// keep their states, with one exception: unless cmd overrides the approval, approved posts in the
// queue become drafts.
//
// It returns NotFound if the post does not exist. It returns Forbidden if the principal may not
// override the approval, or is an agent that may change only drafts or may queue no more posts
// today. It returns Invalid if the post is queued and its new settings violate the platform's
// rules. It returns Conflict if the post is being published, has been published, or may have been
// published.
func (s *Posts) ChangeSettings(
	ctx context.Context, p tenancy.Principal, post string, cmd publishing.ChangeSettings,
) (out publishing.SettingsChanged, err error) {
	const op = "publishing.ChangeSettings"
	parsed, ok := id.Parse[publishing.PostTag](post)
	if !ok {
		return out, publishing.NoPost(op)
	}
	detail, err := s.Get(ctx, p, post)
	if err != nil {
		return out, err
	}
	if err := cmd.Validate(); err != nil {
		return out, err
	}
	entry := storedEntry(detail)
	cmd.Settings = merged(entry.settings, cmd.Settings)
	if err := cmd.Validate(); err != nil {
		return out, err
	}
	entry.settings = settingsFor(entry.channel, cmd.Settings)
	problems, _ := s.checker.channelRules(ctx, entry)
	err = s.db.InOrgToWrite(ctx, p, func(tx *db.Tx) error {
		quota, err := poststore.ReadPostQuota(ctx, tx, s.deps.Quota)
		if err != nil {
			return err
		}
		group, stored, err := groupOf(ctx, tx, parsed)
		if err != nil {
			return err
		}
		posts, err := poststore.LockGroup(ctx, tx, group)
		if err != nil {
			return err
		}
		if len(posts) == 0 {
			return publishing.NoPost(op)
		}
		if err := mayChange(op, p, posts); err != nil {
			return err
		}
		if err := movable(posts, publishing.StateQueue, false); err != nil {
			return err
		}
		if len(posts)*len(entry.settings) > publishing.MaxAllSettings {
			return fault.New(fault.Invalid, op, fmt.Sprintf("The settings of all delayed parts together must "+
				"be smaller than %d bytes.", publishing.MaxAllSettings))
		}
		if queued(posts) {
			if len(problems) > 0 {
				return contentFault(problems)
			}
			if err := s.takeAllowance(ctx, tx, p, 1); err != nil {
				return err
			}
		}
		root := rootOf(posts)
		if stored > 0 {
			if err := checkStored(ctx, quota, op, s.goesOut(root.PublishDate), stored); err != nil {
				return err
			}
		}
		before, err := poststore.ContentOf(ctx, tx, group)
		if err != nil {
			return err
		}
		out = publishing.SettingsChanged{Post: root.ID, PublishDate: root.PublishDate}
		if err := s.deps.Approvals.VoidPending(ctx, tx, p, root.ID, contentChanged, false); err != nil {
			return err
		}
		done, err := poststore.SetSettings(
			ctx, tx, group, root.ID, detail.Root.Settings, entry.settings, tenancy.ActorOf(p),
		)
		if err != nil {
			return err
		}
		if !done {
			return &fault.Error{
				Kind: fault.Conflict, Op: op, RetryAfter: time.Second,
				Message: "The post's settings have been changed in the meantime; try again.",
			}
		}
		if !before.NeedsApproval() {
			return nil
		}
		held, err := s.holdApproval(ctx, tx, p, group, before, cmd.Override)
		if err != nil {
			return err
		}
		out.Approval = held.ApprovalEffect
		return s.deps.Approvals.NotifyEnded(ctx, tx, held.ended, contentChanged)
	})
	return out, db.PostFault(op, err)
}

// rootOf returns the post without a predecessor. Every group has exactly one.
func rootOf(posts []poststore.PostStatus) poststore.PostStatus {
	for _, p := range posts {
		if p.After.IsZero() {
			return p
		}
	}
	return posts[0]
}

// merged returns the stored settings with the members in change applied. If a member of change is
// null, that member is removed.
func merged(stored, change json.RawMessage) json.RawMessage {
	members, changed := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal(stored, &members) != nil || json.Unmarshal(change, &changed) != nil || members == nil {
		return change // one of them is not an object
	}
	for name, v := range changed {
		members[name] = v
		if string(v) == "null" {
			delete(members, name)
		}
	}
	out, err := json.Marshal(members)
	if err != nil {
		return change
	}
	return out
}
