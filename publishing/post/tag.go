package post

import (
	"context"
	"errors"
	"fmt"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// Tags returns the tags of the organization in the order of their names. It returns Unavailable while the database is
// away, as every method does.
func (s *Posts) Tags(ctx context.Context, p tenancy.Principal) ([]publishing.Tag, error) {
	out, err := poststore.Tags(ctx, s.db, p.Org)
	return out, pg.Fault("publishing.Tags", err)
}

// CreateTag makes a tag. It returns Invalid, and Conflict for a name that another tag has and at the limit of tags.
func (s *Posts) CreateTag(
	ctx context.Context, p tenancy.Principal, cmd publishing.SaveTag,
) (publishing.Tag, error) {
	cmd, err := cmd.Cleaned()
	if err != nil {
		return publishing.Tag{}, err
	}
	return s.changeTag(ctx, p, "publishing.CreateTag", func(tx *db.Tx) (publishing.Tag, error) {
		return poststore.CreateTag(ctx, tx, id.New[publishing.TagTag](), cmd)
	})
}

// UpdateTag changes the name and the color of a tag, and so what all its posts show. It returns NotFound, Invalid, and
// Conflict for a name that another tag has.
func (s *Posts) UpdateTag(
	ctx context.Context, p tenancy.Principal, tag string, cmd publishing.SaveTag,
) (publishing.Tag, error) {
	const op = "publishing.UpdateTag"
	parsed, ok := id.Parse[publishing.TagTag](tag)
	if !ok {
		return publishing.Tag{}, noTag(op)
	}
	cmd, err := cmd.Cleaned()
	if err != nil {
		return publishing.Tag{}, err
	}
	return s.changeTag(ctx, p, op, func(tx *db.Tx) (publishing.Tag, error) {
		return poststore.UpdateTag(ctx, tx, parsed, cmd)
	})
}

// DeleteTag deletes a tag, which its posts lose, and returns it. It returns NotFound.
func (s *Posts) DeleteTag(ctx context.Context, p tenancy.Principal, tag string) (publishing.Tag, error) {
	const op = "publishing.DeleteTag"
	parsed, ok := id.Parse[publishing.TagTag](tag)
	if !ok {
		return publishing.Tag{}, noTag(op)
	}
	return s.changeTag(ctx, p, op, func(tx *db.Tx) (publishing.Tag, error) {
		return poststore.DeleteTag(ctx, tx, parsed)
	})
}

func (s *Posts) changeTag(ctx context.Context, p tenancy.Principal, op string,
	change func(*db.Tx) (publishing.Tag, error)) (out publishing.Tag, err error) {
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) (err error) {
		out, err = change(tx)
		return err
	})
	switch {
	case errors.Is(err, poststore.ErrTagName):
		return out, fault.New(fault.Conflict, op, "Another tag has this name.")
	case errors.Is(err, poststore.ErrTooManyTags):
		return out, fault.New(fault.Conflict, op,
			fmt.Sprintf("Your organization has reached its limit of %d tags: delete one first.", publishing.MaxTags))
	case pg.IsNoRows(err):
		return out, noTag(op)
	}
	return out, db.PostFault(op, err)
}

func noTag(op string) error { return fault.New(fault.NotFound, op, "There is no such tag.") }

// wantedTags returns the tags of the posts that a create writes, nil when an existing post keeps its own. A label that
// no tag has is left out.
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
