package post

import (
	"context"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
)

// existing returns the group of posts that an entry replaces: it is named by its id, or by the id of any of its parts.
// found is false when the entry names none. Clients choose groups for new posts, so a group that is not known is passed
// over. Invalid means that the id of a part names nothing, or that the ids are of different groups. A later occurrence of a repeated post that is named is stored, so that it can be changed by itself.
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

// replaced locks the posts of a group that an entry replaces and returns them, with their root. It returns Conflict
// when they cannot be moved, and Invalid when they belong to another channel or are gone.
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
	return nil, root, entryFault(e, "There is no such post any more.")
}

// keptState returns the state of an updated post. A post that had failed becomes a draft, so that it does not go out
// without being asked for.
func keptState(s publishing.State) publishing.State {
	if s == publishing.StateQueue {
		return s
	}
	return publishing.StateDraft
}
