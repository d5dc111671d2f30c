package db

import (
	"context"
	"time"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
)

const auditPerson = `-- tenancy.AuditPerson
insert into audit (org_id, id, at, person_id, actor, via, key_id, behind, action, subject, address)
select m.org_id, $2, $3, $1, $4, $5, $6, $7, $8, $9, $10 from member m where m.person_id = $1 and not m.disabled`

// AuditPerson appends an entry about a person to the audit log of every organization that the
// person belongs to, except where the membership is disabled.
func AuditPerson(
	ctx context.Context, tx *GateTx, person tenancy.PersonID, e tenancy.AuditEvent, now time.Time,
) error {
	_, err := Exec(ctx, tx, auditPerson, person, id.New[tenancy.AuditTag](), now, e.Actor, e.Via, e.Key, e.Impersonator,
		e.Action, e.Subject, e.Address)
	return err
}

const auditInsert = `-- tenancy.AuditInsert
insert into audit (org_id, id, at, person_id, actor, via, key_id, behind, action, subject, address)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// AuditOrg appends an entry to an organization's audit log.
func AuditOrg(ctx context.Context, tx *GateTx, org tenancy.OrgID, e tenancy.AuditEvent, now time.Time) error {
	_, err := Exec(ctx, tx, auditInsert, org, id.New[tenancy.AuditTag](), now, e.Person, e.Actor, e.Via, e.Key,
		e.Impersonator, e.Action, e.Subject, e.Address)
	return err
}

const instanceInsert = `-- tenancy.InstanceInsert
insert into instance_event (id, at, actor, action, subject) values ($1, $2, $3, $4, $5)`

// AddInstanceEvent records an action taken by the operator or by the service itself.
func AddInstanceEvent(ctx context.Context, tx *GateTx, e tenancy.InstanceEvent) error {
	_, err := Exec(ctx, tx, instanceInsert, id.New[tenancy.AuditTag](), e.At, e.Actor, e.Action, e.Subject)
	return err
}

const auditInsertEach = `-- tenancy.AuditInsertEach
insert into audit (org_id, id, at, person_id, actor, via, key_id, behind, action, subject, address)
select $1, u.id, $3, $4, $5, $6, $7, $8, $9, u.subject, $11
from unnest($2::uuid[], $10::text[]) u(id, subject)`

// AuditEach is like Audit, but appends one entry for each subject and ignores e.Subject.
func AuditEach(ctx context.Context, tx *OrgTx, e tenancy.AuditEvent, subjects []string, now time.Time) error {
	ids, cut := make([][16]byte, len(subjects)), make([]string, len(subjects))
	for i, s := range subjects {
		ids[i], cut[i] = id.New[tenancy.AuditTag]().UUID(), tenancy.CutSubject(s)
	}
	_, err := Exec(ctx, tx, auditInsertEach, tx.Org, ids, now, e.Person, e.Actor, e.Via, e.Key, e.Impersonator, e.Action,
		cut, e.Address)
	return err
}

// Audit appends an entry to the audit log of the transaction's organization. The entry gets a new
// id.
func Audit(ctx context.Context, tx *OrgTx, e tenancy.AuditEvent, now time.Time) error {
	return AuditIn(ctx, tx, tx.Org, e, now)
}

// AuditIn is like Audit, but for a transaction that was begun outside the tenancy packages. The
// transaction must run as pg.Tenant in the organization.
func AuditIn(ctx context.Context, q pg.Querier, org tenancy.OrgID, e tenancy.AuditEvent, now time.Time) error {
	rows, err := q.Query(ctx, auditInsert, org, id.New[tenancy.AuditTag](), now, e.Person, e.Actor, e.Via, e.Key,
		e.Impersonator, e.Action, e.Subject, e.Address)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// AuditActed records a change that an instance administrator makes while impersonating a person.
// The entry is added to the audit log of the organization whose membership is being impersonated.
// If nobody is being impersonated, AuditActed does nothing.
func (d *DB) AuditActed(ctx context.Context, tx *GateTx, p tenancy.Principal, action tenancy.Action) error {
	if p.Impersonator.IsZero() {
		return nil
	}
	return AuditOrg(ctx, tx, p.Org, p.Event(action, p.Name), d.clock.Now())
}

// InstanceEvent returns an audit entry for an action taken by the operator or by the service
// itself.
func InstanceEvent(actor string, action tenancy.Action, subject string) tenancy.AuditEvent {
	return tenancy.Principal{Via: tenancy.ViaInstance, Name: actor}.Event(action, subject)
}

// PersonEvent returns an audit entry for an action that a person took without a session.
func PersonEvent(p tenancy.Person, from tenancy.Source, action tenancy.Action) tenancy.AuditEvent {
	by := tenancy.Principal{Person: p.ID, Via: tenancy.ViaSession, Name: p.Email, From: from}
	return by.Event(action, "")
}
