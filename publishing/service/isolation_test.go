package service_test

import (
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	publishingservice "crier/publishing/service"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
	"crier/tests/dbtest"
	"crier/tests/fixture"
)

// bench is a Publisher on a database of its own, whose owner may break things.
type bench struct {
	*testing.T
	db        *pg.DB
	owner     *pgx.Conn
	store     *publishingstore.Store
	publisher *publishingservice.Publisher
	lease     publishingservice.Lease
}

func newBench(t *testing.T) *bench {
	t.Helper()
	address := dbtest.URL(t)
	r := &bench{T: t, db: dbtest.OpenURL(t, address)}
	var err error
	r.owner, err = pgx.Connect(t.Context(), address)
	r.ok(err)
	t.Cleanup(func() { _ = r.owner.Close(t.Context()) })
	r.store = publishingstore.New(r.db)
	registry, err := connector.NewRegistry()
	r.ok(err)
	r.publisher = publishingservice.NewPublisher(
		publishingservice.Config{RequestDeadline: time.Minute, MaxLate: 24 * time.Hour, SendFor: time.Hour, WaitFor: time.Hour, UnknownFor: 12 * time.Minute},
		publishingservice.Deps{DB: r.db, Connectors: registry, Clock: clock.System{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Node: "test"})
	r.lease = publishingservice.Lease{Holder: uuid.New()}
	r.clock(`insert into node (id, home, address, roles, expires_at) values ($1, $1, '', '{}', now() + interval '1 hour')`, r.lease.Holder)
	r.clock(`update shard set owner = $1`, r.lease.Holder)
	for shard := range tenancy.Shards {
		r.lease.Shards = append(r.lease.Shards, int16(shard))
	}
	return r
}

func (r *bench) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *bench) clock(sql string, args ...any) {
	r.Helper()
	r.ok(r.db.InRole(r.Context(), pg.Clock, func(tx pgx.Tx) error {
		_, err := tx.Exec(r.Context(), sql, args...)
		return err
	}))
}

func (r *bench) organization() tenancy.OrgID {
	r.Helper()
	person, org, member := fixture.Owner(time.Now())
	people := tenancystore.New(r.db)
	r.ok(people.CreatePerson(r.Context(), person))
	r.ok(people.CreateOrganization(r.Context(), org, member))
	return org.ID
}

func (r *bench) channel(org tenancy.OrgID) publishing.ChannelID {
	r.Helper()
	c := fixture.Channel(org)
	_, _, err := r.store.Connect(r.Context(), c, []byte("sealed"))
	r.ok(err)
	return c.ID
}

// post books a post that has been due for a while.
func (r *bench) post(org tenancy.OrgID, c publishing.ChannelID, late time.Duration) publishing.PostID {
	r.Helper()
	posts := fixture.Post(org, c, time.Now())
	r.ok(r.store.InOrg(r.Context(), org, func(tx *publishingstore.Tx) error {
		return tx.Insert(r.Context(), []publishingstore.NewPost{{Post: posts[0], By: "test"}})
	}))
	r.clock(`update post set due = now() - $2 * interval '1 millisecond' where id = $1`, posts[0].ID, late.Milliseconds())
	return posts[0].ID
}

func (r *bench) claim(wants ...publishingservice.Want) publishingservice.Round {
	r.Helper()
	round, lost, err := r.publisher.Claim(r.Context(), r.lease, wants, publishingstore.AllFree())
	if r.ok(err); len(lost) != 0 {
		r.Fatalf("claims %v are lost", lost)
	}
	return round
}

func claimed(round publishingservice.Round) (out []publishing.PostID) {
	for _, c := range round.Claimed {
		out = append(out, c.Post)
	}
	return out
}

// refuse makes Postgres refuse every change of one post that an upkeep or a claim makes; events of it can still be
// written.
func (r *bench) refuse(post publishing.PostID, code string) {
	r.Helper()
	_, err := r.owner.Exec(r.Context(), `create function refuse() returns trigger language plpgsql as $f$ begin
		if new.id = '`+post.String()+`' then raise exception 'this row is bad' using errcode = '`+code+`'; end if; return new; end $f$;
		create trigger refuse before update on post for each row execute function refuse()`)
	r.ok(err)
}

func (r *bench) state(post publishing.PostID) (state publishing.State) {
	r.Helper()
	r.ok(r.db.InRole(r.Context(), pg.Clock, func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), `select state from post where id = $1`, post).Scan(&state)
	}))
	return state
}

func (r *bench) setAside(org tenancy.OrgID, post publishing.PostID) (reasons int) {
	r.Helper()
	r.ok(r.db.InOrg(r.Context(), org.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), `select count(*) from post_event where post_id = $1 and event = 'set_aside' and length(reason) > 20`, post).Scan(&reasons)
	}))
	return reasons
}

func TestClaim_RepairsHoldThatDisagreesWithPosts(t *testing.T) {
	t.Parallel()
	r := newBench(t)
	broken, healthy := r.organization(), r.organization()
	c, beside := r.channel(broken), r.channel(broken)
	r.post(broken, c, 2*time.Second)
	behind := r.post(broken, c, time.Second)
	want := []publishingservice.Want{{Org: broken, Permits: 8}, {Org: healthy, Permits: 8}}
	r.claim(want...)
	r.clock(`update channel_queue set busy_post = null where channel_id = $1`, c) // as somebody may "unstick" a channel
	posts := []publishing.PostID{r.post(broken, beside, time.Second), r.post(healthy, r.channel(healthy), time.Second)}
	got := claimed(r.claim(want...))
	for _, p := range posts {
		if !slices.Contains(got, p) {
			t.Errorf("%s is not claimed beside a channel whose hold is wrong", p)
		}
	}
	if len(got) != 2 || r.state(behind) != publishing.StateQueue {
		t.Fatalf("%d posts are claimed", len(got))
	}
	if r.publisher.SetAsides() != 0 {
		t.Fatal("a channel that could be repaired is set aside")
	}
}

func TestClaim_SetsAsideChannelThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"P0001", "23514", "XX001"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			r := newBench(t)
			broken, healthy := r.organization(), r.organization()
			bad := r.post(broken, r.channel(broken), time.Second)
			var posts []publishing.PostID
			for range 5 {
				posts = append(posts, r.post(broken, r.channel(broken), time.Second), r.post(healthy, r.channel(healthy), time.Second))
			}
			r.refuse(bad, code)
			got := claimed(r.claim(publishingservice.Want{Org: broken, Permits: 8}, publishingservice.Want{Org: healthy, Permits: 8}))
			for _, p := range posts {
				if !slices.Contains(got, p) {
					t.Errorf("%s is not claimed beside one that the database refuses", p)
				}
			}
			if r.setAside(broken, bad) != 1 || r.publisher.SetAsides() != 1 {
				t.Fatal("nobody can read why the post does not go out")
			}
			if more := claimed(r.claim(publishingservice.Want{Org: broken, Permits: 8})); len(more) != 0 {
				t.Fatalf("claimed again: %v", more)
			}
			if r.setAside(broken, bad) != 1 {
				t.Fatal("a channel that is set aside is tried at each claim")
			}
		})
	}
}

func TestMaintain_LeavesRefusedRowOut(t *testing.T) {
	t.Parallel()
	r := newBench(t)
	org := r.organization()
	bad := r.post(org, r.channel(org), 25*time.Hour)
	var late []publishing.PostID
	for range 20 {
		late = append(late, r.post(org, r.channel(org), 25*time.Hour))
	}
	r.refuse(bad, "P0002")
	for range 2 {
		if _, err := r.publisher.Maintain(t.Context(), r.lease); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range late {
		if got := r.state(p); got != publishing.StateError {
			t.Fatalf("%s is %s beside a post that the database refuses", p, got)
		}
	}
	if n := r.setAside(org, bad); n != 1 || r.state(bad) != publishing.StateQueue {
		t.Fatalf("the refused post has %d reasons in its timeline", n)
	}
}

func TestMaintain_LooksAgainForLockedPost(t *testing.T) {
	t.Parallel()
	r := newBench(t)
	org := r.organization()
	late := r.post(org, r.channel(org), 25*time.Hour)
	r.ok(r.db.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select from post where id = $1 for update`, late); err != nil {
			return err
		}
		m, err := r.publisher.Maintain(t.Context(), r.lease)
		if err == nil && m.Expired != 0 {
			t.Error("a post that another transaction has locked is given up")
		}
		return err
	}))
	for _, want := range []int{1, 0} {
		if m, err := r.publisher.Maintain(t.Context(), r.lease); err != nil || m.Expired != want {
			t.Fatalf("%d posts are given up, want %d: %v", m.Expired, want, err)
		}
	}
}

func TestMaintain_GivesUpStuckPost(t *testing.T) {
	t.Parallel()
	r := newBench(t)
	org := r.organization()
	stuck := r.post(org, r.channel(org), time.Second)
	r.claim(publishingservice.Want{Org: org, Permits: 1})
	r.clock(`update post set updated_at = now() - interval '2 hours' where id = $1`, stuck)
	if m, err := r.publisher.Maintain(t.Context(), r.lease); err != nil || m.Expired != 1 || r.state(stuck) != publishing.StateError {
		t.Fatalf("a post that has been prepared for two hours is %s: %+v, %v", r.state(stuck), m, err)
	}
}

func TestMaintain_ExpiresUntilNothingIsLate(t *testing.T) {
	t.Parallel()
	r := newBench(t)
	org := r.organization()
	c := r.channel(org)
	const n = 2*publishingstore.MaxUpkeep + 1
	r.ok(r.db.InOrg(t.Context(), org.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date)
			select $1, gen_random_uuid(), gen_random_uuid(), $2, $3, 'QUEUE', now() - interval '2 days', now() from generate_series(1, $4::int)`, org, c, tenancy.Shard(org), n)
		return err
	}))
	if m, err := r.publisher.Maintain(t.Context(), r.lease); err != nil || m.Expired != n || m.More {
		t.Fatalf("%d of %d late posts are given up, more %v: %v", m.Expired, n, m.More, err)
	}
	if round := r.claim(publishingservice.Want{Org: org, Permits: 8}); len(round.Claimed) != 0 {
		t.Fatal("a late post is claimed")
	}
}

func TestSend_PanicEndsItsPostOnly(t *testing.T) {
	t.Parallel()
	r := newBench(t) // without a keyring, so that opening the channel's access panics
	c := publishing.Channel{Connector: "none"}
	for phase, want := range map[string]publishingservice.Result{"preparing": publishingstore.ResultError, "committing": publishingstore.ResultUnknown} {
		parts := []publishingstore.Publication{{Phase: phase}}
		w := publishingservice.Work{Channel: c, Parts: parts}
		if out := publishingservice.Panicking(r.publisher, w); out.Result != want {
			t.Errorf("a panic while %s ends as %q, want %q", phase, out.Result, want)
		}
	}
}

// A post that is sent again without a proof may be out since its first call: whoever reads the platform's list back
// must begin there, not at the last call, and ask every server that it was sent to.
func TestReconcile_LooksBackToTheFirstCall(t *testing.T) {
	t.Parallel()
	r := newBench(t)
	org := r.organization()
	post := r.post(org, r.channel(org), time.Second)
	var first time.Time
	for try := range 2 {
		claims := r.claim(publishingservice.Want{Org: org, Permits: 1}).Claimed
		works, err := r.store.Load(t.Context(), []publishing.PostID{post})
		if r.ok(err); len(claims) != 1 || len(works) != 1 {
			t.Fatalf("try %d: %d claimed", try, len(claims))
		}
		mark := publishingstore.Mark{
			Post: post, Token: claims[0].Token, Publication: works[0].Parts[0].ID, Destination: []string{"a.example", "b.example"}[try],
		}
		_, _, err = r.store.MarkCommitting(t.Context(), []publishingstore.Mark{mark}, time.Minute, time.Second, "test")
		r.ok(err)
		works, err = r.store.Load(t.Context(), []publishing.PostID{post})
		if r.ok(err); try == 0 {
			first = works[0].Committing
		}
		asked := publishingservice.Asked(r.publisher, works[0])
		if first.IsZero() || !asked.Committing.Equal(first) || (try > 0) != works[0].Committing.After(first) {
			t.Errorf("call %d was at %s, the platform is asked for what came after %s, want %s", try+1, works[0].Committing, asked.Committing, first)
		}
		if got, want := works[0].Parts[0].SentTo, []string{"a.example", "*"}[try]; got != want {
			t.Errorf("after call %d it was sent to %q, want %q", try+1, got, want)
		}
		for _, result := range []publishingservice.Result{publishingstore.ResultUnknown, publishingstore.ResultRetry} {
			_, err := r.publisher.Finish(t.Context(), []publishingservice.Outcome{{
				Org: org, Post: post, Token: mark.Token, Publication: mark.Publication, Result: result,
			}})
			r.ok(err)
		}
	}
}
