package service

import (
	"context"

	"crier/platform/fault"
	"crier/publishing"
	publishingstore "crier/publishing/store"
)

// queueName and queueAlias are the names of the queue of all platforms.
const queueName, queueAlias = "publish", "post"

// QueueStats returns the statistics of a queue over all organizations: of all platforms, or of one by its identifier.
// It returns NotFound for any other name.
func (s *Posts) QueueStats(ctx context.Context, queue string) (publishing.QueueStats, error) {
	const op = "publishing.QueueStats"
	if queue == queueName || queue == queueAlias {
		queue = ""
	} else if _, ok := s.deps.Connectors.Get(queue); !ok {
		return publishing.QueueStats{}, fault.New(fault.NotFound, op,
			"There is no such queue: ask for publish, or for a platform.")
	}
	f, err := publishingstore.QueueStats(ctx, s.store, queue)
	return f, internal(op, err)
}
