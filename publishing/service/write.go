package service

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// write stores everything in one transaction, the idempotency row first.
func (s *Posts) write(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts, entries []checked) (out publishing.CreateResult, due *time.Time, err error) {
	var pictures []publishingstore.PictureKey
	err = s.inOrg(ctx, p.Org, func(tx *publishingstore.Tx) error {
		out, due, pictures = publishing.CreateResult{}, nil, nil
		if err := hold(ctx, tx, entries); err != nil {
			return err
		}
		plans, err := s.plan(ctx, tx, p, cmd, entries)
		if err != nil {
			return err
		}
		answers := make([]answer, len(plans))
		for i, pl := range plans {
			answers[i] = answer{pl.posts[0].ID, pl.posts[0].Channel}
			out.Created = append(out.Created, publishing.Created{Post: pl.posts[0].ID, Channel: pl.posts[0].Channel})
		}
		if err := remember(ctx, tx, cmd, answers); err != nil {
			return err
		}
		var fresh []publishingstore.NewPost
		for _, pl := range plans {
			if pl.old == nil {
				fresh = append(fresh, pl.posts...)
				continue
			}
			if err := tx.Rewrite(ctx, pl.posts[0].Group, pl.old, pl.posts); err != nil {
				return err
			}
		}
		due = wakeAt(s, plans)
		if len(fresh) > 0 {
			if err := tx.Insert(ctx, fresh); err != nil {
				return err
			}
		}
		for i, pl := range plans {
			if pl.posts[0].State != publishing.StateQueue {
				continue
			}
			keys, err := s.want(ctx, tx, entries[i])
			if err != nil {
				return err
			}
			pictures = append(pictures, keys...)
		}
		return s.repeat(ctx, tx, p, cmd, entries, plans)
	})
	if err == nil {
		s.deps.Pictures.Add(p.Org, pictures)
	}
	return out, due, err
}

// hold makes sure that the channels are still there when their posts are stored.
func hold(ctx context.Context, tx *publishingstore.Tx, entries []checked) error {
	ids := map[publishing.ChannelID]bool{}
	for _, e := range entries {
		ids[e.channel.ID] = true
	}
	n, err := tx.HoldChannels(ctx, slices.Collect(maps.Keys(ids)), publishing.GroupID{})
	if err == nil && n < len(ids) {
		return disconnected("publishing.CreatePosts")
	}
	return err
}

func disconnected(op string) error {
	return fault.New(fault.Invalid, op, "The channel was disconnected.")
}

// repeat makes what was just written repeat, when that was asked for. The template is written beside each post, since one occurrence may be changed alone.
func (s *Posts) repeat(ctx context.Context, tx *publishingstore.Tx, p tenancy.Principal, cmd publishing.CreatePosts, entries []checked, plans []plan) error {
	if cmd.Repeat.Days == 0 {
		return nil
	}
	for i, pl := range plans {
		e := entries[i]
		if err := s.repeatable(ctx, tx, e, pl); err != nil {
			return err
		}
		e.parts = slices.Clone(e.parts)
		for j := range e.parts {
			e.parts[j].id = ""
		}
		template := s.build(p, cmd, e, id.New[publishing.PostTag](), id.New[publishing.GroupTag](), publishing.StateDraft)
		err := tx.Repeat(ctx, pl.posts[0].ID, cmd.Repeat, e.channel.Timezone, template)
		if fault.Is(err, fault.Invalid) {
			return contentFault([]fault.Channel{problemOf(e.channel, 0, 1, "This server does not know the channel's time zone "+
				quoted(e.channel.Timezone)+": connect the channel again with another one.")})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// repeatable makes sure that a series is changed by its next occurrence only, and deletes what is booked beside it.
// An occurrence that has just ended is followed first, so that the one after it is the next.
func (s *Posts) repeatable(ctx context.Context, tx *publishingstore.Tx, e checked, pl plan) error {
	for _, old := range pl.old {
		if old.Series.IsZero() {
			continue
		}
		if _, err := tx.Advance(ctx, old.Series, true); err != nil && !fault.Is(err, fault.Invalid) {
			return err // of an unknown zone nothing follows, and this change replaces the zone
		}
		next, over, err := tx.NextOf(ctx, old.Series)
		if err != nil {
			return err
		}
		if !over && next != old.Occurrence {
			return contentFault([]fault.Channel{problemOf(e.channel, 0, 1, "This is not the next occurrence of a repeated post: leave inter out to change this one alone, or change the next one to change all that follow.")})
		}
		if err := s.deletePending(ctx, tx, old); err != nil {
			return err
		}
	}
	return nil
}

func remember(ctx context.Context, tx *publishingstore.Tx, cmd publishing.CreatePosts, answers []answer) error {
	if cmd.IdempotencyKey == "" {
		return nil
	}
	body, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	return tx.Remember(ctx, cmd.IdempotencyKey, cmd.RequestHash, body)
}

// plan is what is written for one entry: new posts, or the new content of an old group.
type plan struct {
	posts []publishingstore.NewPost // root first
	old   []publishingstore.Standing
}

func wakeAt(s *Posts, plans []plan) (first *time.Time) {
	for _, pl := range plans {
		root := pl.posts[0]
		if root.State != publishing.StateQueue {
			continue
		}
		at := time.Time{} // at once, whatever the clocks say
		if root.Due != nil {
			at = *root.Due
		}
		if first == nil || at.Before(*first) {
			first = &at
		}
	}
	return first
}

func (s *Posts) plan(ctx context.Context, tx *publishingstore.Tx, p tenancy.Principal, cmd publishing.CreatePosts, entries []checked) ([]plan, error) {
	out := make([]plan, 0, len(entries))
	seen := map[publishing.GroupID]bool{}
	for _, e := range entries {
		group, found, err := existing(ctx, tx, e)
		if err != nil {
			return nil, err
		}
		if seen[group] && found {
			return nil, contentFault([]fault.Channel{problemOf(e.channel, 0, 1, "Two entries replace the same post.")})
		}
		seen[group] = true
		if cmd.Type == publishing.CreateUpdate && !found {
			return nil, contentFault([]fault.Channel{problemOf(e.channel, 0, 1, "There is no post to update: name its group, or its id in value[0].id.")})
		}
		pl := plan{}
		state := stateOf(cmd.Type)
		root := id.New[publishing.PostTag]()
		if found {
			if pl.old, err = tx.LockGroup(ctx, group); err != nil {
				return nil, err
			}
			if err := movable(pl.old, publishing.StateQueue, cmd.Republish); err != nil {
				return nil, err
			}
			oldRoot, problem := rootOf(pl.old, e.channel)
			if problem != "" {
				return nil, contentFault([]fault.Channel{problemOf(e.channel, 0, 1, problem)})
			}
			root = oldRoot.ID
			if cmd.Type == publishing.CreateUpdate {
				state = keptState(oldRoot.State)
			}
		} else {
			group = id.New[publishing.GroupTag]()
		}
		pl.posts = s.build(p, cmd, e, root, group, state)
		out = append(out, pl)
	}
	return out, nil
}

func stateOf(t publishing.CreateType) publishing.State {
	if t == publishing.CreateDraft {
		return publishing.StateDraft
	}
	return publishing.StateQueue
}

// keptState is the state of an updated post: what had failed is a draft again, so that it does not go out unasked.
func keptState(s publishing.State) publishing.State {
	if s == publishing.StateQueue {
		return s
	}
	return publishing.StateDraft
}

func rootOf(posts []publishingstore.Standing, channel publishing.Channel) (publishingstore.Standing, string) {
	for _, p := range posts {
		if p.After.IsZero() {
			if p.Channel != channel.ID {
				return p, "The group belongs to a post of another channel."
			}
			return p, ""
		}
	}
	return publishingstore.Standing{}, "There is no such post any more."
}

// existing finds the group that an entry replaces: by its group, or by the id of any part. An id that names nothing, or a part of another group, is the entry's fault.
func existing(ctx context.Context, tx *publishingstore.Tx, e checked) (group publishing.GroupID, found bool, err error) {
	unknown := contentFault([]fault.Channel{problemOf(e.channel, 0, 1, "There is no such post or group to replace.")})
	if e.group != "" {
		parsed, ok := id.Parse[publishing.GroupTag](e.group)
		if !ok {
			return group, false, unknown
		}
		posts, err := tx.LockGroup(ctx, parsed)
		if err == nil && len(posts) == 0 {
			_, _, err = tx.Materialize(ctx, parsed.UUID(), true)
		}
		if pg.IsNoRows(err) {
			err = unknown
		}
		if err != nil {
			return group, false, err
		}
		group = parsed
	}
	for _, part := range e.parts {
		if part.id == "" {
			continue
		}
		parsed, ok := id.Parse[publishing.PartTag](part.id)
		if !ok {
			return group, false, unknown
		}
		of, err := tx.GroupOfPart(ctx, parsed)
		if pg.IsNoRows(err) {
			of, _, err = tx.Materialize(ctx, parsed.UUID(), false)
		}
		if pg.IsNoRows(err) || err == nil && !group.IsZero() && of != group {
			return group, false, unknown
		}
		if err != nil {
			return group, false, err
		}
		group = of
	}
	return group, !group.IsZero(), nil
}

// build cuts the parts into a root and, wherever a part has a delay, a follower that waits for the run before it.
func (s *Posts) build(p tenancy.Principal, cmd publishing.CreatePosts, e checked, root publishing.PostID, group publishing.GroupID, state publishing.State) []publishingstore.NewPost {
	base := publishing.Post{Org: p.Org, Group: group, Channel: e.channel.ID, State: state, Settings: settingsFor(e.channel, e.settings), CreationMethod: cmd.Method}
	if cmd.Type != publishing.CreateNow {
		base.PublishDate = cmd.Date
		base.Due = &cmd.Date
	}
	first := base
	first.ID = root
	out := []publishingstore.NewPost{{Post: first, By: by(p)}}
	used := map[publishing.PartID]bool{}
	for i, part := range e.parts {
		if part.delay > 0 {
			next := base
			next.ID, next.After, next.Delay, next.Due = id.New[publishing.PostTag](), out[len(out)-1].ID, part.delay, nil
			next.State = publishing.StateWaiting
			out = append(out, publishingstore.NewPost{Post: next, By: by(p)})
		}
		last := &out[len(out)-1]
		written := publishing.Part{ID: id.New[publishing.PartTag](), Position: i, Content: part.content}
		if kept, ok := keptID(part, i, root); ok && !used[kept] {
			written.ID = kept
		}
		used[written.ID] = true
		for _, m := range part.media {
			written.Media = append(written.Media, publishing.Attachment{Media: m.ID, Alt: m.alt})
		}
		last.Parts = append(last.Parts, written)
	}
	return out
}

// keptID is the id that a part keeps: the first part has its post's, others the one that was sent again.
func keptID(part checkedPart, index int, root publishing.PostID) (publishing.PartID, bool) {
	if index == 0 {
		return id.FromUUID[publishing.PartTag](root.UUID()), true
	}
	return id.Parse[publishing.PartTag](part.id)
}
