package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/tenancy"
)

const (
	rootBefore = `p.org_id, p.id, p.group_id, p.channel_id, p.state, p.due, p.publish_date, p.after_post, p.delay_minutes * interval '1 minute', p.revision, `
	rootAfter  = `, p.creation_method,
  p.release_id, p.release_url, p.error, p.error_code, p.maybe_sent, p.series_id, coalesce(p.occurrence, 0), coalesce(p.interval_days, 0), p.created_at, p.updated_at`
	rootColumns     = rootBefore + `p.settings` + rootAfter
	followerColumns = rootBefore + `'{}'::jsonb` + rootAfter // its settings are the root's
)

func scanPost(row pgx.CollectableRow) (p publishing.Post, err error) {
	err = row.Scan(&p.Org, &p.ID, &p.Group, &p.Channel, &p.State, &p.Due, &p.PublishDate, &p.After, &p.Delay, &p.Revision, &p.Settings, &p.CreationMethod,
		&p.ReleaseID, &p.ReleaseURL, &p.Error, &p.ErrorCode, &p.OutcomeUnknown, &p.Series, &p.Occurrence, &p.Interval, &p.CreatedAt, &p.UpdatedAt)
	return p, err
}

const ofCustomer = `exists (select from channel c where c.org_id = p.org_id and c.id = p.channel_id and c.customer_id = `

const rootsInRange = `-- publishing.RootsInRange
select ` + rootColumns + ` from post p
where p.after_post is null and p.deleted_at is null and p.publish_date >= $1 and p.publish_date <= $2 and ($3::uuid is null or ` + ofCustomer + `$3))
order by p.publish_date, p.id limit $4`

const rootsPage = `-- publishing.RootsPage
select ` + rootColumns + ` from post p where p.after_post is null and p.deleted_at is null and ($1::uuid is null or ` + ofCustomer + `$1))
order by p.publish_date, p.id offset $2 limit $3`

// The count ends at a limit, so that no page reads all that an organization ever posted.
const rootsCount = `-- publishing.RootsCount
select count(*) from (
  select from post p where p.after_post is null and p.deleted_at is null and ($1::uuid is null or ` + ofCustomer + `$1)) limit $2) counted`

const rootByID = `-- publishing.RootByID
select ` + rootColumns + ` from post p where p.after_post is null and p.deleted_at is null
  and p.group_id = (select q.group_id from post q where q.id = $1 and q.deleted_at is null)`

// Roots lists the roots of a range, at most limit, with the later occurrences of repeated posts among them. It returns
// ErrTooMuch for roots whose settings are larger than publishing.MaxListedBytes, and for limit series or more.
func (s *Store) Roots(ctx context.Context, org tenancy.OrgID, q publishing.ListPosts, customer publishing.CustomerID, limit int) ([]publishing.Post, error) {
	var rows []publishing.Post
	var series []comingSeries
	err := s.readWithin(ctx, org, func(b *pgx.Batch, most *budget) { // in this order, an occurrence that is stored meanwhile is found twice, not missed
		b.Queue(findSeriesInRange, q.Start, q.End.UTC(), customer, limit).Query(collectComing(&series))
		b.Queue(rootsInRange, q.Start, q.End, customer, limit).Query(into(&rows, within(most, scanPost, settingsBytes)))
	})
	if err != nil {
		return rows, err
	}
	if len(series) == limit {
		return rows, ErrTooMuch
	}
	stored := make(map[publishing.PostID]bool, len(rows))
	for _, p := range rows {
		stored[p.ID] = true
	}
	later := slices.DeleteFunc(occurrencesBetween(series, q.Start, q.End, limit), func(p publishing.Post) bool { return stored[p.ID] })
	if len(later) == 0 {
		return rows, nil
	}
	rows = append(rows, later...)
	slices.SortFunc(rows, func(a, b publishing.Post) int {
		return cmp.Or(a.PublishDate.Compare(b.PublishDate), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return rows[:min(limit, len(rows))], nil
}

// RootPage lists one page of all roots, and how many there are, counted up to publishing.CountAhead past the end of
// the page. It returns ErrTooMuch for roots whose settings are larger than publishing.MaxListedBytes.
func (s *Store) RootPage(ctx context.Context, org tenancy.OrgID, page publishing.Page, customer publishing.CustomerID) (out []publishing.Post, total int, err error) {
	err = s.readWithin(ctx, org, func(b *pgx.Batch, most *budget) {
		before := int64(page.Number) * int64(page.Limit)
		b.Queue(rootsPage, customer, before, page.Limit).Query(into(&out, within(most, scanPost, settingsBytes)))
		b.Queue(rootsCount, customer, before+int64(page.Limit)+publishing.CountAhead).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
	})
	return out, total, err
}

// Root finds the root of the group that a living post belongs to; none when there is no such post.
func (s *Store) Root(ctx context.Context, org tenancy.OrgID, post publishing.PostID) (out []publishing.Post, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) { b.Queue(rootByID, post).Query(into(&out, scanPost)) })
	return out, err
}

const followersOf = `-- publishing.FollowersOf
select ` + followerColumns + ` from post p where p.after_post is not null and p.deleted_at is null and p.group_id = any($1) order by p.id`

const partsOf = `-- publishing.PartsOf
select p.group_id, a.id, a.position, a.content, a.html, p.id, p.delay_minutes * interval '1 minute', x.release_id, x.release_url
from post p join part a on a.org_id = p.org_id and a.post_id = p.id
left join publication x on x.post_id = a.post_id and x.part_id = a.id and x.number = p.republish
where p.group_id = any($1) and (p.deleted_at is null or p.group_id = any($2)) order by a.position`

const attachmentsOf = `-- publishing.AttachmentsOf
select t.part_id, t.alt, ` + mediaColumns + `
from post p join part a on a.org_id = p.org_id and a.post_id = p.id
join attachment t on t.org_id = a.org_id and t.part_id = a.id
join media m on m.org_id = t.org_id and m.id = t.media_id
where p.group_id = any($1) and (p.deleted_at is null or p.group_id = any($2)) order by t.part_id, t.position`

// The newest thousand, oldest first.
const eventsOf = `-- publishing.EventsOf
select at, event, node, by, reason from (
  select e.at, e.id, e.event, e.node, e.by, e.reason from post_event e where e.post_id in (select id from post where group_id = $1)
  order by e.at desc, e.id desc limit 1000) newest order by at, id`

// ErrTooMuch ends a list whose posts hold more than publishing.MaxListedBytes.
var ErrTooMuch = errors.New("the list holds too many bytes")

// budget is how many bytes of what somebody has written the statements of a read may still answer.
type budget struct {
	left int
	stop context.CancelFunc // cancels the read
}

// take returns ErrTooMuch when the budget is spent, and cancels the read: Postgres would send the rest as well.
func (b *budget) take(bytes int) error {
	if b.left -= bytes; b.left < 0 {
		b.stop()
		return ErrTooMuch
	}
	return nil
}

// within is scan as long as the budget has what bytes returns for a row.
func within[T any](b *budget, scan pgx.RowToFunc[T], bytes func(T) int) pgx.RowToFunc[T] {
	return func(row pgx.CollectableRow) (T, error) {
		x, err := scan(row)
		if err == nil {
			err = b.take(bytes(x))
		}
		return x, err
	}
}

// readWithin is Read of a batch that takes what it reads from a budget of publishing.MaxListedBytes. It returns
// ErrTooMuch when that is not enough.
func (s *Store) readWithin(ctx context.Context, org tenancy.OrgID, queue func(*pgx.Batch, *budget)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var most *budget
	err := s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		most = &budget{publishing.MaxListedBytes, stop}
		queue(b, most)
	})
	if most != nil && most.left < 0 {
		return ErrTooMuch
	}
	return err
}

func settingsBytes(p publishing.Post) int { return len(p.Settings) }

func followerBytes(publishing.Post) int { return publishing.ListedPart }

func mediumBytes(m attached) int {
	return len(m.Name) + len(m.OriginalName) + len(m.Alt) + publishing.ListedPart
}

// Whole is everything that hangs on some groups.
type Whole struct {
	Followers map[publishing.GroupID][]publishing.Post
	Settings  map[publishing.GroupID]json.RawMessage   // of templates
	Parts     map[publishing.GroupID][]publishing.Part // with attachments; the first part of a follower carries its delay
	Media     map[publishing.MediaID]publishing.Medium
	Channels  map[publishing.ChannelID]publishing.Channel
}

const channelsOf = `-- publishing.ChannelsOf
select ` + channelColumns + `
from channel c left join customer u on u.org_id = c.org_id and u.id = c.customer_id where c.id = any($1)`

const settingsOf = `-- publishing.SettingsOf
select p.group_id, p.settings from post p where p.group_id = any($1) and p.after_post is null`

type settingsRow struct {
	Group    publishing.GroupID
	Settings json.RawMessage
}

// Whole reads what hangs on these roots, in one round trip, and returns ErrTooMuch when that is more than
// publishing.MaxListedBytes. Parts and settings of later occurrences come under their template's group.
func (s *Store) Whole(ctx context.Context, org tenancy.OrgID, roots []publishing.Post) (w Whole, err error) {
	groups, templates, channels := make([][16]byte, 0, len(roots)), map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
	for _, r := range roots {
		channels[r.Channel.UUID()] = true
		if r.Projected != nil {
			templates[r.Projected.Template.UUID()] = true
			continue
		}
		groups = append(groups, r.Group.UUID())
	}
	hidden := keysOf(templates)
	groups = append(groups, hidden...)
	err = s.readWithin(ctx, org, func(b *pgx.Batch, most *budget) {
		w = Whole{map[publishing.GroupID][]publishing.Post{}, map[publishing.GroupID]json.RawMessage{}, map[publishing.GroupID][]publishing.Part{},
			map[publishing.MediaID]publishing.Medium{}, map[publishing.ChannelID]publishing.Channel{}}
		if len(hidden) > 0 {
			row := within(most, pgx.RowToStructByPos[settingsRow], func(r settingsRow) int { return len(r.Settings) })
			b.Queue(settingsOf, hidden).Query(each(row, func(r settingsRow) { w.Settings[r.Group] = r.Settings }))
		}
		b.Queue(channelsOf, keysOf(channels)).Query(each(scanChannel, func(c publishing.Channel) { w.Channels[c.ID] = c }))
		readParts(b, most, groups, hidden, w.Media, func(group publishing.GroupID, _ publishing.PostID, p publishing.Part) {
			w.Parts[group] = append(w.Parts[group], p)
		})
		b.Queue(followersOf, groups).Query(each(within(most, scanPost, followerBytes), func(p publishing.Post) {
			w.Followers[p.Group] = append(w.Followers[p.Group], p)
		}))
	})
	return w, err
}

// readParts reads the parts of groups with their attachments, each after the one before it, and collects the media.
// The parts of posts that are deleted are left out, except of the groups that are hidden.
func readParts(
	b *pgx.Batch, most *budget, groups, hidden [][16]byte, all map[publishing.MediaID]publishing.Medium,
	do func(publishing.GroupID, publishing.PostID, publishing.Part),
) {
	media, seen := map[publishing.PartID][]publishing.Attachment{}, map[publishing.PostID]bool{}
	b.Queue(attachmentsOf, groups, hidden).Query(each(within(most, pgx.RowToStructByPos[attached], mediumBytes), func(m attached) {
		all[m.ID] = m.Medium
		media[m.Part] = append(media[m.Part], publishing.Attachment{Media: m.ID, Alt: m.Alt})
	}))
	b.Queue(partsOf, groups, hidden).Query(func(rows pgx.Rows) error {
		var group publishing.GroupID
		var post publishing.PostID
		var p publishing.Part
		var delay time.Duration
		fields := []any{&group, &p.ID, &p.Position, &p.Content.Text, &p.Content.HTML, &post, &delay, &p.ReleaseID, &p.ReleaseURL}
		_, err := pgx.ForEachRow(rows, fields, func() error {
			p.Media, p.Delay = media[p.ID], 0
			if !seen[post] {
				p.Delay = delay
			}
			seen[post] = true
			do(group, post, p)
			return most.take(len(p.Content.Text) + publishing.ListedPart)
		})
		return err
	})
}

func keysOf(set map[uuid.UUID]bool) [][16]byte {
	out := make([][16]byte, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	return out
}

// Events reads the timeline of a group, oldest first.
func (s *Store) Events(ctx context.Context, org tenancy.OrgID, group publishing.GroupID) (out []publishing.Event, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(eventsOf, group).Query(into(&out, pgx.RowToStructByPos[publishing.Event]))
	})
	return out, err
}
