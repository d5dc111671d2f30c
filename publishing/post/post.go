package post

import (
	"context"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
)

// Posts implements the post use cases. It is safe for concurrent use.
type Posts struct {
	cfg  Config
	deps Deps
	db   *db.DB
	keys keys
	// checker checks entries against the text rules and the platforms' rules.
	checker *checker
}

// New returns a Posts. A Posts runs requests that have the same Idempotency-Key one at a time. If
// such requests run on different Posts, for example in different processes, the database lets only
// one of them write.
func New(cfg Config, deps Deps) *Posts {
	return &Posts{
		cfg: cfg, deps: deps, db: deps.DB, keys: keys{running: map[string]chan struct{}{}},
		checker: &checker{db: deps.DB, blobs: deps.Blobs, connectors: deps.Connectors, baseURL: cfg.BaseURL},
	}
}

// groupOf returns a post's group. If the post is a later occurrence that is not stored yet, groupOf
// stores it first. The occurrence can then be skipped or changed on its own. stored is the number
// of posts that groupOf added to the queue, which is 0 or 1.
func groupOf(
	ctx context.Context, tx *db.Tx, post publishing.PostID,
) (group publishing.GroupID, stored int, err error) {
	group, err = poststore.GroupOf(ctx, tx, post)
	if !pg.IsNoRows(err) {
		return group, 0, err
	}
	group, _, err = poststore.Materialize(ctx, tx, post.UUID(), false)
	return group, 1, err
}
