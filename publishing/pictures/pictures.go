// Package pictures makes the smaller pictures that platforms need of images that they do not take as they are.
package pictures

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/publishing/media/picture"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// The bounds of the queue. A picture that finds no room in it stays pending in the database and is found by a later
// search.
const (
	picturesEach   = 64   // jobs of one organization in memory
	picturesAll    = 4096 // jobs in memory
	pictureSearch  = 15 * time.Second
	pictureLimit   = time.Minute // of making one picture
	storeTime      = 10 * time.Second
	pictureWait    = time.Second // for connections of one organization
	pictureLease   = pictureLimit + 3*storeTime
	pictureCrashes = 3   // attempts in a row that ended without a word
	pictureTries   = 100 // attempts in all: about eight hours of a file store that does not answer
	pictureRest    = 5 * time.Minute
)

// Maker makes the smaller pictures that platforms need: one at a time in this process, in turns by organization,
// and outside of requests and sends. The rows in the database are the truth; what waits here are ids. A process that
// dies loses nothing: its picture may be taken again when the lease of the attempt is over.
type Maker struct {
	deps  Deps
	store *publishingstore.Store

	mu      sync.Mutex
	urgent  fairQueue // a post waits for it now
	ahead   fairQueue
	watched map[pictureJob]*pictureWatch
	more    bool // the last search found as much as it may
	// resting are organizations that had all their connections in use: until the next periodic search, their pictures
	// stay pending in the database.
	resting map[tenancy.OrgID]bool
	ending  sync.WaitGroup // ends that wait for the connections of a resting organization
	stop    context.CancelFunc
	wake    chan struct{}
	ended   chan struct{}

	made, failed, returned atomic.Int64
	began                  atomic.Int64 // when the picture that is made now was taken, by clock.Boot; 0 for none
	searched               atomic.Int64 // when the database was last searched, by clock.Boot
}

// pictureWatch is closed when the state of a picture may have changed.
type pictureWatch struct {
	changed  chan struct{}
	watchers int
}

// Deps are what a Maker needs.
type Deps struct {
	DB    *pg.DB
	Blobs blob.Store
	Log   *slog.Logger
	// Shards returns the shards whose organizations this process schedules: it searches their pending pictures.
	Shards func() []int16
}

// New returns a Maker. It does nothing before Start.
func New(deps Deps) *Maker {
	return &Maker{
		deps: deps, store: publishingstore.New(deps.DB),
		urgent: fairQueue{each: picturesEach, all: picturesAll}, ahead: fairQueue{each: picturesEach, all: picturesAll},
		watched: map[pictureJob]*pictureWatch{}, resting: map[tenancy.OrgID]bool{}, wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// Start begins to make pictures, until Stop.
func (p *Maker) Start(ctx context.Context) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.mu.Lock()
	p.stop = stop
	p.mu.Unlock()
	go p.run(ctx)
}

// Stop ends the work and gives back the picture that is being made. It returns when that is written down, or with the
// error of ctx.
func (p *Maker) Stop(ctx context.Context) error {
	p.mu.Lock()
	stop := p.stop
	p.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Add says that pictures are pending. In a process that makes none it does nothing: another one finds them.
func (p *Maker) Add(org tenancy.OrgID, keys []publishingstore.PictureKey) {
	if p == nil || len(keys) == 0 {
		return
	}
	p.mu.Lock()
	if p.stop != nil && !p.resting[org] {
		for _, k := range keys {
			p.more = !p.ahead.push(pictureJob{org, k}) || p.more
		}
	}
	p.mu.Unlock()
	p.nudge()
}

// Await has a pending picture made before those that no post waits for yet. The channel is closed when its state may
// have changed; done ends the watch.
func (p *Maker) Await(org tenancy.OrgID, key publishingstore.PictureKey) (changed <-chan struct{}, done func()) {
	if p == nil {
		return nil, func() {}
	}
	job := pictureJob{org, key}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watched[job]
	if w == nil {
		w = &pictureWatch{changed: make(chan struct{})}
		p.watched[job] = w
	}
	w.watchers++
	if p.stop != nil && !p.resting[org] {
		p.urgent.push(job) // without room the post looks for itself, and asks again
	}
	p.nudge()
	return w.changed, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if w.watchers--; w.watchers == 0 && p.watched[job] == w {
			delete(p.watched, job)
		}
	}
}

func (p *Maker) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *Maker) run(ctx context.Context) {
	defer close(p.ended)
	defer p.ending.Wait()
	tick := time.NewTicker(pictureSearch)
	defer tick.Stop()
	p.search(ctx)
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			p.resume()
			p.search(ctx)
		default:
		}
		job, found, more := p.next()
		switch {
		case found:
			p.make(ctx, job)
			continue
		case more:
			p.search(ctx)
			continue
		}
		select {
		case <-p.wake:
		case <-tick.C:
			p.resume()
			p.search(ctx)
		case <-ctx.Done():
		}
	}
}

// next takes the next job out of the queue; more says that a search will find others.
func (p *Maker) next() (job pictureJob, found, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if job, found = p.urgent.pop(); !found {
		job, found = p.ahead.pop()
	}
	return job, found, p.more
}

// rest leaves the pictures of an organization pending until the next periodic search.
func (p *Maker) rest(org tenancy.OrgID) {
	p.deps.Log.Warn("an organization has all its connections in use; its pictures are made later", "org", org)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting[org] = true
	p.urgent.drop(org)
	p.ahead.drop(org)
}

func (p *Maker) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.resting)
}

// search fills the queue from the database: with what other processes wrote, what had no room, and what a process left
// when it died.
func (p *Maker) search(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	var pending []publishingstore.PendingPicture
	var err error
	if shards := p.deps.Shards(); len(shards) > 0 {
		pending, err = p.store.PendingPictures(ctx, shards, picturesEach, picturesAll)
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		p.deps.Log.Warn("pending pictures could not be looked for; it is tried again", "error", err)
	}
	if err == nil {
		p.searched.Store(int64(clock.Boot()))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pending = slices.DeleteFunc(pending, func(x publishingstore.PendingPicture) bool { return p.resting[x.Org] })
	for _, x := range pending {
		p.ahead.push(pictureJob{x.Org, x.PictureKey})
	}
	// With as many as an organization or all may have, there may be more; once the queue is empty it is worth another
	// search.
	p.more = len(pending) >= picturesEach
}

// make makes one picture, unless another process does, and wakes the posts that wait for it.
func (p *Maker) make(ctx context.Context, job pictureJob) {
	defer p.notify(job)
	taking, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	taken, found, err := p.store.TakePicture(pg.WithOrgWait(taking, pictureWait), job.org, job.PictureKey, publishingstore.PictureLimits{
		Lease: pictureLease, Unfinished: pictureCrashes, Attempts: pictureTries,
		GivenUp: "An image could not be made smaller, though it was tried several times; upload it with fewer pixels.",
	})
	switch {
	case pg.IsOrgBusy(err):
		p.rest(job.org)
		return
	case err != nil && ctx.Err() == nil:
		p.deps.Log.Warn("a picture could not be taken; it is tried again", "org", job.org, "media", job.Media, "error", err)
		_ = clock.Sleep(ctx, time.Second) // the database is away, for the next one too; a stop is seen by the caller
		return
	case err != nil || !found:
		return
	case taken.State == publishingstore.PictureFailed:
		p.failed.Add(1)
		p.deps.Log.Error("a picture is given up", "org", job.org, "media", job.Media, "attempt", taken.Attempt)
		return
	}
	p.began.Store(int64(clock.Boot()))
	defer p.began.Store(0)
	made, err := p.derive(ctx, taken)
	p.end(ctx, job, taken, made, err)
}

// derive reads the image, makes the picture and stores its bytes.
func (p *Maker) derive(ctx context.Context, taken publishingstore.TakenPicture) (publishingstore.MadePicture, error) {
	spec, err := picture.ParseSpec(taken.Spec)
	if err != nil {
		return publishingstore.MadePicture{}, err // of a newer version of this service, which will make it
	}
	ctx, cancel := context.WithTimeout(ctx, pictureLimit)
	defer cancel()
	file, err := p.deps.Blobs.Open(ctx, taken.BlobKey())
	if err != nil {
		return publishingstore.MadePicture{}, err
	}
	defer func() { _ = file.Close() }() // only read
	pic, err := picture.Fit(ctx, file, spec)
	if err != nil {
		return publishingstore.MadePicture{}, err
	}
	made := publishingstore.MadePicture{
		BlobKey: taken.DerivedKey(taken.Spec, taken.Attempt), ContentType: pic.ContentType, Width: pic.Width, Height: pic.Height,
	}
	made.Size, err = p.deps.Blobs.Create(ctx, made.BlobKey, bytes.NewReader(pic.Bytes))
	return made, err
}

// end writes down how an attempt ended. What cannot be written is found again when the attempt's lease is over.
func (p *Maker) end(
	ctx context.Context, job pictureJob, taken publishingstore.TakenPicture, made publishingstore.MadePicture, cause error,
) {
	stopped := ctx.Err() != nil
	log := p.deps.Log.With("org", job.org, "media", job.Media, "attempt", taken.Attempt)
	giveBack := func(rest time.Duration, slow bool, reason string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			return p.store.ReturnPicture(ctx, job.org, job.PictureKey, taken.Attempt, rest, slow, reason)
		}
	}
	var refusal *picture.Refusal
	var write func(context.Context) (bool, error)
	switch {
	case cause == nil:
		p.made.Add(1)
		write = func(ctx context.Context) (kept bool, err error) {
			if kept, err = p.store.KeepPicture(ctx, job.org, job.PictureKey, taken.Attempt, made); err == nil {
				err = p.clean(ctx, taken, made, kept)
			}
			return kept, err
		}
	case errors.As(cause, &refusal):
		p.failed.Add(1)
		log.Warn("an image cannot be made smaller", "error", cause)
		reason := taken.Name + "." + taken.Ext + " " + refusal.Reason + "."
		write = func(ctx context.Context) (bool, error) {
			return p.store.FailPicture(ctx, job.org, job.PictureKey, taken.Attempt, reason)
		}
	case stopped:
		write = giveBack(0, false, "")
	default:
		p.returned.Add(1)
		log.Error("a picture could not be made; it is tried again", "error", cause)
		rest := min(pictureRest, time.Second<<min(taken.Attempt, 20))
		write = giveBack(rest, errors.Is(cause, context.DeadlineExceeded), "An image of this post could not be read.")
	}
	p.writeEnd(context.WithoutCancel(ctx), job, log, write)
}

// writeEnd writes down the end of an attempt. When the organization has all its connections in use, it is written as soon
// as one is free, beside the next pictures.
func (p *Maker) writeEnd(
	ctx context.Context, job pictureJob, log *slog.Logger, write func(context.Context) (bool, error),
) {
	try := func(ctx context.Context, last bool) (busy bool) {
		ctx, cancel := context.WithTimeout(ctx, storeTime)
		defer cancel()
		_, err := write(ctx)
		if busy = pg.IsOrgBusy(err); err != nil && (last || !busy) {
			log.Error("the end of a picture could not be written down; it is made again", "error", err)
		}
		return busy
	}
	if try(pg.WithOrgWait(ctx, pictureWait), false) {
		p.rest(job.org)
		p.ending.Go(func() { _ = try(ctx, true); p.notify(job) })
	}
}

// clean deletes the bytes of attempts that nothing refers to: of those before a kept one, or of one that came too late.
func (p *Maker) clean(ctx context.Context, taken publishingstore.TakenPicture, made publishingstore.MadePicture, kept bool) error {
	if !kept {
		return p.deps.Blobs.Delete(ctx, made.BlobKey)
	}
	var errs []error
	for n := 1; n < taken.Attempt; n++ {
		errs = append(errs, p.deps.Blobs.Delete(ctx, taken.DerivedKey(taken.Spec, n)))
	}
	return errors.Join(errs...)
}

// notify wakes the posts that wait for a picture.
func (p *Maker) notify(job pictureJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watched[job]; w != nil {
		close(w.changed)
		delete(p.watched, job)
	}
}
