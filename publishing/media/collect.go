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

// leftoverAge is added to the time that an upload may take. Between the bytes of a file and its row are seconds; the
// rest is for clocks that differ and for stores that date a file by the beginning of its upload.
const leftoverAge = 24 * time.Hour

// deleteTime limits the deletion of one file.
const deleteTime = 10 * time.Second

// maxDeleteErrors is how many deletions may fail in all before the file store itself is taken to be away.
const maxDeleteErrors = 1000

// collectFailures is how many deletions may fail one after the other: then the file store itself is taken to be away.
const collectFailures = 10

// CollectFiles deletes bytes that no row names and that are older than any upload can be: of processes that died between
// the bytes and the row, of deleted files and of old attempts at pictures. It deletes what unfinished uploads have left
// in the store, too. It returns the number of deleted files, also with an error.
//
// It leaves what it does not know alone: keys of another form, and files of organizations that the database does not
// have, so that a store that two databases share by mistake loses nothing. Of an organization it deletes only what was
// stored before the newest file that the database knows: a process on an older copy of the database does not know the
// rest, which a newer one names. After a crash, or when ctx has ended, the
// next call begins again. A file or an organization that fails does not stop the others; the error is returned at the
// end.
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
	inARow           int   // failed deletions since the last one that succeeded
	failed           error // the first failure
}

// collect deletes the files of a page that nothing uses. It returns an error when the rest would fail, too.
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
	newest := found.Newest.Add(-c.cfg.UploadTimeout) // a file gets its row at the end of its upload
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

// fail keeps the first failure. It returns the error after too many: then the store itself is taken to be away.
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

// parseBlobKey returns the organization and the key of the file that a blob key is made of: see
// publishing.Medium.BlobKey and DerivedKey.
func parseBlobKey(blobKey string) (org tenancy.OrgID, key string, ok bool) {
	first, rest, found := strings.Cut(blobKey, "/")
	org, ok = id.Parse[tenancy.OrgTag](first)
	key, _, _ = strings.Cut(rest, ".")
	return org, key, found && ok && len(key) == keyLength && !strings.Contains(rest, "/")
}
