package media

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	mediastore "crier/publishing/media/store"
	"crier/tenancy"
)

// List returns a page of the organization's files, newest first. A page after the last one is
// empty. List returns Invalid if the page number or the search text is invalid.
func (s *Media) List(ctx context.Context, p tenancy.Principal, q publishing.ListMedia) (publishing.MediaPage, error) {
	if err := q.Validate(); err != nil {
		return publishing.MediaPage{}, err
	}
	page, err := mediastore.ListMedia(ctx, s.db, p.Org, q)
	return page, pg.Fault("publishing.ListMedia", err)
}

// SetAlt sets a file's alternative text and returns the file. Later posts use this text for
// attachments that have none of their own. SetAlt returns NotFound if the file does not exist, and
// Invalid if the text is too long.
//
// SetAlt writes no audit entry, because the posts that use the text keep a copy.
func (s *Media) SetAlt(ctx context.Context, p tenancy.Principal, medium, alt string) (publishing.Medium, error) {
	const op = "publishing.SetAlt"
	parsed, ok := id.Parse[publishing.MediaTag](medium)
	if !ok {
		return publishing.Medium{}, noFile(op)
	}
	if len([]rune(alt)) > publishing.MaxAlt || !publishing.Storable(alt) {
		return publishing.Medium{}, &fault.Error{Kind: fault.Invalid, Op: op, Message: "The input is not valid.",
			Fields: []fault.Field{{Name: "alt", Message: "must be at most 2000 characters of valid text"}}}
	}
	var found []publishing.Medium
	err := s.db.InOrgAs(ctx, p, func(tx *db.Tx) (err error) {
		found, err = mediastore.SetAlt(ctx, tx, parsed, alt)
		return err
	})
	if err != nil {
		return publishing.Medium{}, db.Fault(op, err)
	}
	if len(found) == 0 {
		return publishing.Medium{}, noFile(op)
	}
	return found[0], nil
}

// forgetAtOnce is the maximum number of rows that one call to ForgetMedia deletes.
const forgetAtOnce = 100

// Delete deletes a file. Files can share their bytes, which are deleted with the last file that
// uses them. Posts that were published with the file keep a record of it.
//
// Delete returns NotFound if the file does not exist. It returns Conflict while the file belongs to
// the template of a running series, or to a post that is scheduled, is being sent or has an unknown
// outcome. It returns Forbidden if the principal is an agent that may not delete files. If the
// process crashes after the commit, the file stays deleted, and CollectFiles later finishes the
// deletion.
//
// Delete writes no audit entry, because deleting files is routine and posts keep a record of their
// files.
func (s *Media) Delete(ctx context.Context, p tenancy.Principal, medium string) error {
	const op = "publishing.DeleteMedia"
	parsed, ok := id.Parse[publishing.MediaTag](medium)
	if !ok {
		return noFile(op)
	}
	if err := publishing.MayChangeShared(op, p, "files"); err != nil {
		return err
	}
	ctx = pg.Whole(ctx) // posts on every channel use the library
	var found []publishing.Medium
	shared := false
	err := s.db.InOrgAs(ctx, p, func(tx *db.Tx) (err error) {
		found, err = mediastore.LockMedium(ctx, tx, parsed)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return noFile(op)
		}
		deleted, err := mediastore.DeleteMedium(ctx, tx, parsed)
		if err != nil {
			return err
		}
		if !deleted {
			return fault.New(fault.Conflict, op,
				"A scheduled post uses the file: remove the file from the post, or delete the post, first.")
		}
		shared, err = mediastore.IsBlobUsed(ctx, tx, found[0].Blob)
		return err
	})
	if err != nil {
		return db.Fault(op, err)
	}
	_, err = mediastore.ForgetMedia(ctx, s.db, p.Org, forgetAtOnce)
	if err == nil && !shared {
		err = s.deleteBlob(ctx, found[0])
	}
	if err != nil {
		s.deps.Log.WarnContext(ctx, "cannot delete a file completely yet; retrying later", "org", p.Org, "error", err)
	}
	return nil
}
