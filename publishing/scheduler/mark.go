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
	// markPause is the wait between attempts to mark a post that another transaction has locked,
	// and markTries limits their number.
	markPause = 50 * time.Millisecond
	markTries = 60
	// markSpare is the age up to which a claim is not renewed when its call is marked.
	markSpare = claimGrace / 2
)

// pendingMark is a mark that is waiting to be stored with the next batch.
type pendingMark struct {
	schedulerstore.Mark
	stored bool
	err    error
	// tries counts the attempts that found the post locked by another transaction.
	tries int
	done  chan struct{}
}

func (m *pendingMark) complete(stored bool, err error) {
	m.stored, m.err = stored, err
	close(m.done)
}

// newMarks returns the batcher that stores marks. An error that cannot be attributed to one mark
// fails every mark in the statement, because any of them may have been stored.
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

// mark stores a mark and returns true if the call may be made. It returns false if the claim is
// lost or the post was deleted, moved or paused. If it returns an error, the mark may have been
// stored, but the call must not be made.
func (s *Sender) mark(x schedulerstore.Mark) (bool, error) {
	m := &pendingMark{Mark: x, done: make(chan struct{})}
	s.marks.Add(m)
	<-m.done
	return m.stored, m.err
}

// writeMarks stores marks in one statement. It returns the marks whose posts are locked, and
// completes the others.
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
