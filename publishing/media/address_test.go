package media_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/media"
	"crier/tenancy"
	"crier/tests/publishtest"
)

var credentialHash = secret.HashToken("credential")

// keyOf returns the principal of an API key of a member's organization.
func keyOf(m publishtest.Member) tenancy.Principal {
	p := m.Who
	p.Via = tenancy.ViaKey
	return p
}

// address creates an upload address and returns it with its token.
func (r *rig) address(media *media.Media, p tenancy.Principal) (a publishing.UploadAddress, token string) {
	r.Helper()
	a, err := media.CreateAddress(r.Context(), p, credentialHash)
	r.OK(err)
	token, ours := publishing.UploadToken(publishtest.Limits.BaseURL, a.URL)
	if !ours {
		r.Fatalf("%s is not an upload address", a.URL)
	}
	return a, token
}

// files returns the ids of an organization's files.
func (r *rig) files(org tenancy.OrgID) (ids []publishing.MediaID) {
	r.Helper()
	r.OK(r.DB.InOrg(r.Context(), org.UUID(), func(tx pgx.Tx) error {
		rows, err := tx.Query(r.Context(), "select id from media where org_id = $1", org)
		if err == nil {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[publishing.MediaID])
		}
		return err
	}))
	return ids
}

func TestUploadTo_TakesOneFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	media, p := r.Deps.Media(publishtest.Limits), keyOf(r.Member())
	a, token := r.address(media, p)
	if life := time.Until(a.ExpiresAt); life < 14*time.Minute || life > 15*time.Minute {
		t.Errorf("the address ends in %s, want 15 minutes", life)
	}
	found, err := media.Address(t.Context(), token)
	if err != nil || found.Org != p.Org || found.Via != tenancy.ViaKey || !bytes.Equal(found.Credential, credentialHash) {
		t.Errorf("got %+v and %v, want the credential that asked", found, err)
	}
	data := r.picture(3)
	m, err := media.UploadTo(t.Context(), p, token, "my cat.png", bytes.NewReader(data))
	if err != nil || m.Name != "my-cat" || m.Width != 3 {
		t.Fatalf("got %+v and %v, want the picture", m, err)
	}
	r.wantServed(media, m, data)
	for range 2 {
		_, err := media.UploadTo(t.Context(), p, token, "my cat.png", bytes.NewReader(data))
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Conflict || !strings.Contains(f.Message, m.ID.String()) {
			t.Errorf("a second upload: got %v, want Conflict with the id of the file", err)
		}
	}
	if files, blobs := r.files(p.Org), r.blobs(); len(files) != 1 || len(blobs) != 1 {
		t.Errorf("got %d files and %d blobs, want one", len(files), len(blobs))
	}
	r.OK(media.Delete(t.Context(), p, m.ID.String()))
	if _, err := media.UploadTo(t.Context(), p, token, "", bytes.NewReader(data)); !fault.Is(err, fault.Conflict) {
		t.Errorf("once the file is deleted: got %v, want Conflict", err)
	}
}

// gatedReader returns io.EOF only when all readers of its gate have been read.
type gatedReader struct {
	io.Reader
	gate *sync.WaitGroup
	once sync.Once
}

func (g *gatedReader) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		g.once.Do(g.gate.Done)
		g.gate.Wait()
	}
	return n, err
}

// All uploads have begun, and passed the first check, before any of them is stored.
func TestUploadTo_UploadsAtOnceStoreOneFile(t *testing.T) {
	t.Parallel()
	for name, width := range map[string]func(i int) int{
		"of different files": func(i int) int { return i + 1 },
		"of the same file":   func(int) int { return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			media, p := r.Deps.Media(publishtest.Limits), keyOf(r.Member())
			_, token := r.address(media, p)
			const uploads = 6
			var gate, all sync.WaitGroup
			gate.Add(uploads)
			stored, errs := make([]publishing.Medium, uploads), make([]error, uploads)
			for i := range uploads {
				data := r.picture(width(i))
				all.Go(func() {
					stored[i], errs[i] = media.UploadTo(t.Context(), p, token, "a.png", &gatedReader{Reader: bytes.NewReader(data), gate: &gate})
				})
			}
			all.Wait()
			var winner publishing.MediaID
			for i, err := range errs {
				if err == nil {
					winner = stored[i].ID
				}
			}
			for _, err := range errs {
				var f *fault.Error
				if err != nil && (!errors.As(err, &f) || f.Kind != fault.Conflict || !strings.Contains(f.Message, winner.String())) {
					t.Errorf("got %v, want Conflict that names %s", err, winner)
				}
			}
			files := r.files(p.Org)
			if len(files) != 1 || files[0] != winner || len(r.blobs()) != 1 {
				t.Errorf("got the files %v and %d blobs, want %s alone", files, len(r.blobs()), winner)
			}
		})
	}
}

func TestUploadTo_FailureDoesNotUseUpTheAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	limits := publishtest.Limits
	limits.MaxImage, limits.MaxStorage = 400, 600
	media, p := r.Deps.Media(limits), keyOf(r.Member())
	_, token := r.address(media, p)
	data := r.picture(3)
	cut := io.MultiReader(bytes.NewReader(data[:40]), errReader{io.ErrUnexpectedEOF})
	for name, c := range map[string]struct {
		name string
		body io.Reader
		want fault.Kind
	}{
		"too large":                     {body: bytes.NewReader(append(bytes.Clone(data), make([]byte, 400)...)), want: fault.TooLarge},
		"an unknown type":               {body: strings.NewReader("<html>"), want: fault.Invalid},
		"a name of another type":        {name: "a.mp4", body: bytes.NewReader(data), want: fault.Invalid},
		"nothing":                       {body: strings.NewReader(""), want: fault.Invalid},
		"a connection that is cut":      {body: cut, want: fault.Invalid},
		"a credential that has expired": {body: io.MultiReader(bytes.NewReader(data), errReader{fault.New(fault.Unauthenticated, "test", "")}), want: fault.Unauthenticated},
	} {
		if _, err := media.UploadTo(t.Context(), p, token, c.name, c.body); !fault.Is(err, c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	// The storage is filled while the file arrives.
	filling := &onEOF{Reader: bytes.NewReader(data), do: func() {
		r.Tenant(p.Org, `insert into media (org_id, id, key, blob, name, ext, content_type, size, stored)
			values ($1, gen_random_uuid(), repeat('x', 24), 'x', 'x', 'png', 'image/png', 600, 600)`, p.Org)
	}}
	if _, err := media.UploadTo(t.Context(), p, token, "", filling); !fault.Is(err, fault.TooLarge) {
		t.Errorf("full storage: got %v, want TooLarge", err)
	}
	if len(r.blobs()) != 0 {
		t.Errorf("%d blobs are left, want none", len(r.blobs()))
	}
	r.Tenant(p.Org, `delete from media where key = repeat('x', 24)`)
	if _, err := media.UploadTo(t.Context(), p, token, "", bytes.NewReader(data)); err != nil {
		t.Errorf("the upload after the failures: %v", err)
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// onEOF calls do at the end of the file.
type onEOF struct {
	io.Reader
	do   func()
	once sync.Once
}

func (o *onEOF) Read(p []byte) (int, error) {
	n, err := o.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		o.once.Do(o.do)
	}
	return n, err
}

// A process that dies before the commit is like one whose context ends once the bytes are stored.
func TestUploadTo_CrashBeforeTheCommitLeavesTheAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := keyOf(r.Member())
	_, token := r.address(r.Deps.Media(publishtest.Limits), p)
	ctx, cancel := context.WithCancel(t.Context())
	whole := r.Deps
	r.Deps.Blobs = endingStore{Store: r.Disk, end: cancel}
	if _, err := r.Deps.Media(publishtest.Limits).UploadTo(ctx, p, token, "", bytes.NewReader(r.picture(2))); err == nil {
		t.Fatal("the upload succeeded, want an error")
	}
	if files := r.files(p.Org); len(files) != 0 {
		t.Fatalf("got %d files, want none", len(files))
	}
	m, err := whole.Media(publishtest.Limits).UploadTo(t.Context(), p, token, "", bytes.NewReader(r.picture(2)))
	if files := r.files(p.Org); err != nil || len(files) != 1 || files[0] != m.ID {
		t.Errorf("got %v, %v and the files %v, want one", m.ID, err, files)
	}
}

func TestAddress_RefusesOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	media, p, other := r.Deps.Media(publishtest.Limits), keyOf(r.Member()), keyOf(r.Member())
	_, token := r.address(media, p)
	if _, err := media.UploadTo(t.Context(), other, token, "", bytes.NewReader(r.picture(1))); !fault.Is(err, fault.NotFound) {
		t.Errorf("another organization: got %v, want NotFound", err)
	}
	for name, guess := range map[string]string{
		"nothing": "", "a part": token[:20], "more": token + "x", "no prefix": "xxx_" + token[4:], "NUL": strings.Repeat("\x00", len(token)),
		"a guess": token[:len(token)-1] + "~", "the hash": string(secret.HashToken(token)),
	} {
		if _, err := media.Address(t.Context(), guess); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got %v, want NotFound", name, err)
		}
	}
	r.Deps.Clock = later(15 * time.Minute)
	expired := r.Deps.Media(publishtest.Limits)
	if _, err := expired.Address(t.Context(), token); !fault.Is(err, fault.Gone) {
		t.Errorf("after 15 minutes: got %v, want Gone", err)
	}
	if _, err := expired.UploadTo(t.Context(), p, token, "", bytes.NewReader(r.picture(1))); err != nil {
		t.Errorf("an upload that began in time: %v", err)
	}
}

func TestCreateAddress_IsLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	media, p, other := r.Deps.Media(publishtest.Limits), keyOf(r.Member()), keyOf(r.Member())
	_, token := r.address(media, p)
	var all sync.WaitGroup
	errs := make([]error, 110)
	for i := range errs {
		all.Go(func() { _, errs[i] = media.CreateAddress(t.Context(), p, credentialHash) })
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else if !fault.Is(err, fault.RateLimited) {
			t.Errorf("got %v, want RateLimited", err)
		}
	}
	if made != 99 {
		t.Errorf("%d further addresses were created, want 99", made)
	}
	r.address(media, other)
	_, err := media.UploadTo(t.Context(), p, token, "", bytes.NewReader(r.picture(1)))
	r.OK(err)
	r.address(media, p)
	r.Deps.Clock = later(16 * time.Minute)
	r.address(r.Deps.Media(publishtest.Limits), p)
}

// noFetch is a transport that fails the test.
type noFetch struct{ t *testing.T }

func (n noFetch) RoundTrip(req *http.Request) (*http.Response, error) {
	n.t.Errorf("%s was requested", req.URL)
	return nil, errors.New("no")
}

func TestUploadFromURL_UploadAddressReturnsItsFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Deps.Fetch = noFetch{t}
	media, p, other := r.Deps.Media(publishtest.Limits), keyOf(r.Member()), keyOf(r.Member())
	a, token := r.address(media, p)
	refused := func(name string, who tenancy.Principal, words string) {
		t.Helper()
		_, err := media.UploadFromURL(t.Context(), who, a.URL)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || !strings.Contains(f.Message, words) {
			t.Errorf("%s: got %v, want Invalid with %q", name, err, words)
		}
	}
	refused("before the upload", p, "No file has been uploaded to this address yet")
	m, err := media.UploadTo(t.Context(), p, token, "a.png", bytes.NewReader(r.picture(1)))
	r.OK(err)
	for _, url := range []string{a.URL, a.URL + "/", " " + a.URL + "\n", strings.Replace(a.URL, "crier.test", "CRIER.test", 1)} {
		got, err := media.UploadFromURL(t.Context(), p, url)
		if err != nil || got.ID != m.ID || got.Path() != m.Path() {
			t.Errorf("%q: got %+v and %v, want the file", url, got, err)
		}
	}
	refused("another organization", other, "There is no such upload address")
	if files := r.files(p.Org); len(files) != 1 {
		t.Errorf("got %d files, want one", len(files))
	}
	r.OK(media.Delete(t.Context(), p, m.ID.String()))
	refused("once the file is deleted", p, "has been deleted")
	a, _ = r.address(media, p)
	r.Deps.Clock = later(15 * time.Minute)
	media = r.Deps.Media(publishtest.Limits)
	refused("once it has expired", p, "expired before a file was uploaded")
}
