package post

import (
	"context"
	"errors"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// takeAllowance counts posts that an agent queues in the transaction. Changing a queued post counts
// too: otherwise, an agent that may queue no more posts could replace the posts of others. It
// returns Forbidden if the agent may queue no more posts today. For other principals, and for
// agents without a limit, it does nothing.
func (s *Posts) takeAllowance(ctx context.Context, tx *db.Tx, p tenancy.Principal, posts int) error {
	if p.Via != tenancy.ViaAgent || p.Agent.Limits == nil || p.Agent.Limits.PostsPerDay == 0 {
		return nil
	}
	return s.take(ctx, tx, p, posts)
}

// takeApproved is like takeAllowance, but for a post that a person's approval queues. The post
// counts for the agent that requested the approval. If no agent did, takeApproved does nothing.
func (s *Posts) takeApproved(ctx context.Context, tx *db.Tx, a publishing.Approval) error {
	if a.Agent.IsZero() {
		return nil
	}
	return s.take(ctx, tx, a.Requester(tx.Org), 1)
}

func (s *Posts) take(ctx context.Context, tx *db.Tx, p tenancy.Principal, posts int) error {
	if s.deps.Allowance == nil || posts == 0 {
		return nil
	}
	day, ends, err := db.OrganizationToday(ctx, tx, s.deps.Clock.Now())
	if err != nil {
		return err
	}
	err = s.deps.Allowance.Take(ctx, tx, p, posts, day)
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Forbidden {
		return err
	}
	over := *f
	over.Message = strings.TrimSpace(f.Message + " The day ends at " + ends.Format(time.RFC3339) + ".")
	return &over
}

// takeChanged is like takeAllowance, but for one stored group that is being queued or is already
// queued. It also returns Forbidden if the post is repeated and the agent may not repeat posts,
// because the change applies to later occurrences too.
func (s *Posts) takeChanged(
	ctx context.Context, tx *db.Tx, op string, p tenancy.Principal, posts []poststore.PostStatus,
) error {
	if !rootOf(posts).Series.IsZero() {
		if err := publishing.MayRepeat(op, p); err != nil {
			return err
		}
	}
	return s.takeAllowance(ctx, tx, p, 1)
}

// mayChange returns Forbidden if the principal may not change a locked group.
func mayChange(op string, p tenancy.Principal, posts []poststore.PostStatus) error {
	for _, x := range posts {
		if err := publishing.MayChange(op, p, x.State); err != nil {
			return err
		}
	}
	return nil
}

// mayDelete returns Forbidden if the principal may not delete a locked group. An agent that must
// ask may delete a draft, but not the draft that keeps a series from being scheduled.
func mayDelete(
	ctx context.Context, tx *db.Tx, op string, p tenancy.Principal, posts []poststore.PostStatus,
) error {
	if err := mayChange(op, p, posts); err != nil || !publishing.MustAsk(p) {
		return err
	}
	root := rootOf(posts)
	if root.Series.IsZero() {
		return nil
	}
	held, err := poststore.IsSeriesHeld(ctx, tx, root.Series)
	if err != nil || held {
		return err
	}
	return publishing.MayContinue(op, p)
}

// mayEndSeries returns Forbidden if the principal may not end the series of a locked group. An
// agent that must ask may end a series only while the given draft is its current occurrence,
// because no occurrence is scheduled then.
func mayEndSeries(
	ctx context.Context, tx *db.Tx, op string, p tenancy.Principal, root poststore.PostStatus,
) error {
	if !publishing.MustAsk(p) {
		return nil
	}
	next, over, err := poststore.NextOf(ctx, tx, root.Series)
	if err != nil || over || next == root.Occurrence {
		return err
	}
	return publishing.MayContinue(op, p)
}
