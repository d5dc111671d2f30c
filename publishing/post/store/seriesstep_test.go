package store_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	"crier/tests/dbtest"
)

// numbers returns the numbers of the stored occurrences.
func (r *rig) numbers(first publishing.PostID) (out []int) {
	r.Helper()
	r.OK(r.DB.InOrg(r.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		rows, err := tx.Query(r.Context(), `select occurrence from post where series_id = $1 and deleted_at is null order by occurrence`, first)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	}))
	return out
}

// A process that is killed between the end of an occurrence and the step loses nothing, and
// concurrent steps in several processes write one occurrence.
func TestWriteOccurrences_WritesOnceAfterAKill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, result := range []dispatch.Result{dispatch.ResultPublished, dispatch.ResultError} {
		first := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "Europe/Berlin", 0, time.Hour)
		r.ClaimAndFinish(first, result, "rejected")
		if got := r.numbers(first); !slices.Equal(got, []int{0}) {
			t.Fatalf("occurrences %v are stored before the step", got)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, _, err := r.Sender().WriteOccurrences(t.Context(), r.Lease); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := r.WriteOccurrences(); n != 0 {
			t.Errorf("a repeated step wrote %d", n)
		}
		if got := r.numbers(first); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("occurrences %v are stored, want 0 and 1", got)
		}
		events, err := poststore.Events(t.Context(), r.Store, r.Org, r.Root(publishing.Occurrence(first, 1)).Group)
		r.OK(err)
		if len(events) != 1 || events[0].Kind != publishing.EventWritten {
			t.Errorf("the timeline of the next occurrence is %+v", events)
		}
	}
}

// Transactions that advance the same series concurrently write one occurrence.
func TestAdvance_ConcurrentCallsWriteOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "UTC")
	r.ClaimAndFinish(first, dispatch.ResultPublished, "")
	var all sync.WaitGroup
	var written atomic.Int64
	for range 8 {
		all.Go(func() {
			var wrote bool
			err := db.New(r.DB).InOrg(t.Context(), r.Org, func(tx *db.Tx) (err error) {
				wrote, err = poststore.Advance(t.Context(), tx, id.FromUUID[publishing.SeriesTag](first.UUID()), true, poststore.PostQuota{})
				return err
			})
			if err != nil {
				t.Error(err)
			}
			if wrote {
				written.Add(1)
			}
		})
	}
	all.Wait()
	if got := r.numbers(first); written.Load() != 1 || !slices.Equal(got, []int{0, 1}) {
		t.Errorf("%d transactions wrote, occurrences %v are stored", written.Load(), got)
	}
}

// Even without the lock on the series, the unique key allows only one row for a number.
func TestOccurrence_KeyRefusesASecondRow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "UTC")
	other := r.Post(r.Channel(), time.Hour)
	err := r.DB.InOrg(t.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update post set series_id = $2, occurrence = 0, interval_days = 1 where id = $1`, other, first)
		return err
	})
	if !pg.IsUnique(err, "post_series") {
		t.Errorf("a second row of number 0 is answered with %v", err)
	}
}

func TestWriteOccurrences_LeavesOutMissedOnes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "Europe/Berlin")
	r.Exec(`update series set anchor = anchor - interval '40000 days' where id = $1`, first)
	r.End(first, dispatch.ResultPublished, "")
	if got := r.numbers(first); !slices.Equal(got, []int{0, 40001}) {
		t.Fatalf("occurrences %v are stored", got)
	}
	if at := r.Root(publishing.Occurrence(first, 40001)).PublishDate; at.Before(time.Now()) || at.After(time.Now().Add(26*time.Hour)) {
		t.Errorf("the next is at %v", at)
	}
}

// A series that cannot be advanced is set aside. Other series and other maintenance continue.
func TestWriteOccurrences_SetsAsideASeriesThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.another()
	r.Lease = other.Lease
	unknown := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "UTC")
	broken := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "UTC")
	plain := r.Post(r.Channel(), -25*time.Hour)
	good := other.Repeated(other.Channel(), publishing.Repeat{Days: 1}, "UTC")
	r.Exec(`update series set timezone = 'Mars/Olympus' where id = $1`, unknown)
	r.Exec(`delete from part where post_id in (select p.id from post p join series s on s.template = p.group_id where s.id = $1)`, broken)
	for _, post := range []publishing.PostID{unknown, broken, good} {
		r.Clock(`update post set due = now() - interval '25 hours' where id = $1`, post)
	}
	if n := r.Expire(r.Lease); n != 4 {
		t.Fatalf("%d posts are expired, want 4", n)
	}
	r.WantState(plain, publishing.StateError)
	p := r.Sender()
	for call, want := range []int{1, 0} {
		if written, more, err := p.WriteOccurrences(t.Context(), r.Lease); written != want || more || err != nil {
			t.Fatalf("call %d wrote %d, more is %v: %v", call, written, more, err)
		}
	}
	if p.SeriesSetAside() != 2 || p.OccurrencesWritten() != 1 || !other.Exists(publishing.Occurrence(good, 1)) {
		t.Errorf("%d are set aside, %d written", p.SeriesSetAside(), p.OccurrencesWritten())
	}
	for post, want := range map[publishing.PostID]string{
		unknown: `The next occurrence could not be written: this server does not know the time zone "Mars/Olympus".`,
		broken:  "The next occurrence could not be written; Crier will try again.",
	} {
		events, err := poststore.Events(t.Context(), r.Store, r.Org, r.Root(post).Group)
		r.OK(err)
		if last := events[len(events)-1]; last.Kind != publishing.EventDelayed || last.Reason == nil || *last.Reason != want {
			t.Errorf("the timeline ends with %+v, want %s", last, want)
		}
	}
	// Lists still work, without the occurrences that the two series would add.
	if rows := r.within(time.Now().Add(-time.Hour), time.Now().Add(80*time.Hour)); len(rows) < 3 {
		t.Errorf("%d posts are listed", len(rows))
	}
	// The series continues once the cause is removed and its time has come.
	r.Exec(`update series set timezone = 'UTC', retry_at = now() where id = $1`, unknown)
	if n := r.WriteOccurrences(); n != 1 || !r.Exists(publishing.Occurrence(unknown, 1)) {
		t.Errorf("%d are written after the zone is known again", n)
	}
	var retries int
	r.OK(r.DB.InOrg(t.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select retries from series where id = $1 and retry_at is null`, unknown).Scan(&retries)
	}))
	if retries != 0 {
		t.Errorf("%d retries are still counted", retries)
	}
}

// An organization whose connections are all in use is skipped with all its series, and none of them
// is set aside.
func TestWriteOccurrences_SkipsABusyOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.another()
	r.Lease = other.Lease
	var waiting []publishing.PostID
	channel := r.Channel()
	for range 3 {
		post := r.Repeated(channel, publishing.Repeat{Days: 1}, "UTC")
		r.Clock(`update post set state = 'ERROR', error = 'x' where id = $1`, post)
		waiting = append(waiting, post)
	}
	good := other.Repeated(other.Channel(), publishing.Repeat{Days: 1}, "UTC")
	other.ClaimAndFinish(good, dispatch.ResultPublished, "")
	release := dbtest.Occupy(t, r.DB, r.Org.UUID())
	p := r.Sender()
	written, _, err := p.WriteOccurrences(t.Context(), r.Lease)
	if written != 1 || err != nil || !other.Exists(publishing.Occurrence(good, 1)) {
		t.Errorf("%d are written beside a busy organization, want 1: %v", written, err)
	}
	if n := p.SeriesSetAside(); n != 0 {
		t.Errorf("%d series of the busy organization are set aside", n)
	}
	release()
	if n := r.WriteOccurrences(); n != len(waiting) {
		t.Errorf("%d are written afterwards, want %d", n, len(waiting))
	}
	for _, post := range waiting {
		if !r.Exists(publishing.Occurrence(post, 1)) {
			t.Errorf("%s has no next occurrence", post)
		}
	}
}

func TestEndedSeries_OrganizationsTakeTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.another()
	r.Lease = other.Lease
	channel := r.Channel()
	for range 5 {
		r.Clock(`update post set state = 'ERROR', error = 'x' where id = $1`, r.Repeated(channel, publishing.Repeat{Days: 1}, "UTC"))
	}
	single := other.Repeated(other.Channel(), publishing.Repeat{Days: 1}, "UTC")
	other.ClaimAndFinish(single, dispatch.ResultPublished, "")
	refs, err := poststore.EndedSeries(t.Context(), r.Store, r.Lease, 2)
	r.OK(err)
	if len(refs) != 2 || refs[0].Org != r.Org || refs[1].Org != other.Org {
		t.Errorf("of five series and a later one of another organization, the first two are %+v; want one of each", refs)
	}
}

// A call writes a limited number of occurrences and reports that there are more.
func TestWriteOccurrences_ReportsThatThereAreMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	channel := r.Channel()
	for range 101 {
		post := r.Repeated(channel, publishing.Repeat{Days: 1}, "UTC")
		r.Clock(`update post set state = 'ERROR', error = 'x' where id = $1`, post)
	}
	p := r.Sender()
	total := 0
	for more := true; more; {
		var written int
		var err error
		written, more, err = p.WriteOccurrences(t.Context(), r.Lease)
		r.OK(err)
		if written == 0 || written > 100 {
			t.Fatalf("one call wrote %d", written)
		}
		total += written
	}
	if total != 101 {
		t.Errorf("%d are written, want 101", total)
	}
}

// If an occurrence was missed during a pause, a step after the pause does not count it as failed.
func TestWriteOccurrences_AfterAPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	first := r.Repeated(c, publishing.Repeat{Days: 1}, "UTC")
	r.End(first, dispatch.ResultError, "rejected")
	r.SetPause(publishing.PauseChannel, c, true, 0)
	r.Clock(`update post set due = now() - interval '25 hours' where id = $1`, publishing.Occurrence(first, 1))
	r.Expire(r.Lease)
	r.SetPause(publishing.PauseChannel, c, false, 0)
	if n := r.WriteOccurrences(); n != 1 {
		t.Fatalf("%d are written after the pause", n)
	}
	r.Clock(`update post set due = now() + interval '1 second' where id = $1`, publishing.Occurrence(first, 2))
	r.Clock(`update post set state = 'ERROR', error = 'x', error_code = 'missed' where id = $1`, publishing.Occurrence(first, 2))
	if n := r.WriteOccurrences(); n != 0 || r.Exists(publishing.Occurrence(first, 3)) {
		t.Error("what was missed after the pause is no failure")
	}
}

// An occurrence that was given up as unknown but was published after all does not count as failed.
func TestWriteOccurrences_AfterALateSuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "UTC")
	claimed := r.Claim(1)
	r.Mark(claimed...)
	r.Finish(claimed[0], dispatch.ResultError, publishing.CodeOutcomeUnknown)
	if n := r.WriteOccurrences(); n != 1 {
		t.Fatalf("%d are written after the first failure", n)
	}
	r.Finish(claimed[0], dispatch.ResultPublished, "")
	r.WantState(first, publishing.StatePublished)
	r.MakeDue(publishing.Occurrence(first, 1))
	r.End(publishing.Occurrence(first, 1), dispatch.ResultError, "rejected")
	if got := r.numbers(first); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("occurrences %v are stored, want a third one", got)
	}
}

// After its channel is disconnected, a series is found once and then never again.
func TestWriteOccurrences_FindsStoppedSeriesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	first := r.Repeated(c, publishing.Repeat{Days: 1}, "UTC")
	r.End(first, dispatch.ResultPublished, "")
	if !r.Disconnect(c) {
		t.Fatal("the channel is not there")
	}
	refs, err := poststore.EndedSeries(t.Context(), r.Store, r.Lease, 10)
	r.OK(err)
	if n := r.WriteOccurrences(); n != 0 || len(refs) != 1 {
		t.Errorf("%d are written and %d series found, want 0 and 1", n, len(refs))
	}
	refs, err = poststore.EndedSeries(t.Context(), r.Store, r.Lease, 10)
	if err != nil || len(refs) != 0 {
		t.Errorf("after the step %v are still found (%v), want none", refs, err)
	}
}
