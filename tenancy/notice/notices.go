// Package notice queues emails in the same transaction as the change that they report. It defines
// the kinds of email and their contents, and limits how many emails can be waiting.
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

// Enabled reports whether the instance sends email. On an instance that sends no email, new
// accounts are active at once and no email address counts as verified.
func (q *Queue) Enabled() bool { return q.enabled }
