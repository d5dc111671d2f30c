package post

import (
	"context"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
)

// Posts are the use cases of posts. It is safe for concurrent use.
type Posts struct {
	cfg  Config
	deps Deps
	db   *db.DB
	keys keys
	// checker applies the rules of words and platforms.
	checker *checker
}

// New returns the use cases of posts. Requests with the same Idempotency-Key wait for each other inside one Posts;
// between several the database decides.
func New(cfg Config, deps Deps) *Posts {
	return &Posts{
		cfg: cfg, deps: deps, db: deps.DB, keys: keys{running: map[string]chan struct{}{}},
		checker: &checker{db: deps.DB, blobs: deps.Blobs, connectors: deps.Connectors, baseURL: cfg.BaseURL},
	}
}

// groupOf returns the group of a post. A later occurrence of a repeated post is stored first, so that it can be skipped
// or changed by itself; stored is 1 then, the number of posts that it has added to the queue.
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
