package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/batch"
	"crier/platform/fault"
	"crier/platform/pg"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// errFile marks the errors of the blob store.
var errFile = errors.New("the blob store has not deleted a file")

const (
	// purgeSize is in rows of one transaction, or files.
	purgeSize = 200
	// purgeRest is the pause after a batch as a multiple of its time.
	purgeRest = 1
	// fileTime limits the deletion of one file.
	fileTime = 10 * time.Second
	// maxFileErrors is how many deletions of files may fail: then the blob store itself is taken to be away.
	maxFileErrors = 1000
	// purgeRetry is the Retry-After of a purge that must wait.
	purgeRetry = time.Minute
)

// Purge deletes everything that the organization has in publishing: posts with their timelines, series, media with
// their files, channels with their credentials, and the rest. It returns the number of deleted rows, without those that
// belong to them, also with an error. It is for a background job; the caller has called Stop before, and deletes the
// organization itself after a call that returned no error.
//
// It works in short transactions. After a crash, or when ctx has ended, the next call goes on; a call that finds
// nothing returns 0. Files are deleted before the rows that name them. A file or a row that cannot be deleted does not
// stop the others: its row stays, and the error is returned at the end. Purge returns Conflict, after it has deleted
// what it can, while a post is being sent or a picture is being made: call it again later. It returns Unavailable while
// the database or the blob store is away, and the error of ctx.
func (s *Posts) Purge(ctx context.Context, org tenancy.OrgID) (rows int, err error) {
	p := &purge{core: s.core, org: org}
	err = p.run(ctx)
	if ctx.Err() != nil {
		return p.rows, err
	}
	return p.rows, publicFault("publishing.Purge", err)
}

// purge is one call of Purge.
type purge struct {
	core
	org tenancy.OrgID
	// rows counts what was deleted, fileErrors the deletions of files that failed.
	rows, fileErrors int
}

func (p *purge) run(ctx context.Context) error {
	if err := p.endSeries(ctx); err != nil {
		return err
	}
	failed := p.each(ctx, publishingstore.PurgePosts, publishingstore.PurgeKeys, publishingstore.PurgeConnects,
		publishingstore.PurgeDeliveries, publishingstore.PurgeWebhooks)
	for _, kind := range []publishingstore.FileKind{
		publishingstore.FilePictures, publishingstore.FileMedia, publishingstore.FileDeletedMedia,
	} {
		failed = errors.Join(failed, p.files(ctx, kind))
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(err, failed)
	}
	posts, files, err := publishingstore.OwnedLeft(ctx, p.store, p.org)
	switch {
	case err != nil:
		return errors.Join(failed, err)
	case posts && failed == nil:
		return purgeLater("A post of the organization is being published.")
	case posts:
		return failed
	}
	channels := p.each(ctx, publishingstore.PurgeSeries, publishingstore.PurgeChannels, publishingstore.PurgeCustomers)
	switch {
	case failed != nil || channels != nil:
		return errors.Join(failed, channels)
	case files:
		return purgeLater("A picture of the organization is being made, or a file is being uploaded.")
	}
	return p.each(ctx, publishingstore.PurgeIncidentEvents, publishingstore.PurgeNotifications,
		publishingstore.PurgePauses)
}

// ForgetReviewer removes the address of a person who is being purged from the approval requests of
// all organizations. It returns Unavailable if the database cannot be reached. After a crash or an
// error, the next call continues.
func (s *Posts) ForgetReviewer(ctx context.Context, email string) error {
	const op = "publishing.ForgetReviewer"
	for {
		orgs, err := publishingstore.ReviewerOrgs(ctx, s.store, email, purgeSize)
		if err != nil || len(orgs) == 0 {
			return internal(op, err)
		}
		for _, org := range orgs {
			if err := publishingstore.ForgetReviewer(ctx, s.store, org, email); err != nil {
				return internal(op, err)
			}
		}
	}
}

// endSeries ends all series, so that no occurrence is written behind the deletion of posts.
func (p *purge) endSeries(ctx context.Context) error {
	for {
		n, err := publishingstore.EndAllSeries(ctx, p.store, p.org, purgeSize)
		if err != nil || n < purgeSize {
			return err
		}
	}
}

// each deletes the rows of some kinds. An error of one does not stop the others.
func (p *purge) each(ctx context.Context, kinds ...publishingstore.Purgeable) (failed error) {
	for _, kind := range kinds {
		sweep := batch.Sweep[string]{
			Size: purgeSize, PauseFactor: purgeRest, IsItemError: pg.IsRowError,
			Find: func(ctx context.Context, after string, limit int) ([]string, error) {
				return publishingstore.FindOwned(ctx, p.store, p.org, kind, after, limit)
			},
			Do: func(ctx context.Context, keys []string) (int, error) {
				return publishingstore.Purge(ctx, p.store, p.org, kind, keys)
			},
		}
		n, err := sweep.Run(ctx)
		failed = errors.Join(failed, p.count(ctx, string(kind), n, err))
	}
	return failed
}

// files deletes files of a kind and their rows.
func (p *purge) files(ctx context.Context, kind publishingstore.FileKind) error {
	sweep := batch.Sweep[publishingstore.StoredFile]{
		Size: purgeSize, PauseFactor: purgeRest, IsItemError: p.isFileOrRowError,
		Find: func(
			ctx context.Context, after publishingstore.StoredFile, limit int,
		) ([]publishingstore.StoredFile, error) {
			return publishingstore.FindFiles(ctx, p.store, p.org, kind, after, limit)
		},
		Do: func(ctx context.Context, files []publishingstore.StoredFile) (int, error) {
			if err := p.deleteFiles(ctx, files); err != nil {
				return 0, err
			}
			return publishingstore.PurgeFiles(ctx, p.store, p.org, kind, files)
		},
	}
	n, err := sweep.Run(ctx)
	return p.count(ctx, string(kind), n, err)
}

// count adds the result of a sweep and returns its error with the kind. A sweep that the end of ctx has stopped
// is not finished, so that is an error here.
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

func (p *purge) deleteFiles(ctx context.Context, files []publishingstore.StoredFile) error {
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
	f := fault.New(fault.Conflict, "publishing.Purge", reason+" Purge the organization again when that has ended.")
	f.RetryAfter = purgeRetry
	return f
}
