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

// storedAttempts is the limit of attempts that is stored with a task. The limit of the Handler is
// smaller and applies first; this one ends a task that no Handler can parse.
const storedAttempts = 100

// laterSuffix is the suffix of the name of a kind's second queue. Example: the kind "webhook" has
// the queues "webhook" and "webhook-later".
const laterSuffix = "-later"

// kindForm is the form of a kind, which is also the name of a River queue.
var kindForm = regexp.MustCompile(`^[a-z][a-z0-9]+(-[a-z0-9]+)*$`)

// Task is work that is done once, after the transaction that added it has committed. The database
// stores only its two ids: the Handler reads whatever else it needs when it runs.
type Task struct {
	// Kind names the Handler that runs the task.
	Kind string
	// Org is the organization that the task belongs to, or uuid.Nil. A transaction of the tenant
	// role can add only tasks of its own organization, and a transaction of the gate role only
	// tasks without an organization.
	Org uuid.UUID
	// ID is the row that the task is about.
	ID uuid.UUID
	// After is the minimum delay between Add and the first attempt, which begins at most 10 s
	// later. After and Later are zero in the task that a Handler receives.
	After time.Duration
	// Later puts the task into the second queue of its kind, together with the retries, so that it
	// never delays a first attempt. It is meant for work that nobody waits for, such as a mail to
	// each of many people.
	Later bool
}

// Queue adds tasks. It is safe for concurrent use and does not need a Runner in the process.
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

// client returns a new River client, which takes 4 microseconds. A shared client would suppress
// every notification within 100 ms of its previous one, even if the previous one was rolled back.
func (q *Queue) client() (*river.Client[pgx.Tx], error) {
	return river.NewClient(q.driver, &q.cfg)
}

// Add adds a task in a transaction of the tenant or the gate role. A worker is notified at the
// commit; if the transaction is rolled back, the task does not exist.
//
// Add returns fault.Internal if Kind is invalid. Any other error comes from the database and can be
// passed to pg.Fault; it is SQLSTATE 42501 if the role may not add the task. After an error the
// transaction must be rolled back.
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

// isKind reports whether s can name a queue of tasks. The default queue of River and names that end
// in laterSuffix are reserved.
func isKind(s string) bool {
	return kindForm.MatchString(s) && s != river.QueueDefault && !strings.HasSuffix(s, laterSuffix)
}

// taskArgs is stored as JSON in the row of a task. The policies of jobs.river_job read the member
// org.
type taskArgs struct {
	Org  uuid.UUID `json:"org,omitzero"`
	ID   uuid.UUID `json:"id"`
	kind string
}

// Kind implements river.JobArgs. It returns "" for arguments that were read from a row: the kind
// has a column there.
func (a taskArgs) Kind() string { return a.kind }
