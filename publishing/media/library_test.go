package media_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/blob"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/media"
	mediastore "crier/publishing/media/store"
	"crier/tenancy"
	"crier/tests/canary"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// rig has the use cases of one process with a database.
type rig struct{ *publishtest.Rig }

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{Rig: publishtest.NewRig(t)}
}

// picture returns a PNG image of the given width. The bytes differ for each width.
func (r *rig) picture(width int) []byte {
	r.Helper()
	var b bytes.Buffer
	r.OK(png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))))
	return b.Bytes()
}

// blobs returns the keys in the file store.
func (r *rig) blobs() map[string]bool {
	r.Helper()
	keys := map[string]bool{}
	r.OK(r.Disk.List(r.Context(), func(page []blob.Entry) error {
		for _, e := range page {
			keys[e.Key] = true
		}
		return nil
	}))
	return keys
}

// uploadsLater dates the organization's files later than everything in the file store.
func uploadsLater(m publishtest.Member) {
	m.Helper()
	m.Tenant(m.Who.Org, `update media set created_at = now() + interval '1 day'`)
}

// later is a clock that is ahead by its value.
type later time.Duration

func (l later) Now() time.Time { return time.Now().Add(time.Duration(l)) }

// wantServed fails the test unless the file is served with the bytes want.
func (r *rig) wantServed(media *media.Media, m publishing.Medium, want []byte) {
	r.Helper()
	_, file, err := media.Open(r.Context(), m.Key, m.Name+"."+m.Ext)
	if err != nil {
		r.Errorf("%s: got the error %v, want its bytes", m.Name, err)
		return
	}
	got, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil || !bytes.Equal(got, want) {
		r.Errorf("%s: got %d bytes and the error %v, want %d bytes", m.Name, len(got), err, len(want))
	}
}

func TestUpload_FilesWithTheSameBytesAreStoredOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	media := r.Deps.Media(publishtest.Limits)
	m, data := r.Member(), r.picture(3)
	files := make([]publishing.Medium, 8)
	var all sync.WaitGroup
	for i := range files {
		all.Go(func() {
			var err error
			files[i], err = media.Upload(t.Context(), m.Who, fmt.Sprintf("a %d.png", i), bytes.NewReader(data))
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ids := map[publishing.MediaID]bool{}
	for i, x := range files {
		ids[x.ID] = true
		if want := fmt.Sprintf("a-%d", i); x.Name != want || x.OriginalName != fmt.Sprintf("a %d.png", i) {
			t.Errorf("got the name %s of %q, want %s", x.Name, x.OriginalName, want)
		}
		r.wantServed(media, x, data)
	}
	if blobs := r.blobs(); len(ids) != len(files) || len(blobs) != 1 {
		t.Fatalf("8 uploads made %d files and stored %d times, want 8 and one", len(ids), len(blobs))
	}
	_, err := media.SetAlt(t.Context(), m.Who, files[0].ID.String(), "a text")
	r.OK(err)
	for i, x := range files {
		if own, err := media.Own(t.Context(), m.Who, x.ID.String()); err != nil || (own.Alt == "a text") != (i == 0) {
			t.Errorf("file %d has the text %q, %v; want it on the first one alone", i, own.Alt, err)
		}
		r.OK(media.Delete(t.Context(), m.Who, x.ID.String()))
		for _, left := range files[i+1:] {
			r.wantServed(media, left, data)
		}
	}
	if blobs := r.blobs(); len(blobs) != 0 {
		t.Errorf("%d blobs are left of 8 deleted files, want none", len(blobs))
	}
}

func TestDelete_RefusesAgentsThatMayNotChangeEveryPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	media := r.Deps.Media(publishtest.Limits)
	m := r.Member()
	for name, c := range map[string]struct {
		limits  *tenancy.AgentLimits
		refused bool
	}{
		"some channels":  {limits: &tenancy.AgentLimits{Channels: []string{"x"}}, refused: true},
		"some customers": {limits: &tenancy.AgentLimits{Customers: []string{"x"}}, refused: true},
		"must ask":       {limits: &tenancy.AgentLimits{MustAsk: true}, refused: true},
		"posts per day":  {limits: &tenancy.AgentLimits{PostsPerDay: 1}},
		"no limits":      {},
	} {
		x, err := media.Upload(t.Context(), m.Who, "a.png", bytes.NewReader(r.picture(2)))
		r.OK(err)
		agent := m.Who
		agent.Via, agent.Agent = tenancy.ViaAgent, tenancy.Agent{ID: id.New[tenancy.AgentTag](), Write: true, Limits: c.limits}
		if err := media.Delete(t.Context(), agent, x.ID.String()); fault.Is(err, fault.Forbidden) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: got %v, want Forbidden to be %t", name, err, c.refused)
		}
		if _, err := media.Own(t.Context(), m.Who, x.ID.String()); (err == nil) != c.refused {
			t.Errorf("%s: reading the file returns %v, want it to be kept: %t", name, err, c.refused)
		}
	}
}

// TestDelete_RaceWithUploadsOfTheSameBytes deletes the only file with certain bytes while files
// with the same bytes are uploaded.
func TestDelete_RaceWithUploadsOfTheSameBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	media := r.Deps.Media(publishtest.Limits)
	m, data := r.Member(), r.picture(3)
	upload := func() publishing.Medium {
		x, err := media.Upload(t.Context(), m.Who, "a.png", bytes.NewReader(data))
		if err != nil {
			t.Error(err)
		}
		return x
	}
	for range 10 {
		first, others := upload(), make([]publishing.Medium, 3)
		var all sync.WaitGroup
		all.Go(func() {
			if err := media.Delete(t.Context(), m.Who, first.ID.String()); err != nil {
				t.Error(err)
			}
		})
		for i := range others {
			all.Go(func() { others[i] = upload() })
		}
		all.Wait()
		for _, x := range others {
			r.wantServed(media, x, data)
		}
		for _, x := range others {
			all.Go(func() {
				if err := media.Delete(t.Context(), m.Who, x.ID.String()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if blobs := r.blobs(); len(blobs) != 0 {
			t.Fatalf("%d blobs are left when all files are deleted, want none", len(blobs))
		}
	}
}

// An upload whose outcome is unknown keeps its bytes, because another file may already share them.
func TestUpload_UnknownOutcomeKeepsTheBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.Member()
	ctx, cancel := context.WithCancel(t.Context())
	r.Deps.Blobs = endingStore{Store: r.Disk, end: cancel}
	_, err := r.Deps.Media(publishtest.Limits).Upload(ctx, m.Who, "a.png", bytes.NewReader(r.picture(2)))
	if blobs := r.blobs(); err == nil || len(blobs) != 1 {
		t.Errorf("got the error %v and %d blobs, want an error and the bytes", err, len(blobs))
	}
}

// endingStore calls end after it has stored a file.
type endingStore struct {
	blob.Store
	end func()
}

func (s endingStore) Create(ctx context.Context, key string, r io.Reader) (int64, error) {
	n, err := s.Store.Create(ctx, key, r)
	s.end()
	return n, err
}

func TestCollectFiles_KeepsBytesOfTheRemainingFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, data := r.Member(), r.picture(4)
	media := r.Deps.Media(publishtest.Limits)
	var files [2]publishing.Medium
	for i := range files {
		var err error
		files[i], err = media.Upload(t.Context(), m.Who, "a.png", bytes.NewReader(data))
		r.OK(err)
	}
	r.OK(media.Delete(t.Context(), m.Who, files[0].ID.String()))
	uploadsLater(m)
	r.Deps.Clock = later(30 * time.Hour)
	n, err := r.Deps.Media(publishtest.Limits).CollectFiles(t.Context())
	if err != nil || n != 0 {
		t.Errorf("%d files were deleted, %v; want none", n, err)
	}
	r.wantServed(media, files[1], data)
}

func TestCollectFiles_DeletesOnlyUnusedBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.Member()
	media := r.Deps.Media(publishtest.Limits)
	kept, err := media.Upload(t.Context(), m.Who, "a.png", bytes.NewReader(r.picture(1)))
	r.OK(err)
	// It has the files of three attempts, of which the last one counts.
	derived := m.Medium(m.Who.Org)
	m.Tenant(m.Who.Org, `update media set key = $2, blob = $2 where id = $1`, derived.ID, strings.Repeat("k", 24))
	derived.Key, derived.Blob = strings.Repeat("k", 24), strings.Repeat("k", 24)
	m.Tenant(m.Who.Org, `update derived_picture set blob_key = $2 where media_id = $1 and state = 'ready'`,
		derived.ID, derived.DerivedKey("jpeg-1000-1000", 3))
	key := func() string {
		k, err := secret.Token("", 24)
		r.OK(err)
		return k
	}
	use := []string{kept.BlobKey(), derived.BlobKey(), derived.DerivedKey("jpeg-1000-1000", 3)}
	foreign := []string{
		id.New[tenancy.OrgTag]().String() + "/" + key(), "other/file", m.Who.Org.String() + "/short", "file",
	}
	unused := []string{m.Who.Org.String() + "/" + key(), derived.DerivedKey("jpeg-1000-1000", 1), derived.DerivedKey("jpeg-1000-1000", 2)}
	for _, k := range append(append(use[1:], foreign...), unused...) {
		m.Create(k)
	}
	uploadsLater(m)
	early := r.Deps
	early.Clock = later(24 * time.Hour)
	cfg := publishtest.Limits
	cfg.UploadTimeout = time.Hour
	if n, err := early.Media(cfg).CollectFiles(t.Context()); err != nil || n != 0 {
		t.Fatalf("%d files were deleted within the time of an upload, with error %v", n, err)
	}
	early.Clock = later(26 * time.Hour)
	collector := early.Media(cfg)
	n, err := collector.CollectFiles(t.Context())
	r.OK(err)
	left := r.blobs()
	for _, k := range append(use, foreign...) {
		if !left[k] {
			t.Errorf("%s was deleted", k)
		}
	}
	for _, k := range unused {
		if left[k] {
			t.Errorf("%s was not deleted", k)
		}
	}
	if n < len(unused) {
		t.Errorf("%d files were deleted, want %d at least", n, len(unused))
	}
	// A process marked the file as deleted and died before it deleted the bytes.
	m.Tenant(m.Who.Org, `update media set deleted_at = now() where id = $1`, kept.ID)
	if _, err := collector.CollectFiles(t.Context()); err != nil || r.blobs()[kept.BlobKey()] {
		t.Errorf("a deleted file is still there, with error %v", err)
	}
	var rows int
	r.OK(r.DB.Read(t.Context(), m.Who.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(`select count(*) from media where id = $1`, kept.ID).QueryRow(func(row pgx.Row) error { return row.Scan(&rows) })
	}))
	if rows != 0 {
		t.Error("the row of a deleted file is still there")
	}
}

func TestCollectFiles_OneFailureDoesNotStopTheRest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, other := r.Member(), r.Member()
	keys := []string{m.Who.Org.String() + "/" + strings.Repeat("a", 24), other.Who.Org.String() + "/" + strings.Repeat("b", 24)}
	for _, k := range keys {
		m.Create(k)
	}
	for _, o := range []publishtest.Member{m, other} {
		o.Medium(o.Who.Org)
		uploadsLater(o)
	}
	broken := errors.New("it cannot be deleted")
	r.Deps.Blobs = failingDelete{Store: r.Disk, key: keys[0], err: broken}
	r.Deps.Clock = later(30 * time.Hour)
	n, err := r.Deps.Media(publishtest.Limits).CollectFiles(t.Context())
	if n != 1 || !errors.Is(err, broken) || r.blobs()[keys[1]] {
		t.Fatalf("%d files were deleted with error %v, want the other one and the error", n, err)
	}
}

// A restored database may be older than the file store, so bytes that were stored after its newest
// file are not known to be unused.
func TestCollectFiles_LeavesBytesNewerThanTheDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, empty := r.Member(), r.Member()
	m.Medium(m.Who.Org)
	keys := []string{m.Who.Org.String() + "/" + strings.Repeat("a", 24), empty.Who.Org.String() + "/" + strings.Repeat("b", 24)}
	for _, k := range keys {
		m.Create(k)
	}
	m.Tenant(m.Who.Org, `update media set created_at = now() - interval '1 minute'`)
	r.Deps.Clock = later(30 * time.Hour)
	collector := r.Deps.Media(publishtest.Limits)
	for want := range 2 {
		n, err := collector.CollectFiles(t.Context())
		if left := r.blobs(); err != nil || n != want || left[keys[0]] != (want == 0) || !left[keys[1]] {
			t.Fatalf("%d files were deleted, want %d; left are %v, with error %v", n, want, left, err)
		}
		uploadsLater(m)
	}
}

func TestCollectFiles_StopsWhenTheStoreIsAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.Member()
	m.Medium(m.Who.Org)
	for i := range 20 {
		m.Create(m.Who.Org.String() + "/" + strings.Repeat(string(rune('A'+i)), 24))
	}
	uploadsLater(m)
	var calls atomic.Int64
	broken := errors.New("it cannot be deleted")
	r.Deps.Blobs = refusingDelete{Store: r.Disk, calls: &calls, err: broken}
	r.Deps.Clock = later(30 * time.Hour)
	n, err := r.Deps.Media(publishtest.Limits).CollectFiles(t.Context())
	if n != 0 || !errors.Is(err, broken) || calls.Load() != 10 {
		t.Fatalf("%d files were deleted with error %v in %d tries, want the error after 10", n, err, calls.Load())
	}
}

type refusingDelete struct {
	blob.Store
	calls *atomic.Int64
	err   error
}

func (f refusingDelete) Delete(context.Context, string) error {
	f.calls.Add(1)
	return f.err
}

type failingDelete struct {
	blob.Store
	key string
	err error
}

func (f failingDelete) Delete(ctx context.Context, key string) error {
	if key == f.key {
		return f.err
	}
	return f.Store.Delete(ctx, key)
}

func TestDelete_RefusesFileOfPostInTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.Member()
	media := r.Deps.Media(publishtest.Limits)
	for state, want := range map[publishing.State]bool{
		publishing.StateDraft: true, publishing.StateError: true, publishing.StatePublished: true,
		publishing.StateQueue: false, publishing.StatePublishing: false, publishing.StateUnknown: false,
	} {
		medium := fixture.Medium(m.Who.Org, time.Now())
		_, err := mediastore.SaveMedium(t.Context(), m.Store, medium, nil, 0)
		r.OK(err)
		m.InState(m.Who.Org, m.Connect(m.Who.Org), state, medium)
		err = media.Delete(t.Context(), m.Who, medium.ID.String())
		if deleted := err == nil; deleted != want || !want && !fault.Is(err, fault.Conflict) {
			t.Errorf("the file of a post in %s: %v, want it deleted: %v", state, err, want)
		}
	}
}

// TestUploadFromURL_NameThatChangesItsAddress resolves a name to a public address first, as a check
// would, and then to an address of this machine or its network.
func TestUploadFromURL_NameThatChangesItsAddress(t *testing.T) {
	t.Parallel()
	c := canary.New(t)
	r := newRig(t)
	m := r.Member()
	for name, private := range map[string][4]byte{
		"loopback": {127, 0, 0, 1}, "private": {10, 0, 0, 1}, "link-local": {169, 254, 169, 254}, "carrier-grade NAT": {100, 64, 0, 1},
		"any": {0, 0, 0, 0},
	} {
		resolver := canary.NameServer(t, func(n int) [4]byte {
			if n == 1 {
				return [4]byte{93, 184, 215, 14}
			}
			return private
		})
		client, err := outbound.New(outbound.Config{}, outbound.Deps{Resolver: resolver})
		r.OK(err)
		if checked, err := resolver.LookupHost(t.Context(), "rebind.example"); err != nil || checked[0] != "93.184.215.14" {
			t.Fatalf("the name has the addresses %v at first, with error %v, want a public one", checked, err)
		}
		r.Deps.Fetch = client.Transport()
		for _, scheme := range []string{"http", "https"} {
			_, err := r.Deps.Media(publishtest.Limits).UploadFromURL(t.Context(), m.Who, scheme+"://rebind.example/a.png")
			if !fault.Is(err, fault.Invalid) || !errors.Is(err, outbound.ErrBlocked) {
				t.Errorf("%s, %s: %v, want that the address is blocked", name, scheme, err)
			}
		}
	}
	c.Silent(t)
}

func TestStream_KeepsRangesAndRefusesOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	video := bytes.Repeat([]byte("0123456789"), 100)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/page.mp4":
			_, _ = w.Write([]byte("<html>"))
		case "/loop.mp4":
			http.Redirect(w, q, "/loop.mp4", http.StatusFound)
		case "/large.mp4":
			w.Header().Set("Content-Type", "video/mp4")
			w.Header().Set("Content-Length", "5000000")
		case "/missing.mp4":
			http.NotFound(w, q)
		default:
			w.Header().Set("Content-Type", "video/mp4")
			http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(video))
		}
	}))
	t.Cleanup(server.Close)
	r.Deps.Fetch = server.Client().Transport
	media := r.Deps.Media(publishtest.Limits)
	v, err := media.Stream(t.Context(), server.URL+"/a.mp4", "bytes=3-5")
	r.OK(err)
	defer v.Body.Close()
	var got bytes.Buffer
	if _, err := got.ReadFrom(v.Body); err != nil || got.String() != "345" || v.ContentRange != "bytes 3-5/1000" || v.Size != 3 {
		t.Errorf("read %q with error %v of %+v, want 345", got.String(), err, v)
	}
	for path, want := range map[string]fault.Kind{
		"/page.mp4": fault.Invalid, "/a.mov": fault.Invalid, "/large.mp4": fault.Invalid, "/missing.mp4": fault.Upstream, "/loop.mp4": fault.Loop,
	} {
		if _, err := media.Stream(t.Context(), server.URL+path, ""); !fault.Is(err, want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	server.Close()
	if _, err := media.Stream(t.Context(), server.URL+"/a.mp4", ""); !fault.Is(err, fault.Upstream) {
		t.Errorf("a server that is gone: %v, want %s", err, fault.Upstream)
	}
}
