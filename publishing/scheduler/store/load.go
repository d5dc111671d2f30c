package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

//go:embed sql/load_work.sql
var loadWork string

// Load returns the given posts that are claimed, with all the data needed to send them. It never
// returns an incomplete post. If there is an error, it returns no posts.
func Load(ctx context.Context, d *db.DB, posts []publishing.PostID) (out []dispatch.Work, err error) {
	var rows []workRow
	err = d.WriteRole(ctx, pg.Sender, func(b *pgx.Batch) {
		b.Queue(loadWork, db.UUIDs(posts)).Query(db.Collect(&rows, (*workRow).columns))
	})
	if err != nil {
		return nil, err
	}
	media, err := loadMedia(ctx, d, rows)
	if err != nil {
		return nil, err // without its media, the post would be published as text only
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

// workRow is a post together with one of its publications, or without a publication.
type workRow struct {
	work        dispatch.Work
	committing  *time.Time
	publication dispatch.Publication
	marked      *time.Time
	// attached is set if the part has media. workMedia then reads them.
	attached bool
}

// columns must match the column order of load_work.sql, because db.Collect scans by position.
func (r *workRow) columns() []db.Column {
	w, c, x := &r.work, &r.work.Channel, &r.publication
	return []db.Column{
		db.Col("org_id", &w.Org), db.Col("post_id", &w.Post), db.Col("group_id", &w.Group),
		db.Col("claim_token", &w.Token), db.Col("attempt", &w.Attempt), db.Col("failing", &w.Failing),
		db.Col("due", &w.Due), db.Col("settings", &w.Settings), db.Col("unapproved", &w.Unapproved),
		db.Col("committing_at", &r.committing), db.Col("call_ended", &w.CallEnded),
		db.Col("looks", &w.ReconcileAttempts), db.Col("reaps", &w.Reaps), db.Col("maybe_sent", &w.MaybeSent),

		db.Col("channel_id", &c.ID), db.Col("connector", &c.Connector), db.Col("name", &c.Name),
		db.Col("profile", &c.Profile), db.Col("picture", &c.Picture), db.Col("account_id", &c.AccountID),
		db.Col("account", &c.Account), db.Col("grade", &c.Grade), db.Col("disabled", &c.Disabled),
		db.Col("refresh_needed", &c.RefreshNeeded), db.Col("disconnected", &w.Disconnected),
		db.Col("credential", &w.Credential), db.Col("destination", &c.Destination),

		db.Col("publication_id", &x.ID), db.Col("part_post_id", &x.Post), db.Col("part_id", &x.Part),
		db.Col("position", &x.Position), db.Col("booked_for", &x.Due), db.Col("claimed_at", &x.ClaimedAt),
		db.Col("marked_at", &r.marked), db.Col("sent_to", &x.SentTo), db.Col("phase", &x.Phase),
		db.Col("handle", &x.Handle), db.Col("release_id", &x.ReleaseID), db.Col("release_url", &x.URL),
		db.Col("ref", &x.Ref),
		db.Col("content", &x.Content.Text), db.Col("html", &x.Content.HTML), db.Col("attached", &r.attached),
	}
}

func (r *workRow) post() dispatch.Work {
	w := r.work
	w.Channel.Org = w.Org
	if r.committing != nil {
		w.Committing = *r.committing
	}
	return w
}

func (r *workRow) part() dispatch.Publication {
	x := r.publication
	if r.marked != nil {
		x.MarkedAt = *r.marked
	}
	return x
}

// sentPart identifies a part. It includes the organization, so that parts of different
// organizations cannot be confused.
type sentPart struct {
	org  tenancy.OrgID
	part publishing.PartID
}

var workMedia = `-- publishing.WorkMedia
select ` + db.AttachmentColumns + `
from unnest($1::uuid[], $2::uuid[]) want(org, part)
join attachment t on t.part_id = any (array[want.part]) and (t.org_id = want.org) is true
join media m on m.id = any (array[t.media_id]) and (m.org_id = t.org_id) is true
order by t.position`

// loadMedia returns the media of the given parts. Parts without media are not in the map. A post's
// media do not change while the post is claimed.
func loadMedia(ctx context.Context, d *db.DB, rows []workRow) (map[sentPart][]dispatch.AttachedMedium, error) {
	var orgs, parts [][16]byte
	for _, row := range rows {
		if row.attached {
			orgs, parts = append(orgs, row.work.Org.UUID()), append(parts, row.publication.Part.UUID())
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	out := map[sentPart][]dispatch.AttachedMedium{}
	err := d.WriteRole(ctx, pg.Sender, func(b *pgx.Batch) {
		clear(out)
		b.Queue(workMedia, orgs, parts).Query(db.Each(
			pgx.RowToStructByName[db.AttachmentRow], func(r db.AttachmentRow) {
				of := sentPart{org: r.Org, part: r.Part}
				out[of] = append(out[of], dispatch.AttachedMedium{Medium: r.Medium(), Alt: r.PostAlt})
			},
		))
	})
	return out, err
}
