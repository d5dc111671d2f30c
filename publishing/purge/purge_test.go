package purge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/blob"
	"crier/platform/fault"
	"crier/platform/secret"
	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/db"
	mediastore "crier/publishing/media/store"
	poststore "crier/publishing/post/store"
	"crier/publishing/purge"
	"crier/publishing/scheduler"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// purged lists the tables in which a purge leaves nothing.
var purged = []string{
	"customer", "channel", "connect_state", "pause", "media", "derived_picture", "series", "post", "part", "attachment",
	"publication", "channel_queue", "post_event", "idempotency", "notification", "incident_event",
	"notification_posts", "notification_seen",
}

// member is the owner of an organization that will be purged.
type member struct{ publishtest.Member }

// filled returns the owner of an organization that has something in every table and posts in every
// state.
func filled(r *publishtest.Rig) member {
	r.Helper()
	m := member{Member: r.Member()}
	org, ctx := m.Who.Org, r.Context()
	for _, state := range publishing.States() {
		if state != publishing.StateWaiting { // the followers are waiting
			m.InState(m.Who.Org, m.Connect(org), state, m.Medium(m.Who.Org))
		}
	}
	c := m.Connect(org)
	m.Tenant(org, `insert into customer (org_id, id, name) values ($1, gen_random_uuid(), 'a customer')`, org)
	m.Tenant(org, `update channel set customer_id = (select id from customer) where id = $1`, c)
	m.Tenant(org, `insert into notification (org_id, id, kind, channel_id, created_at, last_at)
		select org_id, gen_random_uuid(), 'failed', id, now(), now() from channel`)
	m.Tenant(org, `insert into notification_posts (org_id, notification_id, channel_id, posts)
		select org_id, id, channel_id, 1 from notification`)
	m.Tenant(org, `insert into notification_seen (org_id, person_id, notification_id, last_at)
		select org_id, $1, id, last_at from notification`, m.Who.Person)
	m.Tenant(org, `insert into pause (org_id, subject, scope, by) select org_id, id, 'customer', 'test' from customer`)
	m.Tenant(org, `update post set deleted_at = now() where id = $1`, m.InState(m.Who.Org, c, publishing.StateQueue, m.Medium(m.Who.Org)))
	m.Tenant(org, `update media set deleted_at = now() where id = $1`, m.Medium(m.Who.Org).ID)
	posts, template := fixture.Post(org, c, time.Now()), fixture.Post(org, c, time.Now(), time.Hour)
	template[0].State = publishing.StateDraft
	m.Insert(m.Who.Org, posts...)
	r.OK(m.Store.InOrg(ctx, org, func(tx *db.Tx) error {
		if err := poststore.Remember(ctx, tx, "a key", []byte("hash"), []byte(`[]`), 0); err != nil {
			return err
		}
		return poststore.Repeat(ctx, tx, posts[0].ID, publishing.Repeat{Days: 1}, "UTC", []poststore.NewPost{
			{Post: template[0]}, {Post: template[1]},
		})
	}))
	r.OK(channelstore.SaveState(ctx, m.Store, secret.HashToken(org.String()), channelstore.ConnectState{
		Org: org, Connector: "sandbox", Person: m.Who.Person, ExpiresAt: time.Now().Add(time.Hour),
	}))
	return m
}

// rows returns the rows of every table of an organization as text.
func (m member) rows() map[string]string {
	m.Helper()
	all := map[string]string{}
	m.OK(m.DB.InOrg(m.Context(), m.Who.Org.UUID(), func(tx pgx.Tx) error {
		for _, table := range purged {
			var text string
			sql := "select coalesce(string_agg(x::text, e'\n' order by x::text), '') from " + table + " x"
			if err := tx.QueryRow(m.Context(), sql).Scan(&text); err != nil {
				return err
			}
			all[table] = text
		}
		return nil
	}))
	return all
}

// expectNothing checks that the organization has no rows and that none of its files are left.
func (m member) expectNothing(files []string) {
	m.Helper()
	for table, rows := range m.rows() {
		if rows != "" {
			m.Errorf("%s has rows after the purge:\n%s", table, rows)
		}
	}
	if left := m.existing(files); len(left) > 0 {
		m.Errorf("files are left after the purge: %v", left)
	}
}

// files returns the keys of all files that the organization's rows name.
func (m member) files() (keys []string) {
	m.Helper()
	m.OK(m.DB.InOrg(m.Context(), m.Who.Org.UUID(), func(tx pgx.Tx) error {
		rows, err := tx.Query(m.Context(), `select org_id::text || '/' || key from media
			union all select m.org_id::text || '/' || key || '.' || spec || '.' || n
			from derived_picture d join media m on m.id = d.media_id cross join generate_series(1, d.attempts) n`)
		if err != nil {
			return err
		}
		keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}))
	return keys
}

// existing returns the keys whose files exist.
func (m member) existing(keys []string) (found []string) {
	m.Helper()
	for _, key := range keys {
		f, err := m.Disk.Open(m.Context(), key)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		m.OK(err)
		m.OK(f.Close())
		found = append(found, key)
	}
	return found
}

func (m member) queue() *scheduler.Queue { return m.Deps.Queue(publishtest.Limits) }

func (m member) purger() *purge.Purger { return m.Deps.Purger() }

func TestPurge_DeletesAllOfOneOrganization(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	mine, theirs := filled(r), filled(r)
	r.OK(mine.queue().Stop(t.Context(), mine.Who.Org, "test"))
	files, before := mine.files(), theirs.rows()
	for table, rows := range mine.rows() {
		if rows == "" {
			t.Errorf("%s has no row before the purge, so this test could not fail", table)
		}
	}
	if left := mine.existing(files); len(left) != len(files) || len(files) == 0 {
		t.Fatalf("%d of %d files exist before the purge, want all", len(left), len(files))
	}
	rows, err := mine.purger().Purge(t.Context(), mine.Who.Org)
	if err != nil || rows < len(files) {
		t.Fatalf("the purge returns %d, %v; want more rows than the %d files", rows, err, len(files))
	}
	mine.expectNothing(files)
	if rows, err := mine.purger().Purge(t.Context(), mine.Who.Org); rows != 0 || err != nil {
		t.Errorf("the second purge returns %d, %v; want 0", rows, err)
	}
	for table, rows := range theirs.rows() {
		if rows != before[table] {
			t.Errorf("the purge changed %s of another organization from\n%s\nto\n%s", table, before[table], rows)
		}
	}
	if files := theirs.files(); len(theirs.existing(files)) != len(files) {
		t.Errorf("the purge deleted files of another organization: %v of %v are left", theirs.existing(files), files)
	}
	r.OK(theirs.queue().Resume(t.Context(), theirs.Who.Org, "test", true))
}

func TestPurge_WaitsForWorkInProgress(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	m := filled(r)
	files := m.files()
	sent := publishtest.Value[publishing.PostID](r.Base, `select id from post where state = 'PUBLISHING'`)
	made := m.Medium(m.Who.Org)
	files = append(files, made.BlobKey(), made.DerivedKey("jpeg-2-2", 1))
	r.OK(m.queue().Stop(t.Context(), m.Who.Org, "test"))
	r.Clock(`update post set claim_until = now() + interval '1 hour' where id = $1`, sent)
	m.Tenant(m.Who.Org, `update derived_picture set attempts = 1, unfinished = 1, not_before = now() + interval '1 hour'
		where media_id = $1 and spec = 'jpeg-2-2'`, made.ID)
	var f *fault.Error
	rows, err := m.purger().Purge(t.Context(), m.Who.Org)
	if !errors.As(err, &f) || f.Kind != fault.Conflict || f.RetryAfter <= 0 || rows == 0 {
		t.Fatalf("the purge returns %d, %v; want Conflict after it has deleted the rest", rows, err)
	}
	for sql, want := range map[string]int{
		`select count(*) from post`: 2, `select count(*) from part`: 3, `select count(*) from publication`: 1,
		`select count(*) from channel_queue where not paused`: 0, `select count(*) from derived_picture`: 3,
	} {
		if n := publishtest.Value[int](r.Base, sql); n != want {
			t.Errorf("%s: got %d, want %d: what is sent with its follower and medium, and what is made", sql, n, want)
		}
	}
	if left := m.existing(files); len(left) != 5 {
		t.Errorf("%d files are left, want the medium with its pictures and the image: %v", len(left), left)
	}
	r.Clock(`update post set claim_until = now() where id = $1`, sent)
	if _, err := m.purger().Purge(t.Context(), m.Who.Org); !fault.Is(err, fault.Conflict) {
		t.Fatalf("got %v while a picture is being made, want Conflict", err)
	}
	m.Create(made.DerivedKey("jpeg-2-2", 1)) // made by an attempt whose end is not stored
	m.Tenant(m.Who.Org, `update derived_picture set not_before = now()`)
	if rows, err := m.purger().Purge(t.Context(), m.Who.Org); rows == 0 || err != nil {
		t.Fatalf("the last purge returns %d, %v; want the rest", rows, err)
	}
	m.expectNothing(files)
}

// A purge deletes bytes with the last file that has them, but not while a post that needs them is
// being sent.
func TestPurge_DeletesSharedBytesWithTheLastFile(t *testing.T) {
	t.Parallel()
	for _, attached := range []int{0, 1, 2} {
		t.Run(fmt.Sprintf("file %d is being sent", attached), func(t *testing.T) {
			t.Parallel()
			r := publishtest.NewRig(t)
			m := member{Member: r.Member()}
			files := make([]publishing.Medium, 3)
			for i := range files {
				files[i] = fixture.Medium(m.Who.Org, time.Now())
				files[i].Blob = files[0].Key
				_, err := mediastore.SaveMedium(t.Context(), m.Store, files[i], nil, 0)
				r.OK(err)
			}
			m.Create(files[0].BlobKey())
			sent := m.InState(m.Who.Org, m.Connect(m.Who.Org), publishing.StatePublishing, files[attached])
			r.Clock(`update post set claim_until = now() + interval '1 hour' where id = $1`, sent)
			if _, err := m.purger().Purge(t.Context(), m.Who.Org); !fault.Is(err, fault.Conflict) {
				t.Fatalf("got %v while a post is being sent, want Conflict", err)
			}
			rows, left := m.rows()["media"], m.existing([]string{files[0].BlobKey()})
			if strings.Contains(rows, "\n") || !strings.Contains(rows, files[attached].ID.String()) || len(left) != 1 {
				t.Fatalf("the rows %s and the bytes %v are left, want what is being sent", rows, left)
			}
			r.Clock(`update post set claim_until = now() where id = $1`, sent)
			_, err := m.purger().Purge(t.Context(), m.Who.Org)
			r.OK(err)
			m.expectNothing([]string{files[0].BlobKey()})
		})
	}
}

// failingFiles is a blob store whose Delete calls fail first and returns its error, if any.
type failingFiles struct {
	blob.Store
	fail func(key string) error
}

func (f *failingFiles) Delete(ctx context.Context, key string) error {
	if err := f.fail(key); err != nil {
		return err
	}
	return f.Store.Delete(ctx, key)
}

func TestPurge_KeepsRowOfFileThatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	m := filled(r)
	files := m.files()
	broken, picture := m.Medium(m.Who.Org), m.Medium(m.Who.Org)
	bad := []string{broken.BlobKey(), picture.DerivedKey("jpeg-1000-1000", 2)}
	away := errors.New("the disk is broken")
	m.Deps.Blobs = &failingFiles{Store: r.Disk, fail: func(key string) error {
		if key == bad[0] || key == bad[1] {
			return away
		}
		return nil
	}}
	for range 2 {
		rows, err := m.purger().Purge(t.Context(), m.Who.Org)
		if !errors.Is(err, away) || !fault.Is(err, fault.Unavailable) ||
			!strings.Contains(err.Error(), broken.ID.String()) || !strings.Contains(err.Error(), picture.ID.String()) {
			t.Fatalf("the purge returns %d, %v; want Unavailable, the cause and both files", rows, err)
		}
	}
	for table, want := range map[string]string{
		"media": broken.ID.String(), "derived_picture": picture.ID.String(), "pause": "customer", "post": "", "channel": "",
	} {
		if rows := m.rows()[table]; !strings.Contains(rows, want) || want == "" && rows != "" {
			t.Errorf("%s is %q after a file could not be deleted, want only %q", table, rows, want)
		}
	}
	if left := m.existing(files); len(left) != 0 {
		t.Errorf("other files are left: %v", left)
	}
	m.Deps.Blobs = r.Disk
	if rows, err := m.purger().Purge(t.Context(), m.Who.Org); rows == 0 || err != nil {
		t.Fatalf("the purge returns %d, %v after the disk is repaired; want the rest", rows, err)
	}
	m.expectNothing(append(files, bad...))
}

// However many files were deleted before the process dies, each file that is left has a row.
func TestPurge_ContinuesAfterCrashBetweenFiles(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	m := filled(r)
	files := m.files()
	for n := 0; ; n++ {
		ctx, crash := context.WithCancel(t.Context())
		calls := 0
		m.Deps.Blobs = &failingFiles{Store: r.Disk, fail: func(string) error {
			if calls++; calls > n {
				crash()
			}
			return ctx.Err()
		}}
		_, err := m.purger().Purge(ctx, m.Who.Org)
		crash()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) || n > 2*len(files) {
			t.Fatalf("the purge that ends after %d deletions returns %v, want context.Canceled", n, err)
		}
		named := m.files()
		if left := m.existing(files); len(m.existing(named)) != len(left) {
			t.Fatalf("after %d deletions the files %v are left, and the rows name %v", n, left, named)
		}
	}
	m.expectNothing(files)
}

// A statement that the database does not execute ends the purge like a crash before it.
func TestPurge_ContinuesAfterCrashInEveryTable(t *testing.T) {
	t.Parallel()
	for _, table := range []string{
		"post", "idempotency", "connect_state", "derived_picture", "media", "series", "channel", "customer", "pause",
	} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			r := publishtest.NewRig(t)
			m := filled(r)
			files := m.files()
			owner, err := pgx.Connect(t.Context(), r.Address)
			r.OK(err)
			defer func() { _ = owner.Close(context.WithoutCancel(t.Context())) }()
			_, err = owner.Exec(t.Context(), `
				create function crash() returns trigger language plpgsql as $$
					begin raise exception 'crash' using errcode = '57P01'; end $$;
				create trigger crash before delete on `+table+` for each statement execute function crash()`)
			r.OK(err)
			rows, err := m.purger().Purge(t.Context(), m.Who.Org)
			if !fault.Is(err, fault.Unavailable) || m.rows()[table] == "" {
				t.Fatalf("the purge returns %d, %v; want Unavailable and the rows of %s", rows, err, table)
			}
			_, err = owner.Exec(t.Context(), `drop function crash cascade`)
			r.OK(err)
			if rows, err := m.purger().Purge(t.Context(), m.Who.Org); rows == 0 || err != nil {
				t.Fatalf("the next purge returns %d, %v; want the rest", rows, err)
			}
			m.expectNothing(files)
		})
	}
}

func TestPurge_DeletesOthersDespiteRefusedRow(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	m := member{Member: r.Member()}
	c := m.Connect(m.Who.Org)
	var all []publishing.Post
	for range 450 { // enough for three batches
		all = append(all, fixture.Post(m.Who.Org, c, time.Now().Add(time.Hour), time.Hour)...)
	}
	m.Insert(m.Who.Org, all...)
	bad := all[500].ID
	owner, err := pgx.Connect(t.Context(), r.Address)
	r.OK(err)
	defer func() { _ = owner.Close(context.WithoutCancel(t.Context())) }()
	_, err = owner.Exec(t.Context(), fmt.Sprintf(`
		create function refuse() returns trigger language plpgsql as $$
			begin if old.id = '%s' then raise exception 'no' using errcode = 'P0001'; end if; return old; end $$;
		create trigger refuse before delete on post for each row execute function refuse()`, bad))
	r.OK(err)
	rows, err := m.purger().Purge(t.Context(), m.Who.Org)
	if rows != len(all)-1 || err == nil || !strings.Contains(err.Error(), bad.String()) {
		t.Fatalf("the purge returns %d, %v; want %d and the post that is refused", rows, err, len(all)-1)
	}
	_, err = owner.Exec(t.Context(), `drop function refuse cascade`)
	r.OK(err)
	if rows, err := m.purger().Purge(t.Context(), m.Who.Org); rows != 3 || err != nil {
		t.Fatalf("the next purge returns %d, %v; want the post and two channels", rows, err)
	}
	m.expectNothing(nil)
}
