package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/jobs"
	"crier/tenancy"
)

const organizationInsert = `-- tenancy.OrganizationInsert
insert into organization (id, name, description, timezone, created_at, created_by) values ($1, $2, $3, $4, $5, $6)`

const memberInsert = `-- tenancy.MemberInsert
insert into member (org_id, person_id, role, created_at) values ($1, $2, $3, $4)`

// CreateOrganization inserts the organization of the transaction and its owner. It returns the error of Postgres, which
// is a violation of a foreign key when the person does not exist.
func (t *OrgTx) CreateOrganization(ctx context.Context, o tenancy.Organization, owner tenancy.PersonID) error {
	_, err := exec(ctx, t.tx, organizationInsert, t.org, o.Name, o.Description, o.Timezone, o.CreatedAt, o.Creator)
	if err != nil {
		return err
	}
	return t.AddMember(ctx, tenancy.Membership{Person: owner, Role: tenancy.RoleSuperAdmin}, o.CreatedAt)
}

// AddMember inserts a member. It returns the error of Postgres, which is a violation of member_pkey for a person who is
// a member already.
func (t *OrgTx) AddMember(ctx context.Context, m tenancy.Membership, now time.Time) error {
	_, err := exec(ctx, t.tx, memberInsert, t.org, m.Person, m.Role, now)
	return err
}

const organizationsCreated = `-- tenancy.CreatedOrganizations
select o.id, o.created_at from person p join person c on c.mailbox = p.mailbox join organization o on o.created_by = c.id
where p.id = $1 order by o.created_at desc, o.id limit $2`

const mailboxLock = `-- tenancy.MailboxLock
select pg_advisory_xact_lock(hashtextextended('crier.mailbox ' || mailbox, 0)) from person where id = $1`

// LockMailbox locks the mailbox of a person until the end of the transaction, so that accounts of one
// mailbox create organizations one after the other.
func (t *GateTx) LockMailbox(ctx context.Context, person tenancy.PersonID) error {
	_, err := exec(ctx, t.tx, mailboxLock, person)
	return err
}

// Created is an organization and when it was created.
type Created struct {
	Org tenancy.OrgID `db:"id"`
	At  time.Time     `db:"created_at"`
}

// CreatedOrganizations returns at most limit organizations that a person, or another account of the
// same mailbox, created, the newest first. It includes organizations that now have another owner, and
// organizations marked for deletion until they are purged.
func (t *GateTx) CreatedOrganizations(ctx context.Context, creator tenancy.PersonID, limit int) ([]Created, error) {
	return list[Created](ctx, t.tx, organizationsCreated, creator, limit)
}

const organizationSenders = `-- tenancy.OrganizationSenders
select distinct p.mailbox::text from organization o
join person p on p.id = $2 or p.id = coalesce(
  (select m.person_id from member m where m.org_id = o.id and m.person_id = o.created_by),
  (select m.person_id from member m where m.org_id = o.id and m.role = 'SUPERADMIN'))
where o.id = $1 order by 1`

// Senders returns hashes of the mailboxes against which the mails of a person from the organization of
// the transaction count: the mailbox of the creator, or of the owner if the creator is no longer a
// member, and the mailbox of the person. It leaves out people who are no longer members.
func (t *OrgTx) Senders(ctx context.Context, person tenancy.PersonID) (mailboxes []string, err error) {
	rows, err := t.tx.Query(ctx, organizationSenders, t.org, person)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

const organizationGet = `-- tenancy.OrganizationGet
select id, name, description, timezone, mfa_required, suspended_at, deleted_at, created_at from organization
where id = $1`

// Organization returns the organization of the transaction, or pgx.ErrNoRows.
func (t *OrgTx) Organization(ctx context.Context) (tenancy.Organization, error) {
	return one[tenancy.Organization](ctx, t.tx, organizationGet, t.org)
}

// LockOrganization is Organization, and locks the row until the end of the transaction. Rows that refer to the
// organization can be inserted meanwhile.
func (t *OrgTx) LockOrganization(ctx context.Context) (tenancy.Organization, error) {
	return one[tenancy.Organization](ctx, t.tx, organizationGet+" for no key update", t.org)
}

const organizationUpdate = `-- tenancy.OrganizationUpdate
update organization set name = $2, description = $3, mfa_required = $4 where id = $1`

// UpdateOrganization stores the settings of the organization of the transaction but the time zone, or returns
// pgx.ErrNoRows.
func (t *OrgTx) UpdateOrganization(ctx context.Context, o tenancy.Organization) error {
	return change(ctx, t.tx, organizationUpdate, t.org, o.Name, o.Description, o.RequiresMFA)
}

const organizationZone = `-- tenancy.OrganizationZone
update organization set timezone = $2, timezone_chosen = true where id = $1 and not (timezone_chosen and $3)`

// SetTimezone stores the time zone that somebody has chosen for the organization of the transaction.
func (t *OrgTx) SetTimezone(ctx context.Context, zone string) error {
	return change(ctx, t.tx, organizationZone, t.org, zone, false)
}

// FillTimezone is SetTimezone for an organization whose time zone nobody has chosen. It returns false for another one.
func (t *OrgTx) FillTimezone(ctx context.Context, zone string) (bool, error) {
	n, err := exec(ctx, t.tx, organizationZone, t.org, zone, true)
	return n > 0, err
}

const memberList = `-- tenancy.MemberList
select p.id, p.email, p.name, p.picture, p.notifications chosen, m.role, m.disabled, m.created_at from member m
join person p on p.id = m.person_id order by m.created_at, p.id`

type memberListRow struct {
	tenancy.Member
	Chosen []byte `db:"chosen"`
}

// Members returns the members of the organization, the oldest membership first. A member whose stored notifications
// cannot be read has the defaults.
func (t *OrgTx) Members(ctx context.Context) ([]tenancy.Member, error) {
	rows, err := list[memberListRow](ctx, t.tx, memberList)
	out := make([]tenancy.Member, len(rows))
	for i, r := range rows {
		out[i] = r.Member
		out[i].Notifications = notificationsOf(r.Chosen)
	}
	return out, err
}

// notificationsOf parses stored notifications. It returns the defaults for what was never chosen, and for all when they
// cannot be read.
func notificationsOf(chosen []byte) tenancy.Notifications {
	n := tenancy.DefaultNotifications()
	if json.Unmarshal(chosen, &n) != nil {
		return tenancy.DefaultNotifications()
	}
	return n
}

const memberLock = `-- tenancy.MemberLock
select org_id, person_id, role, disabled from member where person_id = $1 for update`

type memberRow struct {
	Org      tenancy.OrgID    `db:"org_id"`
	Person   tenancy.PersonID `db:"person_id"`
	Role     tenancy.Role     `db:"role"`
	Disabled bool             `db:"disabled"`
}

// LockMember returns the membership of a person and locks it until the end of the transaction, or returns
// pgx.ErrNoRows.
func (t *OrgTx) LockMember(ctx context.Context, person tenancy.PersonID) (tenancy.Membership, error) {
	row, err := one[memberRow](ctx, t.tx, memberLock, person)
	return tenancy.Membership(row), err
}

const memberRole = `-- tenancy.MemberRole
update member set role = $2 where person_id = $1`

// SetRole changes the role of a member, or returns pgx.ErrNoRows. A second owner is a violation of member_owner.
func (t *OrgTx) SetRole(ctx context.Context, person tenancy.PersonID, role tenancy.Role) error {
	return change(ctx, t.tx, memberRole, person, role)
}

const memberDelete = `-- tenancy.MemberDelete
delete from member where person_id = $1`

// RemoveMember deletes a membership, or returns pgx.ErrNoRows.
func (t *OrgTx) RemoveMember(ctx context.Context, person tenancy.PersonID) error {
	return change(ctx, t.tx, memberDelete, person)
}

const memberEmail = `-- tenancy.MemberEmail
select email from person where id = $1`

// MemberEmail returns the address of a member, or pgx.ErrNoRows.
func (t *OrgTx) MemberEmail(ctx context.Context, person tenancy.PersonID) (email string, err error) {
	err = t.tx.QueryRow(ctx, memberEmail, person).Scan(&email)
	return email, err
}

const organizationLock = `-- tenancy.OrganizationLock
select 1 from organization where id = $1 and deleted_at is null for no key update`

// CountMembers locks the organization, so that two transactions that count do it one after the other, and returns the
// number of its members and of its open invitations. It returns pgx.ErrNoRows for an organization that is to be deleted.
func (t *OrgTx) CountMembers(ctx context.Context, now time.Time) (members, invitations int, err error) {
	if err := change(ctx, t.tx, organizationLock, t.org); err != nil {
		return 0, 0, err
	}
	const count = `-- tenancy.MemberCount
select (select count(*) from member), (select count(*) from invitation where expires_at > $1)`
	err = t.tx.QueryRow(ctx, count, now).Scan(&members, &invitations)
	return members, invitations, err
}

const deletedWith = `-- tenancy.OrganizationsDeletedWith
select o.id from member m join organization o on o.id = m.org_id
where m.person_id = $1 and m.role = 'SUPERADMIN' and o.deleted_with = $1 order by o.id`

// DeletedWith returns the organizations that were marked for deletion together with a person's
// account.
func (t *GateTx) DeletedWith(ctx context.Context, person tenancy.PersonID) ([]tenancy.OrgID, error) {
	rows, err := t.tx.Query(ctx, deletedWith, person)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[tenancy.OrgID])
}

const membershipList = `-- tenancy.MembershipList
select o.id, o.name, o.description, '' timezone, o.mfa_required, o.suspended_at, o.deleted_at, o.created_at, m.role,
  m.disabled
from member m join organization o on o.id = m.org_id
where m.person_id = $1 order by m.created_at, m.org_id`

type membershipRow struct {
	tenancy.Organization
	Role     tenancy.Role `db:"role"`
	Disabled bool         `db:"disabled"`
}

// Memberships returns all organizations of a person, the oldest membership first, also those that the person cannot
// use. Their time zone is empty.
func (t *GateTx) Memberships(ctx context.Context, person tenancy.PersonID) ([]tenancy.OrganizationOf, error) {
	rows, err := list[membershipRow](ctx, t.tx, membershipList, person)
	out := make([]tenancy.OrganizationOf, len(rows))
	for i, r := range rows {
		out[i] = tenancy.OrganizationOf(r)
	}
	return out, err
}

const soleMember = `-- tenancy.OwnedOrganizations
select m.org_id, (select count(*) from member x where x.org_id = m.org_id)::int members, o.deleted_at is not null deleted
from member m join organization o on o.id = m.org_id
where m.person_id = $1 and m.role = 'SUPERADMIN' order by m.org_id`

// Owned is an organization of which a person is the owner.
type Owned struct {
	Org     tenancy.OrgID `db:"org_id"`
	Members int           `db:"members"`
	// Deleted means that its deletion was requested.
	Deleted bool `db:"deleted"`
}

// OwnedOrganizations returns the organizations of which the person is the owner.
func (t *GateTx) OwnedOrganizations(ctx context.Context, person tenancy.PersonID) ([]Owned, error) {
	return list[Owned](ctx, t.tx, soleMember, person)
}

const organizationDeleted = `-- tenancy.OrganizationDeleted
update organization set deleted_at = $2, deleted_with = $3, catch_up = false where id = $1
returning pg_notify('` + revocationChannel + `', id::text)`

// SetOrganizationDeleted stores when the deletion of an organization was requested, nil for an
// undo, and adds the task that stops or resumes its publishing. With is the person whose account is
// deleted together with the organization, or zero. All processes are notified that its keys end, or
// work again.
func (t *GateTx) SetOrganizationDeleted(
	ctx context.Context, org tenancy.OrgID, at *time.Time, with tenancy.PersonID,
) error {
	if err := LockAuthority(ctx, t.tx, org, true); err != nil {
		return err
	}
	if err := change(ctx, t.tx, organizationDeleted, org, at, with); err != nil {
		return err
	}
	return t.store.queue.Add(ctx, t.tx, jobs.Task{Kind: PublishingTask, ID: org.UUID()})
}

// PublishingTask is the kind of the task that stops or resumes the publishing of an organization, whose id is that of
// the task.
const PublishingTask = "organization-publishing"

const organizationMarks = `-- tenancy.OrganizationMarks
select suspended_at is not null or deleted_at is not null stopped, catch_up from organization where id = $1`

// Marks are whether an organization may publish.
type Marks struct {
	// Stopped means that it is suspended or to be deleted.
	Stopped bool `db:"stopped"`
	// CatchUp means that posts which fell due meanwhile are published late when it may publish again.
	CatchUp bool `db:"catch_up"`
}

// Marks returns the marks of an organization, or pgx.ErrNoRows.
func (t *GateTx) Marks(ctx context.Context, org tenancy.OrgID) (Marks, error) {
	return one[Marks](ctx, t.tx, organizationMarks, org)
}

const markedOrgs = `-- tenancy.MarkedOrgs
select id, suspended_at is not null or deleted_at is not null stopped from organization
where id > $1 order by id limit $2`

// MarkedOrg is an organization and whether it may publish.
type MarkedOrg struct {
	Org tenancy.OrgID `db:"id"`
	// Stopped is that of Marks.
	Stopped bool `db:"stopped"`
}

// MarkedOrgs returns at most limit organizations after an id, by id.
func (t *GateTx) MarkedOrgs(ctx context.Context, after tenancy.OrgID, limit int) ([]MarkedOrg, error) {
	return list[MarkedOrg](ctx, t.tx, markedOrgs, after.UUID(), limit)
}

const organizationSuspended = `-- tenancy.OrganizationSuspended
update organization set suspended_at = $2, catch_up = deleted_at is null where id = $1
returning pg_notify('` + revocationChannel + `', id::text)`

// SetSuspended stores when an organization was suspended, nil when that is over, and adds the task that stops or resumes
// its publishing. All processes are notified that its keys end, or work again.
func (t *GateTx) SetSuspended(ctx context.Context, org tenancy.OrgID, at *time.Time) error {
	if err := LockAuthority(ctx, t.tx, org, true); err != nil {
		return err
	}
	if err := change(ctx, t.tx, organizationSuspended, org, at); err != nil {
		return err
	}
	return t.store.queue.Add(ctx, t.tx, jobs.Task{Kind: PublishingTask, ID: org.UUID()})
}

const registrationLock = `-- tenancy.RegistrationLock
select pg_advisory_xact_lock(hashtext('crier.registration'))`

const organizationAny = `-- tenancy.OrganizationAny
select exists (select from organization)`

// AnyOrganization returns whether there is an organization. With lock, other transactions that ask with lock wait for
// the end of this one.
func (t *GateTx) AnyOrganization(ctx context.Context, lock bool) (exists bool, err error) {
	if lock {
		if _, err := exec(ctx, t.tx, registrationLock); err != nil {
			return false, err
		}
	}
	err = t.tx.QueryRow(ctx, organizationAny).Scan(&exists)
	return exists, err
}

const organizationSearch = `-- tenancy.OrganizationSearch
select o.id, o.name, o.suspended_at, o.deleted_at, o.created_at, m.role, p.id person_id, p.email, p.name person_name
from member m join organization o on o.id = m.org_id join person p on p.id = m.person_id
where not m.disabled and o.deleted_at is null and p.deleted_at is null
  and ($1 = '' or position(lower($1) in lower(o.name)) > 0 or position(lower($1) in p.email) > 0
    or position(lower($1) in lower(p.name)) > 0 or o.id::text = lower($1))
order by o.created_at desc, m.created_at limit $2`

// Found is a membership that a search found.
type Found struct {
	ID          tenancy.OrgID    `db:"id"`
	Name        string           `db:"name"`
	SuspendedAt *time.Time       `db:"suspended_at"`
	DeletedAt   *time.Time       `db:"deleted_at"`
	CreatedAt   time.Time        `db:"created_at"`
	Role        tenancy.Role     `db:"role"`
	Person      tenancy.PersonID `db:"person_id"`
	Email       string           `db:"email"`
	PersonName  string           `db:"person_name"`
}

// Search returns at most limit memberships of all organizations whose organization or person has the text in its name
// or address, or whose organization has it as its id.
func (t *GateTx) Search(ctx context.Context, text string, limit int) ([]Found, error) {
	return list[Found](ctx, t.tx, organizationSearch, text, limit)
}

const organizationListAll = `-- tenancy.OrganizationListAll
select o.id, o.name, o.mfa_required, o.suspended_at, o.deleted_at, o.created_at, '' description, '' timezone
from organization o where o.id > $1 order by o.id limit $2`

// ListOrganizations returns at most limit organizations after an id, by id. Their description and time zone are empty.
func (t *GateTx) ListOrganizations(ctx context.Context, after tenancy.OrgID, limit int) (
	[]tenancy.Organization, error) {
	return list[tenancy.Organization](ctx, t.tx, organizationListAll, after.UUID(), limit)
}
