package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/tests/faultnet"
)

// point is the moment at which the service is killed.
type point string

const (
	booked   point = "before it is due"
	prepared point = "before its image is uploaded"
	unseen   point = "before the platform sees the call"
	answered point = "before the answer arrives"
	unstored point = "before the outcome is stored"
	late     point = "with its call still on the way"
)

// The platforms: the Bluesky PDS and the grades of the sandbox.
const (
	bluesky = "PDS"
	gradeA  = "A"
	gradeC  = "C"
	gradeE  = "E"
)

// crash is a test case: a post, the point at which the service is killed, and the way it is
// restarted.
type crash struct {
	platform string
	content  string // text, image or thread
	// part is the number of the part that is being published, counted from 1.
	part int
	at   point
	// settle is SETTLE_DELAY; 0 leaves the default.
	settle time.Duration
	// twice also kills the restarted service, before the platform has received the repeated call.
	twice bool
	// moved restarts the service with another home folder, so that the lease of the dead process
	// has to expire first.
	moved bool
}

func (c crash) String() string {
	what := c.content
	if c.content == "thread" && c.at != booked {
		what = fmt.Sprintf("part %d of a thread", c.part)
	}
	killed, then := "killed", ""
	if c.twice {
		killed = "killed twice"
	}
	if c.moved {
		then = " when started on another machine"
	}
	return fmt.Sprintf("%s %s %s is out once%s", what, killed, c.at, then)
}

// within returns how soon after the restart the post must have ended.
func (c crash) within() time.Duration {
	if c.platform == gradeC {
		return deadline + 120*time.Second
	}
	return time.Minute
}

// quick is the settle delay of cases that do not need the default.
const quick = 3 * time.Second

// crashes returns all cases, or a selection that has each kill point, each kind of content and each
// platform.
func crashes(all bool) (out []crash) {
	for _, platform := range []string{bluesky, gradeA, gradeC, gradeE} {
		for _, content := range []string{"text", "image", "thread"} {
			parts := 1
			if content == "thread" {
				parts = 3
			}
			for part := 1; part <= parts; part++ {
				for _, at := range []point{booked, prepared, unseen, answered, unstored, late} {
					c := crash{platform: platform, content: content, part: part, at: at}
					if at == booked && part > 1 || at == prepared && content != "image" || !all && !c.selected() {
						continue
					}
					if !all && (content != "text" || at != unseen) {
						c.settle = quick
					}
					out = append(out, c)
				}
			}
		}
	}
	return append(out,
		crash{platform: bluesky, content: "thread", part: 2, at: unseen, twice: true},
		crash{platform: gradeA, content: "thread", part: 2, at: unseen, twice: true},
		crash{platform: gradeC, content: "thread", part: 2, at: unseen, twice: true, settle: quick},
		crash{platform: gradeA, content: "text", part: 1, at: answered, moved: true},
	)
}

// selected reports whether a case belongs to the selection.
func (c crash) selected() bool {
	switch {
	case c.at == late:
		return c.content == "text" || c.platform == bluesky && c.part == 2
	case c.content == "text":
		return c.platform == bluesky || c.platform == gradeC || c.at != booked
	case c.at == prepared:
		return c.platform == bluesky || c.platform == gradeE
	case c.content == "image":
		return c.platform == bluesky && c.at == unseen || c.platform == gradeC && c.at == unstored
	case c.platform == bluesky:
		return c.part == 2 && c.at == answered || c.part == 1 && c.at == unstored
	default:
		return c.part == 2 && (c.at == unseen || c.at == answered) || c.platform == gradeA && c.part == 3 && c.at == unstored
	}
}

// run runs the case.
func (c crash) run(t *testing.T, a account) {
	var delay func(nth int) *faultnet.Held
	if c.at == late {
		delay = a.delayProxy(t)
	}
	settings := a.service()
	if c.settle > 0 {
		settings["SETTLE_DELAY"] = c.settle.String()
	}
	s := start(t, settings)
	connector, form := a.form()
	channel := s.connect(t, connector, form)
	sent := parts(c.content)
	var id string
	var onItsWay *faultnet.Held
	if c.at == late {
		onItsWay = delay(c.part)
		id = c.killWithCallInFlight(t, s, onItsWay, channel, sent)
	} else {
		id = c.killAtPoint(t, s, a, channel, sent)
	}
	s.checkLeftBehind(t, id, c)
	c.restart(t, s, a, id)
	// There, an absent post is sent again once no call can be in flight.
	if onItsWay != nil && c.platform == gradeC {
		s.awaitReconcile(t, id)
		deliver(t, onItsWay)
	}
	got := s.awaitEnd(t, id, s.started.Add(c.within()))
	if onItsWay != nil && c.platform != gradeC {
		deliver(t, onItsWay)
	}
	if c.platform == gradeE && c.at != booked && c.at != prepared && got.State == "ERROR" {
		c.checkUnknown(t, got, a.posts(t), sent)
	} else {
		c.checkPublished(t, got, a.posts(t), sent)
	}
	c.checkNextPost(t, s, a, channel)
	// At that point, storing fails for a while.
	if strings.Contains(s.log.String(), `"level":"ERROR"`) && c.at != unstored {
		t.Error("the service logged an error")
	}
}

// restart restarts the service as the case requires.
func (c crash) restart(t *testing.T, s *service, a account, id string) {
	t.Helper()
	if c.twice {
		call := a.hold(t, publishes, 1, false)
		s.restart(t)
		call.reached(t)
		s.kill()
		call.lost(t)
		s.checkLeftBehind(t, id, c)
	}
	if c.moved {
		s.settings["CRIER_HOME"] = t.TempDir()
	}
	s.restart(t)
}

// killWithCallInFlight creates the post and kills the service once its call has been sent but not
// delivered.
func (c crash) killWithCallInFlight(t *testing.T, s *service, onItsWay *faultnet.Held, channel string, sent []part) (id string) {
	t.Helper()
	id = s.create(t, "now", time.Now(), channel, sent)
	closed(t, "the call", onItsWay.Reached)
	s.kill()
	return id
}

// awaitReconcile waits until the service has looked for the post on the platform and not found it.
func (s *service) awaitReconcile(t *testing.T, id string) {
	t.Helper()
	var p post
	await(t, "a reconcile of the unknown outcome", s.started.Add(patience), func() bool {
		p = s.read(t, id)
		return slices.ContainsFunc(p.Timeline, func(h timelineEvent) bool { return h.Event == "looked" })
	}, func() string { return p.String() })
}

// deliver forwards the call to the platform and waits until the platform has responded.
func deliver(t *testing.T, call *faultnet.Held) {
	t.Helper()
	call.Release()
	closed(t, "the platform's answer", call.Done)
}

// killAtPoint creates the post, kills the service at the point and returns the post's id.
func (c crash) killAtPoint(t *testing.T, s *service, a account, channel string, sent []part) string {
	t.Helper()
	if c.at == booked {
		due := time.Now().Add(8 * time.Second).Truncate(time.Second)
		id := s.create(t, "schedule", due, channel, sent)
		s.kill()
		if time.Now().After(due) {
			t.Fatal("this machine is too slow: the post was due before the kill")
		}
		return id
	}
	kind := publishes
	if c.at == prepared {
		kind = uploads
	}
	call := a.hold(t, kind, c.part, c.at == answered || c.at == unstored)
	id := s.create(t, "now", time.Now(), channel, sent)
	call.reached(t)
	if c.at == unstored {
		s.killStoring(t, id, c.part == len(sent), call)
		return id
	}
	s.kill()
	call.lost(t)
	return id
}

// killStoring releases the response while the post's row is locked, and kills the service once it
// waits for that lock to store the outcome.
func (s *service) killStoring(t *testing.T, id string, last bool, call heldCall) {
	t.Helper()
	statement := "-- publishing.PartDone%"
	if last {
		statement = "-- publishing.Finish%"
	}
	locker, watcher := s.dial(t, true), s.dial(t, false)
	tx, err := locker.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select id from post where id = $1 for update", id); err != nil {
		t.Fatal(err)
	}
	call.release(t)
	await(t, "the statement that stores the outcome", time.Now().Add(patience), func() bool {
		var waiting bool
		err := watcher.QueryRow(t.Context(), `select exists (select 1 from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like $1)`, statement).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		return waiting
	}, func() string { return "no such waiting statement" })
	s.kill()
	// Postgres would still execute what its dead client has sent. A machine that dies takes its
	// connections with it.
	if _, err := watcher.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock' and query like $1`, statement); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// dial connects to the service's database. With clock it has the scheduler's role, which sees the
// posts of all organizations.
func (s *service) dial(t *testing.T, clock bool) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) }) // the database is dropped anyway
	if clock {
		if _, err := c.Exec(t.Context(), "set role crier_clock"); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// checkLeftBehind checks in the database that the service was killed at the intended point.
func (s *service) checkLeftBehind(t *testing.T, id string, c crash) {
	t.Helper()
	conn := s.dial(t, true)
	var state, phase string
	var done int
	err := conn.QueryRow(t.Context(), `select state, coalesce(phase, ''), (select count(*) from publication where post_id = post.id and phase = 'done')
		from post where id = $1`, id).Scan(&state, &phase, &done)
	if err != nil {
		t.Fatal(err)
	}
	want, got := fmt.Sprint("PUBLISHING committing ", c.part-1), fmt.Sprint(state, " ", phase, " ", done)
	switch c.at {
	case booked:
		want = "QUEUE  0"
	case prepared:
		want = "PUBLISHING preparing 0"
	}
	if got != want {
		t.Fatalf("got %q after the kill, want %q", got, want)
	}
}

// checkPublished checks that every part was published once and unchanged.
func (c crash) checkPublished(t *testing.T, got post, there []live, sent []part) {
	t.Helper()
	if got.State != "PUBLISHED" || got.Posts[0].State != "PUBLISHED" || got.ReleaseID == nil {
		t.Fatalf("got %v, want it published; on the platform: %v", got, there)
	}
	checkParts(t, there, sent)
	if *got.ReleaseID != there[0].id {
		t.Errorf("got release id %s, want %s", *got.ReleaseID, there[0].id)
	}
}

// checkUnknown checks the result on a platform that cannot be searched: the outcome is unknown,
// nothing is published twice, and no part follows the unknown one.
func (c crash) checkUnknown(t *testing.T, got post, there []live, sent []part) {
	t.Helper()
	if code := got.Posts[0].ErrorCode; code == nil || *code != "outcome_unknown" || !got.Posts[0].OutcomeUnknown {
		t.Fatalf("got %v, want an unknown outcome", got)
	}
	out := c.part
	if c.at == unseen {
		out--
	}
	checkParts(t, there, sent[:out])
}

// checkParts compares the published posts with the sent parts. Each part must be there once, byte
// for byte, as a reply to the one before.
func checkParts(t *testing.T, there []live, sent []part) {
	t.Helper()
	if len(there) != len(sent) {
		t.Fatalf("got %d posts on the platform, want %d: %v", len(there), len(sent), there)
	}
	for i, p := range there {
		root, parent := "", ""
		if i > 0 {
			root, parent = there[0].id, there[i-1].id
		}
		if p.text != sent[i].text {
			t.Errorf("part %d: got %q, want %q", i+1, p.text, sent[i].text)
		}
		if p.root != root || p.parent != parent {
			t.Errorf("part %d: got a reply to %q in the thread of %q, want %q and %q", i+1, p.parent, p.root, parent, root)
		}
		var images []picture
		if sent[i].image != nil {
			images = []picture{{sum: sum(sent[i].image), alt: sent[i].alt}}
		}
		if fmt.Sprint(p.images) != fmt.Sprint(images) {
			t.Errorf("part %d: got images %v, want %v", i+1, p.images, images)
		}
	}
}

// checkNextPost publishes another post on the channel. Because a channel keeps its order, this also
// shows that nothing more of the earlier posts is published.
func (c crash) checkNextPost(t *testing.T, s *service, a account, channel string) {
	t.Helper()
	before := a.posts(t)
	next := []part{{text: "The next post."}}
	got := s.awaitEnd(t, s.create(t, "now", time.Now(), channel, next), time.Now().Add(patience))
	there := a.posts(t)
	if got.State != "PUBLISHED" || len(there) != len(before)+1 {
		t.Fatalf("next post: got %v, want it published; on the platform before: %v, now: %v", got, before, there)
	}
	checkParts(t, there[len(before):], next)
}
