package organization

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	organizationstore "crier/tenancy/organization/store"
)

// Audit returns entries from the audit log of the principal's organization, newest first, and
// reports whether there are more. A person who does not manage the organization sees only their own
// entries, including those made by an instance administrator impersonating them. Audit returns
// fault.RateLimited if too many audit log queries are running or waiting.
func (s *Organizations) Audit(ctx context.Context, p tenancy.Principal, q tenancy.AuditQuery) (
	out []tenancy.AuditEvent, more bool, err error) {
	const op = "tenancy.Audit"
	var in tenancy.Inputs
	in.Check(q.Page >= 0 && q.Page <= 10_000, "page", "must be from 0 to 10000")
	in.Check(q.Limit >= 1 && q.Limit <= tenancy.MaxAuditPage, "limit", "must be from 1 to 1000")
	q.Actor, q.Action = in.Text("actor", q.Actor, 320), in.Text("action", q.Action, 64)
	if err := in.Err(op); err != nil {
		return nil, false, err
	}
	leave, err := s.queryAudit(ctx, op, p.Org)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if !p.Role.Manages() {
		q.Actor = p.Person.String()
	}
	err = s.db.InOrg(ctx, op, p.Org, func(tx *db.OrgTx) error {
		out, err = organizationstore.AuditEvents(ctx, tx, q)
		return err
	})
	if len(out) > q.Limit {
		return out[:q.Limit], true, err
	}
	return out, false, err
}

const (
	// auditsAtOnce is how many audit log queries can run concurrently across all organizations.
	// auditsWaiting is how many queries per organization can wait. Each query waits for at most
	// auditWait.
	auditsAtOnce, auditsWaiting = 2, 4
	auditWait                   = 10 * time.Second
)

// queryAudit waits for a slot to run an audit log query. It returns RateLimited if too many queries
// are waiting or if no slot becomes free in time.
func (s *Organizations) queryAudit(ctx context.Context, op string, org tenancy.OrgID) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, auditWait)
	defer cancel()
	leave, err = s.audits.Enter(ctx, org)
	if err != nil {
		return nil, &fault.Error{Kind: fault.RateLimited, Op: op, RetryAfter: auditWait, Err: err,
			Message: "Too many audit log queries are running; try again in a moment."}
	}
	return leave, nil
}

// Record appends an entry to the audit log of the principal's organization for an action that
// another part of the service has taken. It returns fault.Unavailable if the database cannot be
// reached. An error does not undo the action.
func (s *Organizations) Record(ctx context.Context, p tenancy.Principal, action tenancy.Action, subject string) error {
	return s.db.InOrg(ctx, "tenancy.Record", p.Org, func(tx *db.OrgTx) error {
		return db.Audit(ctx, tx, p.Event(action, subject), s.clock.Now())
	})
}

// RecordActed appends an audit log entry for a change that an instance administrator requests while
// impersonating a member.
func (s *Organizations) RecordActed(ctx context.Context, p tenancy.Principal, request string) error {
	return s.Record(ctx, p, tenancy.ActionImpersonatedRequest, request)
}

// AppendAudit appends an entry to the audit log of the principal's organization for a change that
// another part of the service makes. It runs as pg.Tenant in the transaction that makes the change,
// and returns Postgres errors unchanged.
func (s *Organizations) AppendAudit(
	ctx context.Context, q pg.Querier, p tenancy.Principal, action tenancy.Action, subject string,
) error {
	return db.AuditIn(ctx, q, p.Org, p.Event(action, subject), s.clock.Now())
}
