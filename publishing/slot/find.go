package slot

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/db"
	slotstore "crier/publishing/slot/store"
	"crier/tenancy"
)

// Find returns the next slot in a channel's queue plan that is not taken by a post or a hold on the
// channel. It holds the slot for publishing.SlotHold, so that no other call, in any process,
// returns the same slot. Any post that has not failed takes its minute, including drafts, followers
// and later occurrences of repeated posts.
//
// Find returns NotFound if the channel does not exist. It returns Conflict if the channel has no
// posting times, or if all of them within publishing.SlotsAhead are taken.
func (s *Slots) Find(ctx context.Context, p tenancy.Principal, channel string) (time.Time, error) {
	const op = "publishing.FindSlot"
	parsed, ok := id.Parse[publishing.ChannelTag](channel)
	if !ok || parsed.IsZero() { // find treats the zero id as all channels
		return time.Time{}, publishing.NoChannel(op)
	}
	return s.find(ctx, p, parsed)
}

// FindAny returns the next slot in any of the organization's queue plans that is not taken by a
// post or a hold on any channel. It holds the slot for all channels. The plans of disabled channels
// are ignored. FindAny returns Conflict in the same cases as Find.
func (s *Slots) FindAny(ctx context.Context, p tenancy.Principal) (time.Time, error) {
	return s.find(ctx, p, publishing.ChannelID{})
}

// find implements Find. If channel is zero, it implements FindAny.
func (s *Slots) find(
	ctx context.Context, p tenancy.Principal, channel publishing.ChannelID,
) (at time.Time, err error) {
	const op = "publishing.FindSlot"
	err = s.db.InOrgToWrite(ctx, p, func(tx *db.Tx) error {
		stored, now, err := slotstore.Lock(ctx, tx, channel)
		if err != nil {
			return err
		}
		if len(stored) == 0 && !channel.IsZero() {
			return publishing.NoChannel(op)
		}
		plans, err := usablePlans(stored)
		if err != nil {
			return err
		}
		at, err = s.free(ctx, tx, channel, plans, now)
		if err != nil {
			return err
		}
		return slotstore.Hold(ctx, tx, channel, at, publishing.SlotHold)
	})
	if err != nil {
		return time.Time{}, db.PostFault(op, err)
	}
	return at, nil
}

// usablePlans loads the plans' time zones. It skips plans that have no times or whose zone is
// unknown, and returns Conflict if no plan remains.
func usablePlans(stored []slotstore.StoredPlan) (plans []publishing.QueuePlan, err error) {
	const op = "publishing.FindSlot"
	none := fault.New(fault.Conflict, op, "There are no posting times: set the queue plan of the channel first.")
	for _, p := range stored {
		if len(p.Times) == 0 {
			continue
		}
		zone, unknown := tenancy.LoadZone(p.Timezone)
		if unknown != nil {
			none = fault.New(fault.Conflict, op, "This server does not know the channel's time zone "+
				connector.Quote(p.Timezone)+": set its queue plan with another one.")
			continue
		}
		plans = append(plans, publishing.QueuePlan{Zone: zone, Times: p.Times})
	}
	if len(plans) == 0 {
		return nil, none
	}
	return plans, nil
}

// slotWindows holds the ends of the search windows, measured from now. Taken minutes are read one
// window at a time, because most calls need only the first window and an organization may have a
// million posts a year.
var slotWindows = [...]time.Duration{32 * 24 * time.Hour, publishing.SlotsAhead}

// free returns the first free slot in the plans after now. It returns Conflict if all slots are
// taken.
func (s *Slots) free(
	ctx context.Context, tx *db.Tx, channel publishing.ChannelID, plans []publishing.QueuePlan, now time.Time,
) (time.Time, error) {
	from := now
	for _, window := range slotWindows {
		until := now.Add(window)
		// FreeSlot can return a slot exactly at the end of the window, so the last minute is
		// included.
		taken, err := s.posts.TakenMinutes(ctx, tx, channel, from, until.Add(time.Minute))
		if err != nil {
			return time.Time{}, err
		}
		at, ok, err := publishing.FreeSlot(ctx, plans, from, until, taken)
		if ok || err != nil {
			return at, err
		}
		from = until
	}
	return time.Time{}, fault.New(fault.Conflict, "publishing.FindSlot",
		"All posting times of the next 366 days are taken: add times to the queue plan, or choose a time yourself.")
}
