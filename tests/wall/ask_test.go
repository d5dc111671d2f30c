package wall

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	accessstore "crier/publishing/access/store"
	analyticsstore "crier/publishing/analytics/store"
	channelstore "crier/publishing/channel/store"
	publishingdb "crier/publishing/db"
	mediastore "crier/publishing/media/store"
	picturesstore "crier/publishing/pictures/store"
	poststore "crier/publishing/post/store"
	purgestore "crier/publishing/purge/store"
	schedulerstore "crier/publishing/scheduler/store"
	slotstore "crier/publishing/slot/store"
	tagstore "crier/publishing/tag/store"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
	tenancydb "crier/tenancy/db"
	"crier/tests/dbtest"
)

// tenantFixture has one row of every kind, all owned by one organization.
type tenantFixture struct {
	org        tenancy.OrgID
	person     tenancy.PersonID
	key        tenancy.KeyID
	invitation tenancy.InvitationID
	agent      agentFixture
	channel    publishing.Channel
	medium     publishing.Medium
	post       publishing.Post
	state      []byte
	standing   poststore.PostStatus
	webhook    publishing.WebhookID
	delivery   publishing.DeliveryID
	approval   publishing.ApprovalID
	// notification is an open incident, and event is one that is not counted yet. day covers the
	// published posts of a day.
	notification, day publishing.NotificationID
	event             int64
	// address is the hash of an upload address.
	address []byte
	// pending is the channel of a connect whose account is not chosen yet.
	pending publishing.ChannelID
	// refresh is the run of a refresh that has begun, if any.
	refresh *uuid.UUID
}

// copied returns the post with new ids.
func (e tenantFixture) copied() publishing.Post {
	p := e.post
	p.ID, p.Group = id.New[publishing.PostTag](), id.New[publishing.GroupTag]()
	p.Parts = []publishing.Part{{ID: id.FromUUID[publishing.PartTag](p.ID.UUID()), Content: publishing.Content{Text: "secret words"}}}
	return p
}

// beforeChannel returns an id directly before the channel, unless another channel was created in
// the same millisecond.
func (e tenantFixture) beforeChannel() publishing.ChannelID {
	raw := e.channel.ID.UUID()
	clear(raw[6:])
	return id.FromUUID[publishing.ChannelTag](raw)
}

func (e tenantFixture) series() publishing.SeriesID {
	return id.FromUUID[publishing.SeriesTag](e.post.ID.UUID())
}

// tag returns the id of the tag.
func (e tenantFixture) tag() publishing.TagID { return id.FromUUID[publishing.TagTag](e.person.UUID()) }

func (e tenantFixture) picture() picturesstore.PictureKey {
	return picturesstore.PictureKey{Media: e.medium.ID, Spec: "jpeg-1-1"}
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func uploadAddress(e tenantFixture) publishing.UploadAddress {
	return publishing.UploadAddress{
		Org: e.org, Via: tenancy.ViaKey, Credential: secret.HashToken("credential"), ExpiresAt: now.Add(time.Hour),
	}
}

func newTenantFixture(t *testing.T, db *pg.DB) tenantFixture {
	t.Helper()
	things := publishingdb.New(db)
	e := tenantFixture{
		org: id.New[tenancy.OrgTag](), person: id.New[tenancy.PersonTag](), key: id.New[tenancy.KeyTag](),
		invitation: id.New[tenancy.InvitationTag](),
	}
	e.addTenancy(t, db)
	e.addAgent(t, db)
	var err error
	c := publishing.Channel{
		ID: id.New[publishing.ChannelTag](), Org: e.org, Connector: "sandbox", Name: "c", AccountID: e.org.String(), Account: []byte(`{}`), Grade: "A",
	}
	e.channel, _, err = channelstore.ConnectChannel(t.Context(), things, c, []byte("sealed"), nil, nil)
	must(t, err)
	size := 1 + rand.Int64N(1<<40) // unique, so that it identifies the organization
	e.medium = publishing.Medium{
		ID: id.New[publishing.MediaTag](), Org: e.org, Key: e.org.String(), Blob: e.org.String(), Name: "f", Ext: "png",
		ContentType: "image/png", Size: size, Stored: size, CreatedAt: now,
	}
	_, err = mediastore.SaveMedium(t.Context(), things, e.medium, nil, 0)
	must(t, err)
	_, err = picturesstore.AddPictures(t.Context(), things, e.org, []picturesstore.PictureKey{e.picture()})
	must(t, err)
	post := id.New[publishing.PostTag]()
	e.post = publishing.Post{ID: post, Org: e.org, Group: id.New[publishing.GroupTag](), Channel: e.channel.ID,
		State: publishing.StateQueue, Due: &now, PublishDate: now, Settings: []byte(`{}`), CreationMethod: "API",
		Parts: []publishing.Part{{
			ID: id.FromUUID[publishing.PartTag](post.UUID()), Content: publishing.Content{Text: "secret words"},
			Media: []publishing.Attachment{{Media: e.medium.ID}},
		}}}
	e.standing = poststore.PostStatus{ID: post, Channel: e.channel.ID, State: publishing.StateQueue, PublishDate: now}
	must(t, analyticsstore.SaveInsights(t.Context(), things, e.org, now, []analyticsstore.ReadInsight{{
		InsightOf: analyticsstore.InsightOf{Channel: e.channel.ID},
		Days:      []publishing.DaySamples{{Day: publishing.DayOf(now), Levels: map[string]float64{"followers": 7}}},
	}}))
	template := e.copied()
	template.State = publishing.StateDraft
	must(t, things.InOrg(t.Context(), e.org, func(tx *publishingdb.Tx) error {
		if err := poststore.Remember(t.Context(), tx, e.org.String(), []byte("hash"), []byte(`[]`), 0); err != nil {
			return err
		}
		if err := poststore.Insert(t.Context(), tx, []poststore.NewPost{{Post: e.post, By: "test"}}); err != nil {
			return err
		}
		return poststore.Repeat(t.Context(), tx, e.post.ID, publishing.Repeat{Days: 1}, "UTC", []poststore.NewPost{{Post: template}})
	}))
	e.state = secret.HashToken(e.org.String())
	must(t, db.InOrg(t.Context(), e.org.UUID(), func(tx pgx.Tx) error {
		for _, sql := range []string{
			`insert into customer (org_id, id, name) values ($1, $2, 'a customer')`,
			`insert into tag (org_id, id, name, color) values ($1, $2, 'a tag', '#123456')`,
			`insert into pause (org_id, subject, scope, by) values ($1, $2, 'customer', 'me')`,
			`insert into slot_hold (org_id, subject, at, expires_at) values ($1, $2, now(), now() + interval '1 hour')`,
			`insert into republished (org_id, day, posts) select $1, now()::date, 1 where $2::uuid is not null`,
			`insert into publication (org_id, id, post_id, group_id, part_id, position, number, created_at) select org_id, $2, id, group_id, id, 0, 1, now() from post where org_id = $1`,
		} {
			if _, err := tx.Exec(t.Context(), sql, e.org, e.person); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, channelstore.SaveState(t.Context(), things, e.state, channelstore.ConnectState{
		Org: e.org, Connector: "sandbox", Person: e.person, ExpiresAt: time.Now().Add(time.Hour),
	}))
	e.address = secret.HashToken("address " + e.org.String())
	must(t, things.InOrg(t.Context(), e.org, func(tx *publishingdb.Tx) error {
		_, err := mediastore.InsertAddress(t.Context(), tx, e.address, uploadAddress(e), now, 100)
		return err
	}))
	e.addWebhook(t, things)
	e.addApproval(t, things)
	e.addNotifications(t, db, things)
	e.pending, e.refresh = id.New[publishing.ChannelTag](), new(uuid.UUID)
	must(t, channelstore.SaveState(t.Context(), things, secret.HashToken(e.pending.String()), channelstore.ConnectState{
		Org: e.org, Connector: "sandbox-oauth", Person: e.person, ExpiresAt: time.Now().Add(time.Hour),
		Verifier: []byte("sealed"), Pending: e.pending, Candidates: []byte(`[]`), Credential: []byte("sealed"),
	}))
	must(t, things.InOrg(t.Context(), e.org, func(tx *publishingdb.Tx) error {
		_, err := channelstore.SavePlatformApp(t.Context(), tx, publishingdb.PlatformApp{Family: "f", ClientID: e.org.String(), Secret: []byte("sealed")}, nil, tenancy.PersonID{})
		return err
	}))
	return e
}

// SQLSTATEs of a missing privilege, and of a row that refers to another organization's row.
const (
	forbidden = "42501"
	foreign   = "23503"
)

func refused(err error, codes ...string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && slices.Contains(codes, pe.Code)
}

// question calls one store method as mine with the ids of theirs. It reports whether the method
// returned and changed nothing.
type question func(t *testing.T, mine, theirs tenantFixture) bool

func inOrg(s *publishingdb.DB, ask func(t *testing.T, tx *publishingdb.Tx, theirs tenantFixture) (bool, error)) question {
	return func(t *testing.T, mine, theirs tenantFixture) (nothing bool) {
		err := s.InOrg(t.Context(), mine.org, func(tx *publishingdb.Tx) (err error) {
			nothing, err = ask(t, tx, theirs)
			return err
		})
		return nothing && err == nil || pg.IsNoRows(err) || refused(err, forbidden, foreign)
	}
}

// questions returns, by method, the calls that are made as the wrong organization.
func questions(t *testing.T, db *pg.DB) map[string]question {
	t.Helper()
	s, all := publishingdb.New(db), map[string]question{}
	for _, some := range append(tenancyQuestions(people(t, db)),
		channelQuestions(s), accessQuestions(s), slotQuestions(s), listQuestions(s), postQuestions(s), seriesQuestions(s),
		pictureQuestions(s), purgeQuestions(db, s), tagQuestions(s), webhookQuestions(s), approvalQuestions(s), analyticsQuestions(s),
		notificationQuestions(s),
	) {
		maps.Copy(all, some)
	}
	return all
}

// tagQuestions returns the questions about tags and settings of posts.
func tagQuestions(s *publishingdb.DB) map[string]question {
	save := publishing.SaveTag{Name: "stolen", Color: "#000000"}
	return map[string]question{
		"tag.List": func(t *testing.T, m, th tenantFixture) bool {
			out, err := tagstore.List(t.Context(), s, m.org)
			return err == nil && !slices.ContainsFunc(out, func(g publishing.Tag) bool { return g.ID == th.tag() })
		},
		"tag.Create": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := tagstore.Create(t.Context(), tx, th.tag(), save)
			return true, err
		}),
		"tag.Update": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := tagstore.Update(t.Context(), tx, th.tag(), save)
			return false, err
		}),
		"tag.Delete": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := tagstore.Delete(t.Context(), tx, th.tag())
			return false, err
		}),
		"post.TagsByName": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			out, err := poststore.TagsByName(t.Context(), tx, []string{"a tag"})
			return !slices.Contains(out, th.tag()), err
		}),
		"post.SetSettings": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			done, err := poststore.SetSettings(t.Context(), tx, th.post.Group, th.post.ID, th.post.Settings, []byte(`{"stolen":true}`), "me")
			return !done, err
		}),
	}
}

// channelQuestions returns the questions about channels and pauses.
func channelQuestions(s *publishingdb.DB) map[string]question {
	return map[string]question{
		"channel.Channels": func(t *testing.T, m, th tenantFixture) bool {
			out, err := channelstore.Channels(t.Context(), s, m.org, publishing.CustomerID{})
			return err == nil && !slices.ContainsFunc(out, func(c publishing.Channel) bool { return c.ID == th.channel.ID })
		},
		"channel.ChannelOfAccount": func(t *testing.T, m, th tenantFixture) bool {
			_, err := channelstore.ChannelOfAccount(t.Context(), s, m.org, "sandbox", th.channel.AccountID)
			return pg.IsNoRows(err)
		},
		"access.SwapCredential": func(t *testing.T, m, th tenantFixture) bool {
			swapped, err := accessstore.SwapCredential(t.Context(), s, m.org, th.channel.ID, []byte("sealed"), []byte("stolen"), accessstore.Renewal{Destination: "stolen.example"}, nil)
			return err == nil && !swapped
		},
		"access.Park": func(t *testing.T, m, th tenantFixture) bool {
			return accessstore.Park(t.Context(), s, m.org, th.channel.ID, []byte("sealed"), "reason") == nil
		},
		"channel.TakeState": func(t *testing.T, m, th tenantFixture) bool {
			return pg.IsNoRows(channelstore.TakeState(t.Context(), s, m.org, th.state))
		},
		"media.FindMedia": func(t *testing.T, m, th tenantFixture) bool {
			found, err := mediastore.FindMedia(t.Context(), s, m.org, []publishing.MediaID{th.medium.ID}, []string{th.medium.Key})
			return err == nil && len(found) == 0
		},
		"post.Lookup": func(t *testing.T, m, th tenantFixture) bool {
			k, err := poststore.Lookup(t.Context(), s, m.org, []publishing.ChannelID{th.channel.ID}, []publishing.MediaID{th.medium.ID}, []string{th.medium.Key})
			return err == nil && len(k.Channels) == 0 && len(k.Media) == 0
		},
		"media.AddMedium": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			stolen := th.medium
			stolen.ID, stolen.Key = id.New[publishing.MediaTag](), id.New[publishing.MediaTag]().String()
			_, err := mediastore.AddMedium(t.Context(), tx, stolen, nil, 0)
			return false, err
		}),
		"post.CountChannels": func(t *testing.T, m, th tenantFixture) bool {
			n, err := poststore.CountChannels(t.Context(), s, m.org, []publishing.ChannelID{th.channel.ID})
			return err == nil && n == 0
		},
		"scheduler.Pause": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			known, err := schedulerstore.Pause(t.Context(), tx, publishing.PauseChannel, th.channel.ID, "me")
			return !known, err
		}),
		"scheduler.Revoke": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, schedulerstore.Revoke(t.Context(), tx, publishing.PauseChannel, th.channel.ID, "me")
		}),
		"scheduler.Held": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			held, err := schedulerstore.Held(t.Context(), tx, publishing.PauseChannel, th.channel.ID)
			return len(held.Posts) == 0 && held.Held == 0 && held.InFlight == 0, err
		}),
		"scheduler.RepairHold": func(t *testing.T, m, th tenantFixture) bool {
			repaired, err := schedulerstore.RepairHold(t.Context(), s, m.org, th.beforeChannel())
			return err == nil && !repaired
		},
		"scheduler.SetAsideChannel": func(t *testing.T, m, th tenantFixture) bool {
			_, err := schedulerstore.SetAsideChannel(t.Context(), s, m.org, th.beforeChannel(), time.Minute, "test", "test")
			return pg.IsNoRows(err)
		},
		"post.HoldChannels": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			n, err := poststore.HoldChannels(t.Context(), tx, []publishing.ChannelID{th.channel.ID}, th.post.Group)
			return n == 0, err
		}),
		"post.EndOfChannel": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, poststore.EndOfChannel(t.Context(), tx, th.channel.ID)
		}),
		"channel.Disconnect": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			found, err := channelstore.Disconnect(t.Context(), tx, th.channel.ID, poststore.EndOfChannel)
			return !found, err
		}),
		"channel.Disown": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			found, err := channelstore.Disown(t.Context(), tx, th.channel.ID, th.channel.ConnectedAt, poststore.EndOfChannel)
			if pg.IsNoRows(err) {
				return true, nil
			}
			return !found.Disconnected, err
		}),
	}
}

// slotQuestions returns the questions about queue plans and slots.
func slotQuestions(s *publishingdb.DB) map[string]question {
	return map[string]question{
		"slot.Plan": func(t *testing.T, m, th tenantFixture) bool {
			_, err := slotstore.Plan(t.Context(), s, m.org, th.channel.ID)
			return pg.IsNoRows(err)
		},
		"slot.LockPlan": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := slotstore.LockPlan(t.Context(), tx, th.channel.ID)
			return false, err
		}),
		"slot.SetPlan": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, slotstore.SetPlan(t.Context(), tx, th.channel.ID, slotstore.StoredPlan{Timezone: "Asia/Tokyo"})
		}),
		"slot.Lock": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			plans, _, err := slotstore.Lock(t.Context(), tx, th.channel.ID)
			return len(plans) == 0, err
		}),
		"post.TakenMinutes": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			taken, err := poststore.TakenMinutes(t.Context(), tx, th.channel.ID, now.Add(-time.Hour), now.Add(time.Hour))
			return len(taken) == 0, err
		}),
		"slot.Hold": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			// The hold belongs to the asking organization; the question about TakenMinutes checks
			// whether others see it.
			return true, slotstore.Hold(t.Context(), tx, th.channel.ID, now, time.Minute)
		}),
	}
}

// analyticsQuestions returns the questions about metrics.
func analyticsQuestions(s *publishingdb.DB) map[string]question {
	at := func(n int) time.Time { return publishing.DayOf(now).AddDate(0, 0, n) }
	return map[string]question{
		"analytics.FindInsight": func(t *testing.T, m, th tenantFixture) bool {
			out, err := analyticsstore.FindInsight(t.Context(), s, m.org, analyticsstore.InsightOf{Channel: th.channel.ID}, at(0), at(0))
			return err == nil && out.ReadAt == nil && len(out.Days) == 0
		},
		"analytics.ChannelActive": func(t *testing.T, m, th tenantFixture) bool {
			active, err := analyticsstore.ChannelActive(t.Context(), s, m.org, th.channel.ID)
			return err == nil && !active
		},
		"analytics.SaveInsights": func(t *testing.T, m, th tenantFixture) bool {
			return analyticsstore.SaveInsights(t.Context(), s, m.org, now, []analyticsstore.ReadInsight{
				{InsightOf: analyticsstore.InsightOf{Channel: th.channel.ID}, Days: []publishing.DaySamples{{Day: at(1)}}},
				{InsightOf: analyticsstore.InsightOf{Channel: th.channel.ID, Post: th.post.ID}},
			}) == nil
		},
		"analytics.InsightFailed": func(t *testing.T, m, th tenantFixture) bool {
			of := analyticsstore.InsightOf{Channel: th.channel.ID}
			return analyticsstore.InsightFailed(t.Context(), s, m.org, of, analyticsstore.InsightFailure{At: now, Problem: "refused"}) == nil
		},
		"analytics.SnapshotFailed": func(t *testing.T, m, th tenantFixture) bool {
			return analyticsstore.SnapshotFailed(t.Context(), s, m.org, th.channel.ID, analyticsstore.InsightFailure{At: now, Problem: "refused"}) == nil
		},
		"analytics.PutOffSnapshot": func(t *testing.T, m, th tenantFixture) bool {
			return analyticsstore.PutOffSnapshot(t.Context(), s, m.org, th.channel.ID, now) == nil
		},
		"analytics.FindReleased": func(t *testing.T, m, th tenantFixture) bool {
			_, err := analyticsstore.FindReleased(t.Context(), s, m.org, th.post.ID)
			return pg.IsNoRows(err)
		},
		"analytics.FindSnapshotSource": func(t *testing.T, m, th tenantFixture) bool {
			_, err := analyticsstore.FindSnapshotSource(t.Context(), s, m.org, th.channel.ID, now, 10)
			return pg.IsNoRows(err)
		},
	}
}

// accessQuestions returns the questions about credentials, applications and releases.
func accessQuestions(s *publishingdb.DB) map[string]question {
	return map[string]question{
		"access.ChannelAccess": func(t *testing.T, m, th tenantFixture) bool {
			_, err := accessstore.ChannelAccess(t.Context(), s, m.org, th.channel.ID)
			return pg.IsNoRows(err)
		},
		"access.BeginRefresh": func(t *testing.T, m, th tenantFixture) bool {
			_, err := accessstore.BeginRefresh(t.Context(), s, m.org, th.channel.ID, []byte("sealed"), time.Minute)
			return pg.IsNoRows(err)
		},
		"access.EndRefresh": func(t *testing.T, m, th tenantFixture) bool {
			return accessstore.EndRefresh(t.Context(), s, m.org, th.channel.ID, th.refresh, []byte("sealed"), false) == nil
		},
		"channel.UsePending": func(t *testing.T, m, th tenantFixture) bool {
			_, err := channelstore.UsePending(t.Context(), s, m.org, th.pending)
			return pg.IsNoRows(err)
		},
		"channel.Customers": func(t *testing.T, m, th tenantFixture) bool {
			out, err := channelstore.Customers(t.Context(), s, m.org)
			return err == nil && !slices.ContainsFunc(out, func(c publishing.Customer) bool { return c.ID.UUID() == th.person.UUID() })
		},
		"analytics.Report": func(t *testing.T, m, th tenantFixture) bool {
			customer := id.FromUUID[publishing.CustomerTag](th.person.UUID())
			out, err := analyticsstore.Report(t.Context(), s, m.org, customer, []time.Time{{}, time.Now().AddDate(1, 0, 0)})
			return err == nil && out.Customer == nil && len(out.Counts)+len(out.Channels)+len(out.Errors) == 0
		},
		"access.PlatformApps": func(t *testing.T, m, th tenantFixture) bool {
			out, err := accessstore.PlatformApps(t.Context(), s, m.org, "")
			return err == nil && !slices.ContainsFunc(out, func(a publishingdb.PlatformApp) bool { return a.ClientID == th.org.String() })
		},
		"channel.SavePlatformApp": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			app := publishingdb.PlatformApp{Family: "f", ClientID: "another", Secret: []byte("sealed")}
			_, err := channelstore.SavePlatformApp(t.Context(), tx, app, nil, tenancy.PersonID{})
			return true, err
		}),
		"channel.DeletePlatformApp": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := channelstore.DeletePlatformApp(t.Context(), tx, "f", nil)
			return true, err
		}),
		"post.FindRelease": func(t *testing.T, m, th tenantFixture) bool {
			_, err := poststore.FindRelease(t.Context(), s, m.org, th.post.ID)
			return pg.IsNoRows(err)
		},
		"post.LockRelease": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := poststore.LockRelease(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"post.SetRelease": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, poststore.SetRelease(t.Context(), tx, th.post.ID, "stolen", "me")
		}),
	}
}

// pictureQuestions returns the questions about pictures.
func pictureQuestions(s *publishingdb.DB) map[string]question {
	return map[string]question{
		"pictures.WantPictures": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := picturesstore.WantPictures(t.Context(), tx, []picturesstore.PictureKey{th.picture()})
			return false, err
		}),
		"pictures.AddPictures": func(t *testing.T, m, th tenantFixture) bool {
			_, err := picturesstore.AddPictures(t.Context(), s, m.org, []picturesstore.PictureKey{th.picture()})
			return refused(err, forbidden, foreign)
		},
		"pictures.Pictures": func(t *testing.T, m, th tenantFixture) bool {
			out, err := picturesstore.Pictures(t.Context(), s, m.org, []picturesstore.PictureKey{th.picture()})
			return err == nil && len(out) == 0
		},
		"pictures.TakePicture": func(t *testing.T, m, th tenantFixture) bool {
			_, found, err := picturesstore.TakePicture(t.Context(), s, m.org, th.picture(), picturesstore.PictureLimits{})
			return err == nil && !found
		},
		"pictures.KeepPicture": func(t *testing.T, m, th tenantFixture) bool {
			ended, err := picturesstore.KeepPicture(t.Context(), s, m.org, th.picture(), 0, picturesstore.MadePicture{
				BlobKey: "k", ContentType: "image/jpeg", Size: 1,
			})
			return err == nil && !ended
		},
		"pictures.FailPicture": func(t *testing.T, m, th tenantFixture) bool {
			ended, err := picturesstore.FailPicture(t.Context(), s, m.org, th.picture(), 0, "x")
			return err == nil && !ended
		},
		"pictures.ReturnPicture": func(t *testing.T, m, th tenantFixture) bool {
			ended, err := picturesstore.ReturnPicture(t.Context(), s, m.org, th.picture(), 0, 0, true, "x")
			return err == nil && !ended
		},
	}
}

// purgeQuestions returns the questions about the rows that are deleted with an organization.
// Questions that delete use a separate organization, because the other questions need the rows of
// mine.
func purgeQuestions(db *pg.DB, s *publishingdb.DB) map[string]question {
	asker := func(t *testing.T, m, th tenantFixture) tenancy.OrgID {
		t.Helper()
		if m.org == th.org {
			return th.org
		}
		return newTenantFixture(t, db).org
	}
	kinds := []purgestore.Purgeable{
		purgestore.PurgePosts, purgestore.PurgeKeys, purgestore.PurgeConnects,
		purgestore.PurgeSeries, purgestore.PurgeChannels, purgestore.PurgeCustomers,
		purgestore.PurgePauses, purgestore.PurgeDeliveries, purgestore.PurgeWebhooks,
	}
	return map[string]question{
		"scheduler.EndPause": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			missed, _, _, err := schedulerstore.EndPause(t.Context(), tx, endOf(th), nil)
			return missed == 0, err
		}),
		"scheduler.FindKeptBack": func(t *testing.T, m, th tenantFixture) bool {
			posts, err := schedulerstore.FindKeptBack(t.Context(), s, m.org, endOf(th), nil, 100)
			return err == nil && len(posts) == 0
		},
		"scheduler.GiveUpKeptBack": func(t *testing.T, m, th tenantFixture) bool {
			missed, err := schedulerstore.GiveUpKeptBack(t.Context(), s, m.org, endOf(th), []publishing.PostID{th.post.ID})
			return err == nil && missed == 0
		},
		"purge.FindOwned": func(t *testing.T, m, th tenantFixture) bool {
			found := 0
			for _, kind := range kinds {
				keys, err := purgestore.FindOwned(t.Context(), s, m.org, kind, "", 100)
				must(t, err)
				theirs, err := purgestore.FindOwned(t.Context(), s, th.org, kind, "", 100)
				must(t, err)
				for _, key := range keys {
					if slices.Contains(theirs, key) {
						found++
					}
				}
			}
			return found == 0
		},
		"purge.Purge": func(t *testing.T, m, th tenantFixture) bool {
			org, n := asker(t, m, th), 0
			for _, kind := range kinds {
				keys, err := purgestore.FindOwned(t.Context(), s, th.org, kind, "", 100)
				must(t, err)
				deleted, err := purgestore.Purge(t.Context(), s, org, kind, keys)
				must(t, err)
				n += deleted
			}
			return n == 0
		},
		"purge.EndAllSeries": func(t *testing.T, m, th tenantFixture) bool {
			_, err := purgestore.EndAllSeries(t.Context(), s, asker(t, m, th), 10)
			return err == nil
		},
		"purge.FindFiles": func(t *testing.T, m, th tenantFixture) bool {
			files, err := purgestore.FindFiles(t.Context(), s, m.org, purgestore.FilePictures, purgestore.StoredFile{}, 100)
			return err == nil && !slices.ContainsFunc(files, func(f purgestore.StoredFile) bool { return f.Media == th.medium.ID })
		},
		"purge.PurgeFiles": func(t *testing.T, m, th tenantFixture) bool {
			n, err := purgestore.PurgeFiles(t.Context(), s, m.org, purgestore.FilePictures, []purgestore.StoredFile{{
				Media: th.medium.ID, Spec: th.picture().Spec,
			}})
			return err == nil && n == 0
		},
		"purge.OwnedLeft": func(t *testing.T, m, th tenantFixture) bool {
			org := th.org
			if m.org != th.org {
				org = id.New[tenancy.OrgTag]() // has no rows
			}
			posts, files, err := purgestore.OwnedLeft(t.Context(), s, org)
			return err == nil && !posts && !files
		},
	}
}

// seriesQuestions returns the questions about repeated posts.
func seriesQuestions(s *publishingdb.DB) map[string]question {
	return map[string]question{
		"post.Projected": func(t *testing.T, m, th tenantFixture) bool {
			out, err := poststore.Projected(t.Context(), s, m.org, publishing.Occurrence(th.post.ID, 20_000))
			return err == nil && len(out) == 0
		},
		"post.Materialize": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, _, err := poststore.Materialize(t.Context(), tx, publishing.Occurrence(th.post.ID, 20_000).UUID(), false)
			return false, err
		}),
		"post.Repeat": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return false, poststore.Repeat(t.Context(), tx, th.post.ID, publishing.Repeat{Days: 2}, "UTC", []poststore.NewPost{{Post: th.copied()}})
		}),
		"post.NextOf": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, _, err := poststore.NextOf(t.Context(), tx, th.series())
			return false, err
		}),
		"post.Pending": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			out, err := poststore.Pending(t.Context(), tx, th.series(), -1)
			return len(out) == 0, err
		}),
		"post.Advance": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			written, err := poststore.Advance(t.Context(), tx, th.series(), true, poststore.PostQuota{})
			return !written, err
		}),
		"post.SetAsideSeries": func(t *testing.T, m, th tenantFixture) bool {
			return poststore.SetAsideSeries(t.Context(), s, m.org, th.series(), "not mine") == nil
		},
		"db.OrganizationZone": func(t *testing.T, m, th tenantFixture) bool {
			zone, err := publishingdb.OrganizationZone(t.Context(), s, m.org)
			return err == nil && zone != "Asia/Tokyo"
		},
		"db.Limits": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			limits, err := publishingdb.Limits(t.Context(), tx, plansOf(th))
			return limits.Posts != theirPosts, err
		}),
		"post.EndSeries": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, poststore.EndSeries(t.Context(), tx, th.series())
		}),
		"post.AdvanceSeries": func(t *testing.T, m, th tenantFixture) bool {
			written, err := poststore.AdvanceSeries(t.Context(), s, m.org, th.series(), true, nil)
			return err == nil && !written
		},
	}
}

// plansOf is a quota in which one organization has a different plan.
func plansOf(e tenantFixture) publishingdb.Quota { return plans{theirs: e.org} }

type plans struct{ theirs tenancy.OrgID }

const theirPosts = 77

func (p plans) Limits(_ context.Context, _ pg.Querier, org tenancy.OrgID) (tenancy.Limits, error) {
	limits := tenancy.NoLimits()
	limits.Posts = theirPosts + 1
	if org == p.theirs {
		limits.Posts = theirPosts
	}
	return limits, nil
}

// listQuestions returns the questions about lists and idempotency keys.
func listQuestions(s *publishingdb.DB) map[string]question {
	return map[string]question{
		"post.FindRemembered": func(t *testing.T, m, th tenantFixture) bool {
			_, found, err := poststore.FindRemembered(t.Context(), s, m.org, th.org.String(), nil, 0)
			return err == nil && !found
		},
		"media.ListMedia": func(t *testing.T, m, th tenantFixture) bool {
			page, err := mediastore.ListMedia(t.Context(), s, m.org, publishing.ListMedia{Page: 1})
			return err == nil && len(page.Media) == 1 && page.Media[0].ID != th.medium.ID
		},
		"media.InsertAddress": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return mediastore.InsertAddress(t.Context(), tx, secret.HashToken(uuid.NewString()), uploadAddress(th), now, 100)
		}),
		"media.OwnAddress": func(t *testing.T, m, th tenantFixture) bool {
			_, found, err := mediastore.OwnAddress(t.Context(), s, m.org, th.address)
			return err == nil && !found
		},
		"media.UseAddress": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := mediastore.UseAddress(t.Context(), tx, th.address, th.medium.ID)
			return false, err
		}),
		"media.SetAlt": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			found, err := mediastore.SetAlt(t.Context(), tx, th.medium.ID, "theirs")
			return len(found) == 0, err
		}),
		"media.UsedBlobs": func(t *testing.T, m, th tenantFixture) bool {
			found, err := mediastore.UsedBlobs(t.Context(), s, m.org, []string{th.medium.Key})
			return err == nil && found.Known && len(found.Used) == 0
		},
		"media.ForgetMedia": func(t *testing.T, m, th tenantFixture) bool {
			n, err := mediastore.ForgetMedia(t.Context(), s, m.org, 100)
			return err == nil && n == 0
		},
		"media.LockMedium": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			found, err := mediastore.LockMedium(t.Context(), tx, th.medium.ID)
			return len(found) == 0, err
		}),
		"media.DeleteMedium": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			deleted, err := mediastore.DeleteMedium(t.Context(), tx, th.medium.ID)
			return !deleted, err
		}),
		"media.IsBlobUsed": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			used, err := mediastore.IsBlobUsed(t.Context(), tx, th.medium.Blob)
			return !used, err
		}),
		"post.HoldMedia": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			all, err := poststore.HoldMedia(t.Context(), tx, th.post.Group)
			return all, err
		}),
		"media.StoredBytes": func(t *testing.T, m, th tenantFixture) bool {
			bytes, err := mediastore.StoredBytes(t.Context(), s, m.org)
			return err == nil && bytes != th.medium.Size
		},
		"post.Roots": func(t *testing.T, m, th tenantFixture) bool {
			out, err := poststore.Roots(t.Context(), s, m.org, publishing.ListPosts{
				Start: now.Add(-time.Hour), End: now.Add(time.Hour),
			}, publishing.CustomerID{}, 10)
			return err == nil && len(out) == 1 && out[0].ID != th.post.ID
		},
		"post.RootPage": func(t *testing.T, m, th tenantFixture) bool {
			out, total, err := poststore.RootPage(t.Context(), s, m.org, publishing.Page{Limit: 10}, publishing.CustomerID{})
			return err == nil && total == 1 && len(out) == 1 && out[0].ID != th.post.ID
		},
		"post.Root": func(t *testing.T, m, th tenantFixture) bool {
			out, err := poststore.Root(t.Context(), s, m.org, th.post.ID)
			return err == nil && len(out) == 0
		},
		"post.ReadThreadData": func(t *testing.T, m, th tenantFixture) bool {
			w, err := poststore.ReadThreadData(t.Context(), s, m.org, []publishing.Post{th.post})
			return err == nil && len(w.Parts) == 0 && len(w.Channels) == 0 && len(w.Media) == 0 && len(w.Followers) == 0
		},
		"post.Events": func(t *testing.T, m, th tenantFixture) bool {
			out, err := poststore.Events(t.Context(), s, m.org, th.post.Group)
			return err == nil && len(out) == 0
		},
		"post.Remember": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			err := poststore.Remember(t.Context(), tx, th.org.String(), []byte("hash"), []byte(`[]`), 0)
			if errors.Is(err, poststore.ErrKeyBusy) || errors.Is(err, poststore.ErrKeyTaken) {
				return false, nil
			}
			return err == nil, err
		}),
	}
}

// postQuestions returns the questions about posts.
func postQuestions(s *publishingdb.DB) map[string]question {
	return map[string]question{
		"post.Insert": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return false, poststore.Insert(t.Context(), tx, []poststore.NewPost{{Post: th.copied()}})
		}),
		"post.LockGroup": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			out, err := poststore.LockGroup(t.Context(), tx, th.post.Group)
			return len(out) == 0, err
		}),
		"post.GroupOf": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := poststore.GroupOf(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"post.GroupOfPart": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := poststore.GroupOfPart(t.Context(), tx, th.post.Parts[0].ID)
			return false, err
		}),
		"post.Delete": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, poststore.Delete(t.Context(), tx, []poststore.PostStatus{th.standing})
		}),
		"post.Move": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			due, err := poststore.Move(t.Context(), tx, []poststore.PostStatus{th.standing}, publishing.StateDraft, true, "me")
			return due == nil, err
		}),
		"post.Rewrite": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return false, poststore.Rewrite(t.Context(), tx, th.post.Group, []poststore.PostStatus{th.standing}, []poststore.NewPost{{Post: th.post}})
		}),
	}
}

// endOf ends the pause that keepBack creates.
func endOf(e tenantFixture) schedulerstore.PauseEnd {
	return schedulerstore.PauseEnd{Scope: publishing.PauseChannel, Subject: e.channel.ID, By: "me"}
}

// keepBack pauses a channel that has a due post.
func keepBack(t *testing.T, db *pg.DB, e tenantFixture) {
	t.Helper()
	must(t, publishingdb.New(db).InOrg(t.Context(), e.org, func(tx *publishingdb.Tx) error {
		_, err := schedulerstore.Pause(t.Context(), tx, publishing.PauseChannel, e.channel.ID, "me")
		return err
	}))
	must(t, db.InOrg(t.Context(), e.org.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update post set due = now() - interval '1 minute' where id = $1 and state = 'QUEUE'`, e.post.ID)
		return err
	}))
}

// preparations change the rows so that the method would have an effect on them.
func preparations(db *pg.DB) map[string]func(*testing.T, tenantFixture) {
	const deleted, unused = `update media set deleted_at = now()`, `delete from attachment`
	change := func(statements ...string) func(*testing.T, tenantFixture) {
		return func(t *testing.T, e tenantFixture) {
			for _, sql := range statements {
				must(t, db.InOrg(t.Context(), e.org.UUID(), func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), sql)
					return err
				}))
			}
		}
	}
	return map[string]func(*testing.T, tenantFixture){
		"purge.FindFiles":          change(unused),
		"post.FreeContent":         change(`update post set approved = '\x'`),
		"post.MarkTemplate":        change(unused), // makes the template match the post
		"post.TemplateMarked":      change(`update post set approved = '\x'`),
		"approval.ApprovalInForce": change(`update approval set status = 'APPROVED', resolved_at = now()`),
		"media.DeleteMedium":       change(unused),
		"post.HoldMedia":           change(deleted),
		"media.ForgetMedia":        change(deleted, unused),
		"post.Advance":             func(t *testing.T, e tenantFixture) { force(t, db, e, publishing.StatePublished, "committing") },
		"post.AdvanceSeries":       func(t *testing.T, e tenantFixture) { force(t, db, e, publishing.StatePublished, "committing") },
		"scheduler.RepairHold":     func(t *testing.T, e tenantFixture) { force(t, db, e, publishing.StatePublishing, "committing") },
		"scheduler.Revoke": func(t *testing.T, e tenantFixture) {
			force(t, db, e, publishing.StatePublishing, "preparing")
			must(t, publishingdb.New(db).InOrg(t.Context(), e.org, func(tx *publishingdb.Tx) error {
				_, err := schedulerstore.Pause(t.Context(), tx, publishing.PauseChannel, e.channel.ID, "me")
				return err
			}))
		},
		"scheduler.EndPause":       func(t *testing.T, e tenantFixture) { keepBack(t, db, e) },
		"scheduler.FindKeptBack":   func(t *testing.T, e tenantFixture) { keepBack(t, db, e) },
		"scheduler.GiveUpKeptBack": func(t *testing.T, e tenantFixture) { keepBack(t, db, e) },
		"access.EndRefresh": func(t *testing.T, e tenantFixture) {
			state, err := accessstore.BeginRefresh(t.Context(), publishingdb.New(db), e.org, e.channel.ID, []byte("sealed"), time.Minute)
			must(t, err)
			*e.refresh = *state.Run
		},
		"db.OrganizationZone": func(t *testing.T, e tenantFixture) {
			must(t, people(t, db).InOrg(t.Context(), "wall", e.org, func(tx *tenancydb.OrgTx) error {
				return tenancydb.SetTimezone(t.Context(), tx, "Asia/Tokyo")
			}))
		},
		"notification.UnreadNotifications": func(t *testing.T, e tenantFixture) { e.addManyNotifications(t, db) },
		"notification.PublishedMails":      func(t *testing.T, e tenantFixture) { e.addManyNotifications(t, db) },
		"webhook.EndWebhook": func(t *testing.T, e tenantFixture) {
			_, _, err := webhookstore.BeginWebhook(t.Context(), publishingdb.New(db), e.org, e.webhook, now, now.Add(time.Hour))
			must(t, err)
		},
		"tenancy/member.CountMembers": func(t *testing.T, e tenantFixture) { e.addMany(t, db) },
		"tenancy/key.CountKeys":       func(t *testing.T, e tenantFixture) { e.addMany(t, db) },
	}
}

// rows returns all rows of an organization as text.
func rows(t *testing.T, db *pg.DB, org tenancy.OrgID) string {
	t.Helper()
	var all strings.Builder
	must(t, db.InOrg(t.Context(), org.UUID(), func(tx pgx.Tx) error {
		tenants, err := tenantTables(t.Context(), tx)
		if err != nil {
			return err
		}
		for _, table := range slices.Sorted(maps.Keys(tenants)) {
			var text string
			if err := tx.QueryRow(t.Context(), "select coalesce(string_agg(x::text, e'\n' order by x::text), '') from "+table+" x").Scan(&text); err != nil {
				return err
			}
			fmt.Fprintf(&all, "%s:\n%s\n", table, text)
		}
		return nil
	}))
	return all.String()
}

func TestStores_GiveNothingToAnotherOrganization(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	mine := newTenantFixture(t, db)
	all := questions(t, db)
	for name, ask := range all {
		theirs := newTenantFixture(t, db)
		if prepare := preparations(db)[name]; prepare != nil {
			prepare(t, theirs)
		}
		before := rows(t, db, theirs.org)
		if !ask(t, mine, theirs) {
			t.Errorf("%s returned something to another organization", name)
		}
		if after := rows(t, db, theirs.org); after != before {
			t.Errorf("%s let another organization change\n%s\nto\n%s", name, before, after)
		}
		if ask(t, theirs, theirs) && before == rows(t, db, theirs.org) {
			t.Errorf("%s has no effect for the owner either, so this test of it could not fail", name)
		}
	}
	names := statements(t)
	for _, name := range names {
		if all[name] == nil && crossing[name] == "" {
			t.Errorf("%s takes an organization and has no question", name)
		}
	}
	for name := range all {
		if !slices.Contains(names, name) {
			t.Errorf("there is a question for %s, which takes no organization or does not exist", name)
		}
	}
	for name := range crossing {
		if !slices.Contains(names, name) || all[name] != nil {
			t.Errorf("%s has a reason to have no question, but does not exist, takes no organization or has one", name)
		}
	}
}

// force puts an organization's post into a state, as the scheduler would.
func force(t *testing.T, db *pg.DB, e tenantFixture, state publishing.State, phase string) {
	t.Helper()
	must(t, db.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update post set state = $1, error = case when $1 = 'ERROR' then 'x' end, maybe_sent = $1 = 'UNKNOWN',
			release_id = case when $1 = 'PUBLISHED' then 'x' end,
			claim_token = gen_random_uuid(), claim_holder = gen_random_uuid(), claim_until = now(), phase = $2,
			committing_at = case when $2 = 'committing' then now() end where id = $3`, state, phase, e.post.ID)
		return err
	}))
}

func count(t *testing.T, db *pg.DB, role pg.Role, table string) (n int) {
	t.Helper()
	must(t, db.InRole(t.Context(), role, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from `+table).Scan(&n)
	}))
	return n
}

func TestSenderRole_SeesOnlyClaimedPosts(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	newTenantFixture(t, db)
	claimed := newTenantFixture(t, db)
	tables := []string{"post", "part", "attachment", "media", "channel", "channel_queue"}
	for _, table := range append(tables, "publication") {
		if n := count(t, db, pg.Sender, table); n != 0 {
			t.Errorf("got %d rows of %s before a claim, want 0", n, table)
		}
	}
	for _, state := range []publishing.State{publishing.StatePublishing, publishing.StateUnknown} {
		force(t, db, claimed, state, "committing")
		for _, table := range tables {
			if n := count(t, db, pg.Sender, table); n != 1 {
				t.Errorf("%s: got %d rows of %s, want 1", state, n, table)
			}
		}
	}
	for _, state := range []publishing.State{publishing.StatePublished, publishing.StateError} {
		force(t, db, claimed, state, "committing")
		for _, table := range tables {
			if n := count(t, db, pg.Sender, table); n != 0 {
				t.Errorf("%s: got %d rows of %s, want 0", state, n, table)
			}
		}
	}
}

func TestRoles_LimitedToTheirColumns(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	mine := newTenantFixture(t, db)
	for _, c := range []struct {
		role pg.Role
		sql  string
	}{
		{role: pg.Clock, sql: `select content from part`},
		{role: pg.Clock, sql: `select credential from channel`},
		{role: pg.Clock, sql: `select settings from post`},
		{role: pg.Clock, sql: `select key from media`},
		{role: pg.Clock, sql: `select blob_key from derived_picture`},
		{role: pg.Clock, sql: `update derived_picture set state = 'failed'`},
		{role: pg.Clock, sql: `select hash from api_key`},
		{role: pg.Clock, sql: `delete from post`},
		{role: pg.Clock, sql: `update post set deleted_at = null`},
		{role: pg.Clock, sql: `select body from idempotency`},
		{role: pg.Clock, sql: `select url from webhook`},
		{role: pg.Clock, sql: `select signing_key from webhook`},
		{role: pg.Clock, sql: `update webhook set next_at = null`},
		{role: pg.Clock, sql: `select data from webhook_event`},
		{role: pg.Clock, sql: `select id from webhook_delivery`},
		{role: pg.Clock, sql: `select reason from incident_event`},
		{role: pg.Clock, sql: `delete from incident_event`},
		{role: pg.Clock, sql: `select reason from notification`},
		{role: pg.Clock, sql: `update notification set mail_at = null`},
		{role: pg.Clock, sql: `select read_at from notification_read`},
		{role: pg.Gate, sql: `select id from notification`},
		{role: pg.Sender, sql: `select id from incident_event`},
		{role: pg.Retention, sql: `select reason from notification`},
		{role: pg.Gate, sql: `select id from webhook`},
		{role: pg.Sender, sql: `select id from webhook`},
		{role: pg.Retention, sql: `select body from webhook_delivery`},
		{role: pg.Retention, sql: `select key from webhook_old_key`},
		{role: pg.Retention, sql: `select id from webhook`},
		{role: pg.Gate, sql: `select content from part`},
		{role: pg.Gate, sql: `select name from api_key`},
		{role: pg.Gate, sql: `select id from post`},
		{role: pg.Gate, sql: `select connector from connect_state`},
		{role: pg.Gate, sql: `select media_id from upload_address`},
		{role: pg.Clock, sql: `select hash from upload_address`},
		{role: pg.Sender, sql: `select hash from upload_address`},
		{role: pg.Retention, sql: `select credential_hash from upload_address`},
		{role: pg.Gate, sql: `delete from api_key`},
		{role: pg.Gate, sql: `update api_key set expires_at = null`},
		{role: pg.Gate, sql: `update organization set mfa_required = false`},
		{role: pg.Gate, sql: `update member set role = 'ADMIN'`},
		{role: pg.Gate, sql: `select role from invitation`},
		{role: pg.Gate, sql: `select subject from audit`},
		{role: pg.Gate, sql: `select challenge from oauth_code`},
		{role: pg.Gate, sql: `select parent from oauth_token`},
		{role: pg.Gate, sql: `update oauth_grant set must_ask = false`},
		{role: pg.Gate, sql: `delete from oauth_grant`},
		{role: pg.Gate, sql: `select description from oauth_app`},
		{role: pg.Tenant, sql: `select secret_hash from oauth_client`},
		{role: pg.Tenant, sql: `select user_hash from device_code`},
		{role: pg.Clock, sql: `select id from oauth_grant`},
		{role: pg.Sender, sql: `select hash from oauth_token`},
		{role: pg.Retention, sql: `select person_id from oauth_grant`},
		{role: pg.Retention, sql: `update oauth_token set voided = false`},
		{role: pg.Sender, sql: `update post set state = 'QUEUE'`},
		{role: pg.Sender, sql: `delete from part`},
		{role: pg.Sender, sql: `select email from person`},
		{role: pg.Sender, sql: `select hash from api_key`},
		{role: pg.Sender, sql: `insert into post_event (org_id, post_id, event) select org_id, id, 'written' from post`},
		{role: pg.Tenant, sql: `select password_hash from person`},
		{role: pg.Tenant, sql: `select instance_admin from person`},
		{role: pg.Tenant, sql: `update person set name = ''`},
		{role: pg.Tenant, sql: `delete from organization`},
		{role: pg.Tenant, sql: `select email from mail`},
		{role: pg.Tenant, sql: `select secret from mfa`},
		{role: pg.Tenant, sql: `select subject from instance_event`},
		{role: pg.Tenant, sql: `select hash from session`},
		{role: pg.Tenant, sql: `update shard set owner = null`},
		{role: pg.Tenant, sql: `update organization set suspended_at = null`},
		{role: pg.Gate, sql: `update identity set person_id = gen_random_uuid()`},
		{role: pg.Tenant, sql: `select id from node`},
	} {
		wantForbidden(t, db, c.role, c.sql)
	}
	all := rows(t, db, mine.org)
	var tenants map[string]string
	must(t, db.InRole(t.Context(), pg.Tenant, func(tx pgx.Tx) (err error) {
		tenants, err = tenantTables(t.Context(), tx)
		return err
	}))
	for _, table := range slices.Sorted(maps.Keys(tenants)) {
		if strings.Contains(all, table+":\n\n") {
			t.Errorf("%s has no row, so this test could not fail", table)
		}
		if n := count(t, db, pg.Tenant, table); n != 0 {
			t.Errorf("got %d rows of %s without an organization, want 0", n, table)
		}
	}
}

func wantForbidden(t *testing.T, db *pg.DB, role pg.Role, sql string) {
	t.Helper()
	err := db.InRole(t.Context(), role, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), sql)
		return err
	})
	if !refused(err, forbidden) {
		t.Errorf("%s: got %v for %s, want a missing privilege", role, err, sql)
	}
}

// The logs can be read but not changed, whoever wrote them.
func TestRoles_CannotChangeTheLogs(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	newTenantFixture(t, db)
	doomed := newTenantFixture(t, db)
	for _, role := range []pg.Role{pg.Tenant, pg.Gate, pg.Keys, pg.Sessions, pg.Clock, pg.Sender, pg.Retention} {
		for _, sql := range []string{
			`update audit set subject = ''`, `delete from audit`, `truncate audit`, `update instance_event set subject = ''`,
			`delete from instance_event`, `truncate instance_event`,
		} {
			if role != pg.Retention || sql != `delete from audit` {
				wantForbidden(t, db, role, sql)
			}
		}
	}
	// The purge may delete, but only entries of an organization whose deletion was requested.
	deleted := int64(0)
	purge := func(tx pgx.Tx) error {
		tag, err := tx.Exec(t.Context(), `delete from audit`)
		deleted = tag.RowsAffected()
		return err
	}
	if must(t, db.InRole(t.Context(), pg.Retention, purge)); deleted != 0 {
		t.Errorf("the purge has deleted %d entries of an organization that stays, want none", deleted)
	}
	must(t, db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update organization set deleted_at = now() where id = $1`, doomed.org)
		return err
	}))
	if must(t, db.InRole(t.Context(), pg.Retention, purge)); deleted != 1 {
		t.Errorf("the purge has deleted %d entries, want the one of the organization that is to be deleted", deleted)
	}
}
