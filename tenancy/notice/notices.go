// Package notice queues mails in the transaction of what they tell: their kinds, what they name,
// and how many of them may wait.
package notice

import (
	"log/slog"

	"crier/platform/clock"
	"crier/tenancy/db"
)

// Queue queues mails. It is safe for concurrent use.
type Queue struct {
	db      *db.DB
	clock   clock.Clock
	enabled bool
	log     *slog.Logger
}

// NewQueue returns a Queue. On an instance that sends no mail it is not enabled, and queues
// nothing.
func NewQueue(d *db.DB, c clock.Clock, enabled bool, log *slog.Logger) *Queue {
	return &Queue{db: d, clock: c, enabled: enabled, log: log}
}

// Enabled reports whether the instance sends mail. Without mail accounts are active at once, and no
// address counts as verified.
func (q *Queue) Enabled() bool { return q.enabled }
