package accounts

import (
	"strings"
	"testing"

	"crier/platform/id"
	"crier/tenancy"
)

// sendQueued sends the mails that are queued now, but not the mails that these queue in turn.
func (w *rig) sendQueued() {
	w.t.Helper()
	for _, queued := range w.queued() {
		must(w.t, w.SendMail(w.t.Context(), queued, true))
	}
}

func TestMembersMail_TellsAllInPages(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	bob := w.member(p.Org, "bob@example.com", tenancy.RoleUser)
	w.exec(`with p as (insert into person (id, email, name, password_hash, verified, created_at)
		select gen_random_uuid(), 'p' || n || '@example.com', '', '', true, $2 from generate_series(1, 248) n returning id)
		insert into member (org_id, person_id, role, created_at) select $1, id, 'USER', $2 from p`, p.Org, w.time())
	n, err := w.Notifications(t.Context(), bob)
	must(t, err)
	n.Team = tenancy.DeliveryBell
	must(t, w.SetNotifications(t.Context(), bob, n))
	w.deliver()
	w.box.clear()
	must(t, w.DeleteOrganization(t.Context(), p, proof))
	w.wantCount(1, "mail")
	page := w.queued()[0]
	for _, want := range []int{101, 201, 250} { // this page's mails and the task for the next page
		var next []tenancy.MailID
		for _, m := range w.queued() {
			if w.count("select count(*) from mail where id = $1 and kind = 'members'", m) == 1 {
				next = append(next, m)
			}
		}
		if len(next) != 1 {
			t.Fatalf("got %d pages in the queue, want 1", len(next))
		}
		must(t, w.SendMail(t.Context(), next[0], true))
		w.wantCount(want, "mail")
	}
	must(t, w.SendMail(t.Context(), page, true)) // repeated after a crash
	w.wantCount(250, "mail")
	w.wantCount(250, "(select distinct email from mail) all_of_them")
	w.wantCount(249, "jobs.river_job j join mail m on m.id::text = j.args ->> 'id' where j.queue = 'mail-later' and m.email <> 'ada@example.com'")
	w.wantCount(1, "jobs.river_job j join mail m on m.id::text = j.args ->> 'id' where j.queue = 'mail' and m.email = 'ada@example.com'")
	w.sendQueued()
	w.wantCount(0, "mail")
	for email, want := range map[string]int{"ada@example.com": 1, "bob@example.com": 0, "p1@example.com": 1, "p248@example.com": 1} {
		if got := w.box.to(email); len(got) != want {
			t.Errorf("got %d mails to %s, want %d", len(got), email, want)
		}
	}
	if m := w.mailTo("p7@example.com"); !strings.Contains(m.Subject, "will be deleted") || m.Unsubscribe == "" {
		t.Errorf("got the mail %q with List-Unsubscribe %q, want one about the deletion that can be switched off", m.Subject, m.Unsubscribe)
	}
	if m := w.mailTo("ada@example.com"); m.Unsubscribe != "" {
		t.Errorf("got List-Unsubscribe %q in a mail to the owner, want none", m.Unsubscribe)
	}
}

func TestMembersMail_StopsWhenNoLongerTrue(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	p := w.owner("ada@example.com")
	w.member(p.Org, "bob@example.com", tenancy.RoleUser)
	w.deliver()
	w.box.clear()
	must(t, w.DeleteOrganization(t.Context(), p, proof))
	must(t, w.RestoreOrganization(t.Context(), p, p.Org.String()))
	w.deliver()
	for _, email := range []string{"ada@example.com", "bob@example.com"} {
		if got := w.box.subjects(email); got != "A deletion at Crier was undone" {
			t.Errorf("got the mails %s to %s, want only that of the undo", got, email)
		}
	}
	must(t, w.DeleteOrganization(t.Context(), p, proof))
	w.exec("delete from organization")
	w.deliver()
	w.wantCount(0, "mail")
	w.MailGivenUp(t.Context(), id.New[tenancy.MailTag]()) // a mail that does not exist
}
