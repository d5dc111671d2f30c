package notification_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	notificationstore "crier/publishing/notification/store"
	"crier/tenancy"
)

func TestNotifier_ThousandFailuresAreOneNotificationAndOneReport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.fails(600, "The account is closed.")
	o.count()
	o.fails(400, "Something else.")
	o.count()
	o.want("all counted", shown{Kind: "failed", Posts: 1000, Open: true})
	if n := r.events(); n != 0 {
		t.Errorf("%d events are left, want 0", n)
	}
	r.mail()
	r.wantReports("before the delay")
	r.wait(publishing.IncidentMailDelay)
	r.mail()
	for _, x := range r.wantReports("after it", "failed 1000") {
		want := tenancy.Report{
			ID: x.ID, Org: o.org, Kind: tenancy.ReportFailed, Channel: x.Channel, Platform: "Sandbox",
			Reason: "The account is closed.", Posts: 1000, Since: x.Since,
		}
		if x.Channel == "" || x.ID == "" || x.Since.IsZero() || x.Post == "" || x.PostAt.IsZero() || !sameReport(x, want) {
			t.Errorf("got the report %+v, want %+v", x, want)
		}
	}
	o.fails(1, "And again.")
	o.count()
	r.mail()
	r.wantReports("a further failure")
	o.publishes(1)
	o.count()
	o.dropDailyReport()
	r.wait(publishing.IncidentReopening)
	o.fails(1, "Another incident.")
	o.count()
	r.wait(publishing.IncidentMailDelay)
	r.mail()
	r.wantReports("after a success", "failed 1")
}

func sameReport(a, b tenancy.Report) bool {
	return a.ID == b.ID && a.Org == b.Org && a.Kind == b.Kind && a.Channel == b.Channel && a.Platform == b.Platform &&
		a.Reason == b.Reason && a.Posts == b.Posts && a.Since.Equal(b.Since)
}

func TestEvents_AreWrittenOnlyForNotifications(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.queued(1)
	for _, quiet := range []string{
		`update post set due = now() where channel_id = $1`,
		`update post set state = 'PUBLISHING', phase = 'preparing', claim_token = id, claim_until = now(), claim_holder = id where channel_id = $1`,
		`update post set state = 'UNKNOWN', phase = 'committing', committing_at = now(), maybe_sent = true where channel_id = $1`,
		`update post set state = 'PUBLISHING' where channel_id = $1`,
		`update post set state = 'QUEUE', claim_token = null where channel_id = $1`,
		`update channel set updated_at = now() where id = $1`,
	} {
		o.Clock(quiet, o.channel)
		if n := r.events(); n != 0 {
			t.Fatalf("got %d events after %s, want none", n, quiet)
		}
	}
	o.fail("outcome_unknown", "Look there.")
	o.queued(1)
	o.fail("missed", "Too late.")
	o.queued(1)
	o.fail("predecessor_failed", "The part before this one was not published.")
	o.queued(1)
	o.Tenant(o.org, `update post set deleted_at = now() where state = 'QUEUE'`)
	o.fail("deleted", "It was deleted.")
	o.count()
	o.want("posts", shown{Kind: "unknown", Posts: 1, Open: true}, shown{Kind: "missed", Posts: 1, Open: true})
}

func TestNotifier_DeadChannelIsOneIncidentUntilReconnected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.fails(3, "The platform refuses the account.")
	o.Clock(`update channel set refresh_needed = true where id = $1`, o.channel)
	o.fails(2, "The platform refuses the account.")
	o.count()
	o.want("dead", shown{Kind: "reconnect", Posts: 5, Open: true})
	r.wait(time.Minute)
	r.mail()
	r.wantReports("dead", "reconnect 5", "reconnect 5 of posts")
	o.Clock(`update channel set refresh_needed = false where id = $1`, o.channel)
	o.count()
	o.want("connected", shown{Kind: "reconnect", Posts: 5})
	o.fails(1, "Too long.")
	o.Tenant(o.org, `update channel set deleted_at = now(), credential = null where id = $1`, o.channel)
	o.count()
	o.want("disconnected", shown{Kind: "reconnect", Posts: 5}, shown{Kind: "failed", Posts: 1})
}

// Mails about a channel that must be reconnected name no post until one has failed. People who want
// mails only about posts get one when the first post fails.
func TestNotifier_FailuresOfDeadChannelAreReportedAfterIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.Clock(`update channel set refresh_needed = true where id = $1`, o.channel)
	o.count()
	r.wait(time.Minute)
	r.mail()
	r.wantReports("dead", "reconnect 0")
	o.fails(3, "The platform refuses the account.")
	o.count()
	r.wait(time.Minute)
	r.mail()
	r.wantReports("posts fail", "reconnect 3 of posts")
	o.fails(3, "The platform refuses the account.")
	o.count()
	r.wait(time.Minute)
	r.mail()
	r.wantReports("more posts fail")
}

// A post that fails between the report and its record keeps the mails due.
func TestNotifier_FailureDuringTheReportIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.Clock(`update channel set refresh_needed = true where id = $1`, o.channel)
	o.count()
	r.wait(time.Minute)
	due, err := notificationstore.IncidentMails(t.Context(), o.Store, o.org, r.time(), 10)
	r.OK(err)
	o.fails(1, "The platform refuses the account.")
	o.count()
	r.OK(notificationstore.MailsQueued(t.Context(), o.Store, o.org, due, r.time()))
	r.mail()
	r.wantReports("a post failed meanwhile", "reconnect 1 of posts")
}

// A channel that dies again within an hour of being reconnected is reported again, with another id.
func TestNotifier_ChannelThatDiesAgainIsReportedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	refused := func(is bool) {
		o.Clock(`update channel set refresh_needed = $2 where id = $1`, o.channel, is)
		o.count()
	}
	refused(true)
	r.wait(time.Minute)
	r.mail()
	first := r.wantReports("dead", "reconnect 0")
	r.wait(19 * time.Minute)
	refused(false)
	r.wait(30 * time.Minute)
	refused(true)
	r.wait(time.Minute)
	r.mail()
	r.wantReports("dead again, within an hour of the mail")
	r.wait(10 * time.Minute)
	r.mail()
	again := r.wantReports("an hour after it", "reconnect 0")
	if len(first) == 1 && len(again) == 1 && first[0].ID == again[0].ID {
		t.Errorf("got the id %s twice, want two", first[0].ID)
	}
	for range 3 {
		r.wait(24 * time.Hour)
		o.fails(10, "The platform refuses the account.")
		o.count()
		r.wait(time.Minute)
		r.mail()
	}
	r.wantReports("lost posts", "reconnect 10 of posts")
	o.want("all in one", shown{Kind: "reconnect", Posts: 30, Open: true})
}

func TestNotifier_FailuresAfterASuccessAreReportedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.fails(1, "no")
	o.count()
	r.wait(time.Minute)
	r.mail()
	r.wantReports("the first", "failed 1")
	o.publishes(1)
	o.count()
	o.dropDailyReport()
	r.wait(30 * time.Minute)
	o.fails(5, "no")
	o.count()
	r.mail()
	r.wantReports("within the hour")
	r.wait(30 * time.Minute)
	r.mail()
	r.wantReports("an hour after the mail", "failed 5")
	r.wait(2 * time.Hour)
	o.fails(1, "no")
	o.count()
	r.wait(time.Minute)
	r.mail()
	r.wantReports("while it goes on")
}

// A pending request for approval is reported to everyone but the requester, and its answer to the
// requester.
func TestNotifier_ApprovalsAreReportedToThoseConcerned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.queued(1)
	asked := id.New[tenancy.PersonTag]()
	o.approval(asked, "PENDING", "pending", tenancy.PersonID{})
	o.approval(asked, "VOID", "pending", tenancy.PersonID{})
	o.approval(asked, "APPROVED", "approved", asked)
	o.approval(asked, "REJECTED", "rejected", asked)
	o.approval(tenancy.PersonID{}, "APPROVED", "approved", tenancy.PersonID{})
	r.wait(publishing.IncidentMailDelay)
	r.mail()
	yes, no := true, false
	want := map[string]tenancy.Report{"<nil>": {Except: asked}, "true": {To: asked, Approved: &yes}, "false": {To: asked, Approved: &no}}
	for _, x := range r.wantReports("all", "approval 1", "approval 1", "approval 1") {
		answer := "<nil>"
		if x.Approved != nil {
			answer = fmt.Sprint(*x.Approved)
		}
		w, ok := want[answer]
		if !ok || x.To != w.To || x.Except != w.Except || x.Channel == "" || x.Post == "" || x.PostAt.IsZero() || x.Reason != "Please." {
			t.Errorf("got the report %+v, want one to %s but %s with the channel and the post", x, w.To, w.Except)
		}
		delete(want, answer)
	}
	r.wait(time.Hour)
	r.mail()
	r.wantReports("later")
}

func TestNotifier_PublishedPostsOfADayAreOneReport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.publishes(2)
	second := o
	second.channel = r.Connect(o.org)
	second.publishes(3)
	o.count()
	o.want("published", shown{Kind: "published", Posts: 5, Open: true})
	r.mail()
	r.wantReports("on the day")
	r.wait(26 * time.Hour)
	r.mail()
	for _, x := range r.wantReports("on the next day", "published 5") {
		if len(x.Channels) != 2 || x.Channels[0].Posts != 3 || x.Channels[1].Posts != 2 || x.More != 0 {
			t.Errorf("got the channels %+v and %d more, want one with 3 posts and one with 2", x.Channels, x.More)
		}
	}
	r.mail()
	r.wantReports("again")
	due, err := notificationstore.PublishedMails(t.Context(), o.Store, o.org, r.time(), 100)
	r.OK(err)
	if len(due) != 0 {
		t.Errorf("got %+v after the mails, want nothing due", due)
	}
}

func TestNotifier_TwoProcessesCountEachEventOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	all := []organization{r.organization(), r.organization()}
	for _, o := range all {
		o.fails(1500, "No.")
	}
	var both sync.WaitGroup
	for range 2 {
		n := r.process()
		both.Go(func() {
			for r.events() > 0 {
				if _, err := n.Count(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	both.Wait()
	for _, o := range all {
		o.want("two processes", shown{Kind: "failed", Posts: 1500, Open: true})
	}
}

func TestNotifier_RefusedEventDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bad, other := r.organization(), r.organization()
	broken := bad.refusing("poison")
	bad.fails(3, "before")
	broken.fails(1, "poison")
	bad.fails(3, "after")
	other.fails(2, "no")
	r.count()
	bad.want("the organization of the event", shown{Kind: "failed", Posts: 6, Open: true})
	other.want("another organization", shown{Kind: "failed", Posts: 2, Open: true})
	if n := r.events(); n != 0 {
		t.Errorf("%d events are left, want 0", n)
	}
	if !strings.Contains(r.Log.String(), "is dropped") {
		t.Error("the log does not name the event that was dropped")
	}
}

// Two processes that isolate the same refused event count each of the other events once.
func TestNotifier_RefusedEventIsIsolatedByTwoProcesses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	broken := o.refusing("poison")
	o.fails(200, "no")
	broken.fails(1, "poison")
	o.fails(200, "no")
	var both sync.WaitGroup
	for range 4 {
		n := r.process()
		both.Go(func() {
			for r.events() > 0 {
				if _, err := n.Count(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	both.Wait()
	o.want("all processes", shown{Kind: "failed", Posts: 400, Open: true})
}

func TestNotifier_HangingOrganizationDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hanging, other := r.organization(), r.organization()
	hanging.fails(1, "no")
	r.count()
	hanging.hang(`select id from notification for update`)
	hanging.fails(5, "no")
	other.fails(2, "no")
	r.count()
	other.want("while another organization hangs", shown{Kind: "failed", Posts: 2, Open: true})
	hanging.want("the one that hangs", shown{Kind: "failed", Posts: 1, Open: true})
	r.wait(time.Minute)
	r.mail()
	r.wantReports("both", "failed 1", "failed 2")

	events := r.organization()
	events.fails(2, "no")
	events.hang(`delete from incident_event where id = (select min(id) from incident_event where org_id = $1)`, events.org)
	r.count()
	events.want("an event that another transaction has", shown{Kind: "failed", Posts: 1, Open: true})
}

func TestNotifier_FailingMailerIsRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bad, other := r.organization(), r.organization()
	bad.fails(1, "no")
	other.fails(2, "no")
	r.count()
	r.wait(time.Minute)
	away := fault.New(fault.Unavailable, "test", "away")
	r.mailer.fail = away
	for range 4 { // each round continues after the organization at which the last one ended
		if _, err := r.notifier.Mail(t.Context()); err != nil && !errors.Is(err, away) {
			t.Fatalf("got %v, want the error of the mailer", err)
		}
	}
	r.mailer.of = bad.org
	for range 3 {
		_, _ = r.notifier.Mail(t.Context()) // the reports are checked below
	}
	r.wantReports("while it fails for one", "failed 2")
	r.mailer.fail = nil
	r.mail()
	r.wantReports("when it works again", "failed 1")
}

// If a process ends after the mailer has the report but before that is recorded, the next process
// repeats it.
func TestNotifier_ReportIsRepeatedWithItsIDAfterACrash(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.fails(1, "no")
	r.count()
	r.wait(time.Minute)
	o.hang(`select id from notification for update`) // keeps the process from recording the mail
	r.mail()
	r.notifier = r.process()
	r.mail()
	got := r.wantReports("both", "failed 1", "failed 1")
	if len(got) == 2 && got[0].ID != got[1].ID {
		t.Errorf("got the ids %s and %s, want one", got[0].ID, got[1].ID)
	}
}

func TestNotifications_AreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	o.Tenant(o.org, `insert into notification (org_id, id, kind, channel_id, posts, created_at, last_at, closed_at)
		select $1, gen_random_uuid(), 'failed', $2, 1, now() - n * interval '1 minute', now() - n * interval '1 minute', now()
		from generate_series(1, $3::int) n`, o.org, o.channel, publishing.MaxNotifications)
	o.fails(1, "no")
	r.count()
	page, err := notificationstore.Notifications(t.Context(), o.Store, o.org, tenancy.PersonID{}, 0, 1)
	r.OK(err)
	if page.Total != publishing.MaxNotifications || page.Notifications[0].Reason == nil {
		t.Errorf("got %d notifications and first %+v, want %d with the new one first",
			page.Total, page.Notifications[0], publishing.MaxNotifications)
	}
}

// If all channels of an organization fail in an outage of their platform, each member gets one
// mail.
func TestNotifier_IncidentsOfARoundAreReportedTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.organization()
	var want []string
	for range 60 {
		each := o
		each.channel = r.Connect(o.org)
		each.fails(1, "The platform is away.")
		want = append(want, "failed 1")
	}
	o.count()
	r.wait(publishing.IncidentMailDelay)
	r.mail()
	r.wantReports("all", want...)
	if r.mailer.calls != 1 {
		t.Errorf("the mailer was called %d times, want once", r.mailer.calls)
	}
}

// TestNotifier_ReportHasTheWordsOfThePost checks that reports quote posts, because people recognize
// a post by its words. This includes posts that do not begin with the first part of their group.
func TestNotifier_ReportHasTheWordsOfThePost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for content, want := range map[string]string{
		"<p>Our <b>new</b> shop</p><p>opens</p>":   "Our new shop\nopens",
		"<p>" + strings.Repeat("x", 5000) + "</p>": strings.Repeat("x", 200),
		"": "",
	} {
		o := r.organization()
		o.queued(1)
		if content != "" {
			o.Tenant(o.org, `insert into part (org_id, id, post_id, position, content, html)
				select org_id, gen_random_uuid(), id, 3 + n, case n when 0 then $2 else 'Not this.' end, true
				from post, generate_series(0, 1) n where channel_id = $1`, o.channel, content)
		}
		o.fail("rejected", "The account is closed.")
		o.count()
		r.wait(publishing.IncidentMailDelay)
		r.mail()
		for _, x := range r.wantReports("a failed post", "failed 1") {
			if x.Words != want || x.PostAt.IsZero() {
				t.Errorf("got the words %q of a post of %v, want %q", x.Words, x.PostAt, want)
			}
		}
	}
}
