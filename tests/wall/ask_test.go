package wall

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
	"crier/tests/dbtest"
)

// estate is everything that one organization has.
type estate struct {
	org      tenancy.OrgID
	person   tenancy.PersonID
	key      tenancy.KeyID
	channel  publishing.Channel
	medium   publishing.Medium
	post     publishing.Post
	state    []byte
	standing publishingstore.Standing
}

func (e estate) series() publishing.SeriesID {
	return id.FromUUID[publishing.SeriesTag](e.post.ID.UUID())
}

func (e estate) picture() publishingstore.PictureKey {
	return publishingstore.PictureKey{Media: e.medium.ID, Spec: "jpeg-1-1"}
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newEstate(t *testing.T, db *pg.DB) estate {
	t.Helper()
	people, things := tenancystore.New(db), publishingstore.New(db)
	e := estate{org: id.New[tenancy.OrgTag](), person: id.New[tenancy.PersonTag](), key: id.New[tenancy.KeyTag]()}
	must(t, people.CreatePerson(t.Context(), tenancy.Person{ID: e.person, Email: e.person.String() + "@example.com", CreatedAt: now}))
	must(t, people.CreateOrganization(t.Context(), tenancy.Organization{ID: e.org, Name: "x", Timezone: "UTC", CreatedAt: now}, tenancy.Membership{Person: e.person, Role: tenancy.RoleSuperAdmin}))
	must(t, people.CreateKey(t.Context(), tenancy.APIKey{ID: e.key, Org: e.org, Name: "k", Prefix: "p", CreatedBy: e.person, CreatedAt: now}, secret.HashToken(e.key.String())))
	var err error
	e.channel, _, err = things.Connect(t.Context(), publishing.Channel{ID: id.New[publishing.ChannelTag](), Org: e.org, Connector: "sandbox", Name: "c", AccountID: "a", Account: []byte(`{}`), Grade: "A"}, []byte("sealed"))
	must(t, err)
	e.medium = publishing.Medium{ID: id.New[publishing.MediaTag](), Org: e.org, Key: e.org.String(), Name: "f", Ext: "png", ContentType: "image/png", Size: 1, CreatedAt: now}
	must(t, things.SaveMedium(t.Context(), e.medium))
	_, err = things.WantPictures(t.Context(), e.org, []publishingstore.PictureKey{e.picture()})
	must(t, err)
	post := id.New[publishing.PostTag]()
	e.post = publishing.Post{ID: post, Org: e.org, Group: id.New[publishing.GroupTag](), Channel: e.channel.ID, State: publishing.StateQueue, Due: &now, PublishDate: now, Settings: []byte(`{}`), CreationMethod: "API",
		Parts: []publishing.Part{{ID: id.FromUUID[publishing.PartTag](post.UUID()), Content: "secret words", Media: []publishing.Attachment{{Media: e.medium.ID}}}}}
	e.standing = publishingstore.Standing{ID: post, Channel: e.channel.ID, State: publishing.StateQueue, PublishDate: now}
	template := e.post
	template.ID, template.Group, template.State = id.New[publishing.PostTag](), id.New[publishing.GroupTag](), publishing.StateDraft
	template.Parts = []publishing.Part{{ID: id.FromUUID[publishing.PartTag](template.ID.UUID()), Content: "secret words"}}
	must(t, things.InOrg(t.Context(), e.org, func(tx *publishingstore.Tx) error {
		if busy, taken, err := tx.Remember(t.Context(), "key", []byte("hash"), []byte(`[]`)); err != nil || busy || taken {
			t.Fatal(busy, taken, err)
		}
		if err := tx.Insert(t.Context(), []publishingstore.NewPost{{Post: e.post, By: "test"}}); err != nil {
			return err
		}
		return tx.Repeat(t.Context(), e.post.ID, publishing.Repeat{Days: 1}, "UTC", []publishingstore.NewPost{{Post: template}})
	}))
	e.state = secret.HashToken(e.org.String())
	must(t, things.SaveState(t.Context(), e.state, publishingstore.ConnectState{Org: e.org, Connector: "sandbox", Person: e.person, ExpiresAt: time.Now().Add(time.Hour)}))
	return e
}

// refused is the database's own word for a row of another organization.
func refused(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == "42501" || pe.Code == "23505" || pe.Code == "23503")
}

// question asks one store method as a stranger; it answers whether the stranger got nothing.
type question func(t *testing.T, mine, theirs estate) bool

func inOrg(s *publishingstore.Store, ask func(t *testing.T, tx *publishingstore.Tx, theirs estate) (bool, error)) question {
	return func(t *testing.T, mine, theirs estate) (nothing bool) {
		err := s.InOrg(t.Context(), mine.org, func(tx *publishingstore.Tx) (err error) {
			nothing, err = ask(t, tx, theirs)
			return err
		})
		return nothing && err == nil || pg.IsNoRows(err) || refused(err)
	}
}

func questions(db *pg.DB) map[string]question {
	s, people := publishingstore.New(db), tenancystore.New(db)
	return map[string]question{
		"Store.Channels": func(t *testing.T, m, th estate) bool {
			out, err := s.Channels(t.Context(), m.org, publishing.CustomerID{})
			return err == nil && len(out) == 1 && out[0].ID == m.channel.ID
		},
		"Store.ChannelOfAccount": func(t *testing.T, m, th estate) bool {
			_, err := s.ChannelOfAccount(t.Context(), m.org, "sandbox", th.channel.ID.String())
			return pg.IsNoRows(err)
		},
		"Store.SwapCredential": func(t *testing.T, m, th estate) bool {
			swapped, err := s.SwapCredential(t.Context(), m.org, th.channel.ID, []byte("sealed"), []byte("stolen"), "stolen.example")
			return err == nil && !swapped
		},
		"Store.Park": func(t *testing.T, m, th estate) bool {
			if err := s.Park(t.Context(), m.org, th.channel.ID, []byte("sealed")); err != nil {
				return false
			}
			theirs, err := s.Channels(t.Context(), th.org, publishing.CustomerID{})
			return err == nil && len(theirs) == 1 && !theirs[0].RefreshNeeded
		},
		"Store.TakeState": func(t *testing.T, m, th estate) bool {
			return pg.IsNoRows(s.TakeState(t.Context(), m.org, th.state))
		},
		"Store.Lookup": func(t *testing.T, m, th estate) bool {
			k, err := s.Lookup(t.Context(), m.org, []publishing.ChannelID{th.channel.ID}, []publishing.MediaID{th.medium.ID}, []string{th.medium.Key})
			return err == nil && len(k.Channels) == 0 && len(k.Media) == 0
		},
		"Store.Remembered": func(t *testing.T, m, th estate) bool {
			_, found, err := s.Remembered(t.Context(), id.New[tenancy.OrgTag](), "key", nil)
			return err == nil && !found
		},
		"Store.Roots": func(t *testing.T, m, th estate) bool {
			out, err := s.Roots(t.Context(), m.org, publishing.ListPosts{Start: now.Add(-time.Hour), End: now.Add(time.Hour)}, publishing.CustomerID{}, 10)
			return err == nil && len(out) == 1 && out[0].ID == m.post.ID
		},
		"Store.RootPage": func(t *testing.T, m, th estate) bool {
			out, total, err := s.RootPage(t.Context(), m.org, publishing.Page{Limit: 10}, publishing.CustomerID{})
			return err == nil && total == 1 && len(out) == 1 && out[0].ID == m.post.ID
		},
		"Store.Root": func(t *testing.T, m, th estate) bool {
			out, err := s.Root(t.Context(), m.org, th.post.ID)
			return err == nil && len(out) == 0
		},
		"Store.Whole": func(t *testing.T, m, th estate) bool {
			w, err := s.Whole(t.Context(), m.org, []publishing.Post{th.post})
			return err == nil && len(w.Parts) == 0 && len(w.Channels) == 0 && len(w.Media) == 0 && len(w.Followers) == 0
		},
		"Store.Events": func(t *testing.T, m, th estate) bool {
			out, err := s.Events(t.Context(), m.org, th.post.Group)
			return err == nil && len(out) == 0
		},
		"Store.InOrg": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			return true, tx.Insert(t.Context(), []publishingstore.NewPost{{Post: th.post}})
		}),
		"Tx.Insert": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			fresh := th.post
			fresh.ID = id.New[publishing.PostTag]()
			return false, tx.Insert(t.Context(), []publishingstore.NewPost{{Post: fresh}})
		}),
		"Tx.LockGroup": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			out, err := tx.LockGroup(t.Context(), th.post.Group)
			return len(out) == 0, err
		}),
		"Tx.GroupOf": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			_, err := tx.GroupOf(t.Context(), th.post.ID)
			return false, err
		}),
		"Tx.GroupOfPart": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			_, err := tx.GroupOfPart(t.Context(), th.post.Parts[0].ID)
			return false, err
		}),
		"Tx.Delete": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			return true, tx.Delete(t.Context(), []publishingstore.Standing{th.standing})
		}),
		"Tx.Move": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			due, err := tx.Move(t.Context(), []publishingstore.Standing{th.standing}, publishing.StateDraft, true, "me")
			return due == nil, err
		}),
		"Tx.Rewrite": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			return false, tx.Rewrite(t.Context(), th.post.Group, []publishingstore.Standing{th.standing}, []publishingstore.NewPost{{Post: th.post}})
		}),
		"Store.Coming": func(t *testing.T, m, th estate) bool {
			out, err := s.Coming(t.Context(), m.org, publishing.Occurrence(th.post.ID, 20_000))
			mine, own := s.Coming(t.Context(), m.org, publishing.Occurrence(m.post.ID, 20_000))
			return err == nil && len(out) == 0 && own == nil && len(mine) == 1
		},
		"Tx.Materialize": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			_, _, err := tx.Materialize(t.Context(), publishing.Occurrence(th.post.ID, 20_000).UUID(), false)
			return false, err
		}),
		"Tx.Repeat": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			template := th.post
			template.ID, template.Group = id.New[publishing.PostTag](), id.New[publishing.GroupTag]()
			return false, tx.Repeat(t.Context(), th.post.ID, publishing.Repeat{Days: 1}, "UTC", []publishingstore.NewPost{{Post: template}})
		}),
		"Tx.NextOf": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			_, _, err := tx.NextOf(t.Context(), th.series())
			return false, err
		}),
		"Tx.Pending": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			out, err := tx.Pending(t.Context(), th.series(), -1)
			return len(out) == 0, err
		}),
		"Tx.Advance": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			written, err := tx.Advance(t.Context(), th.series(), true)
			return !written, err
		}),
		"Store.SetAsideSeries": func(t *testing.T, m, th estate) bool {
			err := s.SetAsideSeries(t.Context(), m.org, th.series(), "not mine")
			events, own := s.Events(t.Context(), th.org, th.post.Group)
			return err == nil && own == nil && !slices.ContainsFunc(events, func(e publishing.Event) bool { return e.Event == "delayed" })
		},
		"Store.OrganizationZone": func(t *testing.T, m, th estate) bool {
			zone, err := s.OrganizationZone(t.Context(), m.org)
			_, none := s.OrganizationZone(t.Context(), id.New[tenancy.OrgTag]())
			return err == nil && zone == "UTC" && pg.IsNoRows(none)
		},
		"tenancy.Store.SetTimezone": func(t *testing.T, m, th estate) bool {
			return pg.IsNoRows(people.SetTimezone(t.Context(), id.New[tenancy.OrgTag](), "Asia/Tokyo"))
		},
		"Tx.EndSeries": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			return true, tx.EndSeries(t.Context(), th.series())
		}),
		"Tx.Pause": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			_, known, err := tx.Pause(t.Context(), publishing.PauseChannel, th.channel.ID, true, "me", time.Hour)
			return !known, err
		}),
		"Tx.Revoke": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			return true, tx.Revoke(t.Context(), publishing.PauseChannel, th.channel.ID, "me")
		}),
		"Tx.Held": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			held, err := tx.Held(t.Context(), publishing.PauseChannel, th.channel.ID)
			return len(held.Posts) == 0 && held.Held == 0 && held.InFlight == 0, err
		}),
		"Store.RepairHold": func(t *testing.T, mine, theirs estate) bool {
			repaired, err := s.RepairHold(t.Context(), mine.org, publishing.ChannelID{})
			must(t, err)
			return !repaired
		},
		"Store.SetAsideChannel": func(t *testing.T, mine, theirs estate) bool {
			channel, err := s.SetAsideChannel(t.Context(), mine.org, publishing.ChannelID{}, time.Minute, "test", "test")
			must(t, err)
			return channel == mine.channel.ID
		},
		"Tx.HoldChannels": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			n, err := tx.HoldChannels(t.Context(), []publishing.ChannelID{th.channel.ID}, th.post.Group)
			return n == 0, err
		}),
		"Tx.Disconnect": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			found, err := tx.Disconnect(t.Context(), th.channel.ID)
			return !found, err
		}),
		"Tx.WantPictures": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			_, err := tx.WantPictures(t.Context(), []publishingstore.PictureKey{th.picture()})
			return false, err
		}),
		"Store.WantPictures": func(t *testing.T, m, th estate) bool {
			_, err := s.WantPictures(t.Context(), m.org, []publishingstore.PictureKey{th.picture()})
			return refused(err)
		},
		"Store.Pictures": func(t *testing.T, m, th estate) bool {
			out, err := s.Pictures(t.Context(), m.org, []publishingstore.PictureKey{th.picture()})
			mine, own := s.Pictures(t.Context(), m.org, []publishingstore.PictureKey{m.picture()})
			return err == nil && len(out) == 0 && own == nil && len(mine) == 1
		},
		"Store.TakePicture": func(t *testing.T, m, th estate) bool {
			_, found, err := s.TakePicture(t.Context(), m.org, th.picture(), publishingstore.PictureLimits{})
			return err == nil && !found
		},
		"Store.KeepPicture": func(t *testing.T, m, th estate) bool {
			ended, err := s.KeepPicture(t.Context(), m.org, th.picture(), 0, publishingstore.MadePicture{BlobKey: "k", ContentType: "image/jpeg", Size: 1})
			return err == nil && !ended
		},
		"Store.FailPicture": func(t *testing.T, m, th estate) bool {
			ended, err := s.FailPicture(t.Context(), m.org, th.picture(), 0, "x")
			return err == nil && !ended
		},
		"Store.ReturnPicture": func(t *testing.T, m, th estate) bool {
			ended, err := s.ReturnPicture(t.Context(), m.org, th.picture(), 0, 0, true, "x")
			return err == nil && !ended
		},
		"Tx.Remember": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th estate) (bool, error) {
			busy, taken, err := tx.Remember(t.Context(), "key of "+th.org.String(), []byte("hash"), []byte(`[]`))
			return !busy && !taken, err
		}),
		"tenancy.Store.DeleteKey": func(t *testing.T, m, th estate) bool {
			_, err := people.DeleteKey(t.Context(), m.org, th.key)
			return pg.IsNoRows(err)
		},
	}
}

func TestAStrangerGetsNothing(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	mine, theirs := newEstate(t, db), newEstate(t, db)
	all := questions(db)
	for name, ask := range all {
		if !ask(t, mine, theirs) {
			t.Errorf("%s answered a stranger", name)
		}
	}
	s := publishingstore.New(db)
	roots, err := s.Root(t.Context(), theirs.org, theirs.post.ID)
	must(t, err)
	whole, err := s.Whole(t.Context(), theirs.org, roots)
	must(t, err)
	if len(roots) != 1 || roots[0].State != publishing.StateQueue || whole.Parts[theirs.post.Group][0].Content != "secret words" {
		t.Errorf("a stranger changed something: %+v", roots)
	}
	// Whoever adds a method that takes an organization adds its question.
	covered := []any{s, &publishingstore.Tx{}}
	for _, v := range covered {
		typ := reflect.TypeOf(v)
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			name := typ.Elem().Name() + "." + m.Name
			takes := typ.Elem().Name() == "Tx" && m.Type.NumIn() > 1 // a method without arguments tells only what its own transaction did
			for p := range m.Type.NumIn() {
				takes = takes || m.Type.In(p) == reflect.TypeFor[tenancy.OrgID]()
			}
			if takes && all[name] == nil {
				t.Errorf("%s takes an organization and is not asked as a stranger", name)
			}
		}
	}
}

func count(t *testing.T, db *pg.DB, role pg.Role, table string) (n int) {
	t.Helper()
	must(t, db.InRole(t.Context(), role, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from `+table).Scan(&n)
	}))
	return n
}

func TestTheSenderSeesOnlyWhatIsClaimed(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	newEstate(t, db)
	claimed := newEstate(t, db)
	tables := []string{"post", "part", "attachment", "media", "channel"}
	for _, table := range append(tables, "publication") {
		if n := count(t, db, pg.Sender, table); n != 0 {
			t.Errorf("the sender sees %d rows of %s although nothing is claimed", n, table)
		}
	}
	force := func(state, more string) {
		t.Helper()
		must(t, db.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `update post set state = $1, error = case when $1 = 'ERROR' then 'x' end, maybe_sent = $1 = 'UNKNOWN', release_id = case when $1 = 'PUBLISHED' then 'x' end, published_at = case when $1 = 'PUBLISHED' then now() end,
				claim_token = gen_random_uuid(), claim_holder = gen_random_uuid(), claim_until = now(), phase = 'committing', committing_at = now() `+more+` where id = $2`, state, claimed.post.ID)
			return err
		}))
	}
	for _, state := range []string{"PUBLISHING", "UNKNOWN"} {
		force(state, "")
		for _, table := range tables {
			if n := count(t, db, pg.Sender, table); n != 1 {
				t.Errorf("%s: the sender sees %d rows of %s, not the one", state, n, table)
			}
		}
	}
	for _, state := range []string{"PUBLISHED", "ERROR"} {
		force(state, "")
		for _, table := range tables {
			if n := count(t, db, pg.Sender, table); n != 0 {
				t.Errorf("%s: the sender still sees %d rows of %s", state, n, table)
			}
		}
	}
}

func TestRolesStayWithinTheirColumns(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	newEstate(t, db)
	for _, c := range []struct {
		role pg.Role
		sql  string
	}{
		{pg.Clock, `select content from part`}, {pg.Clock, `select credential from channel`}, {pg.Clock, `select settings from post`}, {pg.Clock, `select key from media`}, {pg.Clock, `select blob_key from derived_picture`}, {pg.Clock, `update derived_picture set state = 'failed'`},
		{pg.Clock, `select hash from api_key`}, {pg.Clock, `delete from post`}, {pg.Clock, `update post set deleted_at = null`}, {pg.Clock, `select body from idempotency`},
		{pg.Gate, `select content from part`}, {pg.Gate, `select name from api_key`}, {pg.Gate, `select id from post`}, {pg.Gate, `select connector from connect_state`}, {pg.Gate, `delete from api_key`},
		{pg.Sender, `update post set state = 'QUEUE'`}, {pg.Sender, `delete from part`}, {pg.Sender, `select email from person`}, {pg.Sender, `select hash from api_key`}, {pg.Sender, `insert into post_event (org_id, post_id, event) select org_id, id, 'x' from post`},
		{pg.Tenant, `select email from person`}, {pg.Tenant, `select hash from session`}, {pg.Tenant, `update shard set owner = null`}, {pg.Tenant, `select id from node`},
	} {
		err := db.InRole(t.Context(), c.role, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), c.sql)
			return err
		})
		if !refused(err) {
			t.Errorf("%s may: %s (%v)", c.role, c.sql, err)
		}
	}
	for _, table := range slices.Sorted(func(yield func(string) bool) {
		for name := range tenants {
			if !yield(name) {
				return
			}
		}
	}) {
		if n := count(t, db, pg.Tenant, table); n != 0 {
			t.Errorf("without an organization a tenant sees %d rows of %s", n, table)
		}
	}
}
