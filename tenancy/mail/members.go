package mail

import (
	"context"
	"encoding/json"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	mailstore "crier/tenancy/mail/store"
	"crier/tenancy/notice"
)

// MailDisowned queues an email to each administrator of an organization. The email says that a
// channel was disconnected because the person who had granted access to the channel's account
// withdrew that access.
func (s *Mails) MailDisowned(ctx context.Context, org tenancy.OrgID, channel string) error {
	return s.db.InGate(ctx, "tenancy.MailDisowned", func(tx *db.GateTx) error {
		in, err := tx.Enter(ctx, org)
		if err != nil {
			return err
		}
		o, err := db.ReadOrganization(ctx, in)
		if err != nil {
			return err
		}
		tx, err = in.Leave(ctx)
		if err != nil {
			return err
		}
		return s.notices.AddForMembers(ctx, tx, notice.ChannelDisowned, notice.Notice{
			Org: org, Name: o.Name, Zone: o.Timezone, Channel: channel,
		})
	})
}

// membersPage is the number of members in a page. Each page is queued in its own transaction.
const membersPage = 100

// mailPage processes a queued email of kind Members, which stands for a page of members. In one
// transaction, it deletes that email, queues an email to each member on the page, and queues an
// email of kind Members for the next page. A retry after a crash therefore queues nothing twice.
//
// If the organization no longer exists or the emails would no longer be accurate, mailPage only
// deletes the email of kind Members.
func (s *Mails) mailPage(ctx context.Context, queued tenancy.MailID) error {
	const op = "tenancy.mailPage"
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		m, err := mailstore.TakeMail(ctx, tx, queued)
		if err != nil {
			return err
		}
		var n notice.Notice
		if err := json.Unmarshal(m.Data, &n); err != nil {
			return fault.Wrap(fault.Internal, op, "", err)
		}
		org, err := tx.Enter(ctx, n.Org)
		if err != nil {
			return err
		}
		o, err := db.ReadOrganization(ctx, org)
		if pg.IsNoRows(err) || err == nil && !n.IsTrueOf(o) {
			return nil
		}
		if err != nil {
			return err
		}
		page, err := mailstore.Recipients(ctx, org, n.After, membersPage)
		if err != nil {
			return err
		}
		if tx, err = org.Leave(ctx); err != nil {
			return err
		}
		return s.mailAll(ctx, tx, n, page)
	})
	if pg.IsNoRows(err) { // another process has queued the page
		return nil
	}
	return err
}

// mailAll queues an email to each member on a page. If the page is full, it also queues an email of
// kind Members for the next page.
func (s *Mails) mailAll(ctx context.Context, tx *db.GateTx, n notice.Notice, page []mailstore.Recipient) error {
	for _, to := range page {
		if err := s.mailMember(ctx, tx, n, to); err != nil {
			return err
		}
	}
	if len(page) < membersPage {
		return nil
	}
	n.After = page[len(page)-1].Person
	return s.notices.AddForMembers(ctx, tx, n.Kind, n)
}

// mailMember queues an email to a member if the member should receive one.
func (s *Mails) mailMember(ctx context.Context, tx *db.GateTx, n notice.Notice, to mailstore.Recipient) error {
	each := notice.Notice{Org: n.Org, Name: n.Name, Zone: n.Zone, Channel: n.Channel, By: n.By, Until: n.Until, Role: to.Role}
	if n.Kind == notice.ChannelDisowned && (to.Disabled || !to.Role.Manages()) {
		return nil
	}
	if n.Kind != notice.Report {
		return s.notices.Notify(ctx, tx, n.Kind, to.Email, each)
	}
	if each.Reports = reportsFor(n, to); len(each.Reports) == 0 {
		return nil
	}
	return s.mailReports(ctx, tx, to, each)
}

// reportsFor returns the notice's reports that the member should receive.
func reportsFor(n notice.Notice, to mailstore.Recipient) (out []tenancy.Report) {
	for _, r := range n.Reports {
		if !to.Disabled && r.IsFor(to.Person, to.Notifications) {
			out = append(out, r)
		}
	}
	return out
}
