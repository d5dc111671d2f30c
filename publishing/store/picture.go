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
	"crier/tenancy"
)

// PictureState is how far a derived picture is.
type PictureState string

// The states of a derived picture. Ready and failed are final.
const (
	PicturePending PictureState = "pending"
	PictureReady   PictureState = "ready"
	PictureFailed  PictureState = "failed"
)

// PictureKey names a derived picture of an organization: what is made of which image.
type PictureKey struct {
	Media publishing.MediaID
	Spec  string
}

// DerivedPicture is a picture made of an image, or to be made.
type DerivedPicture struct {
	PictureKey
	State PictureState
	// Wait is how long nobody takes a pending picture; zero when it may be taken now.
	Wait time.Duration
	// Error is a sentence for people: why it failed, or, while it is pending and nobody makes it, why the last
	// attempt did.
	Error string
	MadePicture
}

// MadePicture is what is known of a picture whose bytes are stored.
type MadePicture struct {
	BlobKey     string
	ContentType string
	Size        int64
	Width       int
	Height      int
}

const pictureWant = `-- publishing.PictureWant
insert into derived_picture (org_id, media_id, spec, shard) select $1, w.media, w.spec, $4 from unnest($2::uuid[], $3::text[]) w(media, spec)
on conflict (org_id, media_id, spec) do nothing`

const pictureFind = `-- publishing.PictureFind
select d.media_id, d.spec, d.state, case when d.state = 'pending' then greatest(interval '0', d.not_before - now()) else interval '0' end, coalesce(d.error, ''),
  coalesce(d.blob_key, ''), coalesce(d.content_type, ''), coalesce(d.size, 0), coalesce(d.width, 0), coalesce(d.height, 0)
from unnest($1::uuid[], $2::text[]) w(media, spec) join derived_picture d on d.media_id = w.media and d.spec = w.spec`

// queueWant and queueFind take the keys in one order, so that two transactions never wait for each other.
func queueWant(b *pgx.Batch, org tenancy.OrgID, keys []PictureKey) {
	media, specs := columnsOf(keys)
	b.Queue(pictureWant, org, media, specs, tenancy.Shard(org))
}

func queueFind(b *pgx.Batch, keys []PictureKey, all *[]DerivedPicture) {
	media, specs := columnsOf(keys)
	b.Queue(pictureFind, media, specs).Query(into(all, pgx.RowToStructByPos[DerivedPicture]))
}

func columnsOf(keys []PictureKey) (media [][16]byte, specs []string) {
	sorted := slices.SortedFunc(slices.Values(keys), func(a, b PictureKey) int {
		return cmp.Or(cmp.Compare(a.Media.String(), b.Media.String()), cmp.Compare(a.Spec, b.Spec))
	})
	for _, k := range slices.Compact(sorted) {
		media, specs = append(media, k.Media.UUID()), append(specs, k.Spec)
	}
	return media, specs
}

// WantPictures writes the pictures that are not known yet as pending, and returns how all of them stand.
func (t *Tx) WantPictures(ctx context.Context, keys []PictureKey) (all []DerivedPicture, err error) {
	b := &pgx.Batch{}
	queueWant(b, t.org, keys)
	queueFind(b, keys, &all)
	return all, t.tx.SendBatch(ctx, b).Close()
}

// WantPictures is Tx.WantPictures in a transaction of its own.
func (s *Store) WantPictures(ctx context.Context, org tenancy.OrgID, keys []PictureKey) (all []DerivedPicture, err error) {
	err = s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		queueWant(b, org, keys)
		queueFind(b, keys, &all)
	})
	return all, err
}

// Pictures returns how derived pictures stand; what is not known is left out.
func (s *Store) Pictures(ctx context.Context, org tenancy.OrgID, keys []PictureKey) (all []DerivedPicture, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) { queueFind(b, keys, &all) })
	return all, err
}

// TakenPicture is a picture that this process makes now, and the image that it is made of.
type TakenPicture struct {
	PictureKey
	publishing.Medium
	State   PictureState // failed when it was tried too often
	Attempt int
}

// PictureLimits bounds the attempts at one picture.
type PictureLimits struct {
	// Lease is how long nobody else takes it.
	Lease time.Duration
	// Unfinished is how many attempts in a row may end without a word, Attempts how many there may be in all.
	Unfinished, Attempts int
	// GivenUp is the error of a picture that had them.
	GivenUp string
}

// The attempt is counted before it begins: a picture that kills the process is not taken for ever.
const pictureTake = `-- publishing.PictureTake
update derived_picture d set attempts = d.attempts + 1, unfinished = d.unfinished + 1, not_before = now() + $4 * interval '1 millisecond',
  state = case when d.unfinished >= $5 or d.attempts >= $6 then 'failed' else 'pending' end,
  error = case when d.unfinished >= $5 or d.attempts >= $6 then $7 end
from media m
where d.org_id = $1 and d.media_id = $2 and d.spec = $3 and d.state = 'pending' and d.not_before <= now() and m.org_id = d.org_id and m.id = d.media_id
returning d.media_id, d.spec, ` + mediaColumns + `, d.state, d.attempts`

// TakePicture takes a pending picture for one attempt; false when there is nothing to take: it is ready, failed, gone,
// or another's for now.
func (s *Store) TakePicture(ctx context.Context, org tenancy.OrgID, key PictureKey, l PictureLimits) (taken TakenPicture, found bool, err error) {
	var all []TakenPicture
	err = s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(pictureTake, org, key.Media, key.Spec, l.Lease.Milliseconds(), l.Unfinished, l.Attempts, l.GivenUp).
			Query(into(&all, pgx.RowToStructByPos[TakenPicture]))
	})
	if err != nil || len(all) == 0 {
		return taken, false, err
	}
	return all[0], true, nil
}

const pictureKeep = `-- publishing.PictureKeep
update derived_picture set state = 'ready', unfinished = 0, error = null, blob_key = $5, content_type = $6, size = $7, width = $8, height = $9
where org_id = $1 and media_id = $2 and spec = $3 and attempts = $4 and state = 'pending'`

// KeepPicture ends an attempt with a picture whose bytes are stored; false means that a later attempt has begun, or
// that the image is gone.
func (s *Store) KeepPicture(ctx context.Context, org tenancy.OrgID, key PictureKey, attempt int, made MadePicture) (bool, error) {
	return s.endPicture(ctx, org, pictureKeep, org, key.Media, key.Spec, attempt, made.BlobKey, made.ContentType, made.Size, made.Width, made.Height)
}

const pictureFail = `-- publishing.PictureFail
update derived_picture set state = 'failed', unfinished = 0, error = $5
where org_id = $1 and media_id = $2 and spec = $3 and attempts = $4 and state = 'pending'`

// FailPicture ends an attempt for good; reason is a sentence for people. False as with KeepPicture.
func (s *Store) FailPicture(ctx context.Context, org tenancy.OrgID, key PictureKey, attempt int, reason string) (bool, error) {
	return s.endPicture(ctx, org, pictureFail, org, key.Media, key.Spec, attempt, reason)
}

const pictureReturn = `-- publishing.PictureReturn
update derived_picture set unfinished = case when $6 then unfinished else 0 end, not_before = now() + $5 * interval '1 millisecond', error = $7
where org_id = $1 and media_id = $2 and spec = $3 and attempts = $4 and state = 'pending'`

// ReturnPicture ends an attempt that failed for a passing reason: it may be taken again after a wait. One that counts
// as unfinished brings the picture nearer to its end. An empty reason says that nothing was wrong. False as with
// KeepPicture.
func (s *Store) ReturnPicture(ctx context.Context, org tenancy.OrgID, key PictureKey, attempt int, after time.Duration, unfinished bool, reason string) (bool, error) {
	var said *string
	if reason != "" {
		said = &reason
	}
	return s.endPicture(ctx, org, pictureReturn, org, key.Media, key.Spec, attempt, after.Milliseconds(), unfinished, said)
}

func (s *Store) endPicture(ctx context.Context, org tenancy.OrgID, sql string, args ...any) (ended bool, err error) {
	err = s.db.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			ended = tag.RowsAffected() == 1
			return nil
		})
	})
	return ended, err
}

// So that one organization with very many does not hide the others, each has so many at most ($2), and the first of
// each come first.
const picturePending = `-- publishing.PicturePending
select org_id, media_id, spec from (
  select d.org_id, d.media_id, d.spec, row_number() over (partition by d.org_id order by d.not_before) as nth
  from unnest($1::smallint[]) s(shard) cross join lateral (
    select x.org_id, x.media_id, x.spec, x.not_before from derived_picture x where x.shard = any (array[s.shard]) and x.state = 'pending' and x.not_before <= now() offset 0) d) p
where nth <= $2 order by nth, org_id limit $3`

// PendingPicture is a picture that may be taken.
type PendingPicture struct {
	Org tenancy.OrgID
	PictureKey
}

// PendingPictures lists what may be taken of the organizations of some shards, at most so many of each and in all.
func (s *Store) PendingPictures(ctx context.Context, shards []int16, most, all int) (out []PendingPicture, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(picturePending, shards, most, all).Query(into(&out, pgx.RowToStructByPos[PendingPicture]))
	})
	return out, err
}
