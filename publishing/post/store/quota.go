package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// PostQuota counts an organization's posts within a transaction and compares the number with the
// plan's limit. The zero value sets no limit.
type PostQuota struct {
	tx     *db.Tx
	limits tenancy.Limits
}

// ReadPostQuota returns the organization's post quota. If the plan limits posts, ReadPostQuota
// locks the organization until the transaction ends, so that only one transaction at a time counts
// posts. Call it before locking channels, series or posts. In any other order, two transactions
// could deadlock.
func ReadPostQuota(ctx context.Context, tx *db.Tx, q db.Quota) (PostQuota, error) {
	limits, err := db.Limits(ctx, tx, q)
	if err != nil || limits.Posts == tenancy.Unlimited {
		return PostQuota{}, err
	}
	_, err = db.LockOrganization(ctx, tx)
	return PostQuota{tx: tx, limits: limits}, err
}

// monthPosts counts threads by the date on which the first post is published. If the post was
// queued after its publish date, the due time counts instead.
//
// A thread that was published still counts if it is later deleted, made a draft or queued again. A
// failed thread counts if at least one of its parts was or may have been published. The two selects
// in the union use the indexes post_range and post_late.
const monthPosts = `-- publishing.MonthPosts
select count(distinct m.group_id) + (
  select coalesce(sum(r.posts), 0) from republished r
  where r.org_id = $1 and r.day >= ($2::timestamptz at time zone 'UTC')::date
    and r.day < ($3::timestamptz at time zone 'UTC')::date)
from (
  select p.id, p.group_id, p.state, p.deleted_at, p.outcome_unknown, p.republish from post p
  where p.org_id = $1 and p.publish_date >= $2 and p.publish_date < $3 and p.after_post is null and p.delay_minutes = 0
    and (p.due > p.publish_date) is not true
  union all
  select p.id, p.group_id, p.state, p.deleted_at, p.outcome_unknown, p.republish from post p
  where p.org_id = $1 and p.due >= $2 and p.due < $3 and p.after_post is null and p.delay_minutes = 0
    and p.due > p.publish_date) m
where m.state in ('PUBLISHING', 'UNKNOWN', 'PUBLISHED') or m.state = 'QUEUE' and m.deleted_at is null
  or m.state = 'ERROR' and (m.outcome_unknown or exists (
    select from publication x where x.post_id = any (array[m.id]) and x.number = m.republish and x.phase = 'done'))`

// Count returns the number of threads in the billing month that contains at. It counts threads that
// are queued, being sent or published. A thread that was published several times counts once per
// publication. at must not be in the past. If the plan does not limit posts, Count returns 0.
func (q PostQuota) Count(ctx context.Context, at time.Time) (n int, err error) {
	if q.tx == nil {
		return 0, nil
	}
	from, to := q.limits.Month(at)
	err = q.tx.Whole(ctx, func(ctx context.Context) error {
		return q.tx.QueryRow(ctx, monthPosts, q.tx.Org, from, to).Scan(&n)
	})
	return n, err
}

// Months returns one of the given times for each billing month. If the plan does not limit posts,
// it returns none.
func (q PostQuota) Months(times []time.Time) (out []time.Time) {
	if q.tx == nil {
		return nil
	}
	seen := map[time.Time]bool{}
	for _, at := range times {
		from, _ := q.limits.Month(at)
		if !seen[from] {
			out = append(out, at)
		}
		seen[from] = true
	}
	return out
}

// Check returns fault.Quota if at's billing month has more threads than the plan allows, and also
// more than before. The argument before comes from an earlier call to Count in the same
// transaction.
func (q PostQuota) Check(ctx context.Context, op string, at time.Time, before int) error {
	if q.tx == nil {
		return nil
	}
	n, err := q.Count(ctx, at)
	if err != nil || n <= before || n <= q.limits.Posts {
		return err
	}
	return q.over(op, at, before)
}

// Room returns fault.Quota if the plan does not allow another thread in the billing month that
// contains at.
func (q PostQuota) Room(ctx context.Context, op string, at time.Time) error {
	n, err := q.Count(ctx, at)
	if err != nil || q.tx == nil || n < q.limits.Posts {
		return err
	}
	return q.over(op, at, n)
}

func (q PostQuota) over(op string, at time.Time, n int) error {
	from, _ := q.limits.Month(at)
	return q.limits.OverLimit(op, tenancy.LimitPosts, n, q.limits.Posts,
		"The month began on "+from.Format(time.DateOnly)+". Keep drafts, choose a later date,")
}

// allows reports whether the plan allows another thread in the billing month that contains at.
func (q PostQuota) allows(ctx context.Context, at time.Time) (bool, error) {
	n, err := q.Count(ctx, at)
	return q.tx == nil || n < q.limits.Posts, err
}

const (
	overQuota = "The plan allows no more posts in this billing month."
	// followerOverQuota is the error stored for followers if the root exceeds the quota.
	followerOverQuota = "The post before this one was not published."
)

// occurrenceRefused is a separate update of the inserted posts, so that the webhook trigger sees
// the failure.
const occurrenceRefused = `-- publishing.OccurrenceRefused
update post set state = 'ERROR', updated_at = now(),
  error = case when after_post is null then $2 else $3 end,
  error_code = case when after_post is null then $4 else $5 end
where group_id = $1`

const occurrenceFailed = `-- publishing.OccurrenceFailed
insert into post_event (org_id, post_id, event, node, reason) values ($1, $2, 'failed', nullif($3, ''), $4)`

// refuseOccurrence marks an occurrence as failed. The occurrence was just inserted and exceeds the
// plan's limit.
func refuseOccurrence(
	ctx context.Context, tx *db.Tx, series publishing.SeriesID, template publishing.GroupID, number int,
) error {
	b := &pgx.Batch{}
	b.Queue(occurrenceRefused, publishing.Occurrence(template, number), overQuota, followerOverQuota,
		publishing.CodeQuota, publishing.CodePredecessor)
	b.Queue(occurrenceFailed, tx.Org, occurrenceOf(series, number), tx.Node, overQuota)
	return tx.SendBatch(ctx, b).Close()
}
