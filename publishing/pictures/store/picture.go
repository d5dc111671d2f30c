// Package store reads and writes the rows of derived pictures. Only the parent package uses it.
package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// PictureState is a value of the derived_picture.state column, whose CHECK constraint lists the
// same values.
type PictureState string

// The states of a picture. PictureReady and PictureFailed are final.
const (
	PicturePending PictureState = "pending"
	PictureReady   PictureState = "ready"
	PictureFailed  PictureState = "failed"
)

// PictureKey identifies one of an organization's derived pictures.
type PictureKey struct {
	// Media is the image that the picture is derived from.
	Media publishing.MediaID `db:"media_id"`
	// Spec is the String of a picture.Spec. Example: jpeg-1000000-2000
	Spec string `db:"spec"`
}

// DerivedPicture is a picture that is, or will be, derived from an image.
type DerivedPicture struct {
	PictureKey
	State PictureState `db:"state"`
	// Wait is the time until a pending picture can be taken, or zero if it can be taken now.
	Wait time.Duration `db:"wait"`
	// Error is a sentence for users. It says why the picture failed or, if the picture is pending
	// and not being made, why the last attempt failed.
	Error string `db:"error"`
	MadePicture
}

// MadePicture describes a picture whose bytes are stored.
type MadePicture struct {
	BlobKey     string `db:"blob_key"`
	ContentType string `db:"content_type"`
	// Size is in bytes.
	Size int64 `db:"size"`
	// Width is in pixels.
	Width int `db:"width"`
	// Height is in pixels.
	Height int `db:"height"`
}

const pictureWant = `-- publishing.PictureWant
insert into derived_picture (org_id, media_id, spec, shard)
select $1, w.media, w.spec, $4 from unnest($2::uuid[], $3::text[]) w(media, spec)
on conflict (org_id, media_id, spec) do nothing`

const pictureFind = `-- publishing.PictureFind
select d.media_id, d.spec, d.state,
  case when d.state = 'pending' then greatest(interval '0', d.not_before - now()) else interval '0' end as wait,
  coalesce(d.error, '') as error, coalesce(d.blob_key, '') as blob_key, coalesce(d.content_type, '') as content_type,
  coalesce(d.size, 0) as size, coalesce(d.width, 0) as width, coalesce(d.height, 0) as height
from unnest($1::uuid[], $2::text[]) w(media, spec)
join derived_picture d on d.media_id = w.media and d.spec = w.spec`

func queueWant(b *pgx.Batch, org tenancy.OrgID, keys []PictureKey) {
	media, specs := pictureArrays(keys)
	b.Queue(pictureWant, org, media, specs, tenancy.Shard(org))
}

func queueFind(b *pgx.Batch, keys []PictureKey, all *[]DerivedPicture) {
	media, specs := pictureArrays(keys)
	b.Queue(pictureFind, media, specs).Query(db.Into(all, pgx.RowToStructByName[DerivedPicture]))
}

// pictureArrays returns the keys in an order that is the same for all transactions, so that two
// transactions never deadlock.
func pictureArrays(keys []PictureKey) (media [][16]byte, specs []string) {
	sorted := slices.SortedFunc(slices.Values(keys), func(a, b PictureKey) int {
		return cmp.Or(cmp.Compare(a.Media.String(), b.Media.String()), cmp.Compare(a.Spec, b.Spec))
	})
	for _, k := range slices.Compact(sorted) {
		media, specs = append(media, k.Media.UUID()), append(specs, k.Spec)
	}
	return media, specs
}

// WantPictures returns the requested pictures. It first inserts any missing pictures as pending.
// Any error is a Postgres error. If an image has no row, the error is a foreign key violation.
func WantPictures(ctx context.Context, tx *db.Tx, keys []PictureKey) (all []DerivedPicture, err error) {
	b := &pgx.Batch{}
	queueWant(b, tx.Org, keys)
	queueFind(b, keys, &all)
	return all, tx.SendBatch(ctx, b).Close()
}

// AddPictures is like WantPictures but runs in its own transaction. It can also return
// pg.ErrOrgBusy. It can be repeated after an error.
func AddPictures(
	ctx context.Context, d *db.DB, org tenancy.OrgID, keys []PictureKey,
) (all []DerivedPicture, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		queueWant(b, org, keys)
		queueFind(b, keys, &all)
	})
	return all, err
}

// Pictures returns the requested pictures that exist. Any error is pg.ErrOrgBusy or a Postgres
// error.
func Pictures(
	ctx context.Context, d *db.DB, org tenancy.OrgID, keys []PictureKey,
) (all []DerivedPicture, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) { queueFind(b, keys, &all) })
	return all, err
}

// TakenPicture is a picture that this process is making, with the image that it is derived from.
type TakenPicture struct {
	PictureKey
	publishing.Medium
	// State is PictureFailed if the picture has been attempted too often. Such a picture must not
	// be made.
	State PictureState
	// Attempt is the number of this attempt, starting with 1. The statements that end the attempt
	// change the row only if it still has this number.
	Attempt int
}

type takenRow struct {
	PictureKey
	db.MediumRow
	State   PictureState `db:"state"`
	Attempt int          `db:"attempts"`
}

func scanTaken(row pgx.CollectableRow) (TakenPicture, error) {
	r, err := pgx.RowToStructByName[takenRow](row)
	return TakenPicture{PictureKey: r.PictureKey, Medium: r.Medium(), State: r.State, Attempt: r.Attempt}, err
}

// PictureLimits limits the attempts at one picture.
type PictureLimits struct {
	// Lease is how long the attempt owns the picture.
	Lease time.Duration
	// Unfinished is the maximum number of consecutive attempts without a result. Attempts is the
	// maximum number of attempts in total.
	Unfinished, Attempts int
	// GivenUp is the error stored for a picture that has reached one of these limits.
	GivenUp string
}

// pictureTake counts the attempt before it begins, so that a picture that crashes its process is
// eventually abandoned.
var pictureTake = `-- publishing.PictureTake
update derived_picture d set attempts = d.attempts + 1, unfinished = d.unfinished + 1,
  not_before = now() + $4 * interval '1 millisecond',
  state = case when d.unfinished >= $5 or d.attempts >= $6 then 'failed' else 'pending' end,
  error = case when d.unfinished >= $5 or d.attempts >= $6 then $7 end
from media m
where d.org_id = $1 and d.media_id = $2 and d.spec = $3 and d.state = 'pending' and d.not_before <= now()
  and m.org_id = d.org_id and m.id = d.media_id
returning d.media_id, d.spec, ` + db.MediaColumns + `, d.state, d.attempts`

// TakePicture takes a pending picture for one attempt. found is false if the picture is ready,
// failed, deleted or not yet due, or if another process has taken it.
func TakePicture(
	ctx context.Context, d *db.DB, org tenancy.OrgID, key PictureKey, l PictureLimits,
) (taken TakenPicture, found bool, err error) {
	var all []TakenPicture
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(pictureTake, org, key.Media, key.Spec, l.Lease.Milliseconds(), l.Unfinished, l.Attempts, l.GivenUp).
			Query(db.Into(&all, scanTaken))
	})
	if err != nil || len(all) == 0 {
		return taken, false, err
	}
	return all[0], true, nil
}

const pictureKeep = `-- publishing.PictureKeep
update derived_picture set state = 'ready', unfinished = 0, error = null,
  blob_key = $5, content_type = $6, size = $7, width = $8, height = $9
where org_id = $1 and media_id = $2 and spec = $3 and attempts = $4 and state = 'pending'`

// KeepPicture ends an attempt that produced a picture and stored its bytes. It returns false and
// changes nothing if a later attempt has begun or the image was deleted. Any error is pg.ErrOrgBusy
// or a Postgres error.
//
// If pg.IsAway returns true for the error, the picture may have been kept anyway. A repeated call
// then returns false.
func KeepPicture(
	ctx context.Context, d *db.DB, org tenancy.OrgID, key PictureKey, attempt int, made MadePicture,
) (bool, error) {
	return endPicture(ctx, d, org, pictureKeep, org, key.Media, key.Spec, attempt,
		made.BlobKey, made.ContentType, made.Size, made.Width, made.Height)
}

const pictureFail = `-- publishing.PictureFail
update derived_picture set state = 'failed', unfinished = 0, error = $5
where org_id = $1 and media_id = $2 and spec = $3 and attempts = $4 and state = 'pending'`

// FailPicture ends an attempt and marks the picture as failed. reason is a sentence for users.
// FailPicture returns the same results as KeepPicture.
func FailPicture(
	ctx context.Context, d *db.DB, org tenancy.OrgID, key PictureKey, attempt int, reason string,
) (bool, error) {
	return endPicture(ctx, d, org, pictureFail, org, key.Media, key.Spec, attempt, reason)
}

const pictureReturn = `-- publishing.PictureReturn
update derived_picture set unfinished = case when $6 then unfinished else 0 end,
  not_before = now() + $5 * interval '1 millisecond', error = $7
where org_id = $1 and media_id = $2 and spec = $3 and attempts = $4 and state = 'pending'`

// ReturnPicture ends an attempt that failed for a transient reason. The picture can be taken again
// after the given time. If unfinished is true, the attempt counts toward PictureLimits.Unfinished.
// reason is a sentence for users, or empty if nothing failed. ReturnPicture returns the same
// results as KeepPicture.
func ReturnPicture(
	ctx context.Context, d *db.DB, org tenancy.OrgID, key PictureKey, attempt int, after time.Duration, unfinished bool,
	reason string,
) (bool, error) {
	var failure *string
	if reason != "" {
		failure = &reason
	}
	return endPicture(ctx, d, org, pictureReturn, org, key.Media, key.Spec, attempt,
		after.Milliseconds(), unfinished, failure)
}

func endPicture(ctx context.Context, d *db.DB, org tenancy.OrgID, sql string, args ...any) (ended bool, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			ended = tag.RowsAffected() == 1
			return nil
		})
	})
	return ended, err
}

// picturePending returns at most $2 pictures per organization. The first picture of every
// organization comes before any second picture, so that an organization with many pictures does not
// crowd out the others.
const picturePending = `-- publishing.PicturePending
select org_id, media_id, spec from (
  select d.org_id, d.media_id, d.spec, row_number() over (partition by d.org_id order by d.not_before) as nth
  from unnest($1::smallint[]) s(shard) cross join lateral (
    select x.org_id, x.media_id, x.spec, x.not_before from derived_picture x
    where x.shard = any (array[s.shard]) and x.state = 'pending' and x.not_before <= now() offset 0) d) p
where nth <= $2 order by nth, org_id limit $3`

// PendingPicture identifies a picture that could be taken when it was read. Another process may
// take it first.
type PendingPicture struct {
	Org tenancy.OrgID `db:"org_id"`
	PictureKey
}

// PendingPictures returns pictures that can be taken, for organizations in the given shards. most
// limits the pictures per organization, and all limits the pictures in total. Any error is a
// Postgres error.
func PendingPictures(
	ctx context.Context, d *db.DB, shards []int16, most, all int,
) (out []PendingPicture, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(picturePending, shards, most, all).Query(db.Into(&out, pgx.RowToStructByName[PendingPicture]))
	})
	return out, err
}
