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

// Find returns the first slot after now of a channel's queue plan at which the channel has neither
// a post nor a hold. It holds the slot for publishing.SlotHold, so that no other call returns it,
// in any process. Every post that has not failed takes its minute, including drafts, followers and
// the later occurrences of repeated posts.
//
// Find returns NotFound for an id that names no channel, and Conflict if the channel has no posting
// times, or no free one within publishing.SlotsAhead.
func (s *Slots) Find(ctx context.Context, p tenancy.Principal, channel string) (time.Time, error) {
	const op = "publishing.FindSlot"
	parsed, ok := id.Parse[publishing.ChannelTag](channel)
	if !ok || parsed.IsZero() { // find treats the zero id as all channels
		return time.Time{}, publishing.NoChannel(op)
	}
	return s.find(ctx, p, parsed)
}

// FindAny returns the first slot of the organization's channels at which none of its channels has a
// post or a hold, and holds it for all channels. Plans of disabled channels are ignored. It returns
// Conflict like Find.
func (s *Slots) FindAny(ctx context.Context, p tenancy.Principal) (time.Time, error) {
	return s.find(ctx, p, publishing.ChannelID{})
}

// find is Find, or FindAny for the zero channel.
func (s *Slots) find(
	ctx context.Context, p tenancy.Principal, channel publishing.ChannelID,
) (at time.Time, err error) {
	const op = "publishing.FindSlot"
	err = s.db.InOrg(ctx, p.Org, func(tx *db.Tx) error {
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

// usablePlans loads the zones of plans. It leaves out plans that have no times or an unknown zone,
// and returns Conflict if none is left.
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

// slotWindows are the ends, counted from now, of the windows in which a slot is searched for. Taken
// minutes are read for one window at a time: most calls need only the first one, and an
// organization may have a million posts a year.
var slotWindows = [...]time.Duration{32 * 24 * time.Hour, publishing.SlotsAhead}

// free returns the first free slot of plans after now, or Conflict if all are taken.
func (s *Slots) free(
	ctx context.Context, tx *db.Tx, channel publishing.ChannelID, plans []publishing.QueuePlan, now time.Time,
) (time.Time, error) {
	from := now
	for _, window := range slotWindows {
		until := now.Add(window)
		// A slot at the end of the window is part of it.
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
