package post

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/pictures"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// Create creates a post for each entry or, if the entry names an existing post, replaces that post.
// Either all entries are written or none are. If a result is already stored under the
// Idempotency-Key, Create writes nothing and returns that result with Replayed set.
//
// With DryRun, Create returns the same results and errors but writes nothing.
//
// Create can return these errors:
//
//   - Invalid, listing the problems for every channel
//   - Quota, if the plan does not allow that many posts in the date's billing month
//   - Conflict, if another request with the same key is still running, if an existing post cannot
//     be replaced now, or if NoDuplicates is set and a post is a duplicate
//   - Forbidden, if the principal may not override an approval, or is an agent that may not queue
//     posts, may not repeat posts, may change only drafts, or has reached its daily limit
//   - TooLarge, if the checks take longer than a request may take
//   - Unavailable, if the database cannot be reached
//
// If Create returns Unavailable, the posts may still have been created, because the connection may
// have been lost during the commit. Repeating the request with the same key does not create them
// twice.
func (s *Posts) Create(
	ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts,
) (publishing.CreateResult, error) {
	if cmd.Type == publishing.CreateNow || cmd.Type == publishing.CreateSchedule {
		if err := publishing.MayQueue("publishing.CreatePosts", p); err != nil {
			return publishing.CreateResult{}, err
		}
	}
	if cmd.Repeat.Days != 0 {
		if err := publishing.MayRepeat("publishing.CreatePosts", p); err != nil {
			return publishing.CreateResult{}, err
		}
	}
	if cmd.IdempotencyKey != "" {
		leave, err := s.keys.enter(ctx, p.Org, cmd.IdempotencyKey)
		if err != nil {
			return publishing.CreateResult{}, err
		}
		defer leave()
		if answer, found, err := s.storedAnswer(ctx, p, cmd); err != nil || found {
			return answer, err
		}
	}
	if err := cmd.Validate(); err != nil {
		return publishing.CreateResult{}, err
	}
	entries, err := s.checker.check(ctx, p, cmd)
	if err != nil {
		return publishing.CreateResult{}, err
	}
	if err := s.refuseDuplicates(ctx, p, cmd, entries); err != nil {
		return publishing.CreateResult{}, err
	}
	out, due, err := s.writeOnce(ctx, p, cmd, entries)
	if err != nil {
		return publishing.CreateResult{}, err
	}
	if due != nil {
		s.deps.Waker.Wake(ctx, p.Org, *due)
	}
	return out, nil
}

// write stores the idempotency key, the posts, the pictures that the posts need, and any new
// series, all in one transaction. due is when the first queued post is due.
func (s *Posts) write(
	ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts, entries []checked,
) (out publishing.CreateResult, due *time.Time, err error) {
	var pictures []pictures.Key
	err = s.db.InOrgToWrite(ctx, p, func(tx *db.Tx) error {
		out, due, pictures = publishing.CreateResult{}, nil, nil // fn may run again
		quota, err := poststore.ReadPostQuota(ctx, tx, s.deps.Quota)
		if err != nil {
			return err
		}
		months := quota.Months(s.datesOf(cmd))
		before := make([]int, len(months))
		for i, at := range months {
			if before[i], err = quota.Count(ctx, at); err != nil {
				return err
			}
		}
		if err := holdChannels(ctx, tx, entries); err != nil {
			return err
		}
		tags, err := wantedTags(ctx, tx, cmd)
		if err != nil {
			return err
		}
		plans, err := makePlans(ctx, tx, p, cmd, entries, tags)
		if err != nil {
			return err
		}
		var added []poststore.NewPost
		for i := range plans {
			pl := &plans[i]
			if pl.old == nil {
				added = append(added, pl.posts...)
			} else if err := s.rewrite(ctx, tx, p, cmd, pl); err != nil {
				return err
			}
			root := pl.posts[0]
			out.Created = append(out.Created, publishing.Created{
				Post: root.ID, Channel: root.Channel, Date: root.PublishDate, Zone: entries[i].channel.Timezone,
				Approval: pl.held.ApprovalEffect,
			})
		}
		if err := remember(ctx, tx, cmd, out.Created); err != nil {
			return err
		}
		if len(added) > 0 {
			if err := poststore.Insert(ctx, tx, added); err != nil {
				return err
			}
		}
		due = firstDue(plans)
		for i, pl := range plans {
			if pl.posts[0].State != publishing.StateQueue {
				continue
			}
			keys, err := s.checker.wantPictures(ctx, tx, entries[i])
			if err != nil {
				return err
			}
			pictures = append(pictures, keys...)
		}
		if err := s.repeat(ctx, tx, p, cmd, entries, plans, quota); err != nil {
			return err
		}
		for i, at := range months {
			if err := quota.Check(ctx, "publishing.CreatePosts", at, before[i]); err != nil {
				return err
			}
		}
		if err := s.takePlans(ctx, tx, p, plans); err != nil {
			return err
		}
		for _, pl := range plans {
			if err := s.deps.Approvals.NotifyEnded(ctx, tx, pl.held.ended, contentChanged); err != nil {
				return err
			}
		}
		if cmd.DryRun {
			return errDryRun
		}
		return nil
	})
	if err == errDryRun {
		return out, nil, nil
	}
	if err != nil {
		return out, due, err
	}
	s.deps.Pictures.Add(p.Org, pictures)
	return out, due, nil
}

// errDryRun rolls back the transaction of a dry run.
var errDryRun = errors.New("dry run")

// takePlans counts the threads that the plans put into the queue, or change in it.
func (s *Posts) takePlans(ctx context.Context, tx *db.Tx, p tenancy.Principal, plans []plan) error {
	added := 0
	for _, pl := range plans {
		switch {
		case pl.posts[0].State != publishing.StateQueue:
		case pl.old == nil:
			added++
		default:
			if err := s.takeChanged(ctx, tx, "publishing.CreatePosts", p, pl.old); err != nil {
				return err
			}
		}
	}
	return s.takeAllowance(ctx, tx, p, added)
}

// rewrite replaces a plan's existing posts and ends any pending approval request for them. If the
// posts were approved with different content, the approval ends too. In that case, the root becomes
// a draft unless the command overrides the approval.
func (s *Posts) rewrite(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, cmd publishing.CreatePosts, pl *plan,
) error {
	root := &pl.posts[0]
	before, err := poststore.ContentOf(ctx, tx, root.Group)
	if err != nil {
		return err
	}
	schedule := root.State == publishing.StateQueue
	if err := s.deps.Approvals.VoidPending(ctx, tx, p, root.ID, contentChanged, schedule); err != nil {
		return err
	}
	if err := poststore.Rewrite(ctx, tx, root.Group, pl.old, pl.posts); err != nil {
		return err
	}
	if !before.NeedsApproval() {
		if schedule && cmd.Repeat.Days == 0 {
			return poststore.MarkTemplate(ctx, tx, root.ID, poststore.TemplateFree)
		}
		return nil
	}
	pl.needsApproval = true
	pl.held, err = s.holdApproval(ctx, tx, p, root.Group, before, cmd.Override)
	if pl.held.Draft {
		root.State = publishing.StateDraft
	}
	return err
}

// datesOf returns the time at which each entry's post will be published.
func (s *Posts) datesOf(cmd publishing.CreatePosts) (out []time.Time) {
	now := s.deps.Clock.Now()
	for _, e := range cmd.Entries {
		at := cmd.Date
		if !e.Date.IsZero() {
			at = e.Date
		}
		if cmd.Type == publishing.CreateNow || at.Before(now) {
			at = now
		}
		out = append(out, at)
	}
	return out
}

// goesOut returns the time at which a post with the given publish date will be published: on that
// date or, if the date is in the past, now. The quota counts the post in the billing month of the
// returned time.
func (s *Posts) goesOut(date time.Time) time.Time {
	if now := s.deps.Clock.Now(); date.Before(now) {
		return now
	}
	return date
}

// contentChanged is the reason stored if a change to a post ends its approval or a pending approval
// request.
const contentChanged = "The post was changed."

// holdChannels prevents the entries' channels from being disconnected until the transaction ends.
// It returns Invalid if any of these channels has already been disconnected.
func holdChannels(ctx context.Context, tx *db.Tx, entries []checked) error {
	ids := map[publishing.ChannelID]bool{}
	for _, e := range entries {
		ids[e.channel.ID] = true
	}
	n, err := poststore.HoldChannels(ctx, tx, slices.Collect(maps.Keys(ids)), publishing.GroupID{})
	if err != nil {
		return err
	}
	if n < len(ids) {
		return publishing.Disconnected("publishing.CreatePosts")
	}
	return nil
}

// plan describes what to write for one entry: either new posts, or new content for existing posts.
type plan struct {
	posts []poststore.NewPost    // the root first
	old   []poststore.PostStatus // the posts to replace; nil for new posts
	// needsApproval is set if the content of the replaced posts must be approved before it is
	// published. In that case, held describes how the change affects the approval.
	needsApproval bool
	held          heldApproval
}

// makePlans determines what to write for each entry, and locks the posts to be replaced. It returns
// Conflict if a post cannot be moved now, and Forbidden if the principal may not change a post. It
// returns Invalid in these cases:
//
//   - An entry names an unknown post, or a post on another channel.
//   - Two entries name the same post.
//   - The command is an update, but an entry names no post.
func makePlans(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, cmd publishing.CreatePosts, entries []checked,
	tags []publishing.TagID,
) ([]plan, error) {
	out := make([]plan, 0, len(entries))
	seen := map[publishing.GroupID]bool{}
	for i := range entries {
		entries[i].tags = tags
		e := entries[i]
		group, found, err := existing(ctx, tx, e)
		if err != nil {
			return nil, err
		}
		if found && seen[group] {
			return nil, entryFault(e, "Two entries replace the same post.")
		}
		seen[group] = true
		if !found && cmd.Type == publishing.CreateUpdate {
			return nil, entryFault(e, "There is no post to update: send its group, or its id in value[0].id.")
		}
		if !found {
			root, group := id.New[publishing.PostTag](), id.New[publishing.GroupTag]()
			out = append(out, plan{posts: build(p, cmd, e, root, group, stateOf(cmd.Type))})
			continue
		}
		old, root, err := replaced(ctx, tx, p, e, group, cmd.Republish)
		if err != nil {
			return nil, err
		}
		state := stateOf(cmd.Type)
		if cmd.Type == publishing.CreateUpdate {
			state = keptState(root.State)
		}
		if tags == nil {
			e.tags, entries[i].tags = root.Tags, root.Tags
		}
		out = append(out, plan{posts: build(p, cmd, e, root.ID, group, state), old: old})
	}
	return out, nil
}

func stateOf(t publishing.CreateType) publishing.State {
	if t == publishing.CreateDraft {
		return publishing.StateDraft
	}
	return publishing.StateQueue
}

// build returns the posts for one entry: a root, plus a follower for each part with a delay. Each
// follower waits for the post before it.
func build(
	p tenancy.Principal, cmd publishing.CreatePosts, e checked,
	root publishing.PostID, group publishing.GroupID, state publishing.State,
) []poststore.NewPost {
	base := publishing.Post{
		Org: p.Org, Group: group, Channel: e.channel.ID, State: state,
		Settings: settingsFor(e.channel, e.settings), CreationMethod: cmd.Method, Tags: e.tags,
	}
	if cmd.Type != publishing.CreateNow {
		at := cmd.Date
		if !e.date.IsZero() {
			at = e.date
		}
		base.PublishDate, base.Due = at, &at
	}
	first := base
	first.ID = root
	out := []poststore.NewPost{{Post: first, By: tenancy.ActorOf(p)}}
	used := map[publishing.PartID]bool{}
	for i, part := range e.parts {
		if part.delay > 0 {
			next := base
			next.ID, next.After = id.New[publishing.PostTag](), out[len(out)-1].ID
			next.Delay, next.Due = part.delay, nil
			next.State = publishing.StateWaiting
			out = append(out, poststore.NewPost{Post: next, By: tenancy.ActorOf(p)})
		}
		last := &out[len(out)-1]
		written := publishing.Part{ID: id.New[publishing.PartTag](), Position: i, Content: part.content}
		if kept, ok := keptID(part, i, root); ok && !used[kept] {
			written.ID = kept
		}
		used[written.ID] = true
		for _, m := range part.media {
			written.Media = append(written.Media, publishing.Attachment{Media: m.ID, Alt: m.Alt})
		}
		last.Parts = append(last.Parts, written)
	}
	return out
}

// keptID returns the id that a part keeps. The first part keeps the root's id, and any other part
// keeps the id sent by the client. keptID returns false if the client sent no valid id.
func keptID(part checkedPart, index int, root publishing.PostID) (publishing.PartID, bool) {
	if index == 0 {
		return id.FromUUID[publishing.PartTag](root.UUID()), true
	}
	return id.Parse[publishing.PartTag](part.id)
}

// firstDue returns the time at which the first queued post is due. The zero time means now. If no
// post is queued, firstDue returns nil.
func firstDue(plans []plan) (first *time.Time) {
	for _, pl := range plans {
		root := pl.posts[0]
		if root.State != publishing.StateQueue {
			continue
		}
		at := time.Time{} // now by the database's clock, not this process's
		if root.Due != nil {
			at = *root.Due
		}
		if first == nil || at.Before(*first) {
			first = &at
		}
	}
	return first
}

// wantedTags returns the ids of the tags named by a command. Unknown names are ignored. If cmd.Tags
// is nil, wantedTags returns nil, so that existing posts keep their tags.
func wantedTags(
	ctx context.Context, tx *db.Tx, cmd publishing.CreatePosts,
) ([]publishing.TagID, error) {
	if cmd.Tags == nil {
		return nil, nil
	}
	out := []publishing.TagID{}
	if len(cmd.Tags) == 0 {
		return out, nil
	}
	found, err := poststore.TagsByName(ctx, tx, cmd.Tags)
	seen := map[publishing.TagID]bool{}
	for _, t := range found {
		if !seen[t] {
			out = append(out, t)
		}
		seen[t] = true
	}
	return out, err
}
