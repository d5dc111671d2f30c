// Package store reads and writes tags. Only the parent package imports it.
package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// ErrTagName means that another tag in the organization has the same name.
var ErrTagName = errors.New("another tag has this name")

// ErrTooManyTags means that the organization already has publishing.MaxTags tags.
var ErrTooManyTags = errors.New("the organization has too many tags")

const tagNameIndex = "tag_name"

var tagColumns = db.Columns[publishing.Tag]("t")

var tagsList = `-- publishing.Tags
select ` + tagColumns + ` from tag t order by lower(t.name), t.id`

// List returns an organization's tags, sorted by name. An organization has at most
// publishing.MaxTags tags.
func List(ctx context.Context, d *db.DB, org tenancy.OrgID) (out []publishing.Tag, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(tagsList).Query(db.Into(&out, pgx.RowToStructByName[publishing.Tag]))
	})
	return out, err
}

// tagLock prevents two concurrent creates from both seeing the same number of tags.
const tagLock = `-- publishing.TagLock
select 1 from organization where id = $1 for no key update`

var tagCreate = `-- publishing.TagCreate
insert into tag as t (org_id, id, name, color)
select $1, $2, $3, $4 where (select count(*) from tag) < $5
returning ` + tagColumns

// Create inserts a tag. It returns ErrTagName if another tag has the same name, and ErrTooManyTags
// if the organization has reached its limit.
func Create(ctx context.Context, tx *db.Tx, tag publishing.TagID, cmd publishing.SaveTag) (publishing.Tag, error) {
	b := &pgx.Batch{}
	var out []publishing.Tag
	b.Queue(tagLock, tx.Org)
	b.Queue(tagCreate, tx.Org, tag, cmd.Name, cmd.Color, publishing.MaxTags).
		Query(db.Into(&out, pgx.RowToStructByName[publishing.Tag]))
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return publishing.Tag{}, tagError(err)
	}
	if len(out) == 0 {
		return publishing.Tag{}, ErrTooManyTags
	}
	return out[0], nil
}

var tagUpdate = `-- publishing.TagUpdate
update tag t set name = $2, color = $3, updated_at = now() where t.id = $1 returning ` + tagColumns

// Update changes a tag. It returns pgx.ErrNoRows if the tag does not exist, and ErrTagName if
// another tag has the same name.
func Update(ctx context.Context, tx *db.Tx, tag publishing.TagID, cmd publishing.SaveTag) (publishing.Tag, error) {
	return one(ctx, tx, tagUpdate, tag, cmd.Name, cmd.Color)
}

var tagDelete = `-- publishing.TagDelete
delete from tag t where t.id = $1 returning ` + tagColumns

// Delete deletes a tag and returns it. It returns pgx.ErrNoRows if the tag does not exist. Posts
// keep the tag's id, which then no longer refers to anything.
func Delete(ctx context.Context, tx *db.Tx, tag publishing.TagID) (publishing.Tag, error) {
	return one(ctx, tx, tagDelete, tag)
}

func one(ctx context.Context, tx *db.Tx, statement string, args ...any) (publishing.Tag, error) {
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return publishing.Tag{}, err
	}
	out, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[publishing.Tag])
	return out, tagError(err)
}

func tagError(err error) error {
	if pg.IsUnique(err, tagNameIndex) {
		return ErrTagName
	}
	return err
}
