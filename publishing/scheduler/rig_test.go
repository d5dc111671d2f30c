package scheduler_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/file/picture"
	mediastore "crier/publishing/media/store"
	"crier/publishing/pictures"
	picturesstore "crier/publishing/pictures/store"
	"crier/publishing/post"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// fits is the largest picture that the platform of these tests accepts.
var fits = picture.Spec{MaxBytes: 2000, MaxSide: 40}

// platform is a connector that accepts only small images.
type platform struct {
	connector.Connector // nil, so only the methods below may be called
	mu                  sync.Mutex
	sent                []connector.Media
}

func (p *platform) Describe() connector.Descriptor {
	return connector.Descriptor{ID: "sandbox", Name: "Sandbox", Grade: publishing.GradeMarked}
}

func (p *platform) Validate(connector.Draft) []connector.Problem { return nil }

func (p *platform) Derived(m connector.Media) (picture.Spec, bool) {
	return fits, m.Size > int64(fits.MaxBytes)
}

func (p *platform) Prepare(ctx context.Context, _ *connector.Session, item connector.Item) (connector.Step, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, item.Media...)
	return connector.Step{Ready: true}, nil
}

func (p *platform) Commit(context.Context, *connector.Session, connector.Item) (connector.Ref, error) {
	return connector.Ref{ID: "release"}, nil
}

// files records the keys of opened files and lets a test block or break a reader.
type files struct {
	blob.Store
	mu     sync.Mutex
	opened []string
	// read, if set, is called before the first byte of a file is read.
	read func(key string)
}

func (f *files) Open(ctx context.Context, key string) (blob.File, error) {
	file, err := f.Store.Open(ctx, key)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, key)
	return &readFile{File: file, key: key, read: f.read}, err
}

func (f *files) keys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.opened)
}

type readFile struct {
	blob.File
	key  string
	read func(string)
}

func (f *readFile) Read(p []byte) (int, error) {
	if read := f.read; read != nil {
		f.read = nil
		read(f.key)
	}
	return f.File.Read(p)
}

var limits = scheduler.Config{
	BaseURL: "http://crier.test", PlatformTimeout: 20 * time.Second, MaxLateness: 24 * time.Hour,
	RetryWindow: time.Minute, PrepareTimeout: time.Hour, FollowerTimeout: time.Hour, ReconcileWindow: 12 * time.Minute,
}

// rig is the sender of one process with a database.
type rig struct {
	*publishtest.Base
	files    *files
	platform *platform
	deps     scheduler.Deps
	lease    dispatch.Lease
}

func newRig(t *testing.T) *rig {
	t.Helper()
	base := publishtest.New(t)
	r := &rig{Base: base, platform: &platform{}, files: &files{Store: base.Disk}, lease: base.NewLease()}
	r.deps = scheduler.Deps{
		DB: r.Store, Blobs: r.files, Keyring: r.Keyring, Connectors: r.Registry(r.platform), Clock: clock.System{},
		Waker: publishtest.Waker{}, Log: r.Logger, Series: post.Series{DB: r.Store},
	}
	r.deps.Access = r.Access(r.deps.Connectors, nil, nil)
	return r
}

func (r *rig) organization() member {
	r.Helper()
	m := member{rig: r, who: r.Organization()}
	m.channel = m.connect()
	return m
}

func (m member) connect() publishing.ChannelID {
	m.Helper()
	return m.Connect(m.who.Org)
}

// tenant executes a statement as the organization.
func (m member) tenant(sql string, args ...any) {
	m.Helper()
	m.Tenant(m.who.Org, sql, args...)
}

// queue returns the picture maker of a process, not started yet.
func (r *rig) queue(f *files) *pictures.Maker {
	return pictures.New(pictures.Deps{DB: r.Store, Blobs: f, Log: r.Logger, Shards: func() []int16 { return r.lease.Shards }})
}

func (r *rig) start(p *pictures.Maker) *pictures.Maker {
	p.Start(r.Context())
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := p.Stop(ctx); err != nil {
			r.Errorf("the pictures do not stop: %v", err)
		}
	})
	return p
}

// member is an organization with a channel.
type member struct {
	*rig
	who     tenancy.Principal
	channel publishing.ChannelID
}

var largeImage = sync.OnceValue(func() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 80, 60))
	for i := range img.Pix {
		img.Pix[i] = byte(i*i) | 3
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, img); err != nil {
		return nil
	}
	return b.Bytes()
})

// image uploads an image that is too large for the platform.
func (m member) image() publishing.Medium {
	m.Helper()
	raw := largeImage()
	medium := fixture.Medium(m.who.Org, time.Now())
	medium.Size, medium.Width, medium.Height = int64(len(raw)), 80, 60
	_, err := m.files.Create(m.Context(), medium.BlobKey(), bytes.NewReader(raw))
	m.OK(err)
	_, err = mediastore.SaveMedium(m.Context(), m.Store, medium, nil, 0)
	m.OK(err)
	return medium
}

// post saves a post in a process with the picture maker p, which may be nil.
func (m member) post(p *pictures.Maker, kind publishing.CreateType, media ...publishing.Medium) (publishing.CreateResult, error) {
	m.Helper()
	deps := m.deps
	deps.Pictures = p
	value := publishing.CreatePart{Content: "text"}
	for _, x := range media {
		value.Media = append(value.Media, publishing.CreateMedium{ID: x.ID.String()})
	}
	return publishtest.Deps{
		DB: deps.DB, Blobs: deps.Blobs, Keyring: deps.Keyring, Connectors: deps.Connectors, HTTP: deps.HTTP,
		Clock: deps.Clock, Waker: deps.Waker, Log: deps.Log, Pictures: deps.Pictures,
	}.Posts(publishtest.Limits).Create(m.Context(), m.who, publishing.CreatePosts{
		Type: kind, Date: time.Now().Add(time.Hour).UTC(), Method: publishing.MethodAPI,
		Entries: []publishing.CreateEntry{{Channel: m.channel.String(), Parts: []publishing.CreatePart{value}}},
	})
}

// save calls post, which must succeed.
func (m member) save(p *pictures.Maker, kind publishing.CreateType, media ...publishing.Medium) {
	m.Helper()
	_, err := m.post(p, kind, media...)
	m.OK(err)
}

func keyOf(x publishing.Medium) picturesstore.PictureKey {
	return picturesstore.PictureKey{Media: x.ID, Spec: fits.String()}
}

// picture returns the derived picture of an image. Its state is "" if there is none.
func (m member) picture(x publishing.Medium) picturesstore.DerivedPicture {
	m.Helper()
	all, err := picturesstore.Pictures(m.Context(), m.Store, m.who.Org, []picturesstore.PictureKey{keyOf(x)})
	m.OK(err)
	if len(all) == 0 {
		return picturesstore.DerivedPicture{}
	}
	return all[0]
}

// becomes waits until the picture of an image is in the wanted state and returns it.
func (m member) becomes(x publishing.Medium, want picturesstore.PictureState) picturesstore.DerivedPicture {
	m.Helper()
	var got picturesstore.DerivedPicture
	m.until(string(want), func() bool { got = m.picture(x); return got.State == want })
	return got
}

func (r *rig) until(what string, reached func() bool) {
	r.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !reached() {
		select {
		case <-tick.C:
		case <-end:
			r.Fatalf("waited a minute in vain: %s\n%s", what, r.Log.String())
		}
	}
}

// send claims the organization's due post, sends it with yield and stores the outcome.
func (m member) send(p *pictures.Maker, yield func(context.Context, time.Duration) error) dispatch.Outcome {
	m.Helper()
	deps := m.deps
	deps.Pictures = p
	from := scheduler.New(limits, deps)
	round, _, err := from.Claim(m.Context(), m.lease, []dispatch.Want{{
		Org: m.who.Org, Permits: 1,
	}}, dispatch.ClaimWindow, dispatch.NoClaimLimits())
	m.OK(err)
	if len(round.Claimed) != 1 {
		m.Fatalf("claimed %+v", round)
	}
	works, _, err := from.Load(m.Context(), round.Claimed)
	m.OK(err)
	out := from.Send(m.Context(), works[round.Claimed[0].Post], yield)
	_, err = from.Finish(m.Context(), []dispatch.Outcome{out})
	m.OK(err)
	return out
}

// stored returns the content of a blob.
func (r *rig) stored(key string) []byte {
	r.Helper()
	f, err := r.files.Store.Open(r.Context(), key)
	r.OK(err)
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(f)
	r.OK(err)
	return raw
}

// checkClaimOutlasts checks that the claim of the organization's post does not end within d.
func (m member) checkClaimOutlasts(d time.Duration) {
	m.Helper()
	outlasts := publishtest.Value[bool](m.rig.Base, `select claim_until > now() + $2 * interval '1 millisecond' from post where org_id = $1 and state = 'PUBLISHING'`, m.who.Org, d.Milliseconds())
	if !outlasts {
		m.Error("the claim ends while the post waits")
	}
}
