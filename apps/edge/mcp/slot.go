package mcp

import "context"

type slotInput struct {
	Channel string `json:"integrationId"`
}

// slotAnswer is a free posting time.
type slotAnswer struct {
	Date      string `json:"date"`
	LocalDate string `json:"localDate"`
	Timezone  string `json:"timezone"`
	Now       string `json:"now"`
	LocalNow  string `json:"localNow"`
}

func (a otherTools) findSlot() *tool {
	return &tool{
		name: toolFindSlot, title: "Find a posting time",
		description: "Find a channel's next free posting time. The time is held for two minutes, so the next call finds " +
			"another one. To plan several posts, call this once per post.",
		input: arguments(properties{"integrationId": channelID()}, "integrationId"),
		output: answers(object("The time.", properties{
			"date": date("UTC. Send it as the date of a post."), "localDate": date("The same time in timezone."),
			"timezone": str("Time zone of the channel."), "now": date("Current time, UTC."),
			"localNow": date("Current time in timezone."),
		}, "date", "localDate", "timezone", "now"), properties{"now": date("Current time, UTC.")}),
		run: runner(a.runFindSlot),
	}
}

func (a otherTools) runFindSlot(ctx context.Context, c *call, in slotInput) (answer, error) {
	at, err := a.deps.Slots.Find(ctx, c.p, in.Channel)
	if err != nil {
		return answer{}, noObject(err, "integrationId", toolListChannels)
	}
	plan, err := a.deps.Slots.Plan(ctx, c.p, in.Channel)
	if err != nil {
		return answer{}, err
	}
	found, now := momentIn(at, plan.Timezone), momentIn(c.now, plan.Timezone)
	return answer{
		Output: slotAnswer{Date: found.UTC, LocalDate: found.Local, Timezone: found.Zone, Now: now.UTC, LocalNow: now.Local},
		Now:    now.UTC,
	}, nil
}
