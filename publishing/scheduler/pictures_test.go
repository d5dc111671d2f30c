package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	picturesstore "crier/publishing/pictures/store"
	"crier/publishing/scheduler/dispatch"
	"crier/tests/dbtest"
)

// readGate blocks the readers of files until open is closed.
type readGate struct {
	reached chan string // the keys of files that are about to be read
	open    chan struct{}
}

// gate blocks the readers of files until the test opens the gate.
func (f *files) gate() *readGate {
	g := &readGate{reached: make(chan string, 1000), open: make(chan struct{})}
	f.read = g.read
	return g
}

func (g *readGate) read(key string) {
	g.reached <- key
	select {
	case <-g.open:
	// A test that never opens the gate then fails at its own checks.
	case <-time.After(30 * time.Second):
	}
}

func noYield(t *testing.T) func(context.Context, time.Duration) error {
	return func(context.Context, time.Duration) error {
		t.Error("a post waits although its picture is ready")
		return errors.New("it waits")
	}
}

func TestCreate_PictureIsMadeWhenThePostIsSaved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.start(r.queue(r.files))
	m := r.organization()
	x := m.image()
	m.save(p, publishing.CreateDraft, x)
	if got := m.picture(x); got.State != "" {
		t.Errorf("a draft needs a picture already: %+v", got)
	}
	m.save(p, publishing.CreateNow, x, x)
	made := m.becomes(x, picturesstore.PictureReady)
	cfg, format, err := image.DecodeConfig(bytes.NewReader(r.stored(made.BlobKey)))
	if err != nil || format != "jpeg" || made.Size > int64(fits.MaxBytes) || cfg.Width != made.Width || cfg.Height != made.Height || made.Width > fits.MaxSide {
		t.Errorf("got the picture %+v with the %s image %+v (%v), want a JPEG within %+v", made, format, cfg, err, fits)
	}
	out := m.send(p, noYield(t))
	if out.Result != dispatch.ResultPublished {
		t.Fatalf("got the outcome %+v, want a published post", out)
	}
	for _, sent := range r.platform.sent {
		if sent.ContentType != "image/jpeg" || sent.Size != made.Size || sent.Width != made.Width || sent.URL != "" {
			t.Errorf("the platform gets %+v", sent)
		}
	}
	if n := len(r.platform.sent); n != 2 {
		t.Errorf("%d images are sent, not 2", n)
	}
	// A second post with the same image needs no second picture.
	m.save(p, publishing.CreateNow, x)
	m.send(p, noYield(t))
	if opened := r.files.keys(); len(opened) != 1 {
		t.Errorf("the image is read for each post: %v", opened)
	}
}

func TestPictures_OrganizationsTakeTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	busy, single := r.organization(), r.organization()
	p := r.queue(r.files)
	var first publishing.Medium
	for range 20 {
		first = busy.image()
		busy.save(nil, publishing.CreateSchedule, first)
	}
	x := single.image()
	single.save(nil, publishing.CreateSchedule, x)
	r.start(p)
	single.becomes(x, picturesstore.PictureReady)
	if at := slices.Index(r.files.keys(), x.BlobKey()); at < 0 || at > 1 {
		t.Errorf("the only picture of an organization is made as number %d", at+1)
	}
}

// An organization whose connections are all in use does not delay the pictures of others, even if
// posts are waiting for its own pictures.
func TestPictures_BusyOrganizationDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	busy, other := r.organization(), r.organization()
	p := r.queue(r.files)
	var waiting, all []publishing.Medium
	// If each picture waited for a request of the busy organization, ten would take longer than
	// until waits.
	for range 10 {
		waiting, all = append(waiting, busy.image()), append(all, other.image())
		busy.save(nil, publishing.CreateSchedule, waiting[len(waiting)-1])
		other.save(nil, publishing.CreateSchedule, all[len(all)-1])
	}
	release := dbtest.Occupy(t, r.DB, busy.who.Org.UUID())
	r.start(p)
	r.until("the other organization's pictures are ready", func() bool {
		return !slices.ContainsFunc(all, func(x publishing.Medium) bool { return other.picture(x).State != picturesstore.PictureReady })
	})
	release()
	for _, x := range waiting {
		if made := busy.becomes(x, picturesstore.PictureReady); made.BlobKey != x.DerivedKey(fits.String(), 1) {
			t.Errorf("a picture of the busy organization is made under %s, want the first attempt", made.BlobKey)
		}
	}
}

// All connections of the organization are in use when its picture is done.
func TestPictures_FinishWithoutAConnectionDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	busy, other := r.organization(), r.organization()
	g := r.files.gate()
	p := r.start(r.queue(r.files))
	x, y := busy.image(), other.image()
	busy.save(p, publishing.CreateSchedule, x)
	<-g.reached
	other.save(p, publishing.CreateSchedule, y)
	release := dbtest.Occupy(t, r.DB, busy.who.Org.UUID())
	close(g.open)
	other.becomes(y, picturesstore.PictureReady)
	release()
	if made := busy.becomes(x, picturesstore.PictureReady); made.BlobKey != x.DerivedKey(fits.String(), 1) {
		t.Errorf("the picture of the busy organization is made under %s, want the first attempt", made.BlobKey)
	}
}

func TestPictures_NothingIsReadBeforeItsTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.files.gate()
	p := r.start(r.queue(r.files))
	var all []publishing.Medium
	m := r.organization()
	for range 30 {
		x := m.image()
		m.save(p, publishing.CreateSchedule, x)
		all = append(all, x)
	}
	<-g.reached
	r.until("29 pictures wait", func() bool { return p.Stats().Waiting == 29 })
	if opened := r.files.keys(); len(opened) != 1 {
		t.Errorf("%d files are open while one picture is made", len(opened))
	}
	close(g.open)
	for _, x := range all {
		m.becomes(x, picturesstore.PictureReady)
	}
}

// Pictures beyond the limit of the queue in memory are read from the database.
func TestPictures_MakesMoreThanTheQueueHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.files.gate()
	p := r.start(r.queue(r.files))
	m := r.organization()
	var keys []picturesstore.PictureKey
	var last publishing.Medium
	for range 150 {
		last = m.image()
		keys = append(keys, keyOf(last))
	}
	_, err := picturesstore.AddPictures(t.Context(), r.Store, m.who.Org, keys)
	r.OK(err)
	m.save(p, publishing.CreateSchedule, last)
	<-g.reached
	if waiting := p.Stats().Waiting; waiting > 64 {
		t.Errorf("%d pictures of one organization wait in memory", waiting)
	}
	close(g.open)
	r.until("all are made", func() bool { return p.Stats().Made == 150 })
	if opened := r.files.keys(); len(opened) != 150 {
		t.Errorf("%d files are read for 150 pictures", len(opened))
	}
}

func TestPictures_DecoderPanicFailsOnlyOnePicture(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	bad, good := m.image(), m.image()
	r.files.read = func(key string) {
		if key == bad.BlobKey() {
			_ = []byte(nil)[len(key)]
		}
	}
	p := r.start(r.queue(r.files))
	m.save(p, publishing.CreateNow, bad)
	m.save(p, publishing.CreateSchedule, good)
	m.becomes(good, picturesstore.PictureReady)
	failed := m.becomes(bad, picturesstore.PictureFailed)
	if failed.Error != "picture.png cannot be decoded." {
		t.Errorf("got the error %q, want that picture.png cannot be decoded", failed.Error)
	}
	out := m.send(p, noYield(t))
	if out.Result != dispatch.ResultError || out.Error != failed.Error || out.Code != publishing.CodeRejected {
		t.Errorf("the post ends as %+v", out)
	}
	_, err := m.post(p, publishing.CreateNow, bad)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), failed.Error) {
		t.Errorf("a post with an image that is known to be broken: %v", err)
	}
}

// abandonPicture begins to make the picture of an image, like a process that then dies.
func (m member) abandonPicture(x publishing.Medium) {
	m.Helper()
	_, found, err := picturesstore.TakePicture(m.Context(), m.Store, m.who.Org, keyOf(x), picturesstore.PictureLimits{Unfinished: 3, Attempts: 10})
	if m.OK(err); !found {
		m.Fatal("nothing is taken")
	}
}

// A process took the picture and died, so only the database knows about it.
func TestPictures_KilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	x := m.image()
	m.save(nil, publishing.CreateSchedule, x)
	m.abandonPicture(x)
	r.start(r.queue(r.files))
	made := m.becomes(x, picturesstore.PictureReady)
	if made.BlobKey != x.DerivedKey(fits.String(), 2) {
		t.Errorf("made under %s", made.BlobKey)
	}
}

func TestPictures_PictureThatKillsTheProcessIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	x := m.image()
	m.save(nil, publishing.CreateSchedule, x)
	for range 3 {
		m.abandonPicture(x)
	}
	r.start(r.queue(r.files))
	if failed := m.becomes(x, picturesstore.PictureFailed); failed.Error == "" {
		t.Errorf("got %+v, want a failed picture with an error", failed)
	}
	if opened := r.files.keys(); len(opened) != 0 {
		t.Errorf("it is read once more: %v", opened)
	}
}

// The first process is delayed until its lease ends and the second process makes the picture. The
// result of the first is discarded.
func TestPictures_TwoProcessesMakeOnePicture(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	slow := &files{Store: r.files.Store}
	g := slow.gate()
	first, second := r.start(r.queue(slow)), r.queue(r.files)
	x := m.image()
	m.save(first, publishing.CreateSchedule, x)
	<-g.reached
	r.start(second)
	m.save(second, publishing.CreateSchedule, x)
	r.until("the second has looked", func() bool { return second.Stats().Searched > 0 && second.Stats().Waiting == 0 })
	if opened := r.files.keys(); len(opened) != 0 {
		t.Errorf("both make it: %v", opened)
	}
	m.tenant(`update derived_picture set not_before = now()`)
	m.save(second, publishing.CreateSchedule, x)
	made := m.becomes(x, picturesstore.PictureReady)
	close(g.open)
	r.until("the first has ended", func() bool { return first.Stats().Made == 1 })
	stale := x.DerivedKey(fits.String(), 1)
	r.until("the bytes of the first are gone", func() bool {
		_, err := r.files.Store.Open(t.Context(), stale)
		return fault.Is(err, fault.NotFound)
	})
	if got := m.picture(x); got != made || made.BlobKey == stale {
		t.Errorf("%+v became %+v", made, got)
	}
	r.stored(made.BlobKey)
}

// The file store is unavailable, so the picture is retried, and so is its post.
func TestPictures_TransientFailureIsRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	x := m.image()
	raw := r.stored(x.BlobKey())
	r.OK(r.files.Delete(t.Context(), x.BlobKey()))
	p := r.start(r.queue(r.files))
	m.save(p, publishing.CreateNow, x)
	r.until("it failed once", func() bool { return m.picture(x).Error != "" })
	m.tenant(`update derived_picture set not_before = now() + interval '1 hour'`)
	if out := m.send(p, noYield(t)); out.Result != dispatch.ResultError || out.Code != publishing.CodeRetriesUsedUp {
		t.Errorf("a post whose picture is tried again in an hour, with a minute of patience: %+v", out)
	}
	_, err := r.files.Create(t.Context(), x.BlobKey(), bytes.NewReader(raw))
	r.OK(err)
	m.tenant(`update derived_picture set not_before = now()`)
	if made := m.becomes(x, picturesstore.PictureReady); made.Error != "" {
		t.Errorf("got %+v, want a picture without an error", made)
	}
}

// A stop gives the picture back at once, so that another process does not have to wait for the end
// of the lease.
func TestPictures_StopGivesBackThePictureInProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	g := r.files.gate()
	p := r.queue(r.files)
	p.Start(t.Context())
	x := m.image()
	m.save(p, publishing.CreateSchedule, x)
	<-g.reached
	ended := make(chan error)
	go func() { ended <- p.Stop(t.Context()) }()
	r.until("it stops", func() bool {
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		return p.Stop(short) != nil
	})
	close(g.open)
	r.OK(<-ended)
	if got := m.picture(x); got.State != picturesstore.PicturePending || got.Wait > 0 || got.Error != "" {
		t.Errorf("got %+v, want a pending picture without a wait or an error", got)
	}
}

// The post is saved by a process that makes no pictures, and claimed by another one before its
// picture is made.
func TestSend_WaitsForItsPictureWithoutAPermit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	g := r.files.gate()
	p := r.queue(r.files)
	x := m.image()
	m.save(nil, publishing.CreateNow, x)
	r.start(p)
	<-g.reached // the picture is being made, and the post is claimed now
	yields := 0
	out := m.send(p, func(ctx context.Context, d time.Duration) error {
		if yields++; yields > 3 {
			return errors.New("woken more than three times")
		}
		if len(r.platform.sent) != 0 {
			t.Error("the platform was called before the picture was made")
		}
		m.checkClaimOutlasts(d)
		if yields == 1 {
			close(g.open)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			t.Error("the post was not woken when its picture was made")
			return nil
		}
	})
	if out.Result != dispatch.ResultPublished || yields == 0 || len(r.platform.sent) != 1 || r.platform.sent[0].ContentType != "image/jpeg" {
		t.Errorf("%+v after %d waits, sent %+v", out, yields, r.platform.sent)
	}
}

// The picture of a claimed post comes before the pictures of its organization's later posts.
func TestSend_PictureOfAClaimedPostComesFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	g := r.files.gate()
	p := r.start(r.queue(r.files))
	for range 10 {
		m.save(p, publishing.CreateSchedule, m.image())
	}
	<-g.reached
	x := m.image()
	m.save(p, publishing.CreateNow, x)
	first := true
	out := m.send(p, func(ctx context.Context, _ time.Duration) error {
		if first {
			first = false
			close(g.open)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if at := slices.Index(r.files.keys(), x.BlobKey()); out.Result != dispatch.ResultPublished || at != 1 {
		t.Errorf("made as number %d: %+v", at+1, out)
	}
}

// Another process makes the picture and cannot wake the post, which reads the state again after a
// while.
func TestSend_FindsAPictureMadeByAnotherProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.organization()
	x := m.image()
	m.save(nil, publishing.CreateNow, x)
	out := m.send(nil, func(context.Context, time.Duration) error {
		r.start(r.queue(r.files))
		m.becomes(x, picturesstore.PictureReady)
		return nil
	})
	if out.Result != dispatch.ResultPublished {
		t.Errorf("got the outcome %+v, want a published post", out)
	}
}
