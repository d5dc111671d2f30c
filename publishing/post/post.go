package post

import (
	"context"
	"io"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/publishing/file/metadata"
	poststore "crier/publishing/post/store"
)

// Posts are the use cases of posts. It is safe for concurrent use.
type Posts struct {
	cfg  Config
	deps Deps
	db   *db.DB
	keys keys
}

// New returns the use cases of posts. Requests with the same Idempotency-Key wait for each other inside one Posts;
// between several the database decides.
func New(cfg Config, deps Deps) *Posts {
	return &Posts{cfg: cfg, deps: deps, db: deps.DB, keys: keys{running: map[string]chan struct{}{}}}
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

// publicFault returns an error of a transaction as a fault: faults as they are, a missing row as NotFound, the others
// as Unavailable or Internal.
func publicFault(op string, err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	if pg.IsNoRows(err) {
		return publishing.NoPost(op)
	}
	return pg.Fault(op, err)
}

// media returns the connector's view of a file. The file is opened only when the connector calls Open.
func (s *Posts) media(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	return connector.MediaOf(m, alt, s.cfg.BaseURL, func() (io.ReadCloser, error) {
		return metadata.Open(ctx, s.deps.Blobs, m.BlobKey(), m.Edits)
	})
}
