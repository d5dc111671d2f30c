// Package tag implements the use cases for tags. Tags are labels for posts.
package tag

import (
	"context"
	"errors"
	"fmt"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	tagstore "crier/publishing/tag/store"
	"crier/tenancy"
)

// Tags manages an organization's tags. It is safe for concurrent use. All methods return
// Unavailable if the database cannot be reached.
type Tags struct{ db *db.DB }

// New returns a Tags that stores tags in d.
func New(d *db.DB) *Tags { return &Tags{db: d} }

// List returns the organization's tags, sorted by name.
func (s *Tags) List(ctx context.Context, p tenancy.Principal) ([]publishing.Tag, error) {
	out, err := tagstore.List(ctx, s.db, p.Org)
	return out, pg.Fault("publishing.Tags", err)
}

// Create creates a tag. It returns Invalid if the name or color is invalid. It returns Conflict if
// another tag has the same name, or if the organization has reached its limit for tags.
func (s *Tags) Create(
	ctx context.Context, p tenancy.Principal, cmd publishing.SaveTag,
) (publishing.Tag, error) {
	cmd, err := cmd.Cleaned()
	if err != nil {
		return publishing.Tag{}, err
	}
	return s.change(ctx, p, "publishing.CreateTag", func(tx *db.Tx) (publishing.Tag, error) {
		return tagstore.Create(ctx, tx, id.New[publishing.TagTag](), cmd)
	})
}

// Update changes a tag's name and color. The change appears on all posts with the tag. Update
// returns NotFound if the tag does not exist, Invalid if the name or color is invalid, Conflict if
// another tag has the same name, and Forbidden if the principal is an agent that may not change
// tags.
func (s *Tags) Update(
	ctx context.Context, p tenancy.Principal, tag string, cmd publishing.SaveTag,
) (publishing.Tag, error) {
	const op = "publishing.UpdateTag"
	parsed, ok := id.Parse[publishing.TagTag](tag)
	if !ok {
		return publishing.Tag{}, noTag(op)
	}
	if err := publishing.MayChangeShared(op, p, "tags"); err != nil {
		return publishing.Tag{}, err
	}
	cmd, err := cmd.Cleaned()
	if err != nil {
		return publishing.Tag{}, err
	}
	return s.change(ctx, p, op, func(tx *db.Tx) (publishing.Tag, error) {
		return tagstore.Update(ctx, tx, parsed, cmd)
	})
}

// Delete deletes a tag and returns the deleted tag. The tag then no longer appears on posts. Delete
// returns NotFound if the tag does not exist, and Forbidden if the principal is an agent that may
// not change tags.
func (s *Tags) Delete(ctx context.Context, p tenancy.Principal, tag string) (publishing.Tag, error) {
	const op = "publishing.DeleteTag"
	parsed, ok := id.Parse[publishing.TagTag](tag)
	if !ok {
		return publishing.Tag{}, noTag(op)
	}
	if err := publishing.MayChangeShared(op, p, "tags"); err != nil {
		return publishing.Tag{}, err
	}
	return s.change(ctx, p, op, func(tx *db.Tx) (publishing.Tag, error) {
		return tagstore.Delete(ctx, tx, parsed)
	})
}

// change runs the given change in a transaction. It writes no audit entry, because tags are
// only labels.
func (s *Tags) change(ctx context.Context, p tenancy.Principal, op string,
	change func(*db.Tx) (publishing.Tag, error)) (out publishing.Tag, err error) {
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) (err error) {
		out, err = change(tx)
		return err
	})
	switch {
	case errors.Is(err, tagstore.ErrTagName):
		return out, fault.New(fault.Conflict, op, "Another tag has this name.")
	case errors.Is(err, tagstore.ErrTooManyTags):
		return out, fault.New(fault.Conflict, op,
			fmt.Sprintf("Your organization has reached its limit of %d tags: delete one first.", publishing.MaxTags))
	case pg.IsNoRows(err):
		return out, noTag(op)
	}
	return out, db.PostFault(op, err)
}

func noTag(op string) error { return fault.New(fault.NotFound, op, "There is no such tag.") }
