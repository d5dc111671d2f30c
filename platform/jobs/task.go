package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"crier/platform/clock"
	"crier/platform/fault"
)

// storedAttempts is the attempt limit stored with each task. Handler.Attempts is lower and applies
// first, so only tasks that no Handler can parse reach storedAttempts.
const storedAttempts = 100

// laterSuffix ends the name of a kind's second queue. Example: the kind "webhook" has the queues
// "webhook" and "webhook-later".
const laterSuffix = "-later"

// kindForm matches a kind, which is also the name of a River queue.
var kindForm = regexp.MustCompile(`^[a-z][a-z0-9]+(-[a-z0-9]+)*$`)

// Task is a piece of work to be done once, after the transaction that added the task has committed.
// The database stores only the task's two ids; the Handler reads everything else when it runs.
type Task struct {
	// Kind names the Handler that runs the task.
	Kind string
	// Org is the organization the task belongs to, or uuid.Nil. A transaction in the tenant role
	// can add tasks only for its own organization. A transaction in the gate role can add only
	// tasks without an organization.
	Org uuid.UUID
	// ID identifies the row the task is about.
	ID uuid.UUID
	// After is the minimum delay between Add and the first attempt. The attempt begins at most 10 s
	// after the delay has passed. After and Later are zero in the task that a Handler receives.
	After time.Duration
	// Later puts the task in its kind's second queue, along with retries, so that it never delays a
	// first attempt. Use it for work that no one is waiting for, such as emails to many recipients.
	Later bool
}

// Queue adds tasks. It is safe for concurrent use and does not require a Runner in the same
// process.
type Queue struct {
	driver *riverpgxv5.Driver
	cfg    river.Config
}

// NewQueue returns a Queue. It returns fault.Internal if River rejects the configuration.
func NewQueue() (*Queue, error) {
	q := &Queue{
		driver: riverpgxv5.New(nil),
		cfg:    river.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler), MaxAttempts: storedAttempts},
	}
	if _, err := q.client(); err != nil {
		return nil, fault.Wrap(fault.Internal, "jobs.NewQueue", "", err)
	}
	return q, nil
}

// client returns a new River client. A shared client would suppress any notification within 100 ms
// of the previous one, even if the previous one was rolled back. Creating a client takes 4
// microseconds.
func (q *Queue) client() (*river.Client[pgx.Tx], error) {
	return river.NewClient(q.driver, &q.cfg)
}

// Add adds a task in a transaction that runs as the tenant or gate role. A worker is notified when
// the transaction commits. If the transaction is rolled back, the task does not exist.
//
// Add returns fault.Internal if Kind is invalid. Any other error comes from the database and can be
// passed to pg.Fault. Its SQLSTATE is 42501 if the role is not allowed to add the task. After an
// error, the transaction must be rolled back.
func (q *Queue) Add(ctx context.Context, tx pgx.Tx, t Task) error {
	const op = "jobs.Add"
	if !isKind(t.Kind) {
		return fault.New(fault.Internal, op, "The kind of a task cannot be "+t.Kind+".")
	}
	client, err := q.client()
	if err != nil {
		return fault.Wrap(fault.Internal, op, "", err)
	}
	opts := &river.InsertOpts{Queue: t.Kind}
	if t.Later {
		opts.Queue += laterSuffix
	}
	if t.After > 0 {
		opts.ScheduledAt = clock.System{}.Now().Add(t.After)
	}
	if _, err := client.InsertTx(ctx, tx, taskArgs{Org: t.Org, ID: t.ID, kind: t.Kind}, opts); err != nil {
		return fmt.Errorf("%s: a task of the kind %s: %w", op, t.Kind, err)
	}
	return nil
}

// isKind reports whether s is a valid kind. River's default queue and names that end in laterSuffix
// are reserved.
func isKind(s string) bool {
	return kindForm.MatchString(s) && s != river.QueueDefault && !strings.HasSuffix(s, laterSuffix)
}

// taskArgs is stored as JSON in the task's row. The row-level security policies of jobs.river_job
// read its org field.
type taskArgs struct {
	Org  uuid.UUID `json:"org,omitzero"`
	ID   uuid.UUID `json:"id"`
	kind string
}

// Kind implements river.JobArgs. It returns "" for arguments that were read from a row, because the
// kind is stored in a separate column.
func (a taskArgs) Kind() string { return a.kind }
