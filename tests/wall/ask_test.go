package wall

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
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
	publishingstore "crier/publishing/store"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
	"crier/tests/dbtest"
)

// tenantFixture is one row of every kind, owned by one organization.
type tenantFixture struct {
	org        tenancy.OrgID
	person     tenancy.PersonID
	key        tenancy.KeyID
	invitation tenancy.InvitationID
	channel    publishing.Channel
	medium     publishing.Medium
	post       publishing.Post
	state      []byte
	standing   publishingstore.PostStatus
	webhook    publishing.WebhookID
	delivery   publishing.DeliveryID
	approval   publishing.ApprovalID
	// notification is an open incident, event one that is not counted yet.
	// day are the published posts of a day.
	notification, day publishing.NotificationID
	event             int64
	// pending is the channel of a connect whose account is to be chosen.
	pending publishing.ChannelID
	// refresh is the run of the refresh that has begun, if any.
	refresh *uuid.UUID
}

// copied returns the post under new ids.
func (e tenantFixture) copied() publishing.Post {
	p := e.post
	p.ID, p.Group = id.New[publishing.PostTag](), id.New[publishing.GroupTag]()
	p.Parts = []publishing.Part{{ID: id.FromUUID[publishing.PartTag](p.ID.UUID()), Content: publishing.Content{Text: "secret words"}}}
	return p
}

// beforeChannel returns an id after which the channel is the next, unless another one was created in the same
// millisecond.
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

func (e tenantFixture) picture() publishingstore.PictureKey {
	return publishingstore.PictureKey{Media: e.medium.ID, Spec: "jpeg-1-1"}
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newTenantFixture(t *testing.T, db *pg.DB) tenantFixture {
	t.Helper()
	things := publishingstore.New(db)
	e := tenantFixture{
		org: id.New[tenancy.OrgTag](), person: id.New[tenancy.PersonTag](), key: id.New[tenancy.KeyTag](),
		invitation: id.New[tenancy.InvitationTag](),
	}
	e.addTenancy(t, db)
	var err error
	c := publishing.Channel{
		ID: id.New[publishing.ChannelTag](), Org: e.org, Connector: "sandbox", Name: "c", AccountID: e.org.String(), Account: []byte(`{}`), Grade: "A",
	}
	e.channel, _, err = publishingstore.ConnectChannel(t.Context(), things, c, []byte("sealed"), nil, nil)
	must(t, err)
	size := 1 + rand.Int64N(1<<40) // unique, so that it identifies the organization
	e.medium = publishing.Medium{
		ID: id.New[publishing.MediaTag](), Org: e.org, Key: e.org.String(), Blob: e.org.String(), Name: "f", Ext: "png",
		ContentType: "image/png", Size: size, Stored: size, CreatedAt: now,
	}
	_, err = publishingstore.SaveMedium(t.Context(), things, e.medium, nil, 0)
	must(t, err)
	_, err = publishingstore.AddPictures(t.Context(), things, e.org, []publishingstore.PictureKey{e.picture()})
	must(t, err)
	post := id.New[publishing.PostTag]()
	e.post = publishing.Post{ID: post, Org: e.org, Group: id.New[publishing.GroupTag](), Channel: e.channel.ID,
		State: publishing.StateQueue, Due: &now, PublishDate: now, Settings: []byte(`{}`), CreationMethod: "API",
		Parts: []publishing.Part{{
			ID: id.FromUUID[publishing.PartTag](post.UUID()), Content: publishing.Content{Text: "secret words"},
			Media: []publishing.Attachment{{Media: e.medium.ID}},
		}}}
	e.standing = publishingstore.PostStatus{ID: post, Channel: e.channel.ID, State: publishing.StateQueue, PublishDate: now}
	must(t, publishingstore.SaveInsights(t.Context(), things, e.org, now, []publishingstore.ReadInsight{{
		InsightOf: publishingstore.InsightOf{Channel: e.channel.ID},
		Days:      []publishing.DayFigures{{Day: publishing.DayOf(now), Levels: map[string]float64{"followers": 7}}},
	}}))
	template := e.copied()
	template.State = publishing.StateDraft
	must(t, things.InOrg(t.Context(), e.org, func(tx *publishingstore.Tx) error {
		if err := publishingstore.Remember(t.Context(), tx, e.org.String(), []byte("hash"), []byte(`[]`)); err != nil {
			return err
		}
		if err := publishingstore.Insert(t.Context(), tx, []publishingstore.NewPost{{Post: e.post, By: "test"}}); err != nil {
			return err
		}
		return publishingstore.Repeat(t.Context(), tx, e.post.ID, publishing.Repeat{Days: 1}, "UTC", []publishingstore.NewPost{{Post: template}})
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
	must(t, publishingstore.SaveState(t.Context(), things, e.state, publishingstore.ConnectState{
		Org: e.org, Connector: "sandbox", Person: e.person, ExpiresAt: time.Now().Add(time.Hour),
	}))
	e.addWebhook(t, things)
	e.addApproval(t, things)
	e.addNotifications(t, db, things)
	e.pending, e.refresh = id.New[publishing.ChannelTag](), new(uuid.UUID)
	must(t, publishingstore.SaveState(t.Context(), things, secret.HashToken(e.pending.String()), publishingstore.ConnectState{
		Org: e.org, Connector: "sandbox-oauth", Person: e.person, ExpiresAt: time.Now().Add(time.Hour),
		Verifier: []byte("sealed"), Pending: e.pending, Candidates: []byte(`[]`), Credential: []byte("sealed"),
	}))
	must(t, things.InOrg(t.Context(), e.org, func(tx *publishingstore.Tx) error {
		_, err := publishingstore.SavePlatformApp(t.Context(), tx, publishingstore.PlatformApp{Family: "f", ClientID: e.org.String(), Secret: []byte("sealed")}, nil, tenancy.PersonID{})
		return err
	}))
	return e
}

// SQLSTATE of a missing privilege, and of a row that refers to another organization's row.
const (
	forbidden = "42501"
	foreign   = "23503"
)

func refused(err error, codes ...string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && slices.Contains(codes, pe.Code)
}

// question calls one store method of mine with the ids of theirs, and reports whether it returned and changed nothing.
type question func(t *testing.T, mine, theirs tenantFixture) bool

func inOrg(s *publishingstore.Store, ask func(t *testing.T, tx *publishingstore.Tx, theirs tenantFixture) (bool, error)) question {
	return func(t *testing.T, mine, theirs tenantFixture) (nothing bool) {
		err := s.InOrg(t.Context(), mine.org, func(tx *publishingstore.Tx) (err error) {
			nothing, err = ask(t, tx, theirs)
			return err
		})
		return nothing && err == nil || pg.IsNoRows(err) || refused(err, forbidden, foreign)
	}
}

// questions returns, by method, what is asked as the wrong organization.
func questions(t *testing.T, db *pg.DB) map[string]question {
	t.Helper()
	s, all := publishingstore.New(db), map[string]question{}
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
func tagQuestions(s *publishingstore.Store) map[string]question {
	save := publishing.SaveTag{Name: "stolen", Color: "#000000"}
	return map[string]question{
		"Store.Tags": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.Tags(t.Context(), s, m.org)
			return err == nil && !slices.ContainsFunc(out, func(g publishing.Tag) bool { return g.ID == th.tag() })
		},
		"Tx.CreateTag": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.CreateTag(t.Context(), tx, th.tag(), save)
			return true, err
		}),
		"Tx.UpdateTag": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.UpdateTag(t.Context(), tx, th.tag(), save)
			return false, err
		}),
		"Tx.DeleteTag": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.DeleteTag(t.Context(), tx, th.tag())
			return false, err
		}),
		"Tx.TagsByName": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			out, err := publishingstore.TagsByName(t.Context(), tx, []string{"a tag"})
			return !slices.Contains(out, th.tag()), err
		}),
		"Tx.SetSettings": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			done, err := publishingstore.SetSettings(t.Context(), tx, th.post.Group, th.post.ID, th.post.Settings, []byte(`{"stolen":true}`), "me")
			return !done, err
		}),
	}
}

// channelQuestions returns the questions about channels and pauses.
func channelQuestions(s *publishingstore.Store) map[string]question {
	return map[string]question{
		"Store.Channels": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.Channels(t.Context(), s, m.org, publishing.CustomerID{})
			return err == nil && !slices.ContainsFunc(out, func(c publishing.Channel) bool { return c.ID == th.channel.ID })
		},
		"Store.ChannelOfAccount": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.ChannelOfAccount(t.Context(), s, m.org, "sandbox", th.channel.AccountID)
			return pg.IsNoRows(err)
		},
		"Store.SwapCredential": func(t *testing.T, m, th tenantFixture) bool {
			swapped, err := publishingstore.SwapCredential(t.Context(), s, m.org, th.channel.ID, []byte("sealed"), []byte("stolen"), publishingstore.Renewal{Destination: "stolen.example"}, nil)
			return err == nil && !swapped
		},
		"Store.Park": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.Park(t.Context(), s, m.org, th.channel.ID, []byte("sealed"), "reason") == nil
		},
		"Store.TakeState": func(t *testing.T, m, th tenantFixture) bool {
			return pg.IsNoRows(publishingstore.TakeState(t.Context(), s, m.org, th.state))
		},
		"Store.Lookup": func(t *testing.T, m, th tenantFixture) bool {
			k, err := publishingstore.Lookup(t.Context(), s, m.org, []publishing.ChannelID{th.channel.ID}, []publishing.MediaID{th.medium.ID}, []string{th.medium.Key})
			return err == nil && len(k.Channels) == 0 && len(k.Media) == 0
		},
		"Tx.Pause": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			known, err := publishingstore.Pause(t.Context(), tx, publishing.PauseChannel, th.channel.ID, "me")
			return !known, err
		}),
		"Tx.Revoke": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.Revoke(t.Context(), tx, publishing.PauseChannel, th.channel.ID, "me")
		}),
		"Tx.Held": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			held, err := publishingstore.Held(t.Context(), tx, publishing.PauseChannel, th.channel.ID)
			return len(held.Posts) == 0 && held.Held == 0 && held.InFlight == 0, err
		}),
		"Store.RepairHold": func(t *testing.T, m, th tenantFixture) bool {
			repaired, err := publishingstore.RepairHold(t.Context(), s, m.org, th.beforeChannel())
			return err == nil && !repaired
		},
		"Store.SetAsideChannel": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.SetAsideChannel(t.Context(), s, m.org, th.beforeChannel(), time.Minute, "test", "test")
			return pg.IsNoRows(err)
		},
		"Tx.HoldChannels": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			n, err := publishingstore.HoldChannels(t.Context(), tx, []publishing.ChannelID{th.channel.ID}, th.post.Group)
			return n == 0, err
		}),
		"Tx.Disconnect": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			found, err := publishingstore.Disconnect(t.Context(), tx, th.channel.ID)
			return !found, err
		}),
		"Tx.Disown": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			found, err := publishingstore.Disown(t.Context(), tx, th.channel.ID, th.channel.ConnectedAt)
			if pg.IsNoRows(err) {
				return true, nil
			}
			return !found.Disconnected, err
		}),
	}
}

// slotQuestions returns the questions about queue plans and slots.
func slotQuestions(s *publishingstore.Store) map[string]question {
	return map[string]question{
		"Store.QueuePlan": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.QueuePlan(t.Context(), s, m.org, th.channel.ID)
			return pg.IsNoRows(err)
		},
		"Tx.LockPlan": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.LockPlan(t.Context(), tx, th.channel.ID)
			return false, err
		}),
		"Tx.SetPlan": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.SetPlan(t.Context(), tx, th.channel.ID, publishingstore.StoredPlan{Timezone: "Asia/Tokyo"})
		}),
		"Tx.LockSlots": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			plans, _, err := publishingstore.LockSlots(t.Context(), tx, th.channel.ID)
			return len(plans) == 0, err
		}),
		"Tx.TakenMinutes": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			taken, err := publishingstore.TakenMinutes(t.Context(), tx, th.channel.ID, now.Add(-time.Hour), now.Add(time.Hour))
			return len(taken) == 0, err
		}),
		"Tx.HoldSlot": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			// The hold is one of the asking organization; Tx.TakenMinutes is asked whether it is seen by others.
			return true, publishingstore.HoldSlot(t.Context(), tx, th.channel.ID, now, time.Minute)
		}),
	}
}

// analyticsQuestions returns the questions about statistics.
func analyticsQuestions(s *publishingstore.Store) map[string]question {
	at := func(n int) time.Time { return publishing.DayOf(now).AddDate(0, 0, n) }
	return map[string]question{
		"Store.Insight": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.FindInsight(t.Context(), s, m.org, publishingstore.InsightOf{Channel: th.channel.ID}, at(0), at(0))
			return err == nil && out.ReadAt == nil && len(out.Days) == 0
		},
		"Store.ChannelActive": func(t *testing.T, m, th tenantFixture) bool {
			active, err := publishingstore.ChannelActive(t.Context(), s, m.org, th.channel.ID)
			return err == nil && !active
		},
		"Store.SaveInsights": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.SaveInsights(t.Context(), s, m.org, now, []publishingstore.ReadInsight{
				{InsightOf: publishingstore.InsightOf{Channel: th.channel.ID}, Days: []publishing.DayFigures{{Day: at(1)}}},
				{InsightOf: publishingstore.InsightOf{Channel: th.channel.ID, Post: th.post.ID}},
			}) == nil
		},
		"Store.InsightFailed": func(t *testing.T, m, th tenantFixture) bool {
			of := publishingstore.InsightOf{Channel: th.channel.ID}
			return publishingstore.InsightFailed(t.Context(), s, m.org, of, publishingstore.InsightFailure{At: now, Problem: "refused"}) == nil
		},
		"Store.SnapshotFailed": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.SnapshotFailed(t.Context(), s, m.org, th.channel.ID, publishingstore.InsightFailure{At: now, Problem: "refused"}) == nil
		},
		"Store.PutOffSnapshot": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.PutOffSnapshot(t.Context(), s, m.org, th.channel.ID, now) == nil
		},
		"Store.Released": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.FindReleased(t.Context(), s, m.org, th.post.ID)
			return pg.IsNoRows(err)
		},
		"Store.SnapshotSource": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.FindSnapshotSource(t.Context(), s, m.org, th.channel.ID, now, 10)
			return pg.IsNoRows(err)
		},
	}
}

// accessQuestions returns the questions about credentials, applications and releases.
func accessQuestions(s *publishingstore.Store) map[string]question {
	return map[string]question{
		"Store.ChannelAccess": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.ChannelAccess(t.Context(), s, m.org, th.channel.ID)
			return pg.IsNoRows(err)
		},
		"Store.BeginRefresh": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.BeginRefresh(t.Context(), s, m.org, th.channel.ID, []byte("sealed"), time.Minute)
			return pg.IsNoRows(err)
		},
		"Store.EndRefresh": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.EndRefresh(t.Context(), s, m.org, th.channel.ID, th.refresh, []byte("sealed"), false) == nil
		},
		"Store.UsePending": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.UsePending(t.Context(), s, m.org, th.pending)
			return pg.IsNoRows(err)
		},
		"Store.Customers": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.Customers(t.Context(), s, m.org)
			return err == nil && !slices.ContainsFunc(out, func(c publishing.Customer) bool { return c.ID.UUID() == th.person.UUID() })
		},
		"Store.Report": func(t *testing.T, m, th tenantFixture) bool {
			customer := id.FromUUID[publishing.CustomerTag](th.person.UUID())
			out, err := publishingstore.Report(t.Context(), s, m.org, customer, []time.Time{{}, time.Now().AddDate(1, 0, 0)})
			return err == nil && out.Customer == nil && len(out.Counts)+len(out.Channels)+len(out.Errors) == 0
		},
		"Store.PlatformApps": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.PlatformApps(t.Context(), s, m.org, "")
			return err == nil && !slices.ContainsFunc(out, func(a publishingstore.PlatformApp) bool { return a.ClientID == th.org.String() })
		},
		"Tx.SavePlatformApp": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			app := publishingstore.PlatformApp{Family: "f", ClientID: "another", Secret: []byte("sealed")}
			_, err := publishingstore.SavePlatformApp(t.Context(), tx, app, nil, tenancy.PersonID{})
			return true, err
		}),
		"Tx.DeletePlatformApp": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.DeletePlatformApp(t.Context(), tx, "f", nil)
			return true, err
		}),
		"Store.Release": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.FindRelease(t.Context(), s, m.org, th.post.ID)
			return pg.IsNoRows(err)
		},
		"Tx.LockRelease": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.LockRelease(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"Tx.SetRelease": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.SetRelease(t.Context(), tx, th.post.ID, "stolen", "me")
		}),
	}
}

// pictureQuestions returns the questions about pictures.
func pictureQuestions(s *publishingstore.Store) map[string]question {
	return map[string]question{
		"Tx.WantPictures": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.WantPictures(t.Context(), tx, []publishingstore.PictureKey{th.picture()})
			return false, err
		}),
		"Store.WantPictures": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.AddPictures(t.Context(), s, m.org, []publishingstore.PictureKey{th.picture()})
			return refused(err, forbidden, foreign)
		},
		"Store.Pictures": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.Pictures(t.Context(), s, m.org, []publishingstore.PictureKey{th.picture()})
			return err == nil && len(out) == 0
		},
		"Store.TakePicture": func(t *testing.T, m, th tenantFixture) bool {
			_, found, err := publishingstore.TakePicture(t.Context(), s, m.org, th.picture(), publishingstore.PictureLimits{})
			return err == nil && !found
		},
		"Store.KeepPicture": func(t *testing.T, m, th tenantFixture) bool {
			ended, err := publishingstore.KeepPicture(t.Context(), s, m.org, th.picture(), 0, publishingstore.MadePicture{
				BlobKey: "k", ContentType: "image/jpeg", Size: 1,
			})
			return err == nil && !ended
		},
		"Store.FailPicture": func(t *testing.T, m, th tenantFixture) bool {
			ended, err := publishingstore.FailPicture(t.Context(), s, m.org, th.picture(), 0, "x")
			return err == nil && !ended
		},
		"Store.ReturnPicture": func(t *testing.T, m, th tenantFixture) bool {
			ended, err := publishingstore.ReturnPicture(t.Context(), s, m.org, th.picture(), 0, 0, true, "x")
			return err == nil && !ended
		},
	}
}

// purgeQuestions returns the questions about what is deleted with an organization. Those that delete are asked as an
// organization of their own, because the other questions need the rows of mine.
func purgeQuestions(db *pg.DB, s *publishingstore.Store) map[string]question {
	asker := func(t *testing.T, m, th tenantFixture) tenancy.OrgID {
		t.Helper()
		if m.org == th.org {
			return th.org
		}
		return newTenantFixture(t, db).org
	}
	kinds := []publishingstore.Purgeable{
		publishingstore.PurgePosts, publishingstore.PurgeKeys, publishingstore.PurgeConnects,
		publishingstore.PurgeSeries, publishingstore.PurgeChannels, publishingstore.PurgeCustomers,
		publishingstore.PurgePauses, publishingstore.PurgeDeliveries, publishingstore.PurgeWebhooks,
	}
	return map[string]question{
		"Tx.EndPause": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			missed, _, _, err := publishingstore.EndPause(t.Context(), tx, endOf(th), nil)
			return missed == 0, err
		}),
		"Store.FindKeptBack": func(t *testing.T, m, th tenantFixture) bool {
			posts, err := publishingstore.FindKeptBack(t.Context(), s, m.org, endOf(th), nil, 100)
			return err == nil && len(posts) == 0
		},
		"Store.GiveUpKeptBack": func(t *testing.T, m, th tenantFixture) bool {
			missed, err := publishingstore.GiveUpKeptBack(t.Context(), s, m.org, endOf(th), []publishing.PostID{th.post.ID})
			return err == nil && missed == 0
		},
		"Store.FindOwned": func(t *testing.T, m, th tenantFixture) bool {
			found := 0
			for _, kind := range kinds {
				keys, err := publishingstore.FindOwned(t.Context(), s, m.org, kind, "", 100)
				must(t, err)
				theirs, err := publishingstore.FindOwned(t.Context(), s, th.org, kind, "", 100)
				must(t, err)
				for _, key := range keys {
					if slices.Contains(theirs, key) {
						found++
					}
				}
			}
			return found == 0
		},
		"Store.Purge": func(t *testing.T, m, th tenantFixture) bool {
			org, n := asker(t, m, th), 0
			for _, kind := range kinds {
				keys, err := publishingstore.FindOwned(t.Context(), s, th.org, kind, "", 100)
				must(t, err)
				deleted, err := publishingstore.Purge(t.Context(), s, org, kind, keys)
				must(t, err)
				n += deleted
			}
			return n == 0
		},
		"Store.EndAllSeries": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.EndAllSeries(t.Context(), s, asker(t, m, th), 10)
			return err == nil
		},
		"Store.FindFiles": func(t *testing.T, m, th tenantFixture) bool {
			files, err := publishingstore.FindFiles(t.Context(), s, m.org, publishingstore.FilePictures, publishingstore.StoredFile{}, 100)
			return err == nil && !slices.ContainsFunc(files, func(f publishingstore.StoredFile) bool { return f.Media == th.medium.ID })
		},
		"Store.PurgeFiles": func(t *testing.T, m, th tenantFixture) bool {
			n, err := publishingstore.PurgeFiles(t.Context(), s, m.org, publishingstore.FilePictures, []publishingstore.StoredFile{{
				Media: th.medium.ID, Spec: th.picture().Spec,
			}})
			return err == nil && n == 0
		},
		"Store.OwnedLeft": func(t *testing.T, m, th tenantFixture) bool {
			org := th.org
			if m.org != th.org {
				org = id.New[tenancy.OrgTag]() // without rows of its own
			}
			posts, files, err := publishingstore.OwnedLeft(t.Context(), s, org)
			return err == nil && !posts && !files
		},
	}
}

// seriesQuestions returns the questions about repeated posts.
func seriesQuestions(s *publishingstore.Store) map[string]question {
	return map[string]question{
		"Store.Projected": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.Projected(t.Context(), s, m.org, publishing.Occurrence(th.post.ID, 20_000))
			return err == nil && len(out) == 0
		},
		"Tx.Materialize": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, _, err := publishingstore.Materialize(t.Context(), tx, publishing.Occurrence(th.post.ID, 20_000).UUID(), false)
			return false, err
		}),
		"Tx.Repeat": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return false, publishingstore.Repeat(t.Context(), tx, th.post.ID, publishing.Repeat{Days: 2}, "UTC", []publishingstore.NewPost{{Post: th.copied()}})
		}),
		"Tx.NextOf": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, _, err := publishingstore.NextOf(t.Context(), tx, th.series())
			return false, err
		}),
		"Tx.Pending": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			out, err := publishingstore.Pending(t.Context(), tx, th.series(), -1)
			return len(out) == 0, err
		}),
		"Tx.Advance": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			written, err := publishingstore.Advance(t.Context(), tx, th.series(), true, publishingstore.PostQuota{})
			return !written, err
		}),
		"Store.SetAsideSeries": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.SetAsideSeries(t.Context(), s, m.org, th.series(), "not mine") == nil
		},
		"Store.OrganizationZone": func(t *testing.T, m, th tenantFixture) bool {
			zone, err := publishingstore.OrganizationZone(t.Context(), s, m.org)
			return err == nil && zone != "Asia/Tokyo"
		},
		"Tx.Limits": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			limits, err := publishingstore.Limits(t.Context(), tx, plansOf(th))
			return limits.Posts != theirPosts, err
		}),
		"Tx.EndSeries": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.EndSeries(t.Context(), tx, th.series())
		}),
		"Store.Advance": func(t *testing.T, m, th tenantFixture) bool {
			written, err := publishingstore.AdvanceSeries(t.Context(), s, m.org, th.series(), true, nil)
			return err == nil && !written
		},
	}
}

// plansOf is a quota with a plan of its own for one organization.
func plansOf(e tenantFixture) publishingstore.Quota { return plans{theirs: e.org} }

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
func listQuestions(s *publishingstore.Store) map[string]question {
	return map[string]question{
		"Store.Remembered": func(t *testing.T, m, th tenantFixture) bool {
			_, found, err := publishingstore.FindRemembered(t.Context(), s, m.org, th.org.String(), nil)
			return err == nil && !found
		},
		"Store.ListMedia": func(t *testing.T, m, th tenantFixture) bool {
			page, err := publishingstore.ListMedia(t.Context(), s, m.org, publishing.ListMedia{Page: 1})
			return err == nil && len(page.Media) == 1 && page.Media[0].ID != th.medium.ID
		},
		"Tx.SetAlt": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			found, err := publishingstore.SetAlt(t.Context(), tx, th.medium.ID, "theirs")
			return len(found) == 0, err
		}),
		"Store.UsedBlobs": func(t *testing.T, m, th tenantFixture) bool {
			found, err := publishingstore.UsedBlobs(t.Context(), s, m.org, []string{th.medium.Key})
			return err == nil && found.Known && len(found.Used) == 0
		},
		"Store.ForgetMedia": func(t *testing.T, m, th tenantFixture) bool {
			n, err := publishingstore.ForgetMedia(t.Context(), s, m.org, 100)
			return err == nil && n == 0
		},
		"Tx.LockMedium": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			found, err := publishingstore.LockMedium(t.Context(), tx, th.medium.ID)
			return len(found) == 0, err
		}),
		"Tx.DeleteMedium": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			deleted, err := publishingstore.DeleteMedium(t.Context(), tx, th.medium.ID)
			return !deleted, err
		}),
		"Tx.IsBlobUsed": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			used, err := publishingstore.IsBlobUsed(t.Context(), tx, th.medium.Blob)
			return !used, err
		}),
		"Tx.HoldMedia": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			all, err := publishingstore.HoldMedia(t.Context(), tx, th.post.Group)
			return all, err
		}),
		"Store.StoredBytes": func(t *testing.T, m, th tenantFixture) bool {
			bytes, err := publishingstore.StoredBytes(t.Context(), s, m.org)
			return err == nil && bytes != th.medium.Size
		},
		"Store.Roots": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.Roots(t.Context(), s, m.org, publishing.ListPosts{
				Start: now.Add(-time.Hour), End: now.Add(time.Hour),
			}, publishing.CustomerID{}, 10)
			return err == nil && len(out) == 1 && out[0].ID != th.post.ID
		},
		"Store.RootPage": func(t *testing.T, m, th tenantFixture) bool {
			out, total, err := publishingstore.RootPage(t.Context(), s, m.org, publishing.Page{Limit: 10}, publishing.CustomerID{})
			return err == nil && total == 1 && len(out) == 1 && out[0].ID != th.post.ID
		},
		"Store.Root": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.Root(t.Context(), s, m.org, th.post.ID)
			return err == nil && len(out) == 0
		},
		"Store.ThreadData": func(t *testing.T, m, th tenantFixture) bool {
			w, err := publishingstore.ReadThreadData(t.Context(), s, m.org, []publishing.Post{th.post})
			return err == nil && len(w.Parts) == 0 && len(w.Channels) == 0 && len(w.Media) == 0 && len(w.Followers) == 0
		},
		"Store.Events": func(t *testing.T, m, th tenantFixture) bool {
			out, err := publishingstore.Events(t.Context(), s, m.org, th.post.Group)
			return err == nil && len(out) == 0
		},
		"Tx.Remember": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			err := publishingstore.Remember(t.Context(), tx, th.org.String(), []byte("hash"), []byte(`[]`))
			if errors.Is(err, publishingstore.ErrKeyBusy) || errors.Is(err, publishingstore.ErrKeyTaken) {
				return false, nil
			}
			return err == nil, err
		}),
	}
}

// postQuestions returns the questions about posts.
func postQuestions(s *publishingstore.Store) map[string]question {
	return map[string]question{
		"Tx.Insert": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return false, publishingstore.Insert(t.Context(), tx, []publishingstore.NewPost{{Post: th.copied()}})
		}),
		"Tx.LockGroup": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			out, err := publishingstore.LockGroup(t.Context(), tx, th.post.Group)
			return len(out) == 0, err
		}),
		"Tx.GroupOf": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.GroupOf(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"Tx.GroupOfPart": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.GroupOfPart(t.Context(), tx, th.post.Parts[0].ID)
			return false, err
		}),
		"Tx.Delete": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.Delete(t.Context(), tx, []publishingstore.PostStatus{th.standing})
		}),
		"Tx.Move": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			due, err := publishingstore.Move(t.Context(), tx, []publishingstore.PostStatus{th.standing}, publishing.StateDraft, true, "me")
			return due == nil, err
		}),
		"Tx.Rewrite": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return false, publishingstore.Rewrite(t.Context(), tx, th.post.Group, []publishingstore.PostStatus{th.standing}, []publishingstore.NewPost{{Post: th.post}})
		}),
	}
}

// endOf is the end of the pause of keepBack.
func endOf(e tenantFixture) publishingstore.PauseEnd {
	return publishingstore.PauseEnd{Scope: publishing.PauseChannel, Subject: e.channel.ID, By: "me"}
}

// keepBack pauses a channel whose post is due.
func keepBack(t *testing.T, db *pg.DB, e tenantFixture) {
	t.Helper()
	must(t, publishingstore.New(db).InOrg(t.Context(), e.org, func(tx *publishingstore.Tx) error {
		_, err := publishingstore.Pause(t.Context(), tx, publishing.PauseChannel, e.channel.ID, "me")
		return err
	}))
	must(t, db.InOrg(t.Context(), e.org.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update post set due = now() - interval '1 minute' where id = $1 and state = 'QUEUE'`, e.post.ID)
		return err
	}))
}

// preparations bring the rows into a state in which the method would have an effect.
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
		"Store.FindFiles":    change(unused),
		"Tx.FreeContent":     change(`update post set approved = '\x'`),
		"Tx.MarkTemplate":    change(unused), // so that the template matches the content of the post
		"Tx.TemplateMarked":  change(`update post set approved = '\x'`),
		"Tx.ApprovalInForce": change(`update approval set status = 'APPROVED', resolved_at = now()`),
		"Tx.DeleteMedium":    change(unused),
		"Tx.HoldMedia":       change(deleted),
		"Store.ForgetMedia":  change(deleted, unused),
		"Tx.Advance":         func(t *testing.T, e tenantFixture) { force(t, db, e, publishing.StatePublished, "committing") },
		"Store.Advance":      func(t *testing.T, e tenantFixture) { force(t, db, e, publishing.StatePublished, "committing") },
		"Store.RepairHold":   func(t *testing.T, e tenantFixture) { force(t, db, e, publishing.StatePublishing, "committing") },
		"Tx.Revoke": func(t *testing.T, e tenantFixture) {
			force(t, db, e, publishing.StatePublishing, "preparing")
			must(t, publishingstore.New(db).InOrg(t.Context(), e.org, func(tx *publishingstore.Tx) error {
				_, err := publishingstore.Pause(t.Context(), tx, publishing.PauseChannel, e.channel.ID, "me")
				return err
			}))
		},
		"Tx.EndPause":          func(t *testing.T, e tenantFixture) { keepBack(t, db, e) },
		"Store.FindKeptBack":   func(t *testing.T, e tenantFixture) { keepBack(t, db, e) },
		"Store.GiveUpKeptBack": func(t *testing.T, e tenantFixture) { keepBack(t, db, e) },
		"Store.EndRefresh": func(t *testing.T, e tenantFixture) {
			state, err := publishingstore.BeginRefresh(t.Context(), publishingstore.New(db), e.org, e.channel.ID, []byte("sealed"), time.Minute)
			must(t, err)
			*e.refresh = *state.Run
		},
		"Store.OrganizationZone": func(t *testing.T, e tenantFixture) {
			must(t, people(t, db).InOrg(t.Context(), e.org, func(tx *tenancystore.OrgTx) error {
				return tx.SetTimezone(t.Context(), "Asia/Tokyo")
			}))
		},
		"Store.UnreadNotifications": func(t *testing.T, e tenantFixture) { e.addManyNotifications(t, db) },
		"Store.PublishedMails":      func(t *testing.T, e tenantFixture) { e.addManyNotifications(t, db) },
		"Store.EndWebhook": func(t *testing.T, e tenantFixture) {
			_, _, err := publishingstore.BeginWebhook(t.Context(), publishingstore.New(db), e.org, e.webhook, now, now.Add(time.Hour))
			must(t, err)
		},
		"tenancy.OrgTx.CountMembers": func(t *testing.T, e tenantFixture) { e.addMany(t, db) },
		"tenancy.OrgTx.CountKeys":    func(t *testing.T, e tenantFixture) { e.addMany(t, db) },
	}
}

// rows returns all rows of an organization as text.
func rows(t *testing.T, db *pg.DB, org tenancy.OrgID) string {
	t.Helper()
	var all strings.Builder
	must(t, db.InOrg(t.Context(), org.UUID(), func(tx pgx.Tx) error {
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
	names := slices.Concat(
		asked(reflect.TypeFor[*publishingstore.Store](), "", false), asked(reflect.TypeFor[*publishingstore.Tx](), "", true),
		asked(reflect.TypeFor[*tenancystore.Store](), "tenancy.", false), asked(reflect.TypeFor[*tenancystore.OrgTx](), "tenancy.", true),
		asked(reflect.TypeFor[*tenancystore.GateTx](), "tenancy.", false))
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
		{role: pg.Gate, sql: `delete from api_key`},
		{role: pg.Gate, sql: `update api_key set expires_at = null`},
		{role: pg.Gate, sql: `update organization set mfa_required = false`},
		{role: pg.Gate, sql: `update member set role = 'ADMIN'`},
		{role: pg.Gate, sql: `select role from invitation`},
		{role: pg.Gate, sql: `select subject from audit`},
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

// What was done can be read and not be changed, whoever did it.
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
	// The purge may, but only entries of an organization whose deletion was requested.
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
