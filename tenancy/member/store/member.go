// Package store reads and writes members and invitations. Only tenancy/member uses it.
package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

const memberLock = `-- tenancy.MemberLock
select org_id, person_id, role, disabled from member where person_id = $1 for update`

type memberRow struct {
	Org      tenancy.OrgID    `db:"org_id"`
	Person   tenancy.PersonID `db:"person_id"`
	Role     tenancy.Role     `db:"role"`
	Disabled bool             `db:"disabled"`
}

// LockMember returns a person's membership and locks it until the end of the transaction. It
// returns pgx.ErrNoRows if the member does not exist.
func LockMember(ctx context.Context, tx *db.OrgTx, person tenancy.PersonID) (tenancy.Membership, error) {
	row, err := db.One[memberRow](ctx, tx, memberLock, person)
	return tenancy.Membership(row), err
}

const memberRole = `-- tenancy.MemberRole
update member set role = $2 where person_id = $1
returning pg_notify('` + db.RevocationChannel + `', org_id::text)`

// SetRole changes a member's role, and announces the change to all processes. It returns
// pgx.ErrNoRows if the member does not exist, and a violation of member_owner if there would be two
// owners.
func SetRole(ctx context.Context, tx *db.OrgTx, person tenancy.PersonID, role tenancy.Role) error {
	return db.Change(ctx, tx, memberRole, person, role)
}

const memberDelete = `-- tenancy.MemberDelete
delete from member where person_id = $1 returning pg_notify('` + db.RevocationChannel + `', org_id::text)`

// RemoveMember deletes a membership, and announces the change to all processes. It returns
// pgx.ErrNoRows if the member does not exist.
func RemoveMember(ctx context.Context, tx *db.OrgTx, person tenancy.PersonID) error {
	return db.Change(ctx, tx, memberDelete, person)
}

const memberEmail = `-- tenancy.MemberEmail
select email from person where id = $1`

// MemberEmail returns a member's address. It returns pgx.ErrNoRows if the member does not exist.
func MemberEmail(ctx context.Context, tx *db.OrgTx, person tenancy.PersonID) (email string, err error) {
	err = tx.QueryRow(ctx, memberEmail, person).Scan(&email)
	return email, err
}

const organizationLock = `-- tenancy.OrganizationLock
select 1 from organization where id = $1 and deleted_at is null for no key update`

// CountMembers returns the numbers of members and open invitations in the organization. It locks
// the organization, so that concurrent transactions count one after the other. It returns
// pgx.ErrNoRows if the organization is scheduled for deletion.
func CountMembers(ctx context.Context, tx *db.OrgTx, now time.Time) (members, invitations int, err error) {
	if err := db.Change(ctx, tx, organizationLock, tx.Org); err != nil {
		return 0, 0, err
	}
	const count = `-- tenancy.MemberCount
select (select count(*) from member), (select count(*) from invitation where expires_at > $1)`
	err = tx.QueryRow(ctx, count, now).Scan(&members, &invitations)
	return members, invitations, err
}
