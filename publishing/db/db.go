// Package db holds what publishing's stores share: the database and its transactions, rows that
// several stores read, and statements about organizations.
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

// DB is the database as seen by publishing's use cases. It is safe for concurrent use. Unless a
// function documents a different error, stores return Postgres errors unchanged, and pg.Fault
// converts them.
//
// A function that takes an organization runs its statement under that organization's row-level
// security and cannot see other organizations' rows. A function that takes no organization is for
// the scheduler, and reads and writes the rows of all organizations.
type DB struct {
	*pg.DB
	// Node is this process's name. Timelines show which process wrote, changed or paused a post.
	// Node is empty in tests.
	Node string
	// Authority confirms principals. If it is nil, as in tests, everything is allowed.
	Authority Authority
	// Auditor appends to the audit logs. If it is nil, as in tests, nothing is appended.
	Auditor Auditor
	// Waker wakes an organization's actor after a transaction has released a channel, because the
	// channel's next post may be due. If Waker is nil, no actor is woken.
	Waker publishing.Waker
}

// New returns a DB in which only the embedded pg.DB is set.
func New(db *pg.DB) *DB { return &DB{DB: db} }

// UUIDs converts ids to a parameter of type uuid[]. If there are no ids, it returns an empty array
// rather than null, because "<> all (null)" is never true.
func UUIDs[T any](ids []id.ID[T]) [][16]byte {
	out := make([][16]byte, len(ids))
	for i, v := range ids {
		out[i] = v.UUID()
	}
	return out
}

// Tx is a transaction for one organization. It is not safe for concurrent use. Unless a function
// documents a different error, it returns Postgres errors unchanged. The transaction must end after
// a Postgres error.
type Tx struct {
	pgx.Tx
	Org  tenancy.OrgID
	Node string
	// Freed is set once the transaction has released a channel.
	Freed bool
}

// Whole runs fn with all of the organization's rows visible, even if the transaction is narrowed.
// Use it to count rows and to check that values are unique in the organization. ctx must be the
// context with which the transaction was begun. See pg.AsWhole.
func (t *Tx) Whole(ctx context.Context, fn func(ctx context.Context) error) error {
	return pg.AsWhole(ctx, t.Tx, fn)
}

// InOrg runs fn in a transaction for the organization and commits the transaction if fn returns
// nil. It returns any error from fn or Postgres. After a deadlock or a lock timeout, fn may run
// again, so fn must overwrite any variables that it sets. If fn has released a channel, InOrg wakes
// the organization's actor after the commit.
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

// InOrgAs is like InOrg, but for a principal's command. Its transaction starts by confirming the
// principal. See also InOrgToWrite.
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

// InOrgToWrite is like InOrgAs for an agent and like InOrg for every other principal. It is for
// commands that only write posts or hold slots. These are the most frequent commands, and they
// create nothing that could act on its own later. Agents are still confirmed, so that nothing is
// written once an agent's grant has been revoked.
func (d *DB) InOrgToWrite(ctx context.Context, p tenancy.Principal, fn func(*Tx) error) error {
	if p.Via == tenancy.ViaAgent {
		return d.InOrgAs(ctx, p, fn)
	}
	return d.InOrg(ctx, p.Org, fn)
}

// Auditor appends entries to organizations' audit logs.
type Auditor interface {
	// AppendAudit appends an entry to the audit log of the principal's organization. It runs as
	// pg.Tenant in the same transaction as the recorded change. It returns any Postgres error.
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
	// Confirm is called at the beginning of a transaction. The transaction runs as pg.Gate during
	// the call. What Confirm has checked remains true until the transaction ends.
	//
	// Confirm returns Unauthenticated if the session or key has ended, Forbidden if the principal
	// has lost access, and NotFound if a guest's link no longer works. It returns Postgres errors
	// unchanged.
	Confirm(ctx context.Context, q pg.Querier, p tenancy.Principal) error
}

// Fault converts an error from a transaction to a fault. It returns a fault unchanged. For a
// missing row, it returns NotFound. It passes any other error to pg.Fault.
func Fault(op string, err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "Something that the request names no longer exists.")
	}
	return pg.Fault(op, err)
}

// PostFault is like Fault, but for transactions that concern a post. A missing row means that the
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
