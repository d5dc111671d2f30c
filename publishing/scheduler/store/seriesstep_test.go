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
	publishingdb "crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tests/dbtest"
)

// numbers returns the numbers of the stored occurrences.
func (r *rig) numbers(first publishing.PostID) (out []int) {
	r.Helper()
	r.ok(r.db.InOrg(r.Context(), r.org.UUID(), func(tx pgx.Tx) error {
		rows, err := tx.Query(r.Context(), `select occurrence from post where series_id = $1 and deleted_at is null order by occurrence`, first)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	}))
	return out
}

// A process that is killed between the end of an occurrence and the step loses nothing, and several processes that do
// the step at once write one occurrence.
func TestWriteOccurrences_WritesOnceAfterAKill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, result := range []publishing.Result{publishing.ResultPublished, publishing.ResultError} {
		first := r.repeated(r.channel(), publishing.Repeat{Days: 1}, "Europe/Berlin", 0, time.Hour)
		r.endOnly(first, result, "rejected")
		if got := r.numbers(first); !slices.Equal(got, []int{0}) {
			t.Fatalf("occurrences %v are stored before the step", got)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, _, err := r.sender().WriteOccurrences(t.Context(), r.lease); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := r.step(); n != 0 {
			t.Errorf("a repeated step wrote %d", n)
		}
		if got := r.numbers(first); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("occurrences %v are stored, want 0 and 1", got)
		}
		events, err := poststore.Events(t.Context(), r.store, r.org, r.root(publishing.Occurrence(first, 1)).Group)
		r.ok(err)
		if len(events) != 1 || events[0].Kind != publishing.EventWritten {
			t.Errorf("the timeline of the next occurrence is %+v", events)
		}
	}
}

// Transactions that advance the same series at the same time write one occurrence.
func TestAdvance_WritesOnceAtTheSameMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.repeated(r.channel(), publishing.Repeat{Days: 1}, "UTC")
	r.endOnly(first, publishing.ResultPublished, "")
	var all sync.WaitGroup
	var written atomic.Int64
	for range 8 {
		all.Go(func() {
			var wrote bool
			err := publishingdb.New(r.db).InOrg(t.Context(), r.org, func(tx *publishingdb.Tx) (err error) {
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

// Without the lock on the series, the unique key still lets a number have one row only.
func TestOccurrence_KeyRefusesASecondRow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.repeated(r.channel(), publishing.Repeat{Days: 1}, "UTC")
	other := r.post(r.channel(), time.Hour)
	err := r.db.InOrg(t.Context(), r.org.UUID(), func(tx pgx.Tx) error {
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
	first := r.repeated(r.channel(), publishing.Repeat{Days: 1}, "Europe/Berlin")
	r.tenant(`update series set anchor = anchor - interval '40000 days' where id = $1`, first)
	r.end(first, publishing.ResultPublished, "")
	if got := r.numbers(first); !slices.Equal(got, []int{0, 40001}) {
		t.Fatalf("occurrences %v are stored", got)
	}
	if at := r.root(publishing.Occurrence(first, 40001)).PublishDate; at.Before(time.Now()) || at.After(time.Now().Add(26*time.Hour)) {
		t.Errorf("the next is at %v", at)
	}
}

// A series that cannot be advanced is set aside; other series and other maintenance go on.
func TestWriteOccurrences_SetsAsideASeriesThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := newRigOn(t, r.db)
	r.lease = other.lease
	unknown := r.repeated(r.channel(), publishing.Repeat{Days: 1}, "UTC")
	broken := r.repeated(r.channel(), publishing.Repeat{Days: 1}, "UTC")
	plain := r.post(r.channel(), -25*time.Hour)
	good := other.repeated(other.channel(), publishing.Repeat{Days: 1}, "UTC")
	r.tenant(`update series set timezone = 'Mars/Olympus' where id = $1`, unknown)
	r.tenant(`delete from part where post_id in (select p.id from post p join series s on s.template = p.group_id where s.id = $1)`, broken)
	for _, post := range []publishing.PostID{unknown, broken, good} {
		r.clock(`update post set due = now() - interval '25 hours' where id = $1`, post)
	}
	if n := r.expire(r.lease); n != 4 {
		t.Fatalf("%d posts are expired, want 4", n)
	}
	r.expect(plain, publishing.StateError)
	p := r.sender()
	for call, want := range []int{1, 0} {
		if written, more, err := p.WriteOccurrences(t.Context(), r.lease); written != want || more || err != nil {
			t.Fatalf("call %d wrote %d, more is %v: %v", call, written, more, err)
		}
	}
	if p.SeriesSetAside() != 2 || p.OccurrencesWritten() != 1 || !other.exists(publishing.Occurrence(good, 1)) {
		t.Errorf("%d are set aside, %d written", p.SeriesSetAside(), p.OccurrencesWritten())
	}
	for post, want := range map[publishing.PostID]string{
		unknown: `The next occurrence could not be written: this server does not know the time zone "Mars/Olympus".`,
		broken:  "The next occurrence could not be written; it is tried again.",
	} {
		events, err := poststore.Events(t.Context(), r.store, r.org, r.root(post).Group)
		r.ok(err)
		if last := events[len(events)-1]; last.Kind != publishing.EventDelayed || last.Reason == nil || *last.Reason != want {
			t.Errorf("the timeline ends with %+v, want %s", last, want)
		}
	}
	// Lists still work, without what the two series would add.
	if rows := r.within(time.Now().Add(-time.Hour), time.Now().Add(80*time.Hour)); len(rows) < 3 {
		t.Errorf("%d posts are listed", len(rows))
	}
	// It goes on when the cause is removed and its time has come.
	r.tenant(`update series set timezone = 'UTC', retry_at = now() where id = $1`, unknown)
	if n := r.step(); n != 1 || !r.exists(publishing.Occurrence(unknown, 1)) {
		t.Errorf("%d are written after the zone is known again", n)
	}
	var retries int
	r.ok(r.db.InOrg(t.Context(), r.org.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select retries from series where id = $1 and retry_at is null`, unknown).Scan(&retries)
	}))
	if retries != 0 {
		t.Errorf("%d retries are still counted", retries)
	}
}

// An organization that uses all of its connections is skipped with all its series; none is set aside.
func TestWriteOccurrences_PassesOverABusyOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := newRigOn(t, r.db)
	r.lease = other.lease
	var waiting []publishing.PostID
	channel := r.channel()
	for range 3 {
		post := r.repeated(channel, publishing.Repeat{Days: 1}, "UTC")
		r.clock(`update post set state = 'ERROR', error = 'x' where id = $1`, post)
		waiting = append(waiting, post)
	}
	good := other.repeated(other.channel(), publishing.Repeat{Days: 1}, "UTC")
	other.endOnly(good, publishing.ResultPublished, "")
	release := dbtest.Occupy(t, r.db, r.org.UUID())
	p := r.sender()
	written, _, err := p.WriteOccurrences(t.Context(), r.lease)
	if written != 1 || err != nil || !other.exists(publishing.Occurrence(good, 1)) {
		t.Errorf("%d are written beside a busy organization, want 1: %v", written, err)
	}
	if n := p.SeriesSetAside(); n != 0 {
		t.Errorf("%d series of the busy organization are set aside", n)
	}
	release()
	if n := r.step(); n != len(waiting) {
		t.Errorf("%d are written afterwards, want %d", n, len(waiting))
	}
	for _, post := range waiting {
		if !r.exists(publishing.Occurrence(post, 1)) {
			t.Errorf("%s has no next occurrence", post)
		}
	}
}

func TestEndedSeries_OrganizationsTakeTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := newRigOn(t, r.db)
	r.lease = other.lease
	channel := r.channel()
	for range 5 {
		r.clock(`update post set state = 'ERROR', error = 'x' where id = $1`, r.repeated(channel, publishing.Repeat{Days: 1}, "UTC"))
	}
	single := other.repeated(other.channel(), publishing.Repeat{Days: 1}, "UTC")
	other.endOnly(single, publishing.ResultPublished, "")
	refs, err := poststore.EndedSeries(t.Context(), r.store, r.lease, 2)
	r.ok(err)
	if len(refs) != 2 || refs[0].Org != r.org || refs[1].Org != other.org {
		t.Errorf("of five series and a later one of another organization, the first two are %+v; want one of each", refs)
	}
}

// A call writes a bounded number of occurrences, and reports that there are more.
func TestWriteOccurrences_ReportsThatThereAreMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	channel := r.channel()
	for range 101 {
		post := r.repeated(channel, publishing.Repeat{Days: 1}, "UTC")
		r.clock(`update post set state = 'ERROR', error = 'x' where id = $1`, post)
	}
	p := r.sender()
	total := 0
	for more := true; more; {
		var written int
		var err error
		written, more, err = p.WriteOccurrences(t.Context(), r.lease)
		r.ok(err)
		if written == 0 || written > 100 {
			t.Fatalf("one call wrote %d", written)
		}
		total += written
	}
	if total != 101 {
		t.Errorf("%d are written, want 101", total)
	}
}

// A step after the pause does not count an occurrence as failed that was missed during the pause.
func TestWriteOccurrences_AfterAPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.channel()
	first := r.repeated(c, publishing.Repeat{Days: 1}, "UTC")
	r.end(first, publishing.ResultError, "rejected")
	r.pause(publishing.PauseChannel, c, true, 0)
	r.clock(`update post set due = now() - interval '25 hours' where id = $1`, publishing.Occurrence(first, 1))
	r.expire(r.lease)
	r.pause(publishing.PauseChannel, c, false, 0)
	if n := r.step(); n != 1 {
		t.Fatalf("%d are written after the pause", n)
	}
	r.clock(`update post set due = now() + interval '1 second' where id = $1`, publishing.Occurrence(first, 2))
	r.clock(`update post set state = 'ERROR', error = 'x', error_code = 'missed' where id = $1`, publishing.Occurrence(first, 2))
	if n := r.step(); n != 0 || r.exists(publishing.Occurrence(first, 3)) {
		t.Error("what was missed after the pause is no failure")
	}
}

// An occurrence that was given up as unknown and was published after all does not count as failed.
func TestWriteOccurrences_AfterALateSuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.repeated(r.channel(), publishing.Repeat{Days: 1}, "UTC")
	claimed := r.claim(1)
	r.mark(claimed...)
	r.finish(claimed[0], publishing.ResultError, publishing.CodeOutcomeUnknown)
	if n := r.step(); n != 1 {
		t.Fatalf("%d are written after the first failure", n)
	}
	r.finish(claimed[0], publishing.ResultPublished, "")
	r.expect(first, publishing.StatePublished)
	r.fast(publishing.Occurrence(first, 1))
	r.end(publishing.Occurrence(first, 1), publishing.ResultError, "rejected")
	if got := r.numbers(first); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("occurrences %v are stored, want a third one", got)
	}
}

// After its channel is disconnected, a series is found once and then no more.
func TestWriteOccurrences_PassesStoppedSeries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.channel()
	first := r.repeated(c, publishing.Repeat{Days: 1}, "UTC")
	r.end(first, publishing.ResultPublished, "")
	if !r.disconnect(c) {
		t.Fatal("the channel is not there")
	}
	refs, err := poststore.EndedSeries(t.Context(), r.store, r.lease, 10)
	r.ok(err)
	if n := r.step(); n != 0 || len(refs) != 1 {
		t.Errorf("%d are written and %d series found, want 0 and 1", n, len(refs))
	}
	refs, err = poststore.EndedSeries(t.Context(), r.store, r.lease, 10)
	if err != nil || len(refs) != 0 {
		t.Errorf("after the step %v are still found (%v), want none", refs, err)
	}
}
