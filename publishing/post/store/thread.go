package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// ThreadData holds all data for a set of threads, except for the roots.
type ThreadData struct {
	Followers map[publishing.GroupID][]publishing.Post
	// Settings holds the templates' settings.
	Settings map[publishing.GroupID]json.RawMessage
	// Parts holds the parts of each group in order, with their attachments. A follower's first part
	// has the follower's delay.
	Parts    map[publishing.GroupID][]publishing.Part
	Media    map[publishing.MediaID]publishing.Medium
	Channels map[publishing.ChannelID]publishing.Channel
	// Tags holds the roots' tags, without deleted ones.
	Tags map[publishing.TagID]publishing.Tag
}

func newThreadData() ThreadData {
	return ThreadData{
		Followers: map[publishing.GroupID][]publishing.Post{}, Settings: map[publishing.GroupID]json.RawMessage{},
		Parts: map[publishing.GroupID][]publishing.Part{}, Media: map[publishing.MediaID]publishing.Medium{},
		Channels: map[publishing.ChannelID]publishing.Channel{}, Tags: map[publishing.TagID]publishing.Tag{},
	}
}

var channelsOf = `-- publishing.ChannelsOf
select ` + db.ChannelColumns + `
from channel c left join customer u on u.org_id = c.org_id and u.id = c.customer_id
where c.id = any($1)`

var followersOf = `-- publishing.FollowersOf
select ` + followerColumns + `
from post p where p.after_post is not null and p.deleted_at is null and p.group_id = any($1)
order by p.id`

const settingsOf = `-- publishing.SettingsOf
select p.group_id, p.settings from post p where p.group_id = any($1) and p.after_post is null`

type settingsRow struct {
	Group    publishing.GroupID `db:"group_id"`
	Settings json.RawMessage    `db:"settings"`
}

// ReadThreadData reads the given roots' threads in one round trip. For projected occurrences, the
// parts and settings are keyed by the template's group. ReadThreadData returns ErrTooMuch if the
// data exceeds publishing.MaxListedBytes.
func ReadThreadData(
	ctx context.Context, d *db.DB, org tenancy.OrgID, roots []publishing.Post,
) (w ThreadData, err error) {
	groups := make([][16]byte, 0, len(roots))
	templates, channels, tags := map[uuid.UUID]bool{}, map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
	for _, r := range roots {
		channels[r.Channel.UUID()] = true
		for _, t := range r.Tags {
			tags[t.UUID()] = true
		}
		if r.Projected != nil {
			templates[r.Projected.Template.UUID()] = true
			continue
		}
		groups = append(groups, r.Group.UUID())
	}
	hidden := keysOf(templates)
	groups = append(groups, hidden...)
	err = readWithin(ctx, d, org, func(b *pgx.Batch, most *budget) {
		w = newThreadData()
		if len(hidden) > 0 {
			row := within(most, pgx.RowToStructByName[settingsRow], func(r settingsRow) int { return len(r.Settings) })
			b.Queue(settingsOf, hidden).Query(db.Each(row, func(r settingsRow) { w.Settings[r.Group] = r.Settings }))
		}
		if len(tags) > 0 {
			b.Queue(tagsOf, keysOf(tags)).Query(db.Each(pgx.RowToStructByName[publishing.Tag], func(t publishing.Tag) {
				w.Tags[t.ID] = t
			}))
		}
		b.Queue(channelsOf, keysOf(channels)).Query(db.Each(db.ScanChannel, func(c publishing.Channel) {
			w.Channels[c.ID] = c
		}))
		readParts(b, most, groups, hidden, w.Media, func(r partRow, p publishing.Part) {
			w.Parts[r.Group] = append(w.Parts[r.Group], p)
		})
		b.Queue(followersOf, groups).Query(db.Each(within(most, scanPost, followerBytes), func(p publishing.Post) {
			w.Followers[p.Group] = append(w.Followers[p.Group], p)
		}))
	})
	return w, err
}

func followerBytes(publishing.Post) int { return publishing.ListedPart }

func keysOf(set map[uuid.UUID]bool) [][16]byte {
	out := make([][16]byte, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	return out
}

const partsOf = `-- publishing.PartsOf
select p.group_id, p.id as post_id, a.id, a.position, a.content, a.html,
  p.delay_minutes * interval '1 minute' as delay, x.release_id, x.release_url
from post p join part a on a.org_id = p.org_id and a.post_id = p.id
left join publication x on x.post_id = a.post_id and x.part_id = a.id and x.number = p.republish
where p.group_id = any($1) and (p.deleted_at is null or p.group_id = any($2))
order by a.position`

type partRow struct {
	Group    publishing.GroupID `db:"group_id"`
	Post     publishing.PostID  `db:"post_id"`
	ID       publishing.PartID  `db:"id"`
	Position int                `db:"position"`
	Text     string             `db:"content"`
	HTML     bool               `db:"html"`
	// Delay is the post's delay.
	Delay      time.Duration `db:"delay"`
	ReleaseID  *string       `db:"release_id"`
	ReleaseURL *string       `db:"release_url"`
}

func partBytes(r partRow) int { return len(r.Text) + publishing.ListedPart }

var attachmentsOf = `-- publishing.AttachmentsOf
select ` + db.AttachmentColumns + `
from post p join part a on a.org_id = p.org_id and a.post_id = p.id
join attachment t on t.org_id = a.org_id and t.part_id = a.id
join media m on m.org_id = t.org_id and m.id = t.media_id
where p.group_id = any($1) and (p.deleted_at is null or p.group_id = any($2))
order by t.part_id, t.position`

// readParts queues statements that read the parts of groups. It calls do for each part, in order of
// position, and adds the parts' media to media. Parts of deleted posts are skipped, except in the
// groups listed in hidden.
func readParts(
	b *pgx.Batch, most *budget, groups, hidden [][16]byte, media map[publishing.MediaID]publishing.Medium,
	do func(partRow, publishing.Part),
) {
	attached, seen := map[publishing.PartID][]publishing.Attachment{}, map[publishing.PostID]bool{}
	attachment := within(most, pgx.RowToStructByName[db.AttachmentRow], attachmentBytes)
	b.Queue(attachmentsOf, groups, hidden).Query(db.Each(attachment, func(r db.AttachmentRow) {
		media[r.ID] = r.Medium()
		attached[r.Part] = append(attached[r.Part], publishing.Attachment{Media: r.ID, Alt: r.PostAlt})
	}))
	part := within(most, pgx.RowToStructByName[partRow], partBytes)
	b.Queue(partsOf, groups, hidden).Query(db.Each(part, func(r partRow) {
		p := publishing.Part{
			ID: r.ID, Position: r.Position, Content: publishing.Content{Text: r.Text, HTML: r.HTML},
			Media: attached[r.ID], ReleaseID: r.ReleaseID, ReleaseURL: r.ReleaseURL,
		}
		if !seen[r.Post] {
			p.Delay = r.Delay
		}
		seen[r.Post] = true
		do(r, p)
	}))
}

func attachmentBytes(r db.AttachmentRow) int {
	return len(r.Name) + len(r.OriginalName) + len(r.PostAlt) + len(r.Alt) + publishing.ListedPart
}

// uuidForm matches the text of an id.
const uuidForm = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

// eventsOf extracts the ids from the descriptions that tenancy.ActorOf and GuestActor return. It
// extracts the ids before joining, so that the joins use the tables' keys. Under row-level
// security, no other condition on the person table can use an index. The names in a description can
// contain any text. An agent's name follows its person, and a guest's name precedes the member who
// passed the link on.
const eventsOf = `-- publishing.EventsOf
select n.at, n.event as kind, n.node, n.by, n.reason, coalesce(k.name, '') as key_name,
  coalesce(nullif(u.name, ''), u.email, '') as person_name
from (
  select e.at, e.id, e.event, e.node, e.by, e.reason,
    substring(e.by from '^key (` + uuidForm + `)$')::uuid as key_id,
    coalesce(substring(e.by from '^agent ` + uuidForm + ` for person (` + uuidForm + `)'),
      substring(e.by from 'person (` + uuidForm + `)$'))::uuid as person_id
  from post_event e where e.post_id in (select id from post where group_id = $1)
  order by e.at desc, e.id desc limit 1000) n
left join api_key k on k.org_id = $2 and k.id = n.key_id
left join person u on u.id = n.person_id
order by n.at, n.id`

// Events returns the 1000 newest events in a group's timeline, oldest first. If the group does not
// exist, it returns no events. It returns pg.ErrOrgBusy or any Postgres error.
func Events(
	ctx context.Context, d *db.DB, org tenancy.OrgID, group publishing.GroupID,
) (out []publishing.Event, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(eventsOf, group, org).Query(db.Into(&out, pgx.RowToStructByName[publishing.Event]))
	})
	return out, err
}
