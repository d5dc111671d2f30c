package service

import (
	"context"
	"sync"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	publishingstore "crier/publishing/store"
)

const (
	marksAtOnce = 512
	markGather  = 3 * time.Millisecond // how long the first of a statement waits for others
	markTimeout = 10 * time.Second
	markPause   = 50 * time.Millisecond // until the mark of a post that another transaction has locked is written again
	markTries   = 60
	markSpare   = slack / 2 // a claim so young is not renewed by its mark
)

// marker writes the marks of many sends in one statement: those that come in while one is written go into the next.
type marker struct {
	write   func(ctx context.Context, marks []publishingstore.Mark) (may, busy []bool, err error)
	mu      sync.Mutex
	waiting []*marking
	writing bool
}

// marking is a send that waits for its mark.
type marking struct {
	publishingstore.Mark
	may   bool
	err   error
	tries int // while another transaction had its post
	done  chan struct{}
}

// mark returns when the mark is stored; false means that the call must not be made. After an error nobody knows, and it must not be made either.
func (m *marker) mark(x publishingstore.Mark) (bool, error) {
	w := &marking{Mark: x, done: make(chan struct{})}
	m.add(w)
	<-w.done
	return w.may, w.err
}

func (m *marker) add(w *marking) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = append(m.waiting, w)
	if !m.writing {
		m.writing = true
		go m.run()
	}
}

func (m *marker) run() {
	for {
		time.Sleep(markGather)
		m.mu.Lock()
		n := min(len(m.waiting), marksAtOnce)
		batch := m.waiting[:n:n]
		m.waiting = m.waiting[n:]
		m.writing = n > 0
		m.mu.Unlock()
		if n == 0 {
			return
		}
		m.store(batch)
	}
}

// store writes a batch and answers its sends. A send that Postgres refuses, or whose post stays locked, is taken out
// of it.
func (m *marker) store(all []*marking) {
	ctx, cancel := context.WithTimeout(context.Background(), markTimeout) // the marks of many sends: none of them may end the others'
	defer cancel()
	left, err := batch.Isolate(all, func(some []*marking) error {
		marks := make([]publishingstore.Mark, len(some))
		for i, w := range some {
			marks[i] = w.Mark
		}
		may, busy, err := m.write(ctx, marks)
		if err != nil {
			return err
		}
		for i, w := range some {
			if w.may = may[i]; busy[i] && w.tries < markTries {
				w.tries++
				m.later(w)
				continue
			}
			close(w.done)
		}
		return nil
	}, func(err error) bool { return ctx.Err() == nil && !pg.IsAway(err) }, func(w *marking, err error) {
		w.err = err
		close(w.done)
	})
	for _, w := range left {
		w.err = err
		close(w.done)
	}
}

// later writes a mark again after a pause: another transaction has its post.
func (m *marker) later(w *marking) {
	time.AfterFunc(markPause, func() { m.add(w) })
}
