package accounts

import (
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

func report(org tenancy.OrgID, kind tenancy.ReportKind, name string) tenancy.Report {
	return tenancy.Report{ID: name, Org: org, Kind: kind, Channel: "acme", Platform: "Bluesky", Reason: "No.", Posts: 3}
}

// wantReports checks how many mails each address got since the last call, and forgets them.
func (w *world) wantReports(when string, want map[string]int) {
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
		must(t, w.QueueReport(t.Context(), report(ada.Org, c.kind, string(c.kind))))
		c.want["eve@example.com"], c.want["off@example.com"] = 0, 0
		w.wantReports(string(c.kind), c.want)
		must(t, w.QueueReport(t.Context(), report(ada.Org, c.kind, string(c.kind)))) // a repetition after a crash
		w.wantReports("again", map[string]int{"ada@example.com": 0, "bob@example.com": 0})
	}
	must(t, w.QueueReport(t.Context(), report(eve.Org, tenancy.ReportFailed, "of another organization")))
	w.wantReports("another organization", map[string]int{"ada@example.com": 0, "eve@example.com": 1})
	must(t, w.QueueReport(t.Context(), report(id.New[tenancy.OrgTag](), tenancy.ReportFailed, "of none")))
	w.wantCount(0, "mail")
}

// Posts that fail while their channel must be connected again are counted with it. A member who wants no mails about
// channels gets one about the posts, whose link does not end those about posts.
func TestReport_PostsOfDeadChannelAreMailedToWhoWantsOneOfBoth(t *testing.T) {
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
	must(t, w.QueueReport(t.Context(), of))
	must(t, w.QueueReport(t.Context(), posts))
	w.deliver()
	if m := w.mailTo("bell@example.com"); m.Unsubscribe != "" {
		t.Errorf("got List-Unsubscribe %q in a mail about posts, want none: it would end those about channels or all about posts", m.Unsubscribe)
	}
	w.wantReports("both reports", map[string]int{
		"ada@example.com": 1, "bell@example.com": 1, "off@example.com": 1, "none@example.com": 0,
	})
}

func TestReport_IsQueuedOnceBySeveralProcesses(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	w.deliver()
	w.box.clear()
	var all sync.WaitGroup
	for range 4 {
		a := w.instance()
		all.Go(func() {
			if err := a.QueueReport(t.Context(), report(ada.Org, tenancy.ReportFailed, "one")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.wantReports("four processes", map[string]int{"ada@example.com": 1})
}

func TestReport_IsNotSentToWhoLeftMeanwhile(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ada := w.owner("ada@example.com")
	w.member(ada.Org, "bob@example.com", tenancy.RoleUser)
	w.member(ada.Org, "carl@example.com", tenancy.RoleUser)
	w.deliver()
	w.box.clear()
	must(t, w.QueueReport(t.Context(), report(ada.Org, tenancy.ReportFailed, "one")))
	w.sendQueued() // the page
	w.wantCount(3, "mail")
	w.exec(`delete from member using person p where p.id = person_id and p.email = 'bob@example.com'`)
	w.exec(`update member set disabled = true from person p where p.id = person_id and p.email = 'carl@example.com'`)
	w.wantReports("one left, one is disabled", map[string]int{"ada@example.com": 1, "bob@example.com": 0, "carl@example.com": 0})
	must(t, w.QueueReport(t.Context(), report(ada.Org, tenancy.ReportFailed, "two")))
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
		must(t, w.QueueReport(t.Context(), report(ada.Org, c.kind, string(c.kind))))
		w.deliver()
		link, err := url.Parse(w.mailTo("ada@example.com").Unsubscribe)
		must(t, err)
		must(t, w.Unsubscribe(t.Context(), link.Query().Get("token")))
		w.box.clear()
		c.after(&n)
		if got, err := w.Notifications(t.Context(), ada); err != nil || got != n {
			t.Errorf("%d: got the settings %+v, %v, want %+v", i, got, err, n)
		}
		must(t, w.QueueReport(t.Context(), report(ada.Org, c.kind, string(c.kind)+" again")))
		w.wantReports("unsubscribed", map[string]int{"ada@example.com": 0})
	}
}

// A member whose server stalls or refuses, and an organization with many members, delay no other organization: reports
// go page by page, behind the mails that people wait for.
func TestReport_HugeOrganizationLeavesTurnsToOthers(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	huge, small := w.owner("ada@example.com"), w.owner("eve@example.com")
	w.exec(`with p as (insert into person (id, email, name, password_hash, verified, created_at)
		select gen_random_uuid(), 'p' || n || '@example.com', '', '', true, $2 from generate_series(1, 999) n returning id)
		insert into member (org_id, person_id, role, created_at) select $1, id, 'USER', $2 from p`, huge.Org, w.time())
	w.deliver()
	w.box.clear()
	must(t, w.QueueReport(t.Context(), report(huge.Org, tenancy.ReportFailed, "huge")))
	w.sendQueued()
	must(t, w.QueueReport(t.Context(), report(small.Org, tenancy.ReportFailed, "small")))
	w.sendQueued() // all that is queued: a page of the huge one, and the page of the small one
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
