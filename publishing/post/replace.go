package post

import (
	"context"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// existing returns the group of posts that an entry replaces. The entry refers to the group by its
// id or by the id of any of its parts. If the entry refers to no group, found is false. An unknown
// group id is ignored, because clients choose the group ids of new posts.
//
// If the entry refers to a later occurrence of a repeated post, existing stores the occurrence
// first. The occurrence can then be changed on its own. existing returns Invalid if a part id is
// unknown, or if the ids belong to different groups.
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

// replaced locks the posts that an entry replaces. It returns these posts and their root. It
// returns Forbidden if the principal may not change them, Conflict if they cannot be moved, and
// Invalid if they belong to another channel or no longer exist.
func replaced(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, e checked, group publishing.GroupID, republish bool,
) (old []poststore.PostStatus, root poststore.PostStatus, err error) {
	old, err = poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return nil, root, err
	}
	if err := mayChange("publishing.CreatePosts", p, old); err != nil {
		return nil, root, err
	}
	if err := movable(old, publishing.StateQueue, republish); err != nil {
		return nil, root, err
	}
	for _, status := range old {
		if !status.After.IsZero() {
			continue
		}
		if status.Channel != e.channel.ID {
			return nil, root, entryFault(e, "The group belongs to a post of another channel.")
		}
		return old, status, nil
	}
	return nil, root, entryFault(e, "The post no longer exists.")
}

// keptState returns the state of a post after an update. A queued post stays queued. Any other post
// becomes a draft. A failed post is therefore published only if a user schedules it again.
func keptState(s publishing.State) publishing.State {
	if s == publishing.StateQueue {
		return s
	}
	return publishing.StateDraft
}
