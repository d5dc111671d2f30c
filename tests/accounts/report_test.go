package accounts

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/jobs"
	"crier/tenancy"
	"crier/tests/dbtest"
)

func report(org tenancy.OrgID, kind tenancy.ReportKind, name string) tenancy.Report {
	return tenancy.Report{ID: name, Org: org, Kind: kind, Channel: "acme", Platform: "Bluesky", Reason: "No.", Posts: 3}
}

func (w *rig) queueReport(list ...tenancy.Report) error {
	w.t.Helper()
	return w.QueueReports(w.t.Context(), list[0].Org, list)
}

// wantReports delivers all mails, checks how many each address got since the last call, and clears
// the mailbox.
func (w *rig) wantReports(when string, want map[string]int) {
	w.t.Helper()
	w.deliver()
	for email, n := range want {
		if got := w.box.to(email); len(got) != n {
			w.t.Errorf("%s: got the mails %q to %s, want %d", when, w.box.subjects(email), email, n)
		}
	}
	w.box.clear()
}

func TestReport_GoesToMembersWhoWantItOnce(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	bob := w.member(ada.Org, "bob@example.com", tenancy.RoleUser)
	w.member(ada.Org, "off@example.com", tenancy.RoleUser)
	w.exec(`update member set disabled = true from person p where p.id = person_id and p.email = 'off@example.com'`)
	n, err := w.Notifications(t.Context(), bob)
	must(t, err)
	n.Failure, n.Success, n.Channel = false, true, tenancy.DeliveryBell
	must(t, w.SetNotifications(t.Context(), bob, n))
	w.deliver()
	w.box.clear()
	for _, c := range []struct {
		kind tenancy.ReportKind
		want map[string]int
	}{
		{kind: tenancy.ReportFailed, want: map[string]int{"ada@example.com": 1, "bob@example.com": 0}},
		{kind: tenancy.ReportMissed, want: map[string]int{"ada@example.com": 1, "bob@example.com": 0}},
		{kind: tenancy.ReportUnknown, want: map[string]int{"ada@example.com": 1, "bob@example.com": 0}},
		{kind: tenancy.ReportReconnect, want: map[string]int{"ada@example.com": 1, "bob@example.com": 0}},
		{kind: tenancy.ReportPublished, want: map[string]int{"ada@example.com": 0, "bob@example.com": 1}},
	} {
		must(t, w.queueReport(report(ada.Org, c.kind, string(c.kind))))
		c.want["eve@example.com"], c.want["off@example.com"] = 0, 0
		w.wantReports(string(c.kind), c.want)
		must(t, w.queueReport(report(ada.Org, c.kind, string(c.kind)))) // repeated after a crash
		w.wantReports("again", map[string]int{"ada@example.com": 0, "bob@example.com": 0})
	}
	must(t, w.queueReport(report(eve.Org, tenancy.ReportFailed, "of another organization")))
	w.wantReports("another organization", map[string]int{"ada@example.com": 0, "eve@example.com": 1})
	must(t, w.queueReport(report(id.New[tenancy.OrgTag](), tenancy.ReportFailed, "of none")))
	w.wantCount(0, "mail")
}

// TestReport_DeadChannelReachesMembersWantingPostsOrChannels checks that posts that fail while
// their channel must be reconnected are counted with the channel. A member without mails about
// channels gets a mail about the posts instead, and can unsubscribe from it.
func TestReport_DeadChannelReachesMembersWantingPostsOrChannels(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	for email, set := range map[string]func(n *tenancy.Notifications){
		"bell@example.com": func(n *tenancy.Notifications) { n.Channel = tenancy.DeliveryBell },
		"off@example.com":  func(n *tenancy.Notifications) { n.Channel = tenancy.DeliveryOff },
		"none@example.com": func(n *tenancy.Notifications) { n.Channel, n.Failure = tenancy.DeliveryOff, false },
	} {
		p := w.member(ada.Org, email, tenancy.RoleUser)
		n, err := w.Notifications(t.Context(), p)
		must(t, err)
		set(&n)
		must(t, w.SetNotifications(t.Context(), p, n))
	}
	w.deliver()
	w.box.clear()
	of, posts := report(ada.Org, tenancy.ReportReconnect, "channel"), report(ada.Org, tenancy.ReportReconnect, "posts")
	posts.OnlyPosts = true
	must(t, w.queueReport(of))
	must(t, w.queueReport(posts))
	w.deliver()
	for _, email := range []string{"bell@example.com", "off@example.com"} {
		m := w.mailTo(email)
		if m.Subject != "3 posts on “acme” (Bluesky) failed" || !strings.Contains(m.Text, "Stop emails about failed posts: "+m.Unsubscribe) {
			t.Errorf("got the mail %q to %s with List-Unsubscribe %q, want one about posts with a link that ends those", m.Text, email, m.Unsubscribe)
		}
	}
	if m := w.mailTo("ada@example.com"); !strings.Contains(m.Text, "Stop emails about channels that must be reconnected: "+m.Unsubscribe) {
		t.Errorf("got the mail %q, want one about the channel", m.Text)
	}
	w.wantReports("both reports", map[string]int{
		"ada@example.com": 1, "bell@example.com": 1, "off@example.com": 1, "none@example.com": 0,
	})
}

func TestReport_IsQueuedOnceBySeveralProcesses(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	ada := w.owner("ada@example.com")
	w.deliver()
	w.box.clear()
	var all sync.WaitGroup
	for range 4 {
		a := w.instance()
		all.Go(func() {
			if err := a.QueueReports(t.Context(), ada.Org, []tenancy.Report{report(ada.Org, tenancy.ReportFailed, "one")}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.wantReports("four processes", map[string]int{"ada@example.com": 1})
}

func TestReport_NotSentToMembersWhoLeft(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	w.member(ada.Org, "bob@example.com", tenancy.RoleUser)
	w.member(ada.Org, "carl@example.com", tenancy.RoleUser)
	w.deliver()
	w.box.clear()
	must(t, w.queueReport(report(ada.Org, tenancy.ReportFailed, "one")))
	w.sendQueued() // the page
	w.wantCount(3, "mail")
	w.exec(`delete from member using person p where p.id = person_id and p.email = 'bob@example.com'`)
	w.exec(`update member set disabled = true from person p where p.id = person_id and p.email = 'carl@example.com'`)
	w.wantReports("one left, one is disabled", map[string]int{"ada@example.com": 1, "bob@example.com": 0, "carl@example.com": 0})
	must(t, w.queueReport(report(ada.Org, tenancy.ReportFailed, "two")))
	w.exec(`update organization set suspended_at = now()`)
	w.wantReports("suspended before the page", map[string]int{"ada@example.com": 0})
	w.wantCount(0, "mail")
}

func TestReport_UnsubscribeEndsItsKind(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	n, err := w.Notifications(t.Context(), ada)
	must(t, err)
	n.Success = true
	must(t, w.SetNotifications(t.Context(), ada, n))
	w.deliver()
	for i, c := range []struct {
		kind  tenancy.ReportKind
		after func(n *tenancy.Notifications)
	}{
		{kind: tenancy.ReportMissed, after: func(n *tenancy.Notifications) { n.Failure = false }},
		{kind: tenancy.ReportReconnect, after: func(n *tenancy.Notifications) { n.Channel = tenancy.DeliveryBell }},
		{kind: tenancy.ReportPublished, after: func(n *tenancy.Notifications) { n.Success = false }},
	} {
		w.box.clear()
		must(t, w.queueReport(report(ada.Org, c.kind, string(c.kind))))
		w.deliver()
		link, err := url.Parse(w.mailTo("ada@example.com").Unsubscribe)
		must(t, err)
		must(t, w.Unsubscribe(t.Context(), link.Query().Get("token")))
		w.box.clear()
		c.after(&n)
		if got, err := w.Notifications(t.Context(), ada); err != nil || got != n {
			t.Errorf("%d: got the settings %+v, %v, want %+v", i, got, err, n)
		}
		must(t, w.queueReport(report(ada.Org, c.kind, string(c.kind)+" again")))
		w.wantReports("unsubscribed", map[string]int{"ada@example.com": 0})
	}
}

// TestReport_UnsubscribeEndsAllKindsOfTheMail checks the links in a mail about several topics. The
// link in the header ends all of them, and each link in the footer ends one.
func TestReport_UnsubscribeEndsAllKindsOfTheMail(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	w.deliver()
	before, err := w.Notifications(t.Context(), ada)
	must(t, err)
	must(t, w.queueReport(report(ada.Org, tenancy.ReportReconnect, "one"), report(ada.Org, tenancy.ReportMissed, "two")))
	m := w.mailTo("ada@example.com")
	link, err := url.Parse(m.Unsubscribe)
	must(t, err)
	token := link.Query().Get("token")
	topics, err := w.UnsubscribeTopics(token)
	if want := []tenancy.MailTopic{tenancy.TopicChannel, tenancy.TopicFailure}; err != nil || !slices.Equal(topics, want) {
		t.Errorf("got the topics %v, %v, want %v", topics, err, want)
	}
	if n := strings.Count(m.Text, "Stop emails about "); n != 2 || strings.Contains(m.Text, m.Unsubscribe) {
		t.Errorf("got %d links in the footer of %s, want one for each topic", n, m.Text)
	}
	must(t, w.Unsubscribe(t.Context(), token))
	want := before
	want.Failure, want.Channel = false, tenancy.DeliveryBell
	if got, err := w.Notifications(t.Context(), ada); err != nil || got != want {
		t.Errorf("got the settings %+v, %v, want %+v", got, err, want)
	}
	_, err = w.UnsubscribeTopics(token[:len(token)-2])
	wantFault(t, "a token that is not valid", err, fault.NotFound)
}

// TestReport_ApprovalsGoToPeopleConcerned checks that a request for approval goes to the members
// who want such mails, except the requester, and that the answer goes to the requester.
func TestReport_ApprovalsGoToPeopleConcerned(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	bob := w.member(ada.Org, "bob@example.com", tenancy.RoleUser)
	bell := w.member(ada.Org, "bell@example.com", tenancy.RoleAdmin)
	n, err := w.Notifications(t.Context(), bell)
	must(t, err)
	n.Approval = tenancy.DeliveryBell
	must(t, w.SetNotifications(t.Context(), bell, n))
	w.deliver()
	w.box.clear()
	request, answer := report(ada.Org, tenancy.ReportApproval, "request"), report(ada.Org, tenancy.ReportApproval, "answer")
	request.Except, answer.To, answer.Approved = bob.Person, bob.Person, new(bool)
	must(t, w.queueReport(request))
	if m := w.mailTo("ada@example.com"); m.Subject != "A post for “acme” (Bluesky) is waiting for approval" || !strings.Contains(m.Text, "Note: No.") {
		t.Errorf("got the mail %q, want the request with its note", m.Text)
	}
	w.wantReports("the request", map[string]int{"ada@example.com": 1, "bob@example.com": 0, "bell@example.com": 0})
	must(t, w.queueReport(answer))
	m := w.mailTo("bob@example.com")
	if m.Subject != "The post for “acme” (Bluesky) was rejected" || !strings.Contains(m.Text, "Stop emails about approvals: "+m.Unsubscribe) {
		t.Errorf("got the mail %q, want the answer with a link that ends mails about approvals", m.Text)
	}
	link, err := url.Parse(m.Unsubscribe)
	must(t, err)
	w.wantReports("the answer", map[string]int{"ada@example.com": 0, "bob@example.com": 1, "bell@example.com": 0})
	must(t, w.Unsubscribe(t.Context(), link.Query().Get("token")))
	answer.ID = "another"
	must(t, w.queueReport(answer))
	w.wantReports("unsubscribed", map[string]int{"ada@example.com": 0, "bob@example.com": 0})
	must(t, w.queueReport(report(ada.Org, tenancy.ReportApproval, "one"), report(ada.Org, tenancy.ReportFailed, "two")))
	if m := w.mailTo("ada@example.com"); !strings.HasPrefix(m.Subject, "2 notifications in ") {
		t.Errorf("got the mail %q, want one about both", m.Subject)
	}
}

// TestReport_IsAboutPostsIfChannelMailsAreOff checks that a member who switches off mails about
// channels after the report was queued gets it as a mail about posts, and can unsubscribe from
// that.
func TestReport_IsAboutPostsIfChannelMailsAreOff(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	w.deliver()
	w.box.clear()
	must(t, w.queueReport(report(ada.Org, tenancy.ReportReconnect, "one")))
	w.sendPages()
	n, err := w.Notifications(t.Context(), ada)
	must(t, err)
	n.Channel = tenancy.DeliveryOff
	must(t, w.SetNotifications(t.Context(), ada, n))
	m := w.mailTo("ada@example.com")
	if m.Subject != "3 posts on “acme” (Bluesky) failed" || !strings.Contains(m.Text, "Stop emails about failed posts: "+m.Unsubscribe) {
		t.Errorf("got the mail %q with List-Unsubscribe %q, want one about posts", m.Text, m.Unsubscribe)
	}
}

// TestReport_HugeOrganizationDoesNotDelayOthers checks that neither a member whose server stalls or
// refuses nor an organization with many members delays other organizations. Reports are sent page
// by page, after the mails that people wait for.
func TestReport_HugeOrganizationDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	huge, small := w.owner("ada@example.com"), w.owner("eve@example.com")
	w.exec(`with p as (insert into person (id, email, name, password_hash, verified, created_at)
		select gen_random_uuid(), 'p' || n || '@example.com', '', '', true, $2 from generate_series(1, 999) n returning id)
		insert into member (org_id, person_id, role, created_at) select $1, id, 'USER', $2 from p`, huge.Org, w.time())
	w.deliver()
	w.box.clear()
	must(t, w.queueReport(report(huge.Org, tenancy.ReportFailed, "huge")))
	w.sendQueued()
	must(t, w.queueReport(report(small.Org, tenancy.ReportFailed, "small")))
	// Everything queued so far: one page of the huge organization and the page of the small one.
	w.sendQueued()
	w.sendQueued()
	if got := w.box.to("eve@example.com"); len(got) != 1 || !strings.Contains(got[0].Subject, "3 posts on “acme” (Bluesky) failed") {
		t.Errorf("got the mails %v, want the report before those of the other organization are all sent", got)
	}
	w.box.mu.Lock()
	sent := len(w.box.all)
	w.box.mu.Unlock()
	if sent >= 1000 {
		t.Errorf("got %d mails, want fewer than the members of the huge organization", sent)
	}
	w.advance(time.Hour)
	w.wantReports("the rest", map[string]int{"p999@example.com": 1})
}

// TestReport_SeveralShareOneMail checks that reports that become due together share one mail, which
// lists some of them and says how many it leaves out.
func TestReport_SeveralShareOneMail(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	w.deliver()
	w.box.clear()
	var all []tenancy.Report
	for n := range 150 {
		all = append(all, report(ada.Org, tenancy.ReportFailed, fmt.Sprint("failed ", n)))
	}
	must(t, w.queueReport(all...))
	w.deliver()
	if got := w.box.to("ada@example.com"); len(got) != 1 || !strings.HasPrefix(got[0].Subject, "150 problems in ") ||
		strings.Count(got[0].Text, "3 posts on “acme” (Bluesky) failed. Reason: No.") != 20 || !strings.Contains(got[0].Text, "And 130 more.") {
		t.Errorf("got the mails %+v, want one that lists 20 and counts 130 more", got)
	}
	w.box.clear()
	// The same reports again, with one more.
	must(t, w.queueReport(append(all[:10:10], report(ada.Org, tenancy.ReportMissed, "another"))...))
	if m := w.mailTo("ada@example.com"); m.Subject != "3 posts on “acme” (Bluesky) could not be published in time" {
		t.Errorf("got the mail %q, want only the report that was not queued before", m.Subject)
	}
}

// TestReport_PersonGetsTenMailsAnHour checks that a person gets at most ten mails with reports
// within an hour, counting all organizations. Later reports wait for the next hour, in one mail per
// organization.
func TestReport_PersonGetsTenMailsAnHour(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada, eve := w.owner("ada@example.com"), w.owner("eve@example.com")
	w.exec(`insert into member (org_id, person_id, role, created_at) values ($1, $2, 'USER', now())`, eve.Org, ada.Person)
	w.deliver()
	w.box.clear()
	const reports = 100
	for n := range reports {
		must(t, w.queueReport(report(ada.Org, tenancy.ReportFailed, fmt.Sprint("failed ", n))))
		w.sendPages()
	}
	must(t, w.queueReport(report(eve.Org, tenancy.ReportMissed, "of another")))
	w.sendPages()
	held := w.count(`select count(*) from mail where email = 'ada@example.com' and held_until = $1`, w.time().Add(time.Hour))
	if n := w.count(`select count(*) from mail where email = 'ada@example.com'`); n != 12 || held != 2 {
		t.Errorf("got %d mails, %d of them in an hour, want ten, and one of each organization in an hour", n, held)
	}
	delayed := w.count(`select count(*) from jobs.river_job j join mail m on m.id::text = j.args ->> 'id'
		where m.held_until is not null and j.scheduled_at > now() + interval '50 minutes' and j.state = 'scheduled'`)
	if delayed != 2 {
		t.Errorf("the tasks of %d mails wait, want 2", delayed)
	}
	w.deliver()
	total := 0
	for _, m := range w.box.to("ada@example.com") {
		listed := strings.Count(m.Text, "“acme” (Bluesky)")
		if strings.HasPrefix(m.Subject, "90 problems") && (listed != 20 || !strings.Contains(m.Text, "And 70 more.")) {
			t.Errorf("got %s, want 20 of 90 listed", m.Text)
		}
		total++
	}
	if total != 12 {
		t.Errorf("got %d mails, want 12", total)
	}
	w.box.clear()
	w.advance(2 * time.Hour)
	must(t, w.queueReport(report(ada.Org, tenancy.ReportFailed, "hours later")))
	w.wantReports("hours later", map[string]int{"ada@example.com": 1})
}

// TestReport_DigestsDoNotDisplaceIncidents checks that mails about published posts do not use up
// the places of mails about incidents, even from many organizations. They wait for the next hour
// themselves.
func TestReport_DigestsDoNotDisplaceIncidents(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	n, err := w.Notifications(t.Context(), ada)
	must(t, err)
	n.Success = true
	must(t, w.SetNotifications(t.Context(), ada, n))
	for day := range 25 {
		must(t, w.queueReport(report(ada.Org, tenancy.ReportPublished, fmt.Sprint("published ", day))))
		w.sendPages()
	}
	must(t, w.queueReport(report(ada.Org, tenancy.ReportFailed, "failed")))
	w.sendPages()
	const waiting = `mail where held_until is not null and data #>> '{reports,0,kind}' = $1`
	w.wantCount(15, waiting, "published")
	w.wantCount(0, waiting, "failed")
}

// TestReport_ApprovalsDoNotDisplaceIncidents checks that requests for approval do not use up the
// places of problems, and are listed after them.
func TestReport_ApprovalsDoNotDisplaceIncidents(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	for n := range 25 {
		must(t, w.queueReport(report(ada.Org, tenancy.ReportApproval, fmt.Sprint("approval ", n))))
		w.sendPages()
	}
	const waiting = `mail where held_until is not null and data #>> '{reports,0,kind}' = $1`
	w.wantCount(1, waiting, "approval") // holds the fifteen that follow the first ten
	all := []tenancy.Report{}
	for n := range tenancy.MaxListedReports {
		all = append(all, report(ada.Org, tenancy.ReportApproval, fmt.Sprint("another approval ", n)))
	}
	must(t, w.queueReport(append(all, report(ada.Org, tenancy.ReportFailed, "failed"))...))
	w.sendPages()
	w.wantCount(0, waiting, "failed")
	w.wantCount(1, `mail where data #>> '{reports,0,kind}' = $1 and data ->> 'more' = '1'`, "failed")
}

// TestReport_FirstPageIsInTheSecondQueue checks that the tasks that queue reports for members do
// not run ahead of the mails that people wait for.
func TestReport_FirstPageIsInTheSecondQueue(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	w.deliver()
	must(t, w.queueReport(report(ada.Org, tenancy.ReportFailed, "one")))
	const pages = `jobs.river_job j join mail m on m.id::text = j.args ->> 'id' where m.kind = 'members' and j.queue = $1`
	w.wantCount(1, pages, "mail-later")
	w.wantCount(0, pages, "mail")
}

// TestReport_PurgedAccountDoesNotStopItsPage checks that the other members still get their mails if
// an account is purged while the mails of its page are being queued.
func TestReport_PurgedAccountDoesNotStopItsPage(t *testing.T) {
	t.Parallel()
	w := openAtOnce(t, nil)
	ada := w.owner("ada@example.com")
	gone := w.member(ada.Org, "gone@example.com", tenancy.RoleUser)
	w.deliver()
	w.box.clear()
	must(t, w.queueReport(report(ada.Org, tenancy.ReportFailed, "one")))
	purge, err := dbtest.SuperIn(t, w.address).Begin(t.Context())
	must(t, err)
	_, err = purge.Exec(t.Context(), `delete from person where id = $1`, gone.Person)
	must(t, err)
	sent := make(chan error, 1)
	page := w.queued()[0]
	go func() { sent <- w.SendMail(t.Context(), page, false) }()
	w.awaitBlocked(1)
	must(t, purge.Commit(t.Context()))
	must(t, <-sent)
	w.wantCount(0, "mail where kind = 'members'") // the task of the page does not run again
	w.wantReports("one was purged", map[string]int{"ada@example.com": 1, "gone@example.com": 0})
}

// TestReport_StallingDomainLeavesWorkersForOthers checks that a mail server that stalls occupies at
// most three workers of the second queue, across all organizations.
func TestReport_StallingDomainLeavesWorkersForOthers(t *testing.T) {
	t.Parallel()
	box := &stallingBox{domain: "slow.example", entered: make(chan string, 10), release: make(chan struct{})}
	w := openAtOnce(t, func(w *rig) { box.mailBox, w.deps.Mail = w.box, box })
	for n := range 4 {
		w.queueReportTo(fmt.Sprintf("p%d@slow.example", n))
	}
	w.queueReportTo("ada@fast.example")
	w.sendPages()
	queued := w.queued() // in the order in which the reports were queued
	sent, refused := make(chan error, 3), make(chan error, 1)
	for _, m := range queued[:3] {
		go func() { sent <- w.SendMail(t.Context(), m, false) }()
		<-box.entered
	}
	go func() { refused <- w.SendMail(t.Context(), queued[3], false) }()
	select {
	case err := <-refused:
		if !errors.Is(err, jobs.ErrLater) {
			t.Errorf("the fourth mail to the domain: got %v, want jobs.ErrLater", err)
		}
	case to := <-box.entered:
		t.Errorf("the mail to %s takes a fourth worker, want three at most", to)
	}
	must(t, w.SendMail(t.Context(), queued[4], false))
	close(box.release)
	for range 3 {
		must(t, <-sent)
	}
	w.wantReports("released", map[string]int{
		"ada@fast.example": 1, "p0@slow.example": 1, "p1@slow.example": 1, "p2@slow.example": 1, "p3@slow.example": 1,
	})
}

// queueReportTo creates a person with an organization and queues a report for it.
func (w *rig) queueReportTo(email string) {
	w.t.Helper()
	p := w.person(email)
	o, err := w.CreateOrganization(w.t.Context(), tenancy.Principal{Person: p, Via: tenancy.ViaSession}, "One")
	must(w.t, err)
	must(w.t, w.queueReport(report(o.ID, tenancy.ReportFailed, "to "+email)))
}

// sendPages runs the queued tasks that create the mails to members, but sends none of those mails.
func (w *rig) sendPages() {
	w.t.Helper()
	for _, queued := range w.queued() {
		if w.count(`select count(*) from mail where id = $1 and kind = 'members'`, queued) == 1 {
			must(w.t, w.SendMail(w.t.Context(), queued, true))
		}
	}
}
