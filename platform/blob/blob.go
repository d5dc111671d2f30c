// Package blob stores media and other files that are too large for the database. Each file has a
// key and is stored in a folder or in a bucket of an S3-compatible service.
package blob

import (
	"context"
	"io"
	"regexp"
	"strings"
	"time"

	"crier/platform/fault"
)

// Store stores files under keys. Every method that takes a key returns fault.Invalid if ValidKey
// rejects the key. Every method returns fault.Unavailable while the store cannot be reached. A
// Store is safe for concurrent use.
type Store interface {
	// Create stores everything it reads from r under the key and returns the number of bytes
	// stored. It replaces any existing file atomically: the new content becomes visible only once
	// every byte is stored. If Create fails or the process dies, the existing file is unchanged.
	//
	// Create returns fault.Unavailable if there is no space or no permission to write. It returns
	// fault.Conflict if the key names a folder or if part of the key names a file. It returns
	// errors from r unchanged.
	Create(ctx context.Context, key string, r io.Reader) (size int64, err error)
	// Open opens the file with the given key for reading. ctx applies only to opening. Open returns
	// fault.NotFound if the key does not exist. The caller must close the file. Reads may fail if
	// the file is deleted while it is open.
	Open(ctx context.Context, key string) (File, error)
	// Delete removes a key. It is not an error if the key does not exist.
	Delete(ctx context.Context, key string) error
	// List calls visit for all files, in pages of at most maxPage files and in no particular order.
	// It may miss files that are created or deleted while it runs. visit may delete the files in
	// its page. List returns the first error from visit.
	List(ctx context.Context, visit func(page []Entry) error) error
	// Clean removes the data that unfinished Creates left behind, for example when their process
	// died. It affects only Creates that began before the given time. None of them may still be
	// running.
	Clean(ctx context.Context, before time.Time) error
	// Check returns fault.Unavailable if files currently cannot be stored. It is cheap enough to be
	// called often.
	Check(ctx context.Context) error
	// Close releases the Store's resources. Open files stay readable.
	Close() error
}

// File is an open file of a Store.
type File interface {
	io.ReadSeekCloser
	// Size returns the size in bytes at the time of Open.
	Size() int64
}

// Entry is a file in a list.
type Entry struct {
	Key string
	// Size is in bytes.
	Size int64
	// Stored is the time at which the file's Create began or ended, according to the store's clock.
	Stored time.Time
}

// maxPage is the maximum number of files that List passes to visit in one call.
const maxPage = 1000

const maxKey = 1024

var segment = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$`)

// ValidKey reports whether key consists of segments joined by slashes. A segment consists of 1 to
// 200 of the characters A-Z a-z 0-9 . _ - and does not start with a dot. The key has at most 1024
// bytes.
func ValidKey(key string) bool {
	if len(key) > maxKey {
		return false
	}
	for part := range strings.SplitSeq(key, "/") {
		if !segment.MatchString(part) {
			return false
		}
	}
	return true
}

func checkKey(op, key string) error {
	if !ValidKey(key) {
		return fault.New(fault.Invalid, op, "The file key is not valid.")
	}
	return nil
}
