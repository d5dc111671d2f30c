package publishing_test

import (
	"testing"
	"time"

	"crier/publishing"
	"crier/publishing/recurrence"
	"crier/tenancy"
)

// The tests of time zones cover ten years. During that time, all zones change their clocks only at
// multiples of zoneStep, and by at least planStep, the time between the slots of the plan.
const (
	zoneStep  = 15 * time.Minute
	planStep  = 30 * time.Minute
	zoneYears = 10
)

var zonesFrom = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// zoneClock has the instant of every wall-clock time of a zone in the ten years and some days
// around them, found by stepping through all instants. It is the first instant at which clocks show
// the time. A skipped time is as much later than the jump as it is later than the wall-clock time
// at which the jump begins.
type zoneClock struct {
	from, until time.Time // the limits of the ten years
	base        time.Time // the wall-clock time of the first element
	instants    []time.Time
}

func newZoneClock(t *testing.T, name string) (zoneClock, *time.Location) {
	t.Helper()
	zone, err := tenancy.LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	const around = 4 * 24 * time.Hour
	c := zoneClock{from: zonesFrom, until: zonesFrom.AddDate(zoneYears, 0, 0)}
	at := c.from.Add(-around)
	c.base = recurrence.WallClock(at, zone)
	next := c.base // the next wall-clock time, unless clocks change
	for ; at.Before(c.until.Add(around)); at = at.Add(zoneStep) {
		shown := recurrence.WallClock(at, zone)
		for skipped := at; next.Before(shown); next, skipped = next.Add(zoneStep), skipped.Add(zoneStep) {
			c.instants = append(c.instants, skipped)
		}
		if shown.Equal(next) {
			c.instants, next = append(c.instants, at), next.Add(zoneStep)
		}
	}
	return c, zone
}

// at returns the instant of a wall-clock time.
func (c zoneClock) at(wall time.Time) time.Time { return c.instants[wall.Sub(c.base)/zoneStep] }

// checkZone compares the slots of a plan that has every half hour, and the occurrences of posts
// that repeat daily at these times, with what the zone's clocks show in ten years.
func checkZone(t *testing.T, name string) {
	t.Helper()
	c, zone := newZoneClock(t, name)
	wanted := map[int64]bool{} // in seconds since 1970
	for wall := c.base.Truncate(24 * time.Hour).Add(24 * time.Hour); wall.Before(c.until.Add(48 * time.Hour)); wall = wall.Add(planStep) {
		if at := c.at(wall); at.After(c.from) && !at.After(c.until) {
			wanted[at.Unix()] = true
		}
	}
	plan := publishing.QueuePlan{Zone: zone}
	for minute := 0; minute < 24*60; minute += int(planStep / time.Minute) {
		plan.Times = append(plan.Times, publishing.QueueTime{Minute: minute, Days: publishing.EveryDay})
	}
	slots := plan.Between(c.from, c.until)
	for i, at := range slots {
		if i > 0 && !at.After(slots[i-1]) {
			t.Fatalf("%s: the slot %v follows %v", name, at, slots[i-1])
		}
		if !wanted[at.Unix()] {
			t.Fatalf("%s: %v, which is %v there, is a slot", name, at, at.In(zone))
		}
	}
	if len(slots) != len(wanted) {
		t.Fatalf("%s: got %d slots, want %d", name, len(slots), len(wanted))
	}
	for _, time := range plan.Times {
		checkRepeats(t, c, zone, time.Minute)
	}
}

// checkRepeats compares the occurrences of a post that repeats daily at the given minute after
// midnight.
func checkRepeats(t *testing.T, c zoneClock, zone *time.Location, minute int) {
	t.Helper()
	anchor := c.from.Add(time.Duration(minute) * time.Minute)
	r := recurrence.Rule{Anchor: anchor, Zone: zone, Days: 1}
	for n := 0; ; n++ {
		wall := anchor.AddDate(0, 0, n)
		if !wall.Before(c.until) {
			return
		}
		if got, want := r.At(n), c.at(wall); !got.Equal(want) {
			t.Fatalf("%v: the occurrence at %v is at %v, want %v", zone, wall, got, want)
		}
	}
}

// TestZones_SlotsAndRepeatsOfTenYears covers zones that differ in how, when and how often their
// clocks change. TestZones_SlotsAndRepeatsOfTenYearsInEveryZone, one of the long tests, covers all
// zones.
func TestZones_SlotsAndRepeatsOfTenYears(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"America/St_Johns", "Australia/Lord_Howe", "Pacific/Chatham", "Africa/Casablanca"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkZone(t, name)
		})
	}
}
