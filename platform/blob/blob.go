// Package blob keeps bytes at rest under keys: media and other files too large for the database.
package blob

import (
	"context"
	"io"
	"regexp"
	"strings"

	"crier/platform/fault"
)

// Store keeps bytes. It is safe for concurrent use.
type Store interface {
	// Create stores all of r and tells its size in bytes. The key becomes visible only when every byte is on the disk;
	// when Create fails or the process dies, the key is as it was before. An existing key is replaced as a whole.
	// No room, or no right to write, is fault.Unavailable; an error of r is passed on.
	Create(ctx context.Context, key string, r io.Reader) (size int64, err error)
	// Open reads a key; an absent one is fault.NotFound. The caller closes the file, which stays readable after a Delete.
	Open(ctx context.Context, key string) (File, error)
	// Delete removes a key; an absent one is no error.
	Delete(ctx context.Context, key string) error
}

// File is an open blob.
type File interface {
	io.ReadSeekCloser
	io.ReaderAt
	// Size is in bytes.
	Size() int64
}

const maxKey = 1024

var segment = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$`)

// ValidKey tells whether a key is made of segments of A-Z a-z 0-9 . _ - joined by slashes, none of them starting with a dot.
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
