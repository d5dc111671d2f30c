// Package db contains what the stores of publishing share: the database and its transactions, rows
// that several stores read, and statements about the organization itself.
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

// DB is the database as publishing's use cases see it. It is safe for concurrent use. Unless a
// statement documents a different error, stores return the Postgres error, which pg.Fault converts.
//
// A statement that takes an organization runs under that organization's row-level security and
// cannot see other organizations' rows. A statement that takes no organization is for the
// scheduler, and reads and writes all organizations' rows.
type DB struct {
	*pg.DB
	// Node is this process's name in timelines, which show where a post was written, changed or
	// paused. It is empty in tests.
	Node string
	// Authority confirms principals. If it is nil, as in tests, everything is allowed.
	Authority Authority
	// Auditor appends to the audit logs. If it is nil, as in tests, nothing is appended.
	Auditor Auditor
	// Waker wakes an organization after a transaction has released a channel, because the channel's
	// next post may be due. If it is nil, no organization is woken.
	Waker publishing.Waker
}

// New returns a DB whose other fields are unset.
func New(db *pg.DB) *DB { return &DB{DB: db} }

// UUIDs returns ids as a parameter of type uuid[]. If there are no ids, it returns an empty array
// rather than null, because "<> all (null)" is never true.
func UUIDs[T any](ids []id.ID[T]) [][16]byte {
	out := make([][16]byte, len(ids))
	for i, v := range ids {
		out[i] = v.UUID()
	}
	return out
}

// Tx is a transaction for one organization. It is not safe for concurrent use. Unless a statement
// documents a different error, it returns the Postgres error, after which the transaction must end.
type Tx struct {
	pgx.Tx
	Org  tenancy.OrgID
	Node string
	// Freed is set once the transaction has released a channel.
	Freed bool
}

// InOrg runs fn in one transaction for the organization, and commits the transaction if fn returns
// nil. It returns the error from fn or the Postgres error. After a deadlock or a lock timeout, fn
// may run again, so fn must overwrite any variables that it sets. If fn has released a channel,
// InOrg wakes the organization after the commit.
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

// InOrgAs is like InOrg, but for a principal's command: the transaction starts by confirming the
// principal. Commands that only write posts for an API key use InOrg instead, because they are the
// most frequent commands and create nothing that can act later.
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

// Auditor appends entries to organizations' audit logs.
type Auditor interface {
	// AppendAudit appends an entry to the audit log of the principal's organization. It runs as
	// pg.Tenant in the same transaction as the recorded change, and returns the Postgres error.
	AppendAudit(ctx context.Context, q pg.Querier, p tenancy.Principal, action tenancy.Action, subject string) error
}

// Audit appends an entry about a principal's action to the audit log, in the same transaction as
// the action.
func (d *DB) Audit(
	ctx context.Context, tx *Tx, p tenancy.Principal, action tenancy.Action, subject string,
) error {
	if d.Auditor == nil {
		return nil
	}
	return d.Auditor.AppendAudit(ctx, tx, p, action, subject)
}

// Authority confirms that a principal still has the permissions it had when its request was
// authorized.
type Authority interface {
	// Confirm is called at the beginning of a transaction, which runs as pg.Gate during the call.
	// What Confirm has checked remains true until the transaction ends. It returns Unauthenticated,
	// Forbidden, NotFound if a guest's link no longer works, or the Postgres error.
	Confirm(ctx context.Context, q pg.Querier, p tenancy.Principal) error
}

// Fault converts an error from a transaction to a fault. It returns faults unchanged, NotFound for
// a missing row, and the result of pg.Fault for any other error.
func Fault(op string, err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "Something that the request names no longer exists.")
	}
	return pg.Fault(op, err)
}

// PostFault is like Fault, but for transactions that concern a post: a missing row means that the
// post does not exist.
func PostFault(op string, err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	if pg.IsNoRows(err) {
		return publishing.NoPost(op)
	}
	return pg.Fault(op, err)
}
