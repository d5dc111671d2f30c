// Package purge deletes an organization's publishing data, and rows that have passed their
// retention period.
package purge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/batch"
	"crier/platform/blob"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing/db"
	purgestore "crier/publishing/purge/store"
	"crier/tenancy"
)

// errFile marks errors from the blob store.
var errFile = errors.New("the blob store did not delete a file")

const (
	// purgeSize is the number of rows per transaction, or of files per batch.
	purgeSize = 200
	// purgeRest is the pause after a batch, as a multiple of the time the batch took.
	purgeRest = 1
	// fileTime is the time limit for deleting one file.
	fileTime = 10 * time.Second
	// maxFileErrors is how many file deletions may fail before the blob store is considered down.
	maxFileErrors = 1000
	// purgeRetry is the Retry-After of the Conflict that Purge returns.
	purgeRetry = time.Minute
)

// Deps holds the dependencies of New. All are required.
type Deps struct {
	DB    *db.DB
	Blobs blob.Store
}

// Purger deletes organizations' publishing data. It is safe for concurrent use.
type Purger struct {
	deps Deps
	db   *db.DB
}

// New returns a Purger.
func New(deps Deps) *Purger { return &Purger{deps: deps, db: deps.DB} }

// Purge deletes all of an organization's publishing data, including files and credentials. It
// returns the number of deleted rows, even if it returns an error. Rows that are deleted along with
// another row do not count. Purge is meant for a background job. The caller must call
// scheduler.Queue.Stop first, and must delete the organization itself after Purge has succeeded.
//
// Purge works in short transactions. After a crash, or if ctx ends, the next call continues where
// the last one stopped. A call that finds nothing returns 0. Files are deleted before the rows that
// refer to them. If a file or a row cannot be deleted, the row remains. Purge continues with the
// others and returns the error at the end.
//
// While a post is being sent or a picture is being made, Purge deletes what it can and returns
// Conflict. In that case, the caller must call Purge again later. Purge returns Unavailable while
// the database or the blob store is down, and ctx's error if ctx ends.
func (s *Purger) Purge(ctx context.Context, org tenancy.OrgID) (rows int, err error) {
	p := &purge{deps: s.deps, db: s.db, org: org}
	err = p.run(ctx)
	if ctx.Err() != nil {
		return p.rows, err
	}
	return p.rows, db.Fault("publishing.Purge", err)
}

// purge is one call of Purge.
type purge struct {
	deps Deps
	db   *db.DB
	org  tenancy.OrgID
	// rows counts the deleted rows, and fileErrors counts the failed file deletions.
	rows, fileErrors int
}

func (p *purge) run(ctx context.Context) error {
	if err := p.endSeries(ctx); err != nil {
		return err
	}
	failed := p.each(ctx, purgestore.PurgePosts, purgestore.PurgeKeys, purgestore.PurgeConnects,
		purgestore.PurgeDeliveries, purgestore.PurgeWebhooks)
	for _, kind := range []purgestore.FileKind{
		purgestore.FilePictures, purgestore.FileMedia, purgestore.FileDeletedMedia,
	} {
		failed = errors.Join(failed, p.files(ctx, kind))
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(err, failed)
	}
	posts, files, err := purgestore.OwnedLeft(ctx, p.db, p.org)
	switch {
	case err != nil:
		return errors.Join(failed, err)
	case posts && failed == nil:
		return purgeLater("A post of the organization is being published.")
	case posts:
		return failed
	}
	channels := p.each(ctx, purgestore.PurgeSeries, purgestore.PurgeChannels, purgestore.PurgeCustomers)
	switch {
	case failed != nil || channels != nil:
		return errors.Join(failed, channels)
	case files:
		return purgeLater("A picture of the organization is being made, or a file is being uploaded.")
	}
	return p.each(ctx, purgestore.PurgeIncidentEvents, purgestore.PurgeNotifications,
		purgestore.PurgePauses)
}

// endSeries ends all series, so that no occurrence is created after the posts have been deleted.
func (p *purge) endSeries(ctx context.Context) error {
	for {
		n, err := purgestore.EndAllSeries(ctx, p.db, p.org, purgeSize)
		if err != nil || n < purgeSize {
			return err
		}
	}
}

// each deletes the rows of the given kinds. If it fails for one kind, it still deletes rows of the
// other kinds.
func (p *purge) each(ctx context.Context, kinds ...purgestore.Purgeable) (failed error) {
	for _, kind := range kinds {
		sweep := batch.Sweep[string]{
			Size: purgeSize, PauseFactor: purgeRest, IsItemError: pg.IsRowError,
			Find: func(ctx context.Context, after string, limit int) ([]string, error) {
				return purgestore.FindOwned(ctx, p.db, p.org, kind, after, limit)
			},
			Do: func(ctx context.Context, keys []string) (int, error) {
				return purgestore.Purge(ctx, p.db, p.org, kind, keys)
			},
		}
		n, err := sweep.Run(ctx)
		failed = errors.Join(failed, p.count(ctx, string(kind), n, err))
	}
	return failed
}

// files deletes the files of a kind and then their rows.
func (p *purge) files(ctx context.Context, kind purgestore.FileKind) error {
	sweep := batch.Sweep[purgestore.StoredFile]{
		Size: purgeSize, PauseFactor: purgeRest, IsItemError: p.isFileOrRowError,
		Find: func(
			ctx context.Context, after purgestore.StoredFile, limit int,
		) ([]purgestore.StoredFile, error) {
			return purgestore.FindFiles(ctx, p.db, p.org, kind, after, limit)
		},
		Do: func(ctx context.Context, files []purgestore.StoredFile) (int, error) {
			if err := p.deleteFiles(ctx, files); err != nil {
				return 0, err
			}
			return purgestore.PurgeFiles(ctx, p.db, p.org, kind, files)
		},
	}
	n, err := sweep.Run(ctx)
	return p.count(ctx, string(kind), n, err)
}

// count adds n to the number of deleted rows, and returns a sweep's error with the kind added to
// its message. A sweep that stopped because ctx ended is incomplete but reports no error. In that
// case, count returns ctx's error.
func (p *purge) count(ctx context.Context, kind string, n int, err error) error {
	p.rows += n
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("purge %s: %w", kind, err)
	}
	return nil
}

func (p *purge) isFileOrRowError(err error) bool {
	if errors.Is(err, errFile) {
		return p.fileErrors < maxFileErrors
	}
	return pg.IsRowError(err)
}

func (p *purge) deleteFiles(ctx context.Context, files []purgestore.StoredFile) error {
	for _, f := range files {
		for _, key := range f.BlobKeys(p.org) {
			if err := p.deleteFile(ctx, key); err != nil {
				p.fileErrors++
				const message = "A file cannot be deleted right now; try again later."
				return fault.Wrap(fault.Unavailable, "publishing.Purge", message, errors.Join(errFile, err))
			}
		}
	}
	return nil
}

func (p *purge) deleteFile(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	return p.deps.Blobs.Delete(ctx, key)
}

func purgeLater(reason string) error {
	f := fault.New(fault.Conflict, "publishing.Purge", reason+" Purge the organization again once that is finished.")
	f.RetryAfter = purgeRetry
	return f
}
