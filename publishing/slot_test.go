package publishing_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/platform/fault"
	"crier/publishing"
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

var slotZones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "Africa/Casablanca",
	"Antarctica/Troll", "+05:30", "-12:00", "+14:00",
}

// plan returns a plan in a zone with times such as "09:20", on every day unless days are given.
func plan(t *testing.T, zone string, days []int, times ...string) publishing.QueuePlan {
	t.Helper()
	set := publishing.EveryDay
	if len(days) > 0 {
		var ok bool
		if set, ok = publishing.WeekdaysOf(days); !ok {
			t.Fatalf("%v are no days", days)
		}
	}
	p := publishing.QueuePlan{Zone: zoneOf(t, zone)}
	for _, text := range times {
		at := wall(t, "2026-01-01 "+text)
		p.Times = append(p.Times, publishing.QueueTime{Minute: at.Hour()*60 + at.Minute(), Days: set})
	}
	return p
}

func formatted(slots []time.Time) []string {
	out := []string{}
	for _, at := range slots {
		out = append(out, at.UTC().Format("01-02T15:04"))
	}
	return out
}

// wantSlots fails the test unless got has exactly the wanted slots, in UTC.
func wantSlots(t *testing.T, got []time.Time, want ...string) {
	t.Helper()
	if !slices.Equal(formatted(got), want) {
		t.Errorf("got the slots %v, want %v", formatted(got), want)
	}
}

func TestQueuePlan_Between(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, zone  string
		days        []int
		times       []string
		from, until string // in UTC
		want        []string
	}{
		{
			name: "times of each day, the earliest first", zone: "UTC", times: []string{"19:00", "09:20"},
			from: "2026-03-02 00:00", until: "2026-03-03 12:00", want: []string{"03-02T09:20", "03-02T19:00", "03-03T09:20"},
		},
		{
			name: "the begin does not belong to it, and the end does", zone: "UTC", times: []string{"09:20"},
			from: "2026-03-02 09:20", until: "2026-03-03 09:20", want: []string{"03-03T09:20"},
		},
		{
			name: "days are those of the zone and not of UTC", zone: "Pacific/Auckland", days: []int{1}, times: []string{"09:00"},
			from: "2026-07-04 00:00", until: "2026-07-14 00:00", want: []string{"07-05T21:00", "07-12T21:00"},
		},
		{
			name: "weekdays", zone: "Europe/Berlin", days: []int{1, 2, 3, 4, 5}, times: []string{"08:00"},
			from: "2026-01-01 12:00", until: "2026-01-06 12:00", want: []string{"01-02T07:00", "01-05T07:00", "01-06T07:00"},
		},
		{
			name: "the wall clock decides when clocks go forward", zone: "Europe/Berlin", times: []string{"09:20"},
			from: "2026-03-28 00:00", until: "2026-03-30 00:00", want: []string{"03-28T08:20", "03-29T07:20"},
		},
		{
			name: "a skipped time is an hour later, and one slot with the time that it falls on", zone: "Europe/Berlin",
			times: []string{"02:30", "03:30"}, from: "2026-03-28 12:00", until: "2026-03-30 12:00",
			want: []string{"03-29T01:30", "03-30T00:30", "03-30T01:30"},
		},
		{
			name: "a skipped time may come after a later one", zone: "Europe/Berlin", times: []string{"02:30", "03:00"},
			from: "2026-03-28 12:00", until: "2026-03-29 12:00", want: []string{"03-29T01:00", "03-29T01:30"},
		},
		{
			name: "a time that comes twice is the first, once", zone: "Europe/Berlin", times: []string{"02:30"},
			from: "2026-10-24 12:00", until: "2026-10-26 12:00", want: []string{"10-25T00:30", "10-26T01:30"},
		},
		{
			name: "of a time that comes twice the second is no slot", zone: "Europe/Berlin", times: []string{"02:30"},
			from: "2026-10-25 00:30", until: "2026-10-25 12:00",
		},
		{
			name: "half an hour is skipped", zone: "Australia/Lord_Howe", times: []string{"02:15"},
			from: "2026-10-03 12:00", until: "2026-10-03 23:00", want: []string{"10-03T15:45"},
		},
		{
			name: "a skipped day falls on the one after it", zone: "Pacific/Apia", times: []string{"09:00"},
			from: "2011-12-29 12:00", until: "2012-01-01 00:00", want: []string{"12-29T19:00", "12-30T19:00", "12-31T19:00"},
		},
		{name: "nothing without times", zone: "UTC", from: "2026-01-01 00:00", until: "2027-01-01 00:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wantSlots(t, plan(t, c.zone, c.days, c.times...).Between(wall(t, c.from), wall(t, c.until)), c.want...)
		})
	}
}

func TestQueuePlan_Next(t *testing.T) {
	t.Parallel()
	from := wall(t, "2026-03-02 10:00")
	wantSlots(t, plan(t, "UTC", []int{0}, "09:00").Next(from, 3), "03-08T09:00", "03-15T09:00", "03-22T09:00")
	if got := plan(t, "UTC", nil).Next(from, 3); len(got) != 0 {
		t.Errorf("a plan without times has the slots %v, want none", got)
	}
	rare := plan(t, "UTC", []int{0}, "09:00").Next(from, 100)
	if len(rare) != 52 {
		t.Errorf("a weekly plan has %d slots in %v, want 52", len(rare), publishing.SlotsAhead)
	}
}

func TestFreeSlot(t *testing.T) {
	t.Parallel()
	from := wall(t, "2026-03-02 00:00")
	until := from.Add(publishing.SlotsAhead)
	berlin, tokyo := plan(t, "Europe/Berlin", nil, "09:20"), plan(t, "Asia/Tokyo", nil, "09:20")
	full := publishing.TakenMinutes{}
	for _, at := range berlin.Between(from, until) {
		full.Add(at)
	}
	taken := func(texts ...string) publishing.TakenMinutes {
		out := publishing.TakenMinutes{}
		for _, text := range texts {
			out.Add(wall(t, text).Add(59 * time.Second))
		}
		return out
	}
	for _, c := range []struct {
		name  string
		plans []publishing.QueuePlan
		taken publishing.TakenMinutes
		want  string
	}{
		{name: "the first", plans: []publishing.QueuePlan{berlin}, want: "03-02T08:20"},
		{name: "the first that is free", plans: []publishing.QueuePlan{berlin}, taken: taken("2026-03-02 08:20", "2026-03-03 08:20"), want: "03-04T08:20"},
		{name: "a post within the minute takes it", plans: []publishing.QueuePlan{berlin}, taken: taken("2026-03-02 08:20"), want: "03-03T08:20"},
		{name: "a post a minute later does not", plans: []publishing.QueuePlan{berlin}, taken: taken("2026-03-02 08:21"), want: "03-02T08:20"},
		{name: "the earliest of several plans", plans: []publishing.QueuePlan{berlin, tokyo}, want: "03-02T00:20"},
		{name: "the next of another plan", plans: []publishing.QueuePlan{berlin, tokyo}, taken: taken("2026-03-02 00:20"), want: "03-02T08:20"},
		{name: "none without plans"},
		{name: "none when all are taken", plans: []publishing.QueuePlan{berlin}, taken: full},
		{name: "beyond those of a plan that is full", plans: []publishing.QueuePlan{berlin, plan(t, "UTC", nil, "23:00")}, taken: full, want: "03-02T23:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at, ok, err := publishing.FreeSlot(t.Context(), c.plans, from, until, c.taken)
			if err != nil {
				t.Fatal(err)
			}
			if got := formatted([]time.Time{at})[0]; ok != (c.want != "") || ok && got != c.want {
				t.Errorf("got %s, %t; want %q", got, ok, c.want)
			}
		})
	}
}

// TestFreeSlot_IsTheFirstThatIsNotTaken compares with all slots of all plans.
func TestFreeSlot_IsTheFirstThatIsNotTaken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := time.Date(2026, 1, 1, 0, rapid.IntRange(0, 3*365*24*60).Draw(t, "from"), 0, 0, time.UTC)
		until := from.Add(time.Duration(rapid.IntRange(0, 20*24).Draw(t, "hours")) * time.Hour)
		var plans []publishing.QueuePlan
		var all []time.Time
		for range rapid.IntRange(0, 3).Draw(t, "plans") {
			p := drawPlan(t)
			plans, all = append(plans, p), append(all, p.Between(from, until)...)
		}
		slices.SortFunc(all, time.Time.Compare)
		taken := publishing.TakenMinutes{}
		for _, at := range all[:min(len(all), rapid.IntRange(0, 60).Draw(t, "taken"))] {
			taken.Add(at)
		}
		got, ok, err := publishing.FreeSlot(t.Context(), plans, from, until, taken)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(at time.Time) bool { return !taken.Has(at) })
		if ok != (i >= 0) || ok && !got.Equal(all[i]) {
			t.Fatalf("got %v, %t of %v without %v", got, ok, all, taken)
		}
	})
}

func drawPlan(t *rapid.T) publishing.QueuePlan {
	p := publishing.QueuePlan{Zone: zoneOf(t, rapid.SampledFrom(slotZones).Draw(t, "zone"))}
	for range rapid.IntRange(0, 5).Draw(t, "times") {
		p.Times = append(p.Times, publishing.QueueTime{
			Minute: rapid.IntRange(0, 24*60-1).Draw(t, "minute"),
			Days:   publishing.Weekdays(rapid.IntRange(1, int(publishing.EveryDay)).Draw(t, "days")),
		})
	}
	return p
}

func TestWeekdays(t *testing.T) {
	t.Parallel()
	for mask := range int(publishing.EveryDay) + 1 {
		days := publishing.Weekdays(mask).Days()
		if got, ok := publishing.WeekdaysOf(days); !ok || int(got) != mask {
			t.Errorf("the days %v are the set %d, want %d", days, got, mask)
		}
	}
	for _, days := range [][]int{{-1}, {7}, {0, 8}} {
		if got, ok := publishing.WeekdaysOf(days); ok {
			t.Errorf("%v are the set %d, want none", days, got)
		}
	}
}

func TestSetQueuePlan_WallTimes(t *testing.T) {
	t.Parallel()
	monday, sunday, both := publishing.Weekdays(2), publishing.Weekdays(1), publishing.Weekdays(3)
	saturday := publishing.Weekdays(1 << 6)
	winter, summer := wall(t, "2026-01-15 12:00"), wall(t, "2026-07-15 12:00")
	type times = []publishing.QueueTime
	for _, c := range []struct {
		name, zone string
		now        time.Time
		utc        bool
		sent, want times
	}{
		{name: "are sorted", zone: "UTC", now: winter, sent: times{{Minute: 9, Days: monday}, {Minute: 3, Days: sunday}}, want: times{{Minute: 3, Days: sunday}, {Minute: 9, Days: monday}}},
		{name: "have each minute once, with all its days", zone: "UTC", now: winter, sent: times{{Minute: 9, Days: monday}, {Minute: 9, Days: sunday}}, want: times{{Minute: 9, Days: both}}},
		{name: "are kept in any zone", zone: "Asia/Tokyo", now: winter, sent: times{{Minute: 9, Days: monday}}, want: times{{Minute: 9, Days: monday}}},
		{name: "of UTC get the offset of the moment", zone: "Europe/Berlin", now: winter, utc: true, sent: times{{Minute: 500, Days: monday}}, want: times{{Minute: 560, Days: monday}}},
		{name: "which is another one in summer", zone: "Europe/Berlin", now: summer, utc: true, sent: times{{Minute: 500, Days: monday}}, want: times{{Minute: 620, Days: monday}}},
		{name: "of UTC may fall on the next day", zone: "Asia/Tokyo", now: winter, utc: true, sent: times{{Minute: 1000, Days: saturday}}, want: times{{Minute: 100, Days: sunday}}},
		{name: "and on the day before", zone: "America/New_York", now: winter, utc: true, sent: times{{Minute: 100, Days: sunday}}, want: times{{Minute: 1240, Days: saturday}}},
		{name: "before midnight are of the day before", zone: "UTC", now: winter, utc: true, sent: times{{Minute: -40, Days: sunday}}, want: times{{Minute: 1400, Days: saturday}}},
		{name: "after the day are of the next day", zone: "UTC", now: winter, utc: true, sent: times{{Minute: 1440, Days: saturday}}, want: times{{Minute: 0, Days: sunday}}},
		{name: "of every day stay of every day", zone: "Australia/Sydney", now: winter, utc: true, sent: times{{Minute: 560 - 660, Days: publishing.EveryDay}}, want: times{{Minute: 560, Days: publishing.EveryDay}}},
		{name: "may be none", zone: "UTC", now: winter, want: times{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := publishing.SetQueuePlan{Times: c.sent, UTC: c.utc}
			if err := cmd.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := cmd.WallTimes(zoneOf(t, c.zone), c.now); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestSetQueuePlan_WallTimesMatchUTC compares the slots of the coming days with the sent minutes,
// in a zone whose clocks do not change.
func TestSetQueuePlan_WallTimesMatchUTC(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := zoneOf(t, tenancy.FixedZone(rapid.IntRange(-720, 840).Draw(t, "offset")))
		cmd := publishing.SetQueuePlan{UTC: true, Times: drawPlan(t).Times}
		from := time.Date(2026, 1, 1, 0, rapid.IntRange(0, 60*24*60).Draw(t, "from"), 0, 0, time.UTC)
		until := from.Add(9 * 24 * time.Hour)
		sent := publishing.QueuePlan{Zone: time.UTC, Times: cmd.Times}.Between(from, until)
		stored := publishing.QueuePlan{Zone: zone, Times: cmd.WallTimes(zone, from)}.Between(from, until)
		if got, want := formatted(stored), formatted(sent); !slices.Equal(got, want) {
			t.Fatalf("the slots in %v are %v, want %v", zone, got, want)
		}
	})
}

func TestSetQueuePlan_Validate(t *testing.T) {
	t.Parallel()
	every := publishing.EveryDay
	many := make([]publishing.QueueTime, publishing.MaxQueueTimes+1)
	for i := range many {
		many[i] = publishing.QueueTime{Minute: i, Days: every}
	}
	for _, c := range []struct {
		name  string
		cmd   publishing.SetQueuePlan
		valid bool
	}{
		{name: "no times", valid: true},
		{name: "midnight", cmd: publishing.SetQueuePlan{Times: []publishing.QueueTime{{Minute: 0, Days: every}}}, valid: true},
		{name: "the last minute", cmd: publishing.SetQueuePlan{Times: []publishing.QueueTime{{Minute: 1439, Days: 1}}}, valid: true},
		{name: "a minute after the day", cmd: publishing.SetQueuePlan{Times: []publishing.QueueTime{{Minute: 1440, Days: every}}}},
		{name: "a minute before it", cmd: publishing.SetQueuePlan{Times: []publishing.QueueTime{{Minute: -1, Days: every}}}},
		{name: "a minute of UTC before the day", cmd: publishing.SetQueuePlan{UTC: true, Times: []publishing.QueueTime{{Minute: -1440, Days: every}}}, valid: true},
		{name: "a minute of UTC two days before", cmd: publishing.SetQueuePlan{UTC: true, Times: []publishing.QueueTime{{Minute: -1441, Days: every}}}},
		{name: "a minute of UTC two days after", cmd: publishing.SetQueuePlan{UTC: true, Times: []publishing.QueueTime{{Minute: 2880, Days: every}}}},
		{name: "no days", cmd: publishing.SetQueuePlan{Times: []publishing.QueueTime{{Minute: 1}}}},
		{name: "as many as there may be", cmd: publishing.SetQueuePlan{Times: many[1:]}, valid: true},
		{name: "one more", cmd: publishing.SetQueuePlan{Times: many}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := c.cmd.Validate()
			if c.valid && err != nil || !c.valid && !fault.Is(err, fault.Invalid) {
				t.Errorf("got the error %v, want valid: %t", err, c.valid)
			}
		})
	}
}

func TestDefaultQueueTimes(t *testing.T) {
	t.Parallel()
	from := wall(t, "2026-07-01 00:00")
	for _, c := range []struct {
		zone   string
		chosen bool
		want   []string
	}{
		{zone: "UTC", want: []string{"07-01T02:00", "07-01T06:40", "07-01T11:40"}},
		{zone: "UTC", chosen: true, want: []string{"07-01T09:20", "07-01T14:10", "07-01T19:00"}},
		{zone: "Europe/Berlin", chosen: true, want: []string{"07-01T07:20", "07-01T12:10", "07-01T17:00"}},
	} {
		p := publishing.QueuePlan{Zone: zoneOf(t, c.zone), Times: publishing.DefaultQueueTimes(c.chosen)}
		wantSlots(t, p.Next(from, 3), c.want...)
	}
}
