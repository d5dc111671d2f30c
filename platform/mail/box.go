package mail

import (
	"context"
	"slices"
	"sync"
	"time"

	"crier/platform/clock"
)

// boxSize is how many messages a Box keeps.
const boxSize = 200

// Box keeps the last 200 messages in memory instead of sending them, for `crier dev`. It is safe
// for concurrent use.
type Box struct {
	clock clock.Clock

	mu   sync.Mutex
	kept []Stored // oldest first
}

// Stored is a message in a Box.
type Stored struct {
	// At is when Send was called.
	At time.Time
	Message
}

// NewBox returns an empty Box.
func NewBox(c clock.Clock) *Box { return &Box{clock: c} }

// Send keeps the message and drops the oldest one if there are more than 200. It rejects the same
// invalid messages as SMTP.Send.
func (b *Box) Send(_ context.Context, m Message) error {
	if _, err := m.validate(); err != nil {
		return &permanent{cause: err}
	}
	stored := Stored{At: b.clock.Now(), Message: m}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.kept) == boxSize {
		b.kept = slices.Delete(b.kept, 0, 1)
	}
	b.kept = append(b.kept, stored)
	return nil
}

// Messages returns a copy of the kept messages, newest first.
func (b *Box) Messages() []Stored {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := slices.Clone(b.kept)
	slices.Reverse(out)
	return out
}
