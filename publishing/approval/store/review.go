package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

const reviewSharer = `-- publishing.ReviewSharer
select a.org_id from member m
join person u on u.id = m.person_id
join organization o on o.id = m.org_id
join approval a on a.org_id = m.org_id and a.id = $1
where m.person_id = $2 and not m.disabled and u.deleted_at is null and o.deleted_at is null and o.suspended_at is null`

// Shared returns the request whose link a member passed on, and the request's organization. sharer
// is that member. Shared returns the request even if the post was deleted. It returns pgx.ErrNoRows
// if there is no such request, the organization has no access, or sharer is no longer a member.
func Shared(
	ctx context.Context, d *db.DB, approval publishing.ApprovalID, sharer tenancy.PersonID,
) (a StoredApproval, org tenancy.OrgID, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(reviewSharer, approval, sharer).QueryRow(func(row pgx.Row) error { return row.Scan(&org) })
	})
	if err != nil {
		return a, org, err
	}
	a, err = ApprovalAny(ctx, d, org, approval)
	return a, org, err
}

const reviewOwner = `-- publishing.ReviewOwner
select a.org_id, not exists (
  select from unnest(array_append(a.reviewer_people, a.requested_by)) who (id)
  where who.id is not null and not exists (
    select from member m join person u on u.id = m.person_id
    where m.org_id = a.org_id and m.person_id = who.id and not m.disabled and u.deleted_at is null))
from approval a join organization o on o.id = a.org_id
where a.token_hash = $1 and o.deleted_at is null and o.suspended_at is null`

// ErrLinkEnded means that a request's emailed link stopped working because the requester or a
// recipient is no longer a member.
var ErrLinkEnded = errors.New("the review link ended because a membership did")

// Reviewed returns the request whose emailed link has a token with the given hash, and the
// request's organization. It returns the request even if the post was deleted. It returns
// ErrLinkEnded if the link no longer works. It returns pgx.ErrNoRows if there is no such request or
// the organization has no access.
func Reviewed(ctx context.Context, d *db.DB, hash []byte) (a StoredApproval, org tenancy.OrgID, err error) {
	works := false
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(reviewOwner, hash).QueryRow(func(row pgx.Row) error { return row.Scan(&org, &works) })
	})
	if err == nil && !works {
		err = ErrLinkEnded
	}
	if err != nil {
		return a, org, err
	}
	a, err = oneApproval(ctx, d, org, approvalByHash, hash)
	return a, org, err
}

const linkWorks = `-- publishing.LinkWorks
select not exists (
  select from unnest(array_append(a.reviewer_people, a.requested_by)) who (id)
  where who.id is not null and not exists (select from person u where u.id = who.id))
from approval a where a.id = $1`

// LinkWorks reports whether a request's emailed link still works. The requester, and any members to
// whom the link was emailed, must still be members. The row-level security policy of the person
// table hides everyone else.
func LinkWorks(ctx context.Context, tx *db.Tx, approval publishing.ApprovalID) (works bool, err error) {
	err = tx.QueryRow(ctx, linkWorks, approval).Scan(&works)
	return works, err
}

const reviewable = `-- publishing.Reviewable
select name, suspended_at is null and deleted_at is null from organization where id = $1`

// Reviewable returns an organization's name and whether its members have access. It returns
// pgx.ErrNoRows if the organization does not exist.
func Reviewable(ctx context.Context, d *db.DB, org tenancy.OrgID) (name string, active bool, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(reviewable, org).QueryRow(func(row pgx.Row) error { return row.Scan(&name, &active) })
	})
	return name, active, err
}

const reviewAbout = `-- publishing.ReviewAbout
select o.name, o.timezone, coalesce((select u.name from person u where u.id = $2), '')
from organization o where o.id = $1`

// ReviewAbout holds the organization's details for an email to a reviewer.
type ReviewAbout struct {
	Organization, Timezone string
	// Requester is the requester's name. It is "" if the requester has no name or is a former
	// member.
	Requester string
}

// FindReviewAbout returns the organization's details for an email to a reviewer. It returns
// pgx.ErrNoRows if the organization does not exist.
func FindReviewAbout(
	ctx context.Context, d *db.DB, org tenancy.OrgID, requester tenancy.PersonID,
) (out ReviewAbout, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(reviewAbout, org, requester).QueryRow(func(row pgx.Row) error {
			return row.Scan(&out.Organization, &out.Timezone, &out.Requester)
		})
	})
	return out, err
}
