package publishing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/publishing/recurrence"
	"crier/tenancy"
)

// The limits of slots.
const (
	// MaxQueueTimes is the largest number of times in a channel's queue plan.
	MaxQueueTimes = 100
	// SlotHold is how long a slot is held after it is found.
	SlotHold = 2 * time.Minute
	// SlotsAhead is how far ahead slots are searched for.
	SlotsAhead = 366 * 24 * time.Hour
	// NextSlots is the number of upcoming times that are shown with a queue plan.
	NextSlots = 10
)

const minutesOfDay = 24 * 60

// Weekdays is a set of days of the week: bit 1<<d is set if it contains time.Weekday d.
type Weekdays uint8

// EveryDay is the set of all seven days.
const EveryDay Weekdays = 1<<7 - 1

// WeekdaysOf returns the given days as a set. ok is false if a day is not 0 (Sunday) to 6
// (Saturday).
func WeekdaysOf(days []int) (w Weekdays, ok bool) {
	for _, d := range days {
		if d < int(time.Sunday) || d > int(time.Saturday) {
			return 0, false
		}
		w |= 1 << d
	}
	return w, true
}

// Days returns the days of the set in order, 0 (Sunday) first.
func (w Weekdays) Days() []int {
	days := make([]int, 0, 7)
	for d := range 7 {
		if w.has(time.Weekday(d)) {
			days = append(days, d)
		}
	}
	return days
}

func (w Weekdays) has(d time.Weekday) bool { return w&(1<<d) != 0 }

// plus returns the set with every day moved later by n days; a negative n moves them earlier.
func (w Weekdays) plus(n int) Weekdays {
	n = ((n % 7) + 7) % 7
	return (w<<n | w>>(7-n)) & EveryDay
}

// QueueTime is one posting time of a queue plan: a wall-clock time on certain days of the week.
type QueueTime struct {
	// Minute is the number of minutes after midnight, from 0 to 1439.
	Minute int
	Days   Weekdays
}

// QueuePlan holds a channel's posting times, as wall-clock times in the channel's time zone.
//
// Days are wall-clock days. The rules for clock changes are the same as for repeated posts
// (recurrence.Rule): a time that the zone skips is moved later by the size of the jump (02:30
// becomes 03:30), and if a time occurs twice, the first one is used. Two times of a plan that fall
// on the same instant are one slot.
type QueuePlan struct {
	Zone  *time.Location
	Times []QueueTime
}

// DefaultQueueTimes returns the posting times of a new channel. If a person chose the zone, for the
// channel or its organization, the times are 09:20, 14:10 and 19:00, in working hours and in the
// evening. Otherwise the zone is UTC, and the times are 02:00, 06:40 and 11:40.
func DefaultQueueTimes(zoneChosen bool) []QueueTime {
	minutes := []int{120, 400, 700}
	if zoneChosen {
		minutes = []int{560, 850, 1140}
	}
	out := make([]QueueTime, 0, len(minutes))
	for _, m := range minutes {
		out = append(out, QueueTime{Minute: m, Days: EveryDay})
	}
	return out
}

// Between returns the plan's slots that are after one instant and not after another, earliest
// first.
func (p QueuePlan) Between(after, until time.Time) (slots []time.Time) {
	const day = 24 * time.Hour
	// An instant is less than two days from its wall-clock time read as UTC: the offset plus a
	// skipped day.
	last := until.Add(2 * day)
	for date := after.UTC().Add(-2 * day).Truncate(day); !date.After(last); date = date.Add(day) {
		for _, t := range p.Times {
			if !t.Days.has(date.Weekday()) {
				continue
			}
			at := recurrence.Instant(date.Add(time.Duration(t.Minute)*time.Minute), p.Zone)
			if at.After(after) && !at.After(until) {
				slots = append(slots, at)
			}
		}
	}
	return sortedOnce(slots)
}

// sortedOnce sorts instants and removes duplicates.
func sortedOnce(slots []time.Time) []time.Time {
	slices.SortFunc(slots, time.Time.Compare)
	return slices.CompactFunc(slots, time.Time.Equal)
}

// Next returns the first n slots after an instant, or fewer if the plan has fewer within
// SlotsAhead.
func (p QueuePlan) Next(after time.Time, n int) (slots []time.Time) {
	for span := 8 * 24 * time.Hour; span < 2*SlotsAhead && len(slots) < n; span *= 2 {
		slots = p.Between(after, after.Add(min(span, SlotsAhead)))
	}
	return slots[:min(n, len(slots))]
}

// TakenMinutes is a set of minutes that already have a post or a held slot. Minutes are counted
// from 1970.
type TakenMinutes map[int64]struct{}

// Add adds the minute of an instant.
func (t TakenMinutes) Add(at time.Time) { t[minuteOf(at)] = struct{}{} }

// Has reports whether the set contains the minute of an instant.
func (t TakenMinutes) Has(at time.Time) bool {
	_, ok := t[minuteOf(at)]
	return ok
}

func minuteOf(at time.Time) int64 { return at.Truncate(time.Minute).Unix() / 60 }

// slotStep is the time span whose slots FreeSlot computes at once. Most calls find a slot within
// the first few days, and an organization can have thousands of posting times.
const slotStep = 4 * 24 * time.Hour

// FreeSlot returns the first slot of any plan that is after one instant, not after another, and not
// taken. ok is false if there is none. It returns the error of ctx if ctx ends first.
func FreeSlot(
	ctx context.Context, plans []QueuePlan, after, until time.Time, taken TakenMinutes,
) (at time.Time, ok bool, err error) {
	plans = mergedByZone(plans)
	for from := after; from.Before(until); from = from.Add(slotStep) {
		if err := ctx.Err(); err != nil {
			return time.Time{}, false, err
		}
		to := from.Add(slotStep)
		if to.After(until) {
			to = until
		}
		var slots []time.Time
		for _, p := range plans {
			slots = append(slots, p.Between(from, to)...)
		}
		for _, at := range sortedOnce(slots) {
			if !taken.Has(at) {
				return at, true, nil
			}
		}
	}
	return time.Time{}, false, nil
}

// mergedByZone returns one plan per zone, with each time of day listed once, because most channels
// of an organization have the same times.
func mergedByZone(plans []QueuePlan) (merged []QueuePlan) {
	days := map[string]map[int]Weekdays{}
	zones := map[string]*time.Location{}
	for _, p := range plans {
		zone := p.Zone.String()
		if days[zone] == nil {
			days[zone], zones[zone] = map[int]Weekdays{}, p.Zone
		}
		for _, t := range p.Times {
			days[zone][t.Minute] |= t.Days
		}
	}
	for zone, times := range days {
		p := QueuePlan{Zone: zones[zone]}
		for minute, on := range times {
			p.Times = append(p.Times, QueueTime{Minute: minute, Days: on})
		}
		merged = append(merged, p)
	}
	return merged
}

// SetQueuePlan replaces a channel's posting times.
type SetQueuePlan struct {
	Times []QueueTime
	// Zone becomes the channel's time zone. The zero value keeps the current zone.
	Zone tenancy.ZoneRequest
	// UTC means that the times are minutes after 00:00 UTC of a day, and may be up to a day before
	// or after that day. They are converted to wall-clock times using the current offset of the
	// channel's zone.
	UTC bool
}

// Validate returns an Invalid fault that lists every invalid time.
func (c SetQueuePlan) Validate() error {
	var faults fault.List
	if len(c.Times) > MaxQueueTimes {
		faults.Add("times", fmt.Sprintf("must contain at most %d times", MaxQueueTimes))
	}
	least, most := 0, minutesOfDay-1
	if c.UTC {
		least, most = -minutesOfDay, 2*minutesOfDay-1
	}
	for i, t := range c.Times {
		if t.Minute < least || t.Minute > most {
			faults.Add(fmt.Sprintf("times.%d.minute", i), fmt.Sprintf("must be from %d to %d", least, most))
		}
		if t.Days == 0 || t.Days > EveryDay {
			faults.Add(fmt.Sprintf("times.%d.days", i), "must list days of the week, 0 (Sunday) to 6 (Saturday)")
		}
	}
	return faults.Err("publishing.SetQueuePlan", "The posting times are not valid.")
}

// WallTimes returns the times as they are stored for a channel in the zone: sorted wall-clock
// times, with each minute listed once together with all its days.
func (c SetQueuePlan) WallTimes(zone *time.Location, now time.Time) []QueueTime {
	shift := 0
	if c.UTC {
		shift = int(recurrence.OffsetAt(now, zone) / time.Minute)
	}
	days := map[int]Weekdays{}
	for _, t := range c.Times {
		minute := t.Minute + shift
		later := floorDiv(minute, minutesOfDay)
		days[minute-later*minutesOfDay] |= t.Days.plus(later)
	}
	out := make([]QueueTime, 0, len(days))
	for minute, d := range days {
		out = append(out, QueueTime{Minute: minute, Days: d})
	}
	slices.SortFunc(out, func(a, b QueueTime) int { return cmp.Compare(a.Minute, b.Minute) })
	return out
}

// floorDiv returns n/d rounded down.
func floorDiv(n, d int) int {
	q := n / d
	if n%d < 0 {
		q--
	}
	return q
}

// ChannelPlan is a channel's queue plan as shown to people.
type ChannelPlan struct {
	// Timezone is the channel's time zone, in the form that tenancy.LoadZone takes.
	Timezone string
	Times    []QueueTime
	// Next holds the plan's next slots, at most NextSlots. Taken slots are included.
	Next []time.Time
}
