// Package notice queues mails in the transaction of the change that they report. It defines their
// kinds and their contents, and limits how many of them may wait.
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

// NewQueue returns a Queue. If enabled is false, the instance sends no mail and the Queue queues
// nothing.
func NewQueue(d *db.DB, c clock.Clock, enabled bool, log *slog.Logger) *Queue {
	return &Queue{db: d, clock: c, enabled: enabled, log: log}
}

// Enabled reports whether the instance sends mail. Without mail accounts are active at once, and no
// address counts as verified.
func (q *Queue) Enabled() bool { return q.enabled }
