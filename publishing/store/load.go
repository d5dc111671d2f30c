package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

//go:embed sql/load_work.sql
var loadWork string

// Load returns those of the posts that are claimed, with everything that sending them needs. It never returns a part of
// a post: on an error it returns none.
func Load(ctx context.Context, d *Store, posts []publishing.PostID) (out []publishing.Work, err error) {
	var rows []workRow
	err = d.WriteRole(ctx, pg.Sender, func(b *pgx.Batch) {
		b.Queue(loadWork, uuids(posts)).Query(collect(&rows, (*workRow).columns))
	})
	if err != nil {
		return nil, err
	}
	media, err := loadMedia(ctx, d, rows)
	if err != nil {
		return nil, err // without its media a post would be published as a text
	}
	for _, row := range rows {
		if len(out) == 0 || out[len(out)-1].Post != row.work.Post {
			out = append(out, row.post())
		}
		w := &out[len(out)-1]
		x := row.part()
		switch {
		case x.ID.IsZero():
		case x.Post == w.Post:
			x.Media = media[sentPart{org: w.Org, part: x.Part}]
			w.Parts = append(w.Parts, x)
		default:
			w.Before = append(w.Before, x)
		}
	}
	return out, nil
}

// workRow is a post with one of its publications, or with none.
type workRow struct {
	work        publishing.Work
	committing  *time.Time
	publication publishing.Publication
	marked      *time.Time
	// attached is set when the part has media, so that workMedia is asked for them.
	attached bool
}

// columns must have the order of the result of load_work.sql, because collect scans by position.
func (r *workRow) columns() []column {
	w, c, x := &r.work, &r.work.Channel, &r.publication
	return []column{
		col("org_id", &w.Org), col("post_id", &w.Post), col("group_id", &w.Group), col("claim_token", &w.Token),
		col("attempt", &w.Attempt), col("failing", &w.Failing), col("due", &w.Due), col("settings", &w.Settings),
		col("unapproved", &w.Unapproved),
		col("committing_at", &r.committing), col("call_ended", &w.CallEnded), col("looks", &w.ReconcileAttempts),
		col("reaps", &w.Reaps), col("maybe_sent", &w.MaybeSent),

		col("channel_id", &c.ID), col("connector", &c.Connector), col("name", &c.Name), col("profile", &c.Profile),
		col("picture", &c.Picture), col("account_id", &c.AccountID), col("account", &c.Account), col("grade", &c.Grade),
		col("disabled", &c.Disabled), col("refresh_needed", &c.RefreshNeeded), col("disconnected", &w.Disconnected),
		col("credential", &w.Credential), col("destination", &c.Destination),

		col("publication_id", &x.ID), col("part_post_id", &x.Post), col("part_id", &x.Part),
		col("position", &x.Position), col("booked_for", &x.Due), col("claimed_at", &x.ClaimedAt),
		col("marked_at", &r.marked), col("sent_to", &x.SentTo), col("phase", &x.Phase), col("handle", &x.Handle),
		col("release_id", &x.ReleaseID), col("release_url", &x.URL), col("ref", &x.Ref),
		col("content", &x.Content.Text), col("html", &x.Content.HTML), col("attached", &r.attached),
	}
}

func (r *workRow) post() publishing.Work {
	w := r.work
	w.Channel.Org = w.Org
	if r.committing != nil {
		w.Committing = *r.committing
	}
	return w
}

func (r *workRow) part() publishing.Publication {
	x := r.publication
	if r.marked != nil {
		x.MarkedAt = *r.marked
	}
	return x
}

// sentPart names a part. Its organization belongs to the name, so that no part of another one is taken for it.
type sentPart struct {
	org  tenancy.OrgID
	part publishing.PartID
}

var workMedia = `-- publishing.WorkMedia
select ` + attachmentColumns + `
from unnest($1::uuid[], $2::uuid[]) want(org, part)
join attachment t on t.part_id = any (array[want.part]) and (t.org_id = want.org) is true
join media m on m.id = any (array[t.media_id]) and (m.org_id = t.org_id) is true
order by t.position`

// loadMedia returns the media of those parts that have some. They do not change while the post is claimed.
func loadMedia(ctx context.Context, d *Store, rows []workRow) (map[sentPart][]publishing.AttachedMedium, error) {
	var orgs, parts [][16]byte
	for _, row := range rows {
		if row.attached {
			orgs, parts = append(orgs, row.work.Org.UUID()), append(parts, row.publication.Part.UUID())
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	out := map[sentPart][]publishing.AttachedMedium{}
	err := d.WriteRole(ctx, pg.Sender, func(b *pgx.Batch) {
		clear(out)
		b.Queue(workMedia, orgs, parts).Query(each(pgx.RowToStructByName[attachmentRow], func(r attachmentRow) {
			of := sentPart{org: r.Org, part: r.Part}
			out[of] = append(out[of], publishing.AttachedMedium{Medium: r.medium(), Alt: r.PostAlt})
		}))
	})
	return out, err
}
