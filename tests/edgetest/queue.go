package edgetest

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// queue implements the ports of pauses and the queue.
type queue struct{ *World }

func (q queue) Pause(_ context.Context, p tenancy.Principal, cmd publishing.SetPause) (publishing.PauseResult, error) {
	if cmd.Scope == publishing.PauseOrganization && !p.Role.Manages() {
		return publishing.PauseResult{}, fault.New(fault.Forbidden, "fake", "Only an administrator may.")
	}
	if q.Release != nil {
		<-q.Release
	}
	held := q.Thread.Root
	return publishing.PauseResult{
		Paused: cmd.Paused, Held: 3, InFlight: 1, Posts: []publishing.Post{held},
		Channels: map[publishing.ChannelID]string{held.Channel: "News"},
		Texts:    map[publishing.PostID]string{held.ID: "Hello"},
	}, q.note(string(cmd.Scope), cmd.ID)
}

func (q queue) QueueStats(_ context.Context, name string) (publishing.QueueStats, error) {
	if name != "publish" {
		return publishing.QueueStats{}, fault.New(fault.NotFound, "fake", "There is no such queue.")
	}
	f := publishing.QueueStats{Due: 2, Publishing: 1, Next: &Day}
	if q.Unhealthy.Load() {
		f.Overdue, f.Oldest = 1, 90*time.Second
	}
	return f, q.note(name)
}
