// Package db contains what the stores of publishing share: the database and its transactions, the
// rows that several nouns join, and the statements about the organization itself.
package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// DB is the database as the use cases of publishing see it. It is safe for concurrent use. Unless a
// statement documents another error, stores return the Postgres error, which pg.Fault converts.
//
// A statement that takes an organization runs under its row-level security and cannot see the rows
// of other organizations. A statement without one is for the scheduler, and reads and writes the
// rows of all organizations.
type DB struct {
	*pg.DB
	// Node is the name of this process in timelines, which show where a post was written, changed
	// or paused. It is empty in tests.
	Node string
	// Authority confirms principals. If nil, everything is allowed; this is for tests.
	Authority Authority
	// Auditor appends to the audit logs. If nil, nothing is appended; this is for tests.
	Auditor Auditor
	// Waker wakes an organization after a transaction has released a channel, because the next post
	// of the channel may be due. If nil, nobody is woken.
	Waker publishing.Waker
}

// New returns a DB without the optional fields.
func New(db *pg.DB) *DB { return &DB{DB: db} }

// UUIDs returns ids as a parameter of type uuid[]. For no ids it returns an empty array rather than
// null, because "<> all (null)" is never true.
func UUIDs[T any](ids []id.ID[T]) [][16]byte {
	out := make([][16]byte, len(ids))
	for i, v := range ids {
		out[i] = v.UUID()
	}
	return out
}

// Tx is a transaction of one organization. It is not safe for concurrent use. Unless a statement
// documents another error, it returns the Postgres error, after which the transaction must end.
type Tx struct {
	pgx.Tx
	Org  tenancy.OrgID
	Node string
	// Freed is set once the transaction has released a channel.
	Freed bool
}

// InOrg runs fn in one transaction of the organization and commits it if fn returns nil. It returns
// the error of fn or the Postgres error. After a deadlock or a lock timeout fn may run again, so it
// must overwrite what it sets. If fn has released a channel, InOrg wakes the organization after the
// commit.
func (d *DB) InOrg(ctx context.Context, org tenancy.OrgID, fn func(*Tx) error) error {
	freed := false
	err := d.DB.InOrg(ctx, org.UUID(), func(tx pgx.Tx) error {
		t := &Tx{Tx: tx, Org: org, Node: d.Node}
		err := fn(t)
		freed = t.Freed
		return err
	})
	if err != nil {
		return err
	}
	if freed && d.Waker != nil {
		d.Waker.Wake(ctx, org, time.Time{})
	}
	return nil
}

// InOrgAs is like InOrg, but for a command of a principal: the transaction starts by confirming the
// principal. Commands that only write posts for an API key use InOrg instead. They are the most
// frequent commands, and they create nothing that acts later.
func (d *DB) InOrgAs(ctx context.Context, p tenancy.Principal, fn func(*Tx) error) error {
	return d.InOrg(ctx, p.Org, func(tx *Tx) error {
		if d.Authority != nil {
			err := d.AsGate(
				ctx, tx.Tx, p.Org.UUID(), func(q pg.Querier) error { return d.Authority.Confirm(ctx, q, p) },
			)
			if err != nil {
				return err
			}
		}
		return fn(tx)
	})
}

// Auditor appends entries to the audit logs of organizations.
type Auditor interface {
	// AppendAudit appends an entry to the log of the principal's organization. It runs as pg.Tenant
	// in the transaction of the recorded change, and returns the Postgres error.
	AppendAudit(ctx context.Context, q pg.Querier, p tenancy.Principal, action tenancy.Action, subject string) error
}

// Audit appends an entry about a principal's action to the audit log, in the transaction of the
// action.
func (d *DB) Audit(
	ctx context.Context, tx *Tx, p tenancy.Principal, action tenancy.Action, subject string,
) error {
	if d.Auditor == nil {
		return nil
	}
	return d.Auditor.AppendAudit(ctx, tx, p, action, subject)
}

// Authority confirms that a principal still has the permissions that it had when its request was
// permitted.
type Authority interface {
	// Confirm is called at the beginning of a transaction, which runs as pg.Gate during the call.
	// What it confirms remains true until the transaction ends. It returns Unauthenticated,
	// Forbidden, NotFound if a guest's link no longer works, or the Postgres error.
	Confirm(ctx context.Context, q pg.Querier, p tenancy.Principal) error
}

// Fault converts an error of a transaction to a fault. It returns faults unchanged, NotFound for a
// missing row, and the result of pg.Fault for every other error.
func Fault(op string, err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "Something that the request names no longer exists.")
	}
	return pg.Fault(op, err)
}

// PostFault is like Fault, but for transactions about a post: a missing row means that the post
// does not exist.
func PostFault(op string, err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	if pg.IsNoRows(err) {
		return publishing.NoPost(op)
	}
	return pg.Fault(op, err)
}
