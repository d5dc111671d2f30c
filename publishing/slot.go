package publishing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

// The limits of slots.
const (
	// MaxQueueTimes is the largest number of times in the queue plan of one channel.
	MaxQueueTimes = 100
	// SlotHold is how long a slot that was found is held.
	SlotHold = 2 * time.Minute
	// SlotsAhead is how far ahead of the present slots are looked for.
	SlotsAhead = 366 * 24 * time.Hour
	// NextSlots is the number of coming times that are shown with a queue plan.
	NextSlots = 10
)

const minutesOfDay = 24 * 60

// Weekdays is a set of days of the week: the bit 1<<d is set for each time.Weekday d of it.
type Weekdays uint8

// EveryDay is the set of all seven days.
const EveryDay Weekdays = 1<<7 - 1

// WeekdaysOf returns the set of days, and false when one is not 0 (Sunday) to 6 (Saturday).
func WeekdaysOf(days []int) (w Weekdays, ok bool) {
	for _, d := range days {
		if d < int(time.Sunday) || d > int(time.Saturday) {
			return 0, false
		}
		w |= 1 << d
	}
	return w, true
}

// Days returns the days of the set in their order, 0 (Sunday) first.
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

// QueueTime is one posting time of a queue plan: a wall-clock time on some days of the week.
type QueueTime struct {
	// Minute is the number of minutes after midnight, from 0 to 1439.
	Minute int
	Days   Weekdays
}

// QueuePlan is the posting times of a channel by the clocks of its time zone.
//
// Days are those of the wall clock. A time that the zone skips is moved later by the size of the jump (02:30 becomes
// 03:30), and of a time that occurs twice the first is taken, as for repeated posts (Recurrence). Two times of a plan
// that fall on the same instant are one slot.
type QueuePlan struct {
	Zone  *time.Location
	Times []QueueTime
}

// DefaultQueueTimes returns the plan of a new channel. In a zone that a person has chosen, for the channel or for its
// organization, these are 09:20, 14:10 and 19:00, the hours of work and of the evening. Otherwise the zone is UTC, where
// they are 02:00, 06:40 and 11:40.
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

// Between returns the slots of the plan that are after an instant and not after another one, the earliest first.
func (p QueuePlan) Between(after, until time.Time) (slots []time.Time) {
	const day = 24 * time.Hour
	// A wall-clock time read as UTC is less than two days away from its instant: an offset, and a skipped day.
	last := until.Add(2 * day)
	for date := after.UTC().Add(-2 * day).Truncate(day); !date.After(last); date = date.Add(day) {
		for _, t := range p.Times {
			if !t.Days.has(date.Weekday()) {
				continue
			}
			at := instant(date.Add(time.Duration(t.Minute)*time.Minute), p.Zone)
			if at.After(after) && !at.After(until) {
				slots = append(slots, at)
			}
		}
	}
	return sortedOnce(slots)
}

// sortedOnce sorts instants and leaves out repeated ones.
func sortedOnce(slots []time.Time) []time.Time {
	slices.SortFunc(slots, time.Time.Compare)
	return slices.CompactFunc(slots, time.Time.Equal)
}

// Next returns the first n slots after an instant, fewer when the plan has not so many within SlotsAhead.
func (p QueuePlan) Next(after time.Time, n int) (slots []time.Time) {
	for span := 8 * 24 * time.Hour; span < 2*SlotsAhead && len(slots) < n; span *= 2 {
		slots = p.Between(after, after.Add(min(span, SlotsAhead)))
	}
	return slots[:min(n, len(slots))]
}

// TakenMinutes is a set of minutes at which something is published or held, as minutes since 1970.
type TakenMinutes map[int64]struct{}

// Add adds the minute of an instant.
func (t TakenMinutes) Add(at time.Time) { t[minuteOf(at)] = struct{}{} }

// Has reports whether the set has the minute of an instant.
func (t TakenMinutes) Has(at time.Time) bool {
	_, ok := t[minuteOf(at)]
	return ok
}

func minuteOf(at time.Time) int64 { return at.Truncate(time.Minute).Unix() / 60 }

// slotStep is how much of the plans FreeSlot computes at a time: most calls find a slot in the first days, and an
// organization may have thousands of times.
const slotStep = 4 * 24 * time.Hour

// FreeSlot returns the first slot of the plans that is after an instant, not after another one, and not taken. ok is
// false when there is none. It returns the error of ctx when that ends first.
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

// mergedByZone returns one plan for each zone, in which each time of the day occurs once: most channels of an
// organization have the same times.
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

// SetQueuePlan asks for other posting times of a channel.
type SetQueuePlan struct {
	Times []QueueTime
	// Zone becomes the time zone of the channel; the zero value keeps the one that it has.
	Zone tenancy.ZoneRequest
	// UTC means that the times are minutes after 00:00 UTC. They become the wall-clock times of the channel's zone by its
	// offset of the moment, and may lie up to a day before or after the day.
	UTC bool
}

// Validate returns Invalid with every time that is not valid.
func (c SetQueuePlan) Validate() error {
	var faults fault.List
	if len(c.Times) > MaxQueueTimes {
		faults.Add("times", fmt.Sprintf("must hold at most %d times", MaxQueueTimes))
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
			faults.Add(fmt.Sprintf("times.%d.days", i), "must name days of the week, 0 (Sunday) to 6 (Saturday)")
		}
	}
	return faults.Err("publishing.SetQueuePlan", "The posting times are not valid.")
}

// WallTimes returns the times as they are stored for a channel in a zone: by the wall clock, in their order, each minute
// once with all of its days.
func (c SetQueuePlan) WallTimes(zone *time.Location, now time.Time) []QueueTime {
	shift := 0
	if c.UTC {
		shift = int(offsetAt(now, zone) / time.Minute)
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

// ChannelPlan is the queue plan of a channel as people read it.
type ChannelPlan struct {
	// Timezone is the channel's, a name for tenancy.LoadZone.
	Timezone string
	Times    []QueueTime
	// Next are the next slots of the plan, taken ones too: at most NextSlots.
	Next []time.Time
}
