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
	// MaxQueueTimes is the maximum number of posting times in a channel's queue plan.
	MaxQueueTimes = 100
	// SlotHold is how long a slot is reserved after it has been found.
	SlotHold = 2 * time.Minute
	// SlotsAhead is how far into the future to search for slots.
	SlotsAhead = 366 * 24 * time.Hour
	// NextSlots is the number of upcoming slots shown with a queue plan.
	NextSlots = 10
)

const minutesOfDay = 24 * 60

// Weekdays is a set of days of the week. Bit 1<<d is set if the set contains the time.Weekday d.
type Weekdays uint8

// EveryDay is the set of all seven days.
const EveryDay Weekdays = 1<<7 - 1

// WeekdaysOf returns the given days as a set. ok is false if any day is outside the range from 0
// (Sunday) to 6 (Saturday).
func WeekdaysOf(days []int) (w Weekdays, ok bool) {
	for _, d := range days {
		if d < int(time.Sunday) || d > int(time.Saturday) {
			return 0, false
		}
		w |= 1 << d
	}
	return w, true
}

// Days returns the days in the set in ascending order, starting with 0 (Sunday).
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

// plus returns the set with every day shifted n days later, or earlier if n is negative.
func (w Weekdays) plus(n int) Weekdays {
	n = ((n % 7) + 7) % 7
	return (w<<n | w>>(7-n)) & EveryDay
}

// QueueTime is one posting time in a queue plan: a wall-clock time on certain days of the week.
type QueueTime struct {
	// Minute is the number of minutes after midnight, from 0 to 1439.
	Minute int
	Days   Weekdays
}

// QueuePlan holds a channel's posting times, as wall-clock times in the channel's time zone.
//
// Days are also in the channel's time zone. Clock changes are handled as for repeated posts (see
// recurrence.Rule). If the zone skips a time, the slot is moved later by the size of the jump, for
// example from 02:30 to 03:30. If a time occurs twice, the first one is used. If two times in a
// plan fall on the same instant, they count as one slot.
type QueuePlan struct {
	Zone  *time.Location
	Times []QueueTime
}

// DefaultQueueTimes returns the posting times of a new channel. If a user chose the time zone of
// the channel or its organization, the times are 09:20, 14:10 and 19:00, during working hours and
// in the evening. Otherwise, the zone is UTC, and the times are 02:00, 06:40 and 11:40.
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

// Between returns the plan's slots that are later than after but not later than until, earliest
// first.
func (p QueuePlan) Between(after, until time.Time) (slots []time.Time) {
	const day = 24 * time.Hour
	// A wall-clock time read as UTC differs from the actual instant by less than two days: by the
	// zone's offset plus at most one skipped day.
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

// Next returns the first n slots later than after. It returns fewer if the period SlotsAhead
// contains fewer than n slots.
func (p QueuePlan) Next(after time.Time, n int) (slots []time.Time) {
	for span := 8 * 24 * time.Hour; span < 2*SlotsAhead && len(slots) < n; span *= 2 {
		slots = p.Between(after, after.Add(min(span, SlotsAhead)))
	}
	return slots[:min(n, len(slots))]
}

// TakenMinutes is the set of minutes that already have a post or a held slot. A minute is
// represented by the number of minutes since the beginning of 1970, in UTC.
type TakenMinutes map[int64]struct{}

// Add adds the minute of an instant.
func (t TakenMinutes) Add(at time.Time) { t[minuteOf(at)] = struct{}{} }

// Has reports whether the set contains the minute of the given time.
func (t TakenMinutes) Has(at time.Time) bool {
	_, ok := t[minuteOf(at)]
	return ok
}

func minuteOf(at time.Time) int64 { return at.Truncate(time.Minute).Unix() / 60 }

// slotStep is the length of the period for which FreeSlot computes slots in one step. It is short
// because most calls find a slot within the first few days, and an organization can have thousands
// of posting times.
const slotStep = 4 * 24 * time.Hour

// FreeSlot returns the first slot in any of the plans that is later than after, not later than
// until, and not taken. ok is false if there is no such slot. If ctx ends first, FreeSlot returns
// the error from ctx.
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

// mergedByZone merges the plans into one plan per time zone, which lists each time of day only
// once. This saves work, because most of an organization's channels have the same times.
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
	// Zone is the channel's new time zone. The zero value keeps the current zone.
	Zone tenancy.ZoneRequest
	// UTC means that each Minute counts from 00:00 UTC and may fall on the day before or after the
	// given day. The times are converted to wall-clock times using the current UTC offset of the
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

// WallTimes returns the times in the form in which they are stored for a channel in the given zone.
// The result is sorted by wall-clock time and lists each minute once, with all its days.
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

// ChannelPlan is a channel's queue plan as shown to users.
type ChannelPlan struct {
	// Timezone is the channel's time zone, in the format that tenancy.LoadZone accepts.
	Timezone string
	Times    []QueueTime
	// Next holds the plan's upcoming slots, including taken ones. It has at most NextSlots
	// elements.
	Next []time.Time
}
