package media_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	publishingdb "crier/publishing/db"
	"crier/tenancy"
	tenancydb "crier/tenancy/db"
	sessionstore "crier/tenancy/session/store"
	"crier/tests/publishtest"
	"crier/tests/s3test"
)

// Requests for files need no credential. However many there are, sessions can still be looked up.
func TestOpen_LeavesConnectionsToSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	db, err := pg.Open(t.Context(), pg.Config{URL: r.Address, MaxConns: 16})
	r.OK(err)
	defer db.Close()
	gate := int(db.Pool(pg.Gate).Config().MaxConns)
	if gate != 2 {
		t.Fatalf("the gate has %d connections, want 2", gate)
	}
	r.Deps.DB = publishingdb.New(db)
	media := r.Deps.Media(publishtest.Limits)
	open := func(ctx context.Context) error {
		_, _, err := media.Open(ctx, strings.Repeat("x", 24), "a.png")
		return err
	}
	owner, err := pgx.Connect(t.Context(), r.Address)
	r.OK(err)
	defer func() { _ = owner.Close(context.WithoutCancel(t.Context())) }()
	tx, err := owner.Begin(t.Context())
	r.OK(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), "lock table media in access exclusive mode")
	r.OK(err)
	const files = 8
	ended := make(chan error, files)
	for range files {
		go func() { ended <- open(t.Context()) }()
	}
	blocked := func() (n int) {
		r.OK(tx.QueryRow(t.Context(), "select count(*) from pg_locks where relation = 'media'::regclass and not granted").Scan(&n))
		return n
	}
	for blocked() == 0 {
		if len(ended) > 0 {
			t.Fatalf("a look-up of a file ends: %v", <-ended)
		}
	}
	people, err := tenancydb.New(db, clock.System{})
	r.OK(err)
	for range 100 {
		if n := blocked(); n >= gate {
			t.Fatalf("%d look-ups of files have all connections", n)
		}
		if found, err := sessionstore.SessionsByHash(t.Context(), people, [][]byte{make([]byte, 32)}, time.Now()); err != nil || len(found) > 0 {
			t.Fatalf("a look-up of a session finds %d, %v", len(found), err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var f *fault.Error
	if err := open(over); !errors.As(err, &f) || f.Kind != fault.Unavailable || f.RetryAfter <= 0 {
		t.Errorf("a look-up of a file that waits for too long: %v, want unavailable", err)
	}
	r.OK(tx.Rollback(t.Context()))
	for range files {
		if err := <-ended; !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Unavailable) {
			t.Errorf("a look-up of a file ends with %v, want not found, or unavailable after a long wait", err)
		}
	}
	if err := open(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("a look-up of a file afterwards: %v, want not found", err)
	}
}

func TestOwn_FindsFilesOfTheOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mine, theirs := r.Member(), r.Member()
	x := mine.Medium(mine.Who.Org)
	media := r.Deps.Media(publishtest.Limits)
	got, err := media.Own(t.Context(), mine.Who, x.ID.String())
	if err != nil || got.ID != x.ID || got.Path() != x.Path() || got.Size != x.Size || got.Org != mine.Who.Org {
		t.Errorf("got %+v, %v; want %+v", got, err, x)
	}
	deleted := mine.Medium(mine.Who.Org)
	mine.Tenant(mine.Who.Org, `update media set deleted_at = now() where id = $1`, deleted.ID)
	for name, ask := range map[string]struct {
		who tenancy.Principal
		id  string
	}{
		"another organization": {who: theirs.Who, id: x.ID.String()},
		"another id":           {who: mine.Who, id: id.New[publishing.MediaTag]().String()},
		"no id":                {who: mine.Who, id: "x\x00"},
		"a key":                {who: mine.Who, id: x.Key + "x"},
		"a deleted file":       {who: mine.Who, id: deleted.ID.String()},
	} {
		if got, err := media.Own(t.Context(), ask.who, ask.id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got %+v, %v; want NotFound", name, got, err)
		}
	}
}

// TestFiles_UnreachableStoreIsNamed checks that the database is not blamed if a file's row is found
// but its bytes cannot be reached.
func TestFiles_UnreachableStoreIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.Member()
	dir := filepath.Join(t.TempDir(), "files")
	disk, err := blob.NewDisk(dir)
	r.OK(err)
	defer func() { _ = disk.Close() }()
	r.Deps.Blobs = disk
	stored, err := r.Deps.Media(publishtest.Limits).Upload(t.Context(), m.Who, "a.png", bytes.NewReader(r.picture(3)))
	r.OK(err)
	r.OK(os.RemoveAll(dir))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	r.OK(err)
	r.OK(ln.Close())
	bucket, err := blob.NewS3(s3test.Config("http://"+ln.Addr().String()), &http.Transport{}, filepath.Join(t.TempDir(), "spool"))
	r.OK(err)
	for name, store := range map[string]blob.Store{"a folder that has gone": disk, "a bucket that is away": bucket} {
		r.Deps.Blobs = store
		media := r.Deps.Media(publishtest.Limits)
		_, _, opened := media.Open(t.Context(), stored.Key, stored.Name+"."+stored.Ext)
		_, uploaded := media.Upload(t.Context(), m.Who, "b.png", bytes.NewReader(r.picture(4)))
		_, copied := media.UploadFromURL(t.Context(), m.Who, publishtest.Limits.BaseURL+stored.Path())
		for call, err := range map[string]error{"reading a file": opened, "an upload": uploaded, "a copy": copied} {
			var f *fault.Error
			if !errors.As(err, &f) || f.Kind != fault.Unavailable || !strings.HasPrefix(f.Message, "The files cannot be reached") {
				t.Errorf("%s from %s: got %v, want Unavailable that names the files", call, name, err)
			}
		}
	}
}
