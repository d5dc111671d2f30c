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
	// markPause and markTries bound the attempts to write the mark of a post that another
	// transaction has locked.
	markPause = 50 * time.Millisecond
	markTries = 60
	// markSpare is the age of a claim up to which its mark does not renew it.
	markSpare = claimGrace / 2
)

// pendingMark is a request for a mark, waiting for the next batch.
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

// newMarks returns the batcher of marks. An error that cannot be attributed to one mark fails every
// mark of its statement, because any of them may be stored.
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

// mark waits until the mark is stored. It returns false if the call must not be made, because the
// claim is lost or the post was deleted, moved or paused. After an error, the mark may or may not
// be stored, and the call must not be made either.
func (s *Sender) mark(x schedulerstore.Mark) (bool, error) {
	m := &pendingMark{Mark: x, done: make(chan struct{})}
	s.marks.Add(m)
	<-m.done
	return m.stored, m.err
}

// writeMarks stores marks in one statement, completes them, and returns those whose posts are
// locked.
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
