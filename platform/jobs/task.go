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

// storedAttempts is the limit of attempts in the row of a task. The Handler's own limit, which is smaller, applies
// first; this one ends a task that no Handler can parse.
const storedAttempts = 100

// laterSuffix ends the name of the second queue of a kind.
const laterSuffix = "-later"

// kindForm is the form of a kind, which is also the name of a queue of River.
var kindForm = regexp.MustCompile(`^[a-z][a-z0-9]+(-[a-z0-9]+)*$`)

// Task is work that is done once, after the transaction that added it has committed. The database stores the two ids
// and no content: the Handler reads what it needs when it runs.
type Task struct {
	// Kind names the Handler of the task.
	Kind string
	// Org is the organization that the task belongs to, or uuid.Nil. A transaction of the tenant role can add tasks of
	// its own organization only, and one of the gate role only tasks without an organization.
	Org uuid.UUID
	// ID is the row that the task is about.
	ID uuid.UUID
	// After is the shortest time from Add to the first attempt, which begins up to 10 s later than that. It and
	// Later are zero in the task that a Handler gets.
	After time.Duration
	// Later puts the task into the second queue of its kind, with the repetitions, so that it delays no first attempt: for
	// work that nobody waits for, such as a mail to each of many people.
	Later bool
}

// Queue adds tasks. It is safe for concurrent use, and needs no Runner in the process.
type Queue struct {
	driver *riverpgxv5.Driver
	cfg    river.Config
}

// NewQueue returns a Queue. The error is fault.Internal when River refuses its configuration.
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

// client returns a new client of River, which takes 4 microseconds. A client in use would send no notification within
// 100 ms of its last, although the transaction of that one may have been rolled back.
func (q *Queue) client() (*river.Client[pgx.Tx], error) {
	return river.NewClient(q.driver, &q.cfg)
}

// Add adds a task in a transaction of the tenant or the gate role. A worker is notified at the commit; after a rollback
// there is no task. The error is fault.Internal for an invalid Kind, and else that of the database, which pg.Fault
// converts: 42501 when the role may not add the task. After an error the transaction must be rolled back.
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

// isKind returns true for the name of a queue that is neither the one of the periodic jobs nor the second one of a kind.
func isKind(s string) bool {
	return kindForm.MatchString(s) && s != river.QueueDefault && !strings.HasSuffix(s, laterSuffix)
}

// taskArgs is stored as JSON in the row of a task. The policies of jobs.river_job depend on the member org.
type taskArgs struct {
	Org  uuid.UUID `json:"org,omitzero"`
	ID   uuid.UUID `json:"id"`
	kind string
}

// Kind implements river.JobArgs. It returns "" for arguments that were read from a row, which has a column for it.
func (a taskArgs) Kind() string { return a.kind }
