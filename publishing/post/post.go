package post

import (
	"context"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
)

// Posts are the use cases of posts. They are safe for concurrent use.
type Posts struct {
	cfg  Config
	deps Deps
	db   *db.DB
	keys keys
	// checker applies the rules for text and the rules of the platforms.
	checker *checker
}

// New returns the use cases of posts. Within one Posts, requests with the same Idempotency-Key wait
// for each other. Across several Posts, the database decides.
func New(cfg Config, deps Deps) *Posts {
	return &Posts{
		cfg: cfg, deps: deps, db: deps.DB, keys: keys{running: map[string]chan struct{}{}},
		checker: &checker{db: deps.DB, blobs: deps.Blobs, connectors: deps.Connectors, baseURL: cfg.BaseURL},
	}
}

// groupOf returns the group of a post. If the post is a later occurrence that is not stored yet,
// groupOf stores it first, so that this occurrence alone can be skipped or changed. stored is then
// 1, the number of posts that were added to the queue.
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
