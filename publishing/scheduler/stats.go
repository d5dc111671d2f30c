package scheduler

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	schedulerstore "crier/publishing/scheduler/store"
)

// queueName and queueAlias are the two names of the queue for all platforms.
const queueName, queueAlias = "publish", "post"

// QueueStats returns the statistics of a queue across all organizations. The queue for all
// platforms is called "publish" or "post"; the queue for one platform has the platform's name.
// QueueStats returns NotFound for any other name.
func (s *Queue) QueueStats(ctx context.Context, queue string) (publishing.QueueStats, error) {
	const op = "publishing.QueueStats"
	if queue == queueName || queue == queueAlias {
		queue = ""
	} else if _, ok := s.deps.Connectors.Get(queue); !ok {
		return publishing.QueueStats{}, fault.New(fault.NotFound, op,
			"There is no such queue: use publish, or the name of a platform.")
	}
	f, err := schedulerstore.QueueStats(ctx, s.db, queue)
	return f, pg.Fault(op, err)
}
