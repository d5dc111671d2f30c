package store

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

// InvitationByHash returns the invitation that a link belongs to. It returns pgx.ErrNoRows if there
// is no such invitation or if it cannot be used now. An invitation cannot be used if its creator no
// longer manages the organization.
func InvitationByHash(ctx context.Context, tx *db.GateTx, hash []byte, now time.Time) (OpenInvitation, error) {
	return db.One[OpenInvitation](ctx, tx, invitationByHash, hash, now)
}

// CreateInvitation inserts an invitation. by is the person who created it.
func CreateInvitation(ctx context.Context, tx *db.OrgTx, i tenancy.Invitation, by tenancy.PersonID) error {
	_, err := db.Exec(ctx, tx, invitationInsert, tx.Org, i.ID, i.Email, i.Role, by, i.CreatedAt, i.ExpiresAt)
	return err
}

// AddInvitationLink inserts the hash of a link's token. It returns a foreign key violation if the
// invitation no longer exists.
func AddInvitationLink(ctx context.Context, tx *db.OrgTx, invitation tenancy.InvitationID, hash []byte) error {
	_, err := db.Exec(ctx, tx, invitationLink, tx.Org, invitation, hash)
	return err
}

// ListInvitations returns the unexpired invitations, newest first.
func ListInvitations(ctx context.Context, tx *db.OrgTx, now time.Time) ([]tenancy.Invitation, error) {
	return db.List[tenancy.Invitation](ctx, tx, invitationList, now)
}

// ReadInvitation returns an invitation. It returns pgx.ErrNoRows if the invitation does not exist.
func ReadInvitation(ctx context.Context, tx *db.OrgTx, invitation tenancy.InvitationID) (tenancy.Invitation, error) {
	return db.One[tenancy.Invitation](ctx, tx, invitationGet, invitation)
}

// TakeInvitation deletes an invitation and its links, and returns the invitation. It returns
// pgx.ErrNoRows if the invitation does not exist.
func TakeInvitation(ctx context.Context, tx *db.OrgTx, invitation tenancy.InvitationID) (tenancy.Invitation, error) {
	return db.One[tenancy.Invitation](ctx, tx, invitationDelete, invitation)
}

// TakeInvitationsFor deletes the invitations to an address and their links. It returns the
// invitations.
func TakeInvitationsFor(ctx context.Context, tx *db.OrgTx, email string) ([]tenancy.Invitation, error) {
	return db.List[tenancy.Invitation](ctx, tx, invitationsFor, email)
}

// IsMember reports whether the address belongs to a member.
func IsMember(ctx context.Context, tx *db.OrgTx, email string) (is bool, err error) {
	err = tx.QueryRow(ctx, memberByEmail, email).Scan(&is)
	return is, err
}

// TakeInvitationsBy deletes the invitations that a person created and their links. It returns the
// invitations.
func TakeInvitationsBy(ctx context.Context, tx *db.OrgTx, person tenancy.PersonID) ([]tenancy.Invitation, error) {
	return db.List[tenancy.Invitation](ctx, tx, invitationsDelete, person)
}

const invitationInsert = `-- tenancy.InvitationInsert
insert into invitation (org_id, id, email, role, invited_by, created_at, expires_at)
values ($1, $2, nullif($3, ''), $4, $5, $6, $7)`

const invitationLink = `-- tenancy.InvitationLink
insert into invitation_link (org_id, invitation_id, hash) values ($1, $2, $3)`

const invitationList = `-- tenancy.InvitationList
select i.id, coalesce(i.email, '') email, i.role, coalesce(p.email, '') invited_by, i.created_at, i.expires_at
from invitation i left join person p on p.id = i.invited_by
where i.expires_at > $1 order by i.created_at desc, i.id`

const invitationGet = `-- tenancy.InvitationGet
select i.id, coalesce(i.email, '') email, i.role, coalesce(p.email, '') invited_by, i.created_at, i.expires_at
from invitation i left join person p on p.id = i.invited_by where i.id = $1`

const invitationDelete = `-- tenancy.InvitationDelete
delete from invitation where id = $1
returning id, coalesce(email, '') email, role, '' invited_by, created_at, expires_at`

const invitationsFor = `-- tenancy.InvitationDeleteFor
delete from invitation where email = $1
returning id, email, role, '' invited_by, created_at, expires_at`

const memberByEmail = `-- tenancy.MemberByEmail
select exists (select from member m join person p on p.id = m.person_id where p.email = $1)`

const invitationsDelete = `-- tenancy.InvitationsDelete
delete from invitation where invited_by = $1
returning id, coalesce(email, '') email, role, '' invited_by, created_at, expires_at`

const invitationByHash = `-- tenancy.InvitationByHash
select i.org_id, i.id, coalesce(i.email, '') email, o.name from invitation_link l
join invitation i on i.org_id = l.org_id and i.id = l.invitation_id
join organization o on o.id = i.org_id
join member m on m.org_id = i.org_id and m.person_id = i.invited_by
join person p on p.id = m.person_id
where l.hash = $1 and i.expires_at > $2 and o.deleted_at is null and o.suspended_at is null
  and not m.disabled and m.role in ('SUPERADMIN', 'ADMIN') and p.deleted_at is null`

// OpenInvitation is an invitation that can be used now.
type OpenInvitation struct {
	Org tenancy.OrgID        `db:"org_id"`
	ID  tenancy.InvitationID `db:"id"`
	// Email is "" if anybody can use the invitation.
	Email string `db:"email"`
	// Name is the organization's name.
	Name string `db:"name"`
}
