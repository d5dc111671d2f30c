package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/minio/minio-go/v7"
)

var errReplaced = errors.New("the file was replaced while it was being read")

// s3File reads an object from an offset to its end in one request. Because services disconnect slow
// readers, s3File requests the rest of the object if the response breaks off. It is not safe for
// concurrent use.
type s3File struct {
	store *S3
	key   string
	size  int64
	// etag identifies the content, so that reads never mix it with the content of a later Create.
	etag   string
	offset int64
	closed bool

	body io.ReadCloser // nil if no request is open
	// stalled is a timer that aborts the request. It runs only while a read waits for the service.
	stalled *time.Timer
	end     context.CancelFunc
	// fresh is true until the first byte of the response body has been read.
	fresh bool
}

func (f *s3File) Size() int64 { return f.size }

// Read implements io.Reader. Each wait for the service lasts at most callTime.
func (f *s3File) Read(p []byte) (int, error) {
	const op = "blob.Read"
	if f.closed {
		return 0, fs.ErrClosed
	}
	for {
		if f.offset >= f.size {
			return 0, io.EOF
		}
		if len(p) == 0 {
			return 0, nil
		}
		if err := f.request(); err != nil {
			return 0, s3Fault(op, err)
		}
		f.stalled.Reset(callTime)
		n, err := f.body.Read(p[:min(int64(len(p)), f.size-f.offset)])
		f.stalled.Stop()
		f.offset += int64(n)
		if n > 0 {
			f.fresh = false
			return n, nil // the next Read returns the error again
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		again := !f.fresh
		f.abort()
		if !again {
			return 0, s3Fault(op, err)
		}
	}
}

// request sends a request for the bytes from the offset to the end. It does nothing if a request is
// already open.
func (f *s3File) request() error {
	if f.body != nil {
		return nil
	}
	opts := minio.GetObjectOptions{}
	if err := opts.SetMatchETag(f.etag); err != nil {
		return err
	}
	if f.offset > 0 {
		if err := opts.SetRange(f.offset, 0); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.end, f.stalled, f.fresh = cancel, time.AfterFunc(callTime, cancel), true
	body, info, _, err := f.store.core.GetObject(ctx, f.store.bucket, f.key, opts)
	f.stalled.Stop()
	if err != nil {
		cancel()
		return err
	}
	if info.ETag != f.etag { // not every service honors the condition
		cancel()
		return errors.Join(errReplaced, body.Close())
	}
	f.body = body
	return nil
}

// abort ends the request, if one is open.
func (f *s3File) abort() {
	if f.body == nil {
		return
	}
	f.stalled.Stop()
	f.end()
	_ = f.body.Close() // it was only read
	f.body = nil
}

// Seek implements io.Seeker. It returns fs.ErrInvalid for an offset before the beginning.
func (f *s3File) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	if offset != f.offset {
		f.abort()
	}
	f.offset = offset
	return offset, nil
}

// Close implements io.Closer.
func (f *s3File) Close() error {
	f.closed = true
	f.abort()
	return nil
}
