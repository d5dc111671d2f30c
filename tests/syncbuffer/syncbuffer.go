// Package syncbuffer provides a buffer that a test reads while a program or a logger writes to it.
package syncbuffer

import (
	"bytes"
	"sync"
)

// Buffer holds what is written to it. It is safe for concurrent use; the zero value is empty.
type Buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write appends p; it never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

// String returns what has been written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
