package edgetest

import (
	"context"
	"time"

	"crier/publishing"
	"crier/tenancy"
)

// slots implements the port for posting times.
type slots struct{ *World }

func (s slots) Find(_ context.Context, _ tenancy.Principal, channel string) (time.Time, error) {
	return Day, s.note(channel)
}

func (s slots) FindAny(context.Context, tenancy.Principal) (time.Time, error) { return Day, s.note() }

func (s slots) Plan(_ context.Context, _ tenancy.Principal, channel string) (publishing.ChannelPlan, error) {
	return publishing.ChannelPlan{
		Timezone: "UTC", Times: publishing.DefaultQueueTimes(true), Next: []time.Time{Day},
	}, s.note(channel)
}

func (s slots) SetPlan(
	_ context.Context, _ tenancy.Principal, channel string, cmd publishing.SetQueuePlan,
) (publishing.ChannelPlan, error) {
	if err := cmd.Validate(); err != nil {
		return publishing.ChannelPlan{}, err
	}
	return publishing.ChannelPlan{Timezone: "UTC", Times: cmd.WallTimes(time.UTC, Day)}, s.note(channel)
}
