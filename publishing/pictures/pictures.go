// Package pictures converts images to the smaller pictures that platforms need, in the background.
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
	"crier/platform/lifecycle"
	"crier/platform/pg"
	"crier/publishing/db"
	"crier/publishing/file/metadata"
	"crier/publishing/file/picture"
	picturesstore "crier/publishing/pictures/store"
	"crier/tenancy"
)

const (
	// picturesEach and picturesAll limit the jobs in memory, per organization and in total.
	// Pictures beyond these limits stay pending in the database, where a later search finds them.
	picturesEach = 64
	picturesAll  = 4096
	// pictureSearch is the interval between searches of the database.
	pictureSearch = 15 * time.Second
	// pictureSlack is how early a periodic search may begin, so that a search runs on every tick of
	// the loop.
	pictureSlack = time.Second
	// pictureErrorPause is the pause after an error that would also affect the next picture.
	pictureErrorPause = time.Second
	// pictureLimit is the time limit for converting one picture.
	pictureLimit = time.Minute
	// storeTime is the time limit for one statement.
	storeTime = 10 * time.Second
	// pictureWait is how long a statement waits for a free connection of its organization.
	pictureWait = time.Second
	// pictureLease is how long an attempt owns its picture.
	pictureLease = pictureLimit + 3*storeTime
	// maxPictureCrashes is the number of consecutive attempts that may end without a recorded
	// outcome before a picture fails.
	maxPictureCrashes = 3
	// maxPictureAttempts is the total number of attempts that may be made before a picture fails.
	// If the file store does not respond, this many attempts take about eight hours.
	maxPictureAttempts = 100
	// maxPictureBackoff is the longest back-off between attempts.
	maxPictureBackoff = 5 * time.Minute
)

// Maker converts pictures in the background, independently of requests and publishing. It converts
// one picture at a time in this process and serves organizations in turn. It is safe for concurrent
// use. Add and Await also work on a nil Maker.
//
// The rows in the database are authoritative; the Maker keeps only their ids in memory. After a
// crash, the picture is attempted again once the lease of the interrupted attempt has expired.
type Maker struct {
	deps Deps
	db   *db.DB

	mu          sync.Mutex // protects the fields below, up to busy
	started     bool
	urgent      fairQueue // pictures that a post waits for now
	ahead       fairQueue // all other pictures
	watched     map[pictureJob]*pictureWatch
	searchAgain bool // another search may find pictures that are not in the queues
	// busy contains the organizations whose connections were all in use. Their pictures stay
	// pending in the database until the next periodic search.
	busy map[tenancy.OrgID]bool

	loop *lifecycle.Loop
	// periodic is the time, by clock.Boot, at which the last periodic search was due. Only the loop
	// uses it.
	periodic time.Duration
	ending   sync.WaitGroup // outcomes that wait for a connection of a busy organization

	made, failed, returned atomic.Int64
	making                 lifecycle.Watchdog // begins when the current picture was taken
	searched               atomic.Int64       // when the database was last searched, by clock.Boot
}

// pictureWatch is shared by the posts that wait for a picture. The channel is closed when the
// picture's state may have changed.
type pictureWatch struct {
	changed  chan struct{}
	watchers int
}

// Deps holds the dependencies of New. All are required.
type Deps struct {
	DB    *db.DB
	Blobs blob.Store
	Log   *slog.Logger
	// Shards returns the shards that this process owns. The Maker searches for pending pictures of
	// the organizations in these shards.
	Shards func() []int16
}

// New returns a Maker. It makes no pictures before Start is called.
func New(deps Deps) *Maker {
	return &Maker{
		deps: deps, db: deps.DB,
		urgent: fairQueue{each: picturesEach, all: picturesAll}, ahead: fairQueue{each: picturesEach, all: picturesAll},
		watched: map[pictureJob]*pictureWatch{}, busy: map[tenancy.OrgID]bool{},
		loop: lifecycle.NewLoop(lifecycle.LoopRules{
			Interval: pictureSearch, Ticks: true, ErrorPause: pictureErrorPause,
		}),
	}
}

// Start starts the conversion in a goroutine that runs until Stop is called, even if ctx ends. It
// must be called only once.
func (p *Maker) Start(ctx context.Context) {
	p.mu.Lock()
	p.started = true
	p.mu.Unlock()
	p.periodic = clock.Boot() - pictureSearch
	p.loop.Start(ctx, p.step)
}

// Stop ends the conversion and makes the current picture pending again. It waits until this is
// recorded, or returns ctx's error if ctx ends first.
func (p *Maker) Stop(ctx context.Context) error {
	if err := p.loop.Stop(ctx); err != nil {
		return err
	}
	return lifecycle.Wait(ctx, &p.ending)
}

// Add queues pictures that are pending in the database. It does nothing before Start is called. The
// process that owns the organization's shard finds the pictures by searching.
func (p *Maker) Add(org tenancy.OrgID, keys []picturesstore.PictureKey) {
	if p == nil || len(keys) == 0 {
		return
	}
	p.mu.Lock()
	if p.started && !p.busy[org] {
		for _, k := range keys {
			p.searchAgain = !p.ahead.push(pictureJob{org: org, PictureKey: k}) || p.searchAgain
		}
	}
	p.mu.Unlock()
	p.loop.Wake()
}

// Await queues a pending picture ahead of pictures that no post is waiting for. changed is closed
// when the picture's state may have changed. The caller must call done to stop waiting. On a nil
// Maker, changed is nil and never becomes ready.
func (p *Maker) Await(org tenancy.OrgID, key picturesstore.PictureKey) (changed <-chan struct{}, done func()) {
	if p == nil {
		return nil, func() {}
	}
	job := pictureJob{org: org, PictureKey: key}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watched[job]
	if w == nil {
		w = &pictureWatch{changed: make(chan struct{})}
		p.watched[job] = w
	}
	w.watchers++
	if p.started && !p.busy[org] {
		// if the queue is full, the post polls the state and calls Await again
		p.urgent.push(job)
	}
	p.loop.Wake()
	return w.changed, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if w.watchers--; w.watchers == 0 && p.watched[job] == w {
			delete(p.watched, job)
		}
	}
}

// step makes one picture. If a periodic search is due, step first searches the database, even if
// there are pictures to make. It also searches if the queues are empty and another search may fill
// them.
func (p *Maker) step(ctx context.Context) (more bool, err error) {
	if p.due(clock.Boot()) {
		p.resume()
		p.search(ctx)
	}
	job, found, again := p.next()
	if found {
		return true, p.makePicture(ctx, job)
	}
	if again {
		p.search(ctx)
	}
	return again, nil
}

// due reports whether a periodic search is due. A search that begins late does not postpone the
// next one.
func (p *Maker) due(now time.Duration) bool {
	late := now - p.periodic + pictureSlack
	if late < pictureSearch {
		return false
	}
	p.periodic += late.Truncate(pictureSearch)
	return true
}

// next removes and returns the first urgent job or, if there is none, the first other job. more is
// true if a search may find jobs that are not in the queues.
func (p *Maker) next() (job pictureJob, found, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	job, found = p.urgent.pop()
	if !found {
		job, found = p.ahead.pop()
	}
	return job, found, p.searchAgain
}

// postpone leaves a busy organization's pictures pending until the next periodic search.
func (p *Maker) postpone(org tenancy.OrgID) {
	p.deps.Log.Warn("an organization has all its connections in use; its pictures will be made later", "org", org)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[org] = true
	p.urgent.drop(org)
	p.ahead.drop(org)
}

// resume makes the next search queue the pictures of all organizations again, including the busy
// ones.
func (p *Maker) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.busy)
}

// search queues pending pictures from the database. These pictures were added by other processes,
// did not fit into the queue, or were being made by a process that died.
func (p *Maker) search(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	var pending []picturesstore.PendingPicture
	var err error
	if shards := p.deps.Shards(); len(shards) > 0 {
		pending, err = picturesstore.PendingPictures(ctx, p.db, shards, picturesEach, picturesAll)
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		p.deps.Log.Warn("cannot search for pending pictures; retrying", "error", err)
	}
	if err == nil {
		p.searched.Store(int64(clock.Boot()))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pending = slices.DeleteFunc(pending, func(x picturesstore.PendingPicture) bool { return p.busy[x.Org] })
	for _, x := range pending {
		p.ahead.push(pictureJob{org: x.Org, PictureKey: x.PictureKey})
	}
	// If there are picturesEach results or more, they may have been truncated to an organization's
	// limit. In that case, step searches again when the queues are empty.
	p.searchAgain = len(pending) >= picturesEach
}

// makePicture converts one picture, unless another process owns the picture, and notifies the posts
// that are waiting for it. It returns an error only if the error would also affect the next
// picture.
func (p *Maker) makePicture(ctx context.Context, job pictureJob) error {
	defer p.notify(job)
	taking, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	limits := picturesstore.PictureLimits{
		Lease: pictureLease, Unfinished: maxPictureCrashes, Attempts: maxPictureAttempts,
		GivenUp: "An image could not be made smaller, even after several tries; upload it with fewer pixels.",
	}
	taken, found, err := picturesstore.TakePicture(
		pg.WithOrgWait(taking, pictureWait), p.db, job.org, job.PictureKey, limits,
	)
	switch {
	case pg.IsOrgBusy(err):
		p.postpone(job.org)
		return nil
	case err != nil && ctx.Err() == nil:
		p.deps.Log.Warn("cannot take a picture; retrying", "org", job.org, "media", job.Media, "error", err)
		return err
	case err != nil || !found:
		return err
	case taken.State == picturesstore.PictureFailed:
		p.failed.Add(1)
		p.deps.Log.Error("gave up on a picture", "org", job.org, "media", job.Media, "attempt", taken.Attempt)
		return nil
	}
	p.making.Begin()
	defer p.making.End()
	made, err := p.derive(ctx, taken)
	p.recordOutcome(ctx, job, taken, made, err)
	return nil
}

// derive converts a picture within pictureLimit and stores its file under a key that only this
// attempt uses. No row refers to the file until recordOutcome is called.
func (p *Maker) derive(ctx context.Context, taken picturesstore.TakenPicture) (picturesstore.MadePicture, error) {
	spec, err := picture.ParseSpec(taken.Spec)
	if err != nil {
		// a newer version of the service wrote the spec, and will convert the picture
		return picturesstore.MadePicture{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, pictureLimit)
	defer cancel()
	file, err := metadata.Open(ctx, p.deps.Blobs, taken.BlobKey(), taken.Edits)
	if err != nil {
		return picturesstore.MadePicture{}, err
	}
	defer func() { _ = file.Close() }() // only read
	pic, err := picture.Fit(ctx, file, spec)
	if err != nil {
		return picturesstore.MadePicture{}, err
	}
	made := picturesstore.MadePicture{
		BlobKey: taken.DerivedKey(taken.Spec, taken.Attempt), ContentType: pic.ContentType,
		Width: pic.Width, Height: pic.Height,
	}
	made.Size, err = p.deps.Blobs.Create(ctx, made.BlobKey, bytes.NewReader(pic.Bytes))
	return made, err
}

// notify closes the channel that Await returned to the posts that are waiting for a picture. It is
// called at the end of every attempt, even if the attempt failed.
func (p *Maker) notify(job pictureJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watched[job]; w != nil {
		close(w.changed)
		delete(p.watched, job)
	}
}
