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

// leftoverAge is added to the time that an upload may take. Only seconds pass between the bytes of
// a file and its row. The rest allows for clocks that differ, and for stores that date a file by
// the beginning of its upload.
const leftoverAge = 24 * time.Hour

// deleteTime limits the deletion of one file.
const deleteTime = 10 * time.Second

// maxDeleteErrors is how many deletions may fail in total before the file store is considered down.
const maxDeleteErrors = 1000

// collectFailures is how many deletions in a row may fail before the file store is considered down.
const collectFailures = 10

// CollectFiles deletes bytes that no row refers to and that are older than any upload can be. They
// come from processes that died between storing the bytes and the row, from deleted files, and from
// old attempts at pictures. It also deletes what unfinished uploads have left in the store. It
// returns the number of deleted files, even with an error.
//
// CollectFiles leaves alone what it does not know: keys of any other form, and files of
// organizations that are not in the database, so that two databases that share a store by mistake
// lose nothing. Of each organization, it deletes only files stored before the newest file that the
// database knows. This process may see an outdated copy of the database, and a current one may
// refer to the later files.
//
// After a crash, or if ctx has ended, the next call starts over. A file or an organization that
// fails does not stop the others; the error is returned at the end.
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

// collector is one call of CollectFiles.
type collector struct {
	*Media
	before           time.Time
	deleted, unknown int
	failures         int
	inARow           int   // failed deletions since the last success
	failed           error // the first failure
}

// collect deletes the unused files of a page. It returns an error if further deletions would fail
// as well.
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
	// a file gets its row at the end of its upload
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

// fail keeps the first failure. After too many failures it returns the error, because the store
// itself is then considered down.
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

// parseBlobKey returns the organization and the file key in a blob key: see
// publishing.Medium.BlobKey and DerivedKey.
func parseBlobKey(blobKey string) (org tenancy.OrgID, key string, ok bool) {
	first, rest, found := strings.Cut(blobKey, "/")
	org, ok = id.Parse[tenancy.OrgTag](first)
	key, _, _ = strings.Cut(rest, ".")
	return org, key, found && ok && len(key) == keyLength && !strings.Contains(rest, "/")
}
