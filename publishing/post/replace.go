package post

import (
	"context"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
)

// existing returns the group of posts that an entry replaces. The entry names the group by its id
// or by the id of any of its parts; found is false if it names none. An unknown group id is
// ignored, because clients choose the group ids of new posts.
//
// If the entry names a later occurrence of a repeated post, existing stores it, so that this
// occurrence alone can be changed. It returns Invalid if the id of a part names nothing, or if the
// ids belong to different groups.
func existing(
	ctx context.Context, tx *db.Tx, e checked,
) (group publishing.GroupID, found bool, err error) {
	unknown := entryFault(e, "There is no such post or group to replace.")
	if parsed, ok := id.Parse[publishing.GroupTag](e.group); ok {
		posts, err := poststore.LockGroup(ctx, tx, parsed)
		if err != nil {
			return group, false, err
		}
		if len(posts) == 0 {
			_, _, err = poststore.Materialize(ctx, tx, parsed.UUID(), true)
		}
		if err != nil && !pg.IsNoRows(err) {
			return group, false, err
		}
		if err == nil {
			group = parsed
		}
	}
	for _, part := range e.parts {
		if part.id == "" {
			continue
		}
		parsed, ok := id.Parse[publishing.PartTag](part.id)
		if !ok {
			return group, false, unknown
		}
		of, err := poststore.GroupOfPart(ctx, tx, parsed)
		if pg.IsNoRows(err) {
			of, _, err = poststore.Materialize(ctx, tx, parsed.UUID(), false)
		}
		if pg.IsNoRows(err) {
			return group, false, unknown
		}
		if err != nil {
			return group, false, err
		}
		if !group.IsZero() && of != group {
			return group, false, unknown
		}
		group = of
	}
	return group, !group.IsZero(), nil
}

// replaced locks the posts of a group that an entry replaces, and returns them with their root. It
// returns Conflict if they cannot be moved, and Invalid if they belong to another channel or are
// gone.
func replaced(
	ctx context.Context, tx *db.Tx, e checked, group publishing.GroupID, republish bool,
) (old []poststore.PostStatus, root poststore.PostStatus, err error) {
	old, err = poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return nil, root, err
	}
	if err := movable(old, publishing.StateQueue, republish); err != nil {
		return nil, root, err
	}
	for _, p := range old {
		if !p.After.IsZero() {
			continue
		}
		if p.Channel != e.channel.ID {
			return nil, root, entryFault(e, "The group belongs to a post of another channel.")
		}
		return old, p, nil
	}
	return nil, root, entryFault(e, "The post no longer exists.")
}

// keptState returns the state of an updated post. A failed post becomes a draft, so that it does
// not go out without being asked for.
func keptState(s publishing.State) publishing.State {
	if s == publishing.StateQueue {
		return s
	}
	return publishing.StateDraft
}
