package worker

import (
	"context"
	"errors"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	"crier/publishing"
	publishingservice "crier/publishing/service"
	"crier/tenancy"
)

// finishBatch is how many outcomes go into one statement.
const finishBatch = 512

const (
	storeTimeout = 10 * time.Second
	storePause   = 2 * time.Second       // the longest, between tries
	lockedPause  = 25 * time.Millisecond // until outcomes whose rows another transaction has locked are stored again; it doubles
	lockedSplits = 32                    // statements that may fail by a lock before it is taken for that of a whole table
	asideEvery   = time.Minute           // how often outcomes that the database refused are tried again
	asideKept    = 1024                  // of them at most; more are written into the log only
)

var errRefused = errors.New("the database refuses it")

// finishLoop stores outcomes, as many at once as have come in meanwhile. No outcome is dropped before it is stored:
// while the database is away, or something is missing that every statement needs, all of them wait; one that the
// database refuses is set aside and tried again each minute, beside the others. One whose rows another transaction has
// locked is tried again by itself, so that the others do not wait for that lock.
func (w *Worker) finishLoop() {
	turn := w.newPace()
	again := time.NewTicker(asideEvery)
	defer again.Stop()
	var retry <-chan time.Time // nil: nothing is locked
	pause := lockedPause
	var aside []ended
	for {
		select {
		case first, open := <-w.finish:
			if !open {
				w.close(aside)
				return
			}
			turn.wait(w.over, len(w.finish) >= finishBatch)
			w.finishing.begin()
			outcomes := []ended{first}
			for len(outcomes) < finishBatch && len(w.finish) > 0 {
				outcomes = append(outcomes, <-w.finish)
			}
			aside = w.keep(aside, w.store(outcomes, true))
			turn.done()
		case <-retry:
			w.finishing.begin()
			outcomes := w.locked
			w.locked, retry = nil, nil
			aside = w.keep(aside, w.store(outcomes, true))
			pause = min(2*pause, storePause)
		case <-again.C:
			w.finishing.begin()
			aside = w.keep(nil, w.store(aside, false))
		}
		switch {
		case len(w.locked) == 0:
			pause = lockedPause
		case retry == nil:
			retry = time.After(pause)
		}
		w.finishing.end()
	}
}

// close stores what is left when no more outcomes come.
func (w *Worker) close(aside []ended) {
	aside = w.store(aside, false)
	for len(w.locked) > 0 {
		outcomes := w.locked
		w.locked = nil
		aside = append(aside, w.store(outcomes, true)...)
		select {
		case <-w.over:
			w.lose(w.locked, errRefused)
			w.locked = nil
		case <-time.After(lockedPause):
		}
	}
	w.lose(aside, errRefused)
}

// keep remembers refused outcomes, up to a bound.
func (w *Worker) keep(aside, more []ended) []ended {
	room := min(len(more), asideKept-len(aside))
	w.lose(more[room:], errRefused)
	return append(aside, more[:room]...)
}

// store repeats until the database has taken the outcomes, however long it is away, and returns those that it
// refuses. first means that they were not refused before. Of a post with two outcomes, that of its sender and that of
// a look-up, a success is stored first: a statement takes one of each post.
func (w *Worker) store(all []ended, first bool) (refused []ended) {
	for len(all) > 0 {
		wave, rest := once(all)
		refused, all = append(refused, w.storeWave(wave, first)...), rest
	}
	return refused
}

// once takes one outcome of each post, a success if there is one.
func once(all []ended) (wave, rest []ended) {
	at := map[publishing.PostID]int{}
	for _, e := range all {
		i, seen := at[e.Post]
		switch {
		case !seen:
			at[e.Post] = len(wave)
			wave = append(wave, e)
		case e.Result == publishingservice.ResultPublished && wave[i].Result != publishingservice.ResultPublished:
			wave[i], rest = e, append(rest, wave[i])
		default:
			rest = append(rest, e)
		}
	}
	return wave, rest
}

func (w *Worker) storeWave(all []ended, first bool) (refused []ended) {
	locks := 0
	blame := func(err error) bool {
		if pg.IsLocked(err) {
			locks++
			return locks <= lockedSplits
		}
		return pg.IsRefused(err)
	}
	alone := func(e ended, err error) {
		switch {
		case pg.IsLocked(err):
			w.locked = append(w.locked, e)
		case !w.storeBare(e):
			refused = append(refused, w.setAside(e, first, err))
		}
	}
	for try := 1; len(all) > 0; try++ {
		locks = 0
		left, err := batch.Isolate(all, w.finishSome, blame, alone)
		if err == nil {
			return refused
		}
		all = left
		w.deps.Log.Error("outcomes cannot be stored yet", "posts", len(all), "try", try, "error", err)
		pause := time.NewTimer(min(storePause, time.Duration(try)*100*time.Millisecond))
		select {
		case <-pause.C:
		case <-w.over:
			pause.Stop()
			w.lose(all, err)
			return refused
		}
	}
	return refused
}

// finishSome stores outcomes in one statement.
func (w *Worker) finishSome(some []ended) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	outcomes := make([]publishingservice.Outcome, len(some))
	for i, e := range some {
		outcomes[i] = e.Outcome
	}
	finished, err := w.deps.Publisher.Finish(ctx, outcomes)
	if err == nil {
		w.finished(some, finished)
	}
	return err
}

// storeBare stores an outcome that the database refuses without the texts of the platform, which are what it is
// refused for as a rule.
func (w *Worker) storeBare(e ended) bool {
	bare := e
	bare.Outcome = publishingservice.Bare(e.Outcome)
	err := w.finishSome([]ended{bare})
	if err == nil {
		w.deps.Log.Error("an outcome was stored without its texts, which the database refuses", "post", e.Post, "releaseId", e.ReleaseID, "said", e.Error)
	}
	return err == nil
}

// setAside takes a refused outcome out of the way of the others: its organization may go on, and its post says why it
// does not.
func (w *Worker) setAside(e ended, first bool, cause error) ended {
	if !first {
		return e
	}
	w.deps.Metrics.refused()
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := w.deps.Publisher.SetAside(ctx, e.Outcome, cause); err != nil {
		w.deps.Log.Warn("the timeline of a post cannot say that its outcome is refused", "post", e.Post, "error", err)
	}
	w.report(e, "the database refuses an outcome; it is tried again each minute", cause)
	w.deps.Actors.Done(e.Org, e.posts, false)
	e.posts = 0
	return e
}

// lose writes into the log what could not be stored, so that nobody has to guess what is published.
func (w *Worker) lose(all []ended, err error) {
	for _, e := range all {
		w.deps.Metrics.lost()
		w.report(e, "an outcome could not be stored; it is looked up when its claim ends", err)
		w.deps.Actors.Done(e.Org, e.posts, false)
	}
}

func (w *Worker) report(e ended, message string, err error) {
	w.deps.Log.Error(message, "org", e.Org, "post", e.Post, "token", e.Token, "result", e.Result, "releaseId", e.ReleaseID, "error", err)
}

// finished tells the actors, and looks at once at what is unknown.
func (w *Worker) finished(outcomes []ended, stored []publishingservice.Finished) {
	kept, locked := map[publishing.PostID]bool{}, map[publishing.PostID]bool{}
	for _, f := range stored {
		kept[f.Post], locked[f.Post] = f.State != "", f.Locked
		if f.Locked {
			continue
		}
		if f.State == publishing.StateUnknown {
			w.SweepNow()
		}
		if f.Second {
			w.deps.Metrics.publishedTwice()
			w.deps.Log.Error("a platform has published a post twice; the timeline has both release ids", "org", f.Org, "post", f.Post)
		}
	}
	over, claims := map[tenancy.OrgID]int{}, map[tenancy.OrgID]bool{} // claims: has more to claim than what it waits for in lines
	for _, o := range outcomes {
		if locked[o.Post] {
			w.locked = append(w.locked, o)
			continue
		}
		over[o.Org] += o.posts
		if o.posts > 0 && (o.Result != publishingservice.ResultPublished || !w.places.join(o.place, o.Org)) {
			claims[o.Org] = true
		}
		if !kept[o.Post] {
			w.deps.Metrics.stale()
			w.deps.Log.Warn("an outcome came after its claim had ended", "post", o.Post, "result", o.Result, "releaseId", o.ReleaseID)
		}
	}
	for org, n := range over {
		w.deps.Actors.Done(org, n, n > 0 && !claims[org])
	}
}
