package service

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// Posts are the use cases of posts. It is safe for concurrent use.
type Posts struct {
	core
	keys keys
}

// NewPosts returns the use cases of posts. Requests with the same Idempotency-Key wait for each other inside one Posts;
// between several the database decides.
func NewPosts(cfg Config, deps Deps) *Posts {
	return &Posts{core: newCore(cfg, deps), keys: keys{running: map[string]chan struct{}{}}}
}

// inOrg runs fn in a transaction of the organization, and again after a serialization failure. When fn has ended a post
// that held its channel, it wakes the organization, because the next post of the channel may be due.
func (c core) inOrg(ctx context.Context, org tenancy.OrgID, fn func(*publishingstore.Tx) error) error {
	freed := false
	err := c.store.InOrg(ctx, org, func(tx *publishingstore.Tx) error {
		err := fn(tx)
		freed = tx.ChannelReleased()
		return err
	})
	if err != nil {
		return err
	}
	if freed {
		c.deps.Waker.Wake(ctx, org, time.Time{})
	}
	return nil
}

// inOrgAs is inOrg for a command of a principal: the transaction begins by confirming the
// principal. Commands that only write posts for an API key use inOrg: they are the most frequent,
// and they create nothing that acts later.
func (c core) inOrgAs(ctx context.Context, p tenancy.Principal, fn func(*publishingstore.Tx) error) error {
	return c.inOrg(ctx, p.Org, func(tx *publishingstore.Tx) error {
		if err := tx.Confirm(ctx, c.deps.Authority, p); err != nil {
			return err
		}
		return fn(tx)
	})
}

// groupOf returns the group of a post. A later occurrence of a repeated post is stored first, so that it can be skipped
// or changed by itself; stored is 1 then, the number of posts that it has added to the queue.
func groupOf(
	ctx context.Context, tx *publishingstore.Tx, post publishing.PostID,
) (group publishing.GroupID, stored int, err error) {
	group, err = publishingstore.GroupOf(ctx, tx, post)
	if !pg.IsNoRows(err) {
		return group, 0, err
	}
	group, _, err = publishingstore.Materialize(ctx, tx, post.UUID(), false)
	return group, 1, err
}

// by returns who acts, as the timeline of a post shows it, for example "operator for person
// 0192f0c1-…". It contains no addresses, because timelines outlive accounts.
func by(p tenancy.Principal) string {
	if p.Via == tenancy.ViaKey {
		return "key " + p.Key.String()
	}
	who := "person " + p.Person.String()
	if !p.Behind.IsZero() {
		return "operator for " + who
	}
	return who
}

// publicFault returns an error of a transaction as a fault: faults as they are, a missing row as NotFound, the others
// as Unavailable or Internal.
func publicFault(op string, err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	if pg.IsNoRows(err) {
		return noPost(op)
	}
	return internal(op, err)
}

func internal(op string, err error) error {
	return pg.Fault(op, err)
}

func noPost(op string) error { return fault.New(fault.NotFound, op, "There is no such post.") }

func disconnected(op string) error {
	return fault.New(fault.Invalid, op, "The channel was disconnected.")
}
