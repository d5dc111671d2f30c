package db

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

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

// Memberships returns the organizations that a person belongs to, oldest membership first. It
// includes organizations that the person currently cannot use. Timezone is empty in the results.
func Memberships(ctx context.Context, tx *GateTx, person tenancy.PersonID) ([]tenancy.OrganizationOf, error) {
	rows, err := List[membershipRow](ctx, tx, membershipList, person)
	out := make([]tenancy.OrganizationOf, len(rows))
	for i, r := range rows {
		out[i] = tenancy.OrganizationOf(r)
	}
	return out, err
}

const memberInsert = `-- tenancy.MemberInsert
insert into member (org_id, person_id, role, created_at) values ($1, $2, $3, $4)`

// AddMember inserts a member. If the person is already a member, it returns a violation of the
// unique constraint member_pkey.
func AddMember(ctx context.Context, tx *OrgTx, m tenancy.Membership, now time.Time) error {
	_, err := Exec(ctx, tx, memberInsert, tx.Org, m.Person, m.Role, now)
	return err
}

const memberList = `-- tenancy.MemberList
select p.id, p.email, p.name, p.picture, p.notifications chosen, m.role, m.disabled, m.created_at from member m
join person p on p.id = m.person_id order by m.created_at, p.id`

type memberListRow struct {
	tenancy.Member
	Chosen []byte `db:"chosen"`
}

// Members returns the organization's members, oldest membership first. A member whose stored
// notification settings cannot be parsed gets the default settings.
func Members(ctx context.Context, tx *OrgTx) ([]tenancy.Member, error) {
	rows, err := List[memberListRow](ctx, tx, memberList)
	out := make([]tenancy.Member, len(rows))
	for i, r := range rows {
		out[i] = r.Member
		out[i].Notifications = NotificationsOf(r.Chosen)
	}
	return out, err
}

// maxMemberships is the maximum number of organizations that a person can belong to, regardless of
// the organizations' plans. The number is limited because a session lookup returns all of the
// person's organizations.
const maxMemberships = 250

// CheckMemberships returns Conflict if the person already belongs to maxMemberships organizations.
// The caller must have locked the person.
func CheckMemberships(ctx context.Context, tx *GateTx, op string, person tenancy.PersonID) error {
	all, err := Memberships(ctx, tx, person)
	if err == nil && len(all) >= maxMemberships {
		return fault.New(fault.Conflict, op, "You are a member of 250 organizations: leave or delete one first.")
	}
	return err
}
