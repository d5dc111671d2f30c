package sender

import (
	"context"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	publishingstore "crier/publishing/store"
)

const (
	marksAtOnce = 512
	markGather  = 10 * time.Millisecond
	markTimeout = 10 * time.Second
	markPause   = 50 * time.Millisecond // until the mark of a post that another transaction has locked is written again
	markTries   = 60
	markSpare   = slack / 2 // a claim so young is not renewed by its mark
)

// marking is a send that waits for its mark.
type marking struct {
	publishingstore.Mark
	may   bool
	err   error
	tries int // while another transaction had its post
	done  chan struct{}
}

func (m *marking) answer(may bool, err error) {
	m.may, m.err = may, err
	close(m.done)
}

// newMarks makes the batcher of marks. An error that is no single mark's fault ends all marks of its statement, because
// they may be stored all the same.
func (s *Sender) newMarks() *batch.Batcher[*marking] {
	return batch.New(batch.Rules[*marking]{
		MaxItems: marksAtOnce, MaxWaiting: marksAtOnce, Gather: markGather, Timeout: markTimeout,
		Do: s.writeMarks, Refused: pg.IsRefused, Locked: pg.IsLocked,
		ItemFailed: func(m *marking, err error) time.Duration {
			if m.tries++; pg.IsRefused(err) || m.tries > markTries {
				m.answer(false, err)
				return 0
			}
			return markPause
		},
		GiveUp: func(m *marking, err error) { m.answer(false, err) },
	})
}

// mark returns when the mark is stored; false means that the call must not be made. After an error nobody knows whether
// it is stored, and the call must not be made either.
func (s *Sender) mark(x publishingstore.Mark) (bool, error) {
	m := &marking{Mark: x, done: make(chan struct{})}
	s.marks.Add(m)
	<-m.done
	return m.may, m.err
}

// writeMarks stores marks in one statement, answers their sends, and returns those whose posts are locked.
func (s *Sender) writeMarks(ctx context.Context, some []*marking) (locked []*marking, err error) {
	marks := make([]publishingstore.Mark, len(some))
	for i, m := range some {
		marks[i] = m.Mark
	}
	may, busy, err := s.store.MarkCommitting(ctx, marks, s.hold(), markSpare)
	if err != nil {
		return nil, err
	}
	for i, m := range some {
		if busy[i] {
			locked = append(locked, m)
		} else {
			m.answer(may[i], nil)
		}
	}
	return locked, nil
}
