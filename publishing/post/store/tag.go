package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
)

const tagsByName = `-- publishing.TagsByName
select t.id from unnest($1::text[]) with ordinality u(name, n) join tag t on lower(t.name) = lower(u.name)
order by u.n`

// TagsByName returns the ids of the tags with the given names, in the order of names. Names are
// compared without regard to case. Unknown names are skipped.
func TagsByName(ctx context.Context, tx *db.Tx, names []string) ([]publishing.TagID, error) {
	rows, err := tx.Query(ctx, tagsByName, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[publishing.TagID])
}

var tagsOf = `-- publishing.TagsOf
select ` + db.Columns[publishing.Tag]("t") + ` from tag t where t.id = any($1)`
