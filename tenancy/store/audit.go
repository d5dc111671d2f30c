package store

import (
	"context"
	"time"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
)

const auditInsert = `-- tenancy.AuditInsert
insert into audit (org_id, id, at, person_id, actor, via, key_id, behind, action, subject, address)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// Audit appends an entry to the audit log of the organization. The entry gets a new id.
func (t *OrgTx) Audit(ctx context.Context, e tenancy.AuditEvent, now time.Time) error {
	return Audit(ctx, t.tx, t.org, e, now)
}

// Audit is OrgTx.Audit for the transaction of a port, which runs as pg.Tenant in the organization.
func Audit(ctx context.Context, q pg.Querier, org tenancy.OrgID, e tenancy.AuditEvent, now time.Time) error {
	rows, err := q.Query(ctx, auditInsert, org, id.New[tenancy.AuditTag](), now, e.Person, e.Actor, e.Via, e.Key,
		e.Behind, e.Action, e.Subject, e.Address)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

const auditInsertEach = `-- tenancy.AuditInsertEach
insert into audit (org_id, id, at, person_id, actor, via, key_id, behind, action, subject, address)
select $1, u.id, $3, $4, $5, $6, $7, $8, $9, u.subject, $11
from unnest($2::uuid[], $10::text[]) u(id, subject)`

// AuditEach is Audit for several subjects, with an entry for each. The subject of e is not used.
func (t *OrgTx) AuditEach(ctx context.Context, e tenancy.AuditEvent, subjects []string, now time.Time) error {
	ids, cut := make([][16]byte, len(subjects)), make([]string, len(subjects))
	for i, s := range subjects {
		ids[i], cut[i] = id.New[tenancy.AuditTag]().UUID(), tenancy.CutSubject(s)
	}
	_, err := exec(ctx, t.tx, auditInsertEach, t.org, ids, now, e.Person, e.Actor, e.Via, e.Key, e.Behind, e.Action,
		cut, e.Address)
	return err
}

const auditPerson = `-- tenancy.AuditPerson
insert into audit (org_id, id, at, person_id, actor, via, key_id, behind, action, subject, address)
select m.org_id, $2, $3, $1, $4, $5, $6, $7, $8, $9, $10 from member m where m.person_id = $1 and not m.disabled`

// AuditPerson appends an entry about a person to the audit log of each organization of the person.
func (t *GateTx) AuditPerson(
	ctx context.Context, person tenancy.PersonID, e tenancy.AuditEvent, now time.Time,
) error {
	_, err := exec(ctx, t.tx, auditPerson, person, id.New[tenancy.AuditTag](), now, e.Actor, e.Via, e.Key, e.Behind,
		e.Action, e.Subject, e.Address)
	return err
}

// AuditOrg appends an entry to the audit log of an organization.
func (t *GateTx) AuditOrg(ctx context.Context, org tenancy.OrgID, e tenancy.AuditEvent, now time.Time) error {
	_, err := exec(ctx, t.tx, auditInsert, org, id.New[tenancy.AuditTag](), now, e.Person, e.Actor, e.Via, e.Key,
		e.Behind, e.Action, e.Subject, e.Address)
	return err
}

const auditList = `-- tenancy.AuditList
select id, at, person_id, actor, via, key_id, behind, action, subject, address from audit
where ($1::timestamptz is null or at >= $1) and ($2::timestamptz is null or at < $2)
  and ($3 = '' or person_id::text = $3 or position(lower($3) in lower(actor)) > 0) and ($4 = '' or action = $4)
order by at desc, id desc limit $5 offset $6`

// AuditEvents returns the entries of a query, the newest first, and one more than its limit if there are more.
func (t *OrgTx) AuditEvents(ctx context.Context, q tenancy.AuditQuery) ([]tenancy.AuditEvent, error) {
	return list[tenancy.AuditEvent](ctx, t.tx, auditList,
		nullTime(q.From), nullTime(q.To), q.Actor, q.Action, q.Limit+1, q.Page*q.Limit)
}

func nullTime(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

const instanceInsert = `-- tenancy.InstanceInsert
insert into instance_event (id, at, actor, action, subject) values ($1, $2, $3, $4, $5)`

// AddInstanceEvent appends an entry to the events of the instance.
func (t *GateTx) AddInstanceEvent(ctx context.Context, e tenancy.InstanceEvent) error {
	_, err := exec(ctx, t.tx, instanceInsert, id.New[tenancy.AuditTag](), e.At, e.Actor, e.Action, e.Subject)
	return err
}

const instanceList = `-- tenancy.InstanceList
select at, actor, action, subject from instance_event order by at desc, id desc limit $1`

// InstanceEvents returns the newest events of the instance, at most limit.
func (t *GateTx) InstanceEvents(ctx context.Context, limit int) ([]tenancy.InstanceEvent, error) {
	return list[tenancy.InstanceEvent](ctx, t.tx, instanceList, limit)
}
