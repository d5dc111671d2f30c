package scheduler

import (
	"context"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	schedulerstore "crier/publishing/scheduler/store"
)

const (
	maxMarks    = 512 // marks in one statement
	markGather  = 10 * time.Millisecond
	markTimeout = 10 * time.Second
	// markPause is the wait between attempts to mark a post that is locked by another transaction.
	// markTries limits the number of attempts.
	markPause = 50 * time.Millisecond
	markTries = 60
	// markSpare is the age below which a claim is not renewed when its call is marked.
	markSpare = claimGrace / 2
)

// pendingMark is a mark that will be stored with the next batch.
type pendingMark struct {
	schedulerstore.Mark
	stored bool
	err    error
	// tries counts the attempts that failed because another transaction had locked the post.
	tries int
	done  chan struct{}
}

func (m *pendingMark) complete(stored bool, err error) {
	m.stored, m.err = stored, err
	close(m.done)
}

// newMarks returns the batcher that stores marks. If an error cannot be attributed to a single
// mark, every mark in the statement fails, because any of them may have been stored.
func (s *Sender) newMarks() *batch.Batcher[*pendingMark] {
	return batch.New(batch.Rules[*pendingMark]{
		MaxItems: maxMarks, MaxWaiting: maxMarks, Gather: markGather, Timeout: markTimeout,
		Do: s.writeMarks, Refused: pg.IsRefused, Locked: pg.IsLocked,
		ItemFailed: func(m *pendingMark, err error) time.Duration {
			if m.tries++; pg.IsRefused(err) || m.tries > markTries {
				m.complete(false, err)
				return 0
			}
			return markPause
		},
		GiveUp: func(m *pendingMark, err error) { m.complete(false, err) },
	})
}

// mark stores a mark. It returns true if the call may be made. It returns false if the claim is
// lost, or if the post was deleted, moved or paused. If mark returns an error, the mark may have
// been stored, but the call must not be made.
func (s *Sender) mark(x schedulerstore.Mark) (bool, error) {
	m := &pendingMark{Mark: x, done: make(chan struct{})}
	s.marks.Add(m)
	<-m.done
	return m.stored, m.err
}

// writeMarks stores marks in one statement. It returns the marks whose posts are locked by another
// transaction, and completes all other marks.
func (s *Sender) writeMarks(ctx context.Context, pending []*pendingMark) (locked []*pendingMark, err error) {
	marks := make([]schedulerstore.Mark, len(pending))
	for i, m := range pending {
		marks[i] = m.Mark
	}
	stored, locks, err := schedulerstore.MarkCommitting(ctx, s.db, marks, s.claimHold(), markSpare)
	if err != nil {
		return nil, err
	}
	for i, m := range pending {
		if locks[i] {
			locked = append(locked, m)
		} else {
			m.complete(stored[i], nil)
		}
	}
	return locked, nil
}
