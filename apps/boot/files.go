package boot

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"crier/platform/blob"
	"crier/platform/outbound"
)

// openFiles opens the store for uploads. If a bucket cannot be reached, openFiles only logs the
// error, because posts without files can still be published. If the bucket rejects the
// configuration, openFiles returns an error.
func (a storage) openFiles(ctx context.Context) (err error) {
	if a.cfg.Files.Kind == blob.KindS3 {
		if err := a.openBucket(ctx); err != nil {
			return err
		}
		a.health.AddDegraded("files", a.blobs.Check) // all processes share the bucket
		return nil
	}
	a.blobs, err = blob.NewDisk(cmp.Or(a.cfg.FilesDir, filepath.Join(a.cfg.Home, "files")))
	if err != nil {
		return err
	}
	a.health.Add("files", a.blobs.Check)
	return nil
}

// openBucket opens the configured bucket. The bucket's address may be in the operator's private
// network.
func (a storage) openBucket(ctx context.Context) (err error) {
	a.toFiles, err = outbound.New(outbound.Config{Allow: a.cfg.Files.S3.Hosts()}, outbound.Deps{Log: a.log})
	if err != nil {
		return err
	}
	bucket, err := blob.NewS3(a.cfg.Files.S3, a.toFiles.Transport(), filepath.Join(a.cfg.Home, "spool"))
	if err != nil {
		return err
	}
	a.blobs = bucket
	err = bucket.Verify(ctx)
	if errors.Is(err, blob.ErrRefused) {
		return err
	}
	if err != nil {
		a.log.WarnContext(ctx, "the S3 service does not respond; uploads fail until it does", "error", err)
	}
	return nil
}

func (a storage) closeFiles(context.Context) error {
	err := a.blobs.Close()
	if a.toFiles != nil {
		a.toFiles.Close()
	}
	return err
}
