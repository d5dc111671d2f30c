package media

import (
	"context"
	"errors"
	"strings"
	"time"

	"crier/platform/blob"
	"crier/platform/id"
	"crier/platform/pg"
	mediastore "crier/publishing/media/store"
	"crier/tenancy"
)

// leftoverAge is added to the maximum upload time. The row of a file is inserted within seconds
// after its bytes are stored. The rest of leftoverAge allows for clock skew and for stores that use
// the start of an upload as the file's date.
const leftoverAge = 24 * time.Hour

// deleteTime limits the deletion of one file.
const deleteTime = 10 * time.Second

// maxDeleteErrors is the total number of failures above which the file store is considered down.
const maxDeleteErrors = 1000

// collectFailures is the number of consecutive failed deletions at which the file store is
// considered down.
const collectFailures = 10

// CollectFiles deletes stored files that no row refers to and that are too old to belong to an
// upload in progress. Such files remain when a process dies before inserting the row, when a file
// is deleted, or when the conversion of a picture is attempted again. CollectFiles also cleans up
// after unfinished uploads. It returns the number of deleted files, even if it also returns an
// error.
//
// CollectFiles never deletes a file if its key has an unknown form or its organization is not in
// the database. Two databases that share a store by mistake therefore lose nothing.
//
// CollectFiles also keeps files that are newer than the organization's newest row. This process may
// be reading an outdated copy of the database, while the current database refers to these files.
//
// After a crash, or if ctx ends, the next call starts over. If a file or an organization causes an
// error, CollectFiles continues with the others and returns the first such error at the end. After
// too many failures, it stops.
func (s *Media) CollectFiles(ctx context.Context) (int, error) {
	before := s.deps.Clock.Now().Add(-s.cfg.UploadTimeout - leftoverAge)
	c := &collector{Media: s, before: before}
	err := errors.Join(s.deps.Blobs.Clean(ctx, before), s.deps.Blobs.List(ctx, func(page []blob.Entry) error {
		return c.collect(ctx, page)
	}))
	if c.unknown > 0 {
		s.deps.Log.WarnContext(ctx, "the file store has files of organizations that are not in the database",
			"files", c.unknown)
	}
	return c.deleted, errors.Join(err, c.failed)
}

// collector holds the state of one call to CollectFiles.
type collector struct {
	*Media
	before           time.Time
	deleted, unknown int
	failures         int
	inARow           int   // failed deletions since the last success
	failed           error // the first failure
}

// collect deletes a page's unused files. It returns an error if further deletions would fail too.
func (c *collector) collect(ctx context.Context, page []blob.Entry) error {
	old := map[tenancy.OrgID][]blob.Entry{}
	for _, e := range page {
		if org, _, ok := parseBlobKey(e.Key); ok && e.Stored.Before(c.before) {
			old[org] = append(old[org], e)
		}
	}
	for org, blobs := range old {
		if err := c.collectOrg(ctx, org, blobs); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) collectOrg(ctx context.Context, org tenancy.OrgID, blobs []blob.Entry) error {
	keys := make([]string, len(blobs))
	for i, e := range blobs {
		_, keys[i], _ = parseBlobKey(e.Key)
	}
	found, err := mediastore.UsedBlobs(ctx, c.db, org, keys)
	if err != nil {
		if pg.IsEnvironment(err) && !pg.IsOrgBusy(err) {
			return err
		}
		return c.fail(err)
	}
	if !found.Known {
		c.unknown += len(blobs)
		return nil
	}
	// A file gets its row at the end of its upload.
	newest := found.Newest.Add(-c.cfg.UploadTimeout)
	for _, e := range blobs {
		if found.Used[e.Key] || !e.Stored.Before(newest) {
			continue
		}
		if err := c.deleteKey(ctx, e.Key); err != nil {
			c.inARow++
			if err := c.fail(err); err != nil {
				return err
			}
			continue
		}
		c.deleted, c.inARow = c.deleted+1, 0
	}
	if _, err := mediastore.ForgetMedia(ctx, c.db, org, forgetAtOnce); err != nil {
		return c.fail(err)
	}
	return nil
}

func (c *collector) deleteKey(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTime)
	defer cancel()
	return c.deps.Blobs.Delete(ctx, key)
}

// fail records the first failure. If there have been too many failures, fail considers the store
// down and returns err.
func (c *collector) fail(err error) error {
	c.failures++
	if c.failed == nil {
		c.failed = err
	}
	if c.failures > maxDeleteErrors || c.inARow >= collectFailures {
		return err
	}
	return nil
}

// parseBlobKey splits a blob key into the organization and the file key. For the form of a blob
// key, see publishing.Medium.BlobKey and DerivedKey.
func parseBlobKey(blobKey string) (org tenancy.OrgID, key string, ok bool) {
	first, rest, found := strings.Cut(blobKey, "/")
	org, ok = id.Parse[tenancy.OrgTag](first)
	key, _, _ = strings.Cut(rest, ".")
	return org, key, found && ok && len(key) == keyLength && !strings.Contains(rest, "/")
}
