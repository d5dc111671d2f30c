package local

import (
	"context"
	"errors"
	"time"

	"crier/platform/fault"
)

const (
	maxDeaths    = 5  // in a row, with less than calm between them
	maxRevivals  = 10 // tries after one death: what the dead one's children hold is free soon, or never
	firstRevival = 50 * time.Millisecond
	lastRevival  = 5 * time.Second // between tries
	calm         = time.Minute
)

// Keep watches a server that is not detached and brings it back, under the same addresses, whenever it ends by itself. It returns nil
// when ctx ends or the server is stopped, and a fault with one sentence for people when it cannot be brought back or does not
// stay up. It is called once, and beside Stop.
func (s *Server) Keep(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	lived := time.NewTimer(calm)
	defer lived.Stop()
	for deaths := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-lived.C:
			deaths = 0
			continue
		case <-s.Done():
		}
		if deaths++; deaths > maxDeaths {
			why, _ := s.place.lastWords()
			return fault.New(fault.Unavailable, "local.Keep", "Postgres in "+s.place.root+" ends again and again: "+why)
		}
		if err := s.revive(ctx); err != nil || s.isStopping() {
			return err
		}
		lived.Reset(calm)
	}
}

// revive brings the dead server up again; nil as well when ctx ends first or it is being stopped.
func (s *Server) revive(ctx context.Context) error {
	s.work.Lock()
	defer s.work.Unlock()
	if s.isStopping() {
		return nil
	}
	why, _ := s.place.lastWords()
	s.cfg.Log.Warn("Postgres has ended by itself and is started again", "process", s.PID(), "log", why)
	wait := firstRevival
	for try := 1; ; try++ {
		err := s.place.stopLeftover(ctx, s.cfg.Log)
		if err == nil {
			_, err = s.attempt(ctx)
		}
		switch {
		case err == nil:
			s.cfg.Log.Warn("Postgres is back", "process", s.PID())
			return nil
		case s.isStopping(), ctx.Err() != nil:
			return nil
		case try == maxRevivals:
			return lost(err)
		}
		if pause(ctx, wait) != nil {
			return nil
		}
		wait = min(2*wait, lastRevival)
	}
}

// lost gives up; err is a fault of this package and has the reason in its words.
func lost(err error) error {
	reason := err.Error()
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		reason = f.Message
	}
	return fault.New(fault.Unavailable, "local.Keep", "Postgres ended by itself and cannot be brought back: "+reason)
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}
