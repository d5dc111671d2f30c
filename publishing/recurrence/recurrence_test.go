package recurrence_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/publishing/recurrence"
	"crier/tenancy"
)

func zoneOf(t interface {
	Helper()
	Fatal(...any)
}, name string) *time.Location {
	t.Helper()
	zone, err := tenancy.LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func wall(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// occurrences is a recurrence with the times that it must have.
type occurrences struct {
	name, zone, anchor string
	days               int
	want               []string // for the numbers 0, 1, ..., in UTC
}

func checkOccurrences(t *testing.T, all []occurrences) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := recurrence.Rule{Anchor: wall(t, c.anchor), Zone: zoneOf(t, c.zone), Days: c.days}
			for n, want := range c.want {
				if got := r.At(n).Format("01-02T15:04"); got != want {
					t.Errorf("number %d is at %s, want %s", n, got, want)
				}
			}
		})
	}
}

func TestRecurrence_AtZonesWithoutChanges(t *testing.T) {
	t.Parallel()
	checkOccurrences(t, []occurrences{
		{name: "UTC has no changes", zone: "UTC", anchor: "2026-03-28 09:00", days: 1, want: []string{"03-28T09:00", "03-29T09:00", "03-30T09:00"}},
		{name: "a fixed offset neither", zone: "+05:30", anchor: "2026-03-28 09:00", days: 1, want: []string{"03-28T03:30", "03-29T03:30", "03-30T03:30"}},
		{name: "west of UTC", zone: "-03:30", anchor: "2026-03-28 22:00", days: 1, want: []string{"03-29T01:30", "03-30T01:30"}},
		{name: "Kolkata neither", zone: "Asia/Kolkata", anchor: "2026-03-28 09:00", days: 1, want: []string{"03-28T03:30", "03-29T03:30"}},
	})
}

func TestRecurrence_AtClockChanges(t *testing.T) {
	t.Parallel()
	checkOccurrences(t, []occurrences{
		{
			name: "Berlin keeps its time in spring", zone: "Europe/Berlin", anchor: "2026-03-28 09:00", days: 1,
			want: []string{"03-28T08:00", "03-29T07:00", "03-30T07:00"},
		},
		{name: "and in autumn", zone: "Europe/Berlin", anchor: "2026-10-24 09:00", days: 1, want: []string{"10-24T07:00", "10-25T08:00", "10-26T08:00"}},
		{
			name: "a time that is skipped is an hour later", zone: "Europe/Berlin", anchor: "2026-03-28 02:30",
			days: 1,
			want: []string{"03-28T01:30", "03-29T01:30", "03-30T00:30"},
		},
		{name: "the first skipped minute", zone: "Europe/Berlin", anchor: "2026-03-28 02:00", days: 1, want: []string{"03-28T01:00", "03-29T01:00", "03-30T00:00"}},
		{name: "the last skipped minute", zone: "Europe/Berlin", anchor: "2026-03-28 02:59", days: 1, want: []string{"03-28T01:59", "03-29T01:59", "03-30T00:59"}},
		{name: "the first minute after it", zone: "Europe/Berlin", anchor: "2026-03-28 03:00", days: 1, want: []string{"03-28T02:00", "03-29T01:00", "03-30T01:00"}},
		{
			name: "a time that comes twice is the first", zone: "Europe/Berlin", anchor: "2026-10-24 02:30",
			days: 1,
			want: []string{"10-24T00:30", "10-25T00:30", "10-26T01:30"},
		},
		{name: "also its first minute", zone: "Europe/Berlin", anchor: "2026-10-24 02:00", days: 1, want: []string{"10-24T00:00", "10-25T00:00", "10-26T01:00"}},
		{name: "the first minute after both", zone: "Europe/Berlin", anchor: "2026-10-24 03:00", days: 1, want: []string{"10-24T01:00", "10-25T02:00", "10-26T02:00"}},
		{name: "New York skips", zone: "America/New_York", anchor: "2026-03-07 02:15", days: 1, want: []string{"03-07T07:15", "03-08T07:15", "03-09T06:15"}},
		{name: "New York repeats", zone: "America/New_York", anchor: "2026-10-31 01:15", days: 1, want: []string{"10-31T05:15", "11-01T05:15", "11-02T06:15"}},
		{
			name: "Lord Howe skips half an hour", zone: "Australia/Lord_Howe", anchor: "2026-10-03 02:15",
			days: 1,
			want: []string{"10-02T15:45", "10-03T15:45", "10-04T15:15"},
		},
		{name: "and repeats half an hour", zone: "Australia/Lord_Howe", anchor: "2026-04-04 01:45", days: 1, want: []string{"04-03T14:45", "04-04T14:45", "04-05T15:15"}},
		{
			name: "Casablanca goes back for Ramadan", zone: "Africa/Casablanca", anchor: "2026-02-14 09:00",
			days: 1,
			want: []string{"02-14T08:00", "02-15T09:00", "02-16T09:00"},
		},
		{name: "and forward after it", zone: "Africa/Casablanca", anchor: "2026-03-21 02:30", days: 1, want: []string{"03-21T02:30", "03-22T02:30", "03-23T01:30"}},
	})
}

func TestRecurrence_AtCalendar(t *testing.T) {
	t.Parallel()
	checkOccurrences(t, []occurrences{
		{
			name: "the day that Samoa skipped is the day after", zone: "Pacific/Apia",
			anchor: "2011-12-29 09:00", days: 1,
			want: []string{"12-29T19:00", "12-30T19:00", "12-30T19:00", "12-31T19:00"},
		},
		{name: "days around it are not changed", zone: "Pacific/Apia", anchor: "2011-12-29 09:00", days: 2, want: []string{"12-29T19:00", "12-30T19:00", "01-01T19:00"}},
		{name: "the end of a leap year", zone: "Europe/Berlin", anchor: "2096-12-30 09:00", days: 1, want: []string{"12-30T08:00", "12-31T08:00", "01-01T08:00"}},
		{name: "a leap day", zone: "UTC", anchor: "2028-02-28 00:00", days: 1, want: []string{"02-28T00:00", "02-29T00:00", "03-01T00:00"}},
		{name: "New York by weeks", zone: "America/New_York", anchor: "2026-03-01 09:00", days: 7, want: []string{"03-01T14:00", "03-08T13:00", "03-15T13:00"}},
	})
}

func TestRecurrence_Has(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 3, 3, 9, 0, 0, 0, time.UTC)
	early := until.Add(-time.Nanosecond)
	anchor := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	late := time.Date(2200, 12, 30, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		rule recurrence.Rule
		from int
		want string // for the numbers starting with from
	}{
		{name: "without an end", rule: recurrence.Rule{Anchor: anchor}, want: "yyyy"},
		{name: "not before its base", rule: recurrence.Rule{Anchor: anchor, Base: 2}, want: "nnyy"},
		{name: "until a moment that counts", rule: recurrence.Rule{Anchor: anchor, Until: &until}, want: "yyyn"},
		{name: "until just before it", rule: recurrence.Rule{Anchor: anchor, Until: &early}, want: "yynn"},
		{name: "by a count", rule: recurrence.Rule{Anchor: anchor, Count: 2}, want: "yynn"},
		{name: "counted from the base", rule: recurrence.Rule{Anchor: anchor, Base: 5, Count: 2}, from: 4, want: "nyyn"},
		{name: "to the end of the year 2200", rule: recurrence.Rule{Anchor: late}, want: "yynn"},
		{name: "and no number of any size after it", rule: recurrence.Rule{Anchor: anchor}, from: 1 << 20, want: "nnnn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.rule.Zone, c.rule.Days = time.UTC, 1
			got := ""
			for n := range len(c.want) {
				got += map[bool]string{true: "y", false: "n"}[c.rule.Has(c.from+n)]
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

var recurrenceZones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns",
	"Pacific/Apia", "Pacific/Kwajalein", "Africa/Casablanca", "Antarctica/Troll", "+05:30", "-12:00", "+14:00"}

// drawRecurrence draws a rule with an anchor from 1990 to 2040, so that occurrences fall on clock
// changes, month ends and leap days.
func drawRecurrence(t *rapid.T) recurrence.Rule {
	minutes := rapid.IntRange(0, 50*365*24*60).Draw(t, "minute")
	return recurrence.Rule{
		Anchor: time.Date(1990, 1, 1, 0, minutes, 0, 0, time.UTC), Zone: zoneOf(t, rapid.SampledFrom(recurrenceZones).Draw(t, "zone")),
		Days: rapid.SampledFrom([]int{1, 1, 2, 7, 30, 365}).Draw(t, "days"), Base: rapid.IntRange(0, 50).Draw(t, "base"),
	}
}

// TestRecurrence_AtShowsTheAnchorsTime compares the times with what clocks in the zone show.
func TestRecurrence_AtShowsTheAnchorsTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecurrence(t)
		for n := r.Base; n < r.Base+60; n++ {
			at, want := r.At(n), r.Anchor.AddDate(0, 0, (n-r.Base)*r.Days)
			if n > r.Base && at.Before(r.At(n-1)) {
				t.Fatalf("number %d is before number %d", n, n-1)
			}
			if shown := recurrence.WallClock(at, r.Zone); shown.Equal(want) {
				// If two instants show the same time, the occurrence is the first one: none up to a
				// day earlier shows that time.
				for back := 15 * time.Minute; back <= 24*time.Hour; back += 15 * time.Minute {
					if recurrence.WallClock(at.Add(-back), r.Zone).Equal(want) {
						t.Fatalf("number %d is at %v, which is shown %v earlier already", n, at, back)
					}
				}
				continue
			}
			// Only a skipped time is shown as another one. It is later by the jump, which is the
			// difference between the offsets around it.
			start, _ := at.In(r.Zone).ZoneBounds()
			_, after := at.In(r.Zone).Zone()
			_, before := start.Add(-time.Second).In(r.Zone).Zone()
			jump := time.Duration(after-before) * time.Second
			if shown := recurrence.WallClock(at, r.Zone); jump <= 0 || !shown.Equal(want.Add(jump)) || at.Sub(start) >= jump {
				t.Fatalf("number %d for %v is shown as %v by a jump of %v", n, want, shown, jump)
			}
		}
	})
}

func TestRecurrence_FirstAfterAgreesWithASlowWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecurrence(t)
		near := r.At(r.Base + rapid.IntRange(0, 400).Draw(t, "near"))
		after := near.Add(time.Duration(rapid.IntRange(-3*24*60, 3*24*60).Draw(t, "off")) * time.Minute)
		want := r.Base
		for !r.At(want).After(after) {
			want++
		}
		if got := r.FirstAfter(after); got != want {
			t.Fatalf("the first of %+v after %v is number %d, want %d", r, after, got, want)
		}
	})
}

func TestRecurrence_FirstAfterReachesFarWithoutWalking(t *testing.T) {
	t.Parallel()
	r := recurrence.Rule{Anchor: time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC), Zone: zoneOf(t, "Europe/Berlin"), Days: 1}
	// A walk over this many days would outlast the test.
	n := r.FirstAfter(time.Date(50_000_000, 1, 1, 0, 0, 0, 0, time.UTC))
	if !r.At(n).After(time.Date(50_000_000, 1, 1, 0, 0, 0, 0, time.UTC)) || r.At(n-1).After(time.Date(50_000_000, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("number %d is at %v", n, r.At(n))
	}
}
