// Package store creates organizations and reads their audit logs. Only tenancy/organization uses
// it.
package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

const mailboxLock = `-- tenancy.MailboxLock
select pg_advisory_xact_lock(hashtextextended('crier.mailbox ' || mailbox, 0)) from person where id = $1`

// LockMailbox locks a person's mailbox until the end of the transaction, so that accounts with the
// same mailbox create organizations one after the other.
func LockMailbox(ctx context.Context, tx *db.GateTx, person tenancy.PersonID) error {
	_, err := db.Exec(ctx, tx, mailboxLock, person)
	return err
}

const organizationsCreated = `-- tenancy.CreatedOrganizations
select o.id, o.created_at from person p join person c on c.mailbox = p.mailbox join organization o on o.created_by = c.id
where p.id = $1 order by o.created_at desc, o.id limit $2`

// Created is an organization and its creation time.
type Created struct {
	Org tenancy.OrgID `db:"id"`
	At  time.Time     `db:"created_at"`
}

// CreatedOrganizations returns up to limit organizations created by a person or by another account
// with the same mailbox, newest first. It includes organizations that now have a different owner,
// and organizations scheduled for deletion that have not been purged yet.
func CreatedOrganizations(ctx context.Context, tx *db.GateTx, creator tenancy.PersonID, limit int) ([]Created, error) {
	return db.List[Created](ctx, tx, organizationsCreated, creator, limit)
}

const organizationInsert = `-- tenancy.OrganizationInsert
insert into organization (id, name, description, timezone, created_at, created_by) values ($1, $2, $3, $4, $5, $6)`

// CreateOrganization inserts the transaction's organization and its owner. It returns Postgres
// errors unchanged. If the person does not exist, the error is a foreign key violation.
func CreateOrganization(ctx context.Context, tx *db.OrgTx, o tenancy.Organization, owner tenancy.PersonID) error {
	_, err := db.Exec(ctx, tx, organizationInsert, tx.Org, o.Name, o.Description, o.Timezone, o.CreatedAt, o.Creator)
	if err != nil {
		return err
	}
	return db.AddMember(ctx, tx, tenancy.Membership{Person: owner, Role: tenancy.RoleSuperAdmin}, o.CreatedAt)
}

const organizationSenders = `-- tenancy.OrganizationSenders
select distinct p.mailbox::text from organization o
join person p on p.id = $2 or p.id = coalesce(
  (select m.person_id from member m where m.org_id = o.id and m.person_id = o.created_by),
  (select m.person_id from member m where m.org_id = o.id and m.role = 'SUPERADMIN'))
where o.id = $1 order by 1`

// Senders returns hashes of the mailboxes whose email limits apply to a person in the transaction's
// organization: the person's mailbox and the creator's. If the creator is no longer a member, the
// owner's mailbox takes the place of the creator's. If the person is no longer a member, Senders
// leaves out their mailbox.
func Senders(ctx context.Context, tx *db.OrgTx, person tenancy.PersonID) (mailboxes []string, err error) {
	return db.Column[string](ctx, tx, organizationSenders, tx.Org, person)
}
