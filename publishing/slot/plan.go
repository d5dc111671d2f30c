package slot

import (
	"context"
	"time"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	slotstore "crier/publishing/slot/store"
	"crier/tenancy"
)

// Plan returns a channel's queue plan. It returns NotFound if the channel does not exist. If this
// server does not know the plan's time zone, the result contains no upcoming slots.
func (s *Slots) Plan(ctx context.Context, p tenancy.Principal, channel string) (publishing.ChannelPlan, error) {
	const op = "publishing.QueuePlan"
	parsed, ok := id.Parse[publishing.ChannelTag](channel)
	if !ok {
		return publishing.ChannelPlan{}, publishing.NoChannel(op)
	}
	stored, err := slotstore.Plan(ctx, s.db, p.Org, parsed)
	if pg.IsNoRows(err) {
		return publishing.ChannelPlan{}, publishing.NoChannel(op)
	}
	if err != nil {
		return publishing.ChannelPlan{}, pg.Fault(op, err)
	}
	return channelPlan(stored, s.clock.Now()), nil
}

// SetPlan replaces a channel's queue plan and returns the new plan. If cmd has a time zone, SetPlan
// also replaces the channel's time zone. Posts that are already scheduled keep their times. SetPlan
// returns Invalid if a time is invalid, NotFound if the channel does not exist, and Forbidden if
// the principal is an agent.
//
// SetPlan writes no audit entry, because the posting times are visible in the channel.
func (s *Slots) SetPlan(
	ctx context.Context, p tenancy.Principal, channel string, cmd publishing.SetQueuePlan,
) (publishing.ChannelPlan, error) {
	const op = "publishing.SetQueuePlan"
	parsed, ok := id.Parse[publishing.ChannelTag](channel)
	if !ok {
		return publishing.ChannelPlan{}, publishing.NoChannel(op)
	}
	if err := publishing.NoAgent(op, p, "change posting times"); err != nil {
		return publishing.ChannelPlan{}, err
	}
	if err := cmd.Validate(); err != nil {
		return publishing.ChannelPlan{}, err
	}
	now := s.clock.Now()
	var plan slotstore.StoredPlan
	err := s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		old, err := slotstore.LockPlan(ctx, tx, parsed)
		if pg.IsNoRows(err) {
			return publishing.NoChannel(op)
		}
		if err != nil {
			return err
		}
		plan.Timezone = cmd.Zone.Resolve(old, now)
		zone, err := tenancy.LoadZone(plan.Timezone)
		if err != nil {
			return err
		}
		plan.Times = cmd.WallTimes(zone, now)
		return slotstore.SetPlan(ctx, tx, parsed, plan)
	})
	if err != nil {
		return publishing.ChannelPlan{}, db.PostFault(op, err)
	}
	return channelPlan(plan, now), nil
}

func channelPlan(stored slotstore.StoredPlan, now time.Time) publishing.ChannelPlan {
	out := publishing.ChannelPlan{Timezone: stored.Timezone, Times: stored.Times}
	if zone, err := tenancy.LoadZone(stored.Timezone); err == nil {
		out.Next = publishing.QueuePlan{Zone: zone, Times: stored.Times}.Next(now, publishing.NextSlots)
	}
	return out
}
