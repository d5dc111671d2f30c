package publishtest

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	mediastore "crier/publishing/media/store"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
	"crier/tests/fixture"
)

// Insert stores posts for an organization.
func (b *Base) Insert(org tenancy.OrgID, posts ...publishing.Post) {
	b.Helper()
	rows := NewPosts(posts)
	b.OK(b.Store.InOrg(b.Context(), org, func(tx *db.Tx) error { return poststore.Insert(b.Context(), tx, rows) }))
}

// NewPosts returns posts as rows to insert, written by "test".
func NewPosts(posts []publishing.Post) []poststore.NewPost {
	rows := make([]poststore.NewPost, len(posts))
	for i, p := range posts {
		rows[i] = poststore.NewPost{Post: p, By: "test"}
	}
	return rows
}

// Medium stores a file with its content, and the files of three attempts to derive a picture from
// it.
func (b *Base) Medium(org tenancy.OrgID) publishing.Medium {
	b.Helper()
	x := fixture.Medium(org, time.Now())
	b.Create(x.BlobKey())
	_, err := mediastore.SaveMedium(b.Context(), b.Store, x, nil, 0)
	b.OK(err)
	const spec = "jpeg-1000-1000"
	for attempt := range 3 {
		b.Create(x.DerivedKey(spec, attempt+1))
	}
	b.Tenant(org, `insert into derived_picture
			(org_id, media_id, spec, shard, state, attempts, blob_key, content_type, size, width, height)
		values ($1, $2, $3, 7, 'ready', 3, $4, 'image/jpeg', 1, 1, 1),
			($1, $2, 'jpeg-2-2', 7, 'pending', 0, null, null, null, null, null)`,
		org, x.ID, spec, x.DerivedKey(spec, 3))
	return x
}

// Create stores a five-byte file under key.
func (b *Base) Create(key string) {
	b.Helper()
	_, err := b.Disk.Create(b.Context(), key, strings.NewReader("bytes"))
	b.OK(err)
}

// InState stores a post with a follower, a medium and a publication, and forces the post into a
// state.
func (b *Base) InState(
	org tenancy.OrgID, c publishing.ChannelID, state publishing.State, medium publishing.Medium,
) publishing.PostID {
	b.Helper()
	posts := fixture.Post(org, c, time.Now().Add(time.Hour), 0, time.Hour)
	posts[0].Parts[0].Media = []publishing.Attachment{{Media: medium.ID}}
	b.Insert(org, posts...)
	post := posts[0].ID
	b.Tenant(org, `insert into publication (org_id, id, post_id, group_id, part_id, position, number, created_at)
		select org_id, id, id, group_id, id, 0, 1, now() from post where id = $1`, post)
	b.Tenant(org, `update post set state = $2::text,
			error = case when $2 = 'ERROR' then 'x' end, release_id = case when $2 = 'PUBLISHED' then 'x' end,
			maybe_sent = $2 = 'UNKNOWN', phase = x.phase, committing_at = x.at,
			claim_until = x.at - interval '1 minute', claim_token = x.id, claim_holder = x.id
		from (select case when $2 in ('PUBLISHING', 'UNKNOWN') then 'committing' end as phase,
			case when $2 in ('PUBLISHING', 'UNKNOWN') then now() end as at,
			case when $2 in ('PUBLISHING', 'UNKNOWN') then gen_random_uuid() end as id) x
		where post.id = $1`, post, state)
	return post
}

// Gate executes a statement with the role pg.Gate, which sees everything that decides about access.
func (b *Base) Gate(sql string, args ...any) {
	b.Helper()
	b.OK(b.DB.InRole(b.Context(), pg.Gate, func(tx pgx.Tx) error {
		_, err := tx.Exec(b.Context(), sql, args...)
		return err
	}))
}
