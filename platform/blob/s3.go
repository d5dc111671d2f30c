package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"crier/platform/fault"
)

const (
	// callTime limits each call that transfers no content, and each wait for content.
	callTime = 30 * time.Second
	// checkTime limits each Check.
	checkTime = 5 * time.Second
	// minRate is the minimum upload rate in bytes per second. The time limit for sending a file is
	// callTime plus the file's size divided by minRate.
	minRate = 1 << 20
	// retries is the maximum number of attempts for each call, with pauses of a few seconds between
	// them.
	retries = 3
	// partSize is the minimum size of a part, in bytes, except for a file's last part. Files larger
	// than partSize are sent in parts, and a failed part is resent on its own. Parts are read from
	// disk, so they take no memory.
	partSize = 64 << 20
	// maxParts is S3's limit on the number of parts.
	maxParts = 10_000
	// partsAtOnce is how many parts of one file are sent at the same time.
	partsAtOnce = 2
)

// ErrRefused is wrapped by Verify's error if the service responds but rejects the configuration.
var ErrRefused = errors.New("the S3 service refused the configuration")

// S3 is a Store in a bucket that several processes may share.
//
// Create first copies the content to an unnamed file on the local disk. A slow client therefore
// ties up neither memory nor a connection to the service, and a rejected or incomplete upload never
// reaches the service.
type S3 struct {
	core   minio.Core
	bucket string
	// spool is the folder for local copies.
	spool string
}

// NewS3 returns a Store in the configured bucket. It does not connect. All requests go through
// transport, whose timeouts for connections and headers apply. spool is a folder that only this
// process uses; NewS3 empties it. NewS3 returns an error if the configuration is invalid or the
// folder cannot be emptied or created.
func NewS3(cfg S3Config, transport http.RoundTripper, spool string) (*S3, error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return nil, errors.New("S3_ENDPOINT: is not a URL")
	}
	lookup := minio.BucketLookupDNS
	if cfg.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, ""), Secure: u.Scheme == "https",
		Region: cfg.Region, BucketLookup: lookup, Transport: transport, MaxRetries: retries,
	})
	if err != nil {
		return nil, fmt.Errorf("the S3 service: %w", err)
	}
	if err := errors.Join(os.RemoveAll(spool), os.MkdirAll(spool, 0o700)); err != nil {
		return nil, err
	}
	return &S3{core: minio.Core{Client: client}, bucket: cfg.Bucket, spool: spool}, nil
}

// Close implements Store. It does nothing: the caller must close the transport's idle connections.
func (*S3) Close() error { return nil }

// Create implements Store.
func (s *S3) Create(ctx context.Context, key string, r io.Reader) (size int64, err error) {
	const op = "blob.Create"
	if err := checkKey(op, key); err != nil {
		return 0, err
	}
	local, size, err := s.copyLocally(ctx, r)
	if err != nil {
		return 0, asUnavailable(op, err)
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, callTime+time.Duration(size/minRate)*time.Second)
	defer cancel()
	_, err = s.core.Client.PutObject(ctx, s.bucket, key, local, size, minio.PutObjectOptions{
		ContentType: "application/octet-stream",
		PartSize:    uint64(max(partSize, size/maxParts+1)),
		NumThreads:  partsAtOnce,
	})
	if err != nil && !s.completed(ctx, key, size, err) {
		return 0, fault.Wrap(fault.Unavailable, op, unreachable, err)
	}
	return size, nil
}

// completed returns true if err says that there is no such upload but the file was stored. This
// happens if minio repeats the call that completes a multipart upload because the first response is
// late.
func (s *S3) completed(ctx context.Context, key string, size int64, err error) bool {
	if minio.ToErrorResponse(err).Code != minio.NoSuchUpload {
		return false
	}
	info, err := s.core.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	return err == nil && info.Size == size
}

// copyLocally copies r to an unnamed file and returns the file and its size.
func (s *S3) copyLocally(ctx context.Context, r io.Reader) (f *os.File, size int64, err error) {
	f, err = os.CreateTemp(s.spool, "upload-*")
	if err != nil {
		return nil, 0, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	size, err = io.Copy(f, &ctxReader{ctx: ctx, r: r})
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

// Open implements Store.
func (s *S3) Open(ctx context.Context, key string) (File, error) {
	const op = "blob.Open"
	if err := errors.Join(ctx.Err(), checkKey(op, key)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	info, err := s.core.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return nil, s3Fault(op, err)
	}
	return &s3File{store: s, key: key, size: info.Size, etag: info.ETag}, nil
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, key string) error {
	const op = "blob.Delete"
	if err := errors.Join(ctx.Err(), checkKey(op, key)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{})
	if err == nil || fault.Is(s3Fault(op, err), fault.NotFound) {
		return nil
	}
	return s3Fault(op, err)
}

// List implements Store.
func (s *S3) List(ctx context.Context, visit func(page []Entry) error) error {
	const op = "blob.List"
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the goroutine that fills the channel
	stalled := time.AfterFunc(callTime, cancel)
	defer stalled.Stop()
	objects := s.core.Client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Recursive: true, MaxKeys: maxPage})
	var page []Entry
	flush := func() error {
		stalled.Stop()
		defer stalled.Reset(callTime)
		defer func() { page = page[:0] }()
		return visit(page)
	}
	for o := range objects {
		if o.Err != nil {
			return s3Fault(op, o.Err)
		}
		if !ValidKey(o.Key) {
			continue
		}
		page = append(page, Entry{Key: o.Key, Size: o.Size, Stored: o.LastModified})
		if len(page) < maxPage {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return s3Fault(op, err)
	}
	if len(page) == 0 {
		return nil
	}
	return flush()
}

// Clean implements Store. It aborts incomplete multipart uploads.
func (s *S3) Clean(ctx context.Context, before time.Time) error {
	const op = "blob.Clean"
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the goroutine that fills the channel
	stalled := time.AfterFunc(callTime, cancel)
	defer stalled.Stop()
	for u := range s.core.Client.ListIncompleteUploads(ctx, s.bucket, "", true) {
		stalled.Reset(callTime)
		if err := s3Fault(op, u.Err); err != nil {
			if fault.Is(err, fault.NotFound) { // some services respond with this if there are none
				return nil
			}
			return err
		}
		if !ValidKey(u.Key) || !u.Initiated.Before(before) {
			continue
		}
		stalled.Stop()
		call, done := context.WithTimeout(ctx, callTime)
		err := s.core.AbortMultipartUpload(call, s.bucket, u.Key, u.UploadID)
		done()
		if err = s3Fault(op, err); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		stalled.Reset(callTime)
	}
	return s3Fault(op, ctx.Err())
}

// Check implements Store. It looks up the bucket and writes nothing.
func (s *S3) Check(ctx context.Context) error {
	const op = "blob.Check"
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	found, err := s.core.BucketExists(ctx, s.bucket)
	if err != nil {
		return s3Fault(op, err)
	}
	if !found {
		return fault.New(fault.Unavailable, op, "The bucket of S3_BUCKET does not exist.")
	}
	return nil
}

// Verify checks the configuration by writing and deleting a small file. Its error matches
// ErrRefused if retrying with the same configuration is pointless.
func (s *S3) Verify(ctx context.Context) error {
	key := "probe-" + rand.Text()
	_, err := s.Create(ctx, key, strings.NewReader("probe"))
	if err == nil {
		err = s.Delete(ctx, key)
	}
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && answer.StatusCode >= 400 && answer.StatusCode < 500 {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

const unreachable = "The files cannot be reached right now; try again soon."

// s3Fault converts an error from the service to NotFound or Unavailable. It returns nil for nil.
func s3Fault(op string, err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey, minio.NoSuchUpload:
		return fault.Wrap(fault.NotFound, op, "The file does not exist.", err)
	}
	return fault.Wrap(fault.Unavailable, op, unreachable, err)
}
