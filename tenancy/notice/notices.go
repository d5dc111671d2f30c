// Package notice queues emails in the transaction that makes the change they report. It defines the
// kinds of email and their contents, and limits how many can wait to be sent.
package notice

import (
	"log/slog"

	"crier/platform/clock"
	"crier/tenancy/db"
)

// Queue queues emails. It is safe for concurrent use.
type Queue struct {
	db      *db.DB
	clock   clock.Clock
	enabled bool
	log     *slog.Logger
}

// NewQueue returns a Queue. If enabled is false, the instance sends no email and the Queue queues
// nothing.
func NewQueue(d *db.DB, c clock.Clock, enabled bool, log *slog.Logger) *Queue {
	return &Queue{db: d, clock: c, enabled: enabled, log: log}
}

// Enabled reports whether the instance sends email. Without email, accounts are active at once and
// no address counts as verified.
func (q *Queue) Enabled() bool { return q.enabled }
