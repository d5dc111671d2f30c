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

// The platforms: the real server, and the sandbox's grades.
const (
	bluesky = "PDS"
	gradeA  = "A"
	gradeC  = "C"
	gradeE  = "E"
)

// crash is one case: a post, the point at which its service is killed, and what comes then.
type crash struct {
	platform string
	content  string // text, image or thread
	part     int    // the part, from 1, that is being published
	at       point
	settle   time.Duration // SETTLE_TIME; 0 leaves the default
	twice    bool          // the restarted service is killed too, while the platform has not seen the repeated call
	moved    bool          // the restart has another home folder, so that the dead process's lease must run out
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

// within is how long after the restart the post must have come to its end.
func (c crash) within() time.Duration {
	if c.platform == gradeC {
		return deadline + 120*time.Second
	}
	return time.Minute
}

// quick is a settle time for tests that do not ask for the default.
const quick = 3 * time.Second

// crashes is every case, or a selection: each kill point, each kind of content and each platform is in it.
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
					if at == booked && part > 1 || at == prepared && content != "image" || !all && !c.chosen() {
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

// chosen tells whether a case belongs to the selection.
func (c crash) chosen() bool {
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

// run is the whole story of a case.
func (c crash) run(t *testing.T, a account) {
	var delay func(nth int) *faultnet.Held
	if c.at == late {
		delay = a.via(t)
	}
	settings := a.service()
	if c.settle > 0 {
		settings["SETTLE_TIME"] = c.settle.String()
	}
	s := start(t, settings)
	connector, form := a.form()
	channel := s.connect(t, connector, form)
	sent := parts(c.content)
	var id string
	var onItsWay *faultnet.Held
	if c.at == late {
		onItsWay = delay(c.part)
		id = c.sent(t, s, onItsWay, channel, sent)
	} else {
		id = c.killed(t, s, a, channel, sent)
	}
	s.was(t, id, c)
	c.comesBack(t, s, a, id)
	if onItsWay != nil && c.platform == gradeC { // there, an absent post may be sent again once no call can be on its way any more
		s.looked(t, id)
		deliver(t, onItsWay)
	}
	got := s.settled(t, id, s.started.Add(c.within()))
	if onItsWay != nil && c.platform != gradeC {
		deliver(t, onItsWay)
	}
	if c.platform == gradeE && c.at != booked && c.at != prepared && got.State == "ERROR" {
		c.unknown(t, got, a.posts(t), sent)
	} else {
		c.published(t, got, a.posts(t), sent)
	}
	c.goesOn(t, s, a, channel)
	if strings.Contains(s.log.String(), `"level":"ERROR"`) && c.at != unstored { // there, it cannot store for a while
		t.Error("the service logged an error")
	}
}

// comesBack starts the service again, where and as often as the case says.
func (c crash) comesBack(t *testing.T, s *service, a account, id string) {
	t.Helper()
	if c.twice {
		call := a.hold(t, publishes, 1, false)
		s.restart(t)
		call.reached(t)
		s.kill()
		call.lost(t)
		s.was(t, id, c)
	}
	if c.moved {
		s.settings["CRIER_HOME"] = t.TempDir()
	}
	s.restart(t)
}

// sent books the post and kills the service when its call is with the network.
func (c crash) sent(t *testing.T, s *service, onItsWay *faultnet.Held, channel string, sent []part) (id string) {
	t.Helper()
	id = s.create(t, "now", time.Now(), channel, sent)
	closed(t, "the call", onItsWay.Reached)
	s.kill()
	return id
}

// looked waits until the service has asked the platform in vain.
func (s *service) looked(t *testing.T, id string) {
	t.Helper()
	var p post
	await(t, "a look at the unknown outcome", s.started.Add(patience), func() bool {
		p = s.read(t, id)
		return slices.ContainsFunc(p.Timeline, func(h happening) bool { return h.Event == "looked" })
	}, func() string { return p.String() })
}

// deliver lets the platform see the call, and waits until it has answered.
func deliver(t *testing.T, call *faultnet.Held) {
	t.Helper()
	call.Release()
	closed(t, "the platform's answer", call.Done)
}

// killed books the post, kills the service at the point and returns the post's id.
func (c crash) killed(t *testing.T, s *service, a account, channel string, sent []part) string {
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

// killStoring lets the answer through while the post's row is locked, and kills the service when it waits for that lock to store the outcome.
func (s *service) killStoring(t *testing.T, id string, last bool, call grip) {
	t.Helper()
	statement := "-- publishing.PartDone%"
	if last {
		statement = "-- publishing.Finish%"
	}
	locker, watcher := s.dial(t, true), s.dial(t, false)
	tx, err := locker.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "select id from post where id = $1 for update", id)
	}
	if err != nil {
		t.Fatal(err)
	}
	call.release(t)
	await(t, "the statement that stores the outcome", time.Now().Add(patience), func() bool {
		var waiting bool
		err := watcher.QueryRow(t.Context(), "select exists (select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like $1)", statement).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		return waiting
	}, func() string { return "no such statement that waits" })
	s.kill()
	// The server would carry out what its dead client had sent; a machine that dies takes its connections along.
	if _, err := watcher.Exec(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like $1", statement); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// dial connects to the service's database; clock sees the posts of all organizations.
func (s *service) dial(t *testing.T, clock bool) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) }) // the database goes with it
	if clock {
		if _, err := c.Exec(t.Context(), "set role crier_clock"); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// was checks that the kill hit its point: what a dead service left behind is what the next start finds.
func (s *service) was(t *testing.T, id string, c crash) {
	t.Helper()
	conn := s.dial(t, true)
	var state, phase string
	var done int
	err := conn.QueryRow(t.Context(), "select state, coalesce(phase, ''), (select count(*) from publication where post_id = post.id and phase = 'done') from post where id = $1", id).Scan(&state, &phase, &done)
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
		t.Fatalf("the killed service left %q behind, the case needs %q", got, want)
	}
}

// published checks that everything is out, once and whole.
func (c crash) published(t *testing.T, got post, there []live, sent []part) {
	t.Helper()
	if got.State != "PUBLISHED" || got.Posts[0].State != "PUBLISHED" || got.ReleaseID == nil {
		t.Fatalf("the post is not published: %v; on the platform is %v", got, there)
	}
	whole(t, there, sent)
	if *got.ReleaseID != there[0].id {
		t.Errorf("the release id is %s, the post's is %s", *got.ReleaseID, there[0].id)
	}
}

// unknown checks what may be said of a platform that cannot be asked: nothing went out twice, and nothing after the doubtful part.
func (c crash) unknown(t *testing.T, got post, there []live, sent []part) {
	t.Helper()
	if code := got.Posts[0].ErrorCode; code == nil || *code != "outcome_unknown" || !got.Posts[0].OutcomeUnknown {
		t.Fatalf("the error is another: %v", got)
	}
	out := c.part
	if c.at == unseen {
		out--
	}
	whole(t, there, sent[:out])
}

// whole compares what is live with what was sent: each part once, byte for byte, each a reply to the one before.
func whole(t *testing.T, there []live, sent []part) {
	t.Helper()
	if len(there) != len(sent) {
		t.Fatalf("%d posts are wanted on the platform, there are %d: %v", len(sent), len(there), there)
	}
	for i, p := range there {
		root, parent := "", ""
		if i > 0 {
			root, parent = there[0].id, there[i-1].id
		}
		if p.text != sent[i].text {
			t.Errorf("part %d is %q, sent was %q", i+1, p.text, sent[i].text)
		}
		if p.root != root || p.parent != parent {
			t.Errorf("part %d answers %q in the thread of %q, wanted are %q and %q", i+1, p.parent, p.root, parent, root)
		}
		var images []picture
		if sent[i].image != nil {
			images = []picture{{sum(sent[i].image), sent[i].alt}}
		}
		if fmt.Sprint(p.images) != fmt.Sprint(images) {
			t.Errorf("part %d has the images %v, sent were %v", i+1, p.images, images)
		}
	}
}

// goesOn checks that the channel is free, and by the channel's order that nothing more came of the posts before.
func (c crash) goesOn(t *testing.T, s *service, a account, channel string) {
	t.Helper()
	before := a.posts(t)
	next := []part{{text: "The next post."}}
	got := s.settled(t, s.create(t, "now", time.Now(), channel, next), time.Now().Add(patience))
	there := a.posts(t)
	if got.State != "PUBLISHED" || len(there) != len(before)+1 {
		t.Fatalf("the next post is %v; on the platform were %v, now there are %v", got, before, there)
	}
	whole(t, there[len(before):], next)
}
