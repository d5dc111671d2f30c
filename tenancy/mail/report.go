package mail

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
	mailstore "crier/tenancy/mail/store"
	"crier/tenancy/notice"
)

const (
	// reportMemory is how long report ids are remembered. No caller keeps retrying a report for
	// that long.
	reportMemory = 14 * 24 * time.Hour
	// heldMargin is the period before a held email's send time during which no more reports are
	// added to the email. Without this margin, a report could be added while the email is being
	// sent.
	heldMargin = time.Minute
)

// QueueReports queues the reports to be emailed to the active members of an organization. Each
// member who wants at least one of the reports receives a single email. QueueReports itself only
// adds a task to the second queue. That task queues the emails for the first page of members and
// adds a task for the next page.
//
// QueueReports skips reports whose ids have been queued before, so a caller can safely retry after
// a crash or an error. On an instance that sends no email, it does nothing.
func (s *Mails) QueueReports(ctx context.Context, of tenancy.OrgID, list []tenancy.Report) error {
	const op = "tenancy.QueueReports"
	if s.mailer == nil || len(list) == 0 {
		return nil
	}
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		fresh, err := s.unused(ctx, tx, list)
		if err != nil || len(fresh) == 0 {
			return err
		}
		org, err := tx.Enter(ctx, of)
		if err != nil {
			return err
		}
		o, err := db.ReadOrganization(ctx, org)
		if err != nil {
			return err
		}
		if tx, err = org.Leave(ctx); err != nil {
			return err
		}
		return s.notices.AddForMembers(ctx, tx, notice.Report, notice.Notice{
			Org: of, Name: o.Name, Zone: o.Timezone, Reports: fresh,
		})
	})
	if pg.IsNoRows(err) { // the organization is gone
		return nil
	}
	return err
}

// unused records the ids of the reports and returns the reports whose ids are new.
func (s *Mails) unused(ctx context.Context, tx *db.GateTx, list []tenancy.Report) ([]tenancy.Report, error) {
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = "report " + r.ID
	}
	used, err := db.UseRequests(ctx, tx, ids, s.clock.Now().Add(reportMemory))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(list), func(r tenancy.Report) bool {
		return !slices.Contains(used, "report "+r.ID)
	}), nil
}

// mailReports queues an email to a member with the notice's reports. If the member has already been
// sent tenancy.MaxReportMails such emails in the current tenancy.ReportWindow, the email is held
// until the next window. While an email about problems or approvals is held, further reports of
// that type about the organization are added to it.
//
// Emails that contain only published posts and approvals have their own limit, so they never delay
// an email about a problem. If the member's account no longer exists, mailReports queues nothing.
func (s *Mails) mailReports(ctx context.Context, tx *db.GateTx, to mailstore.Recipient, n notice.Notice) error {
	n.Bound()
	now, first := s.clock.Now(), n.Reports[0].Kind
	if first != tenancy.ReportPublished {
		held, err := mailstore.HeldMail(ctx, tx, string(notice.Report), to.Email, n.Org, now.Add(heldMargin), first == tenancy.ReportApproval)
		if err == nil {
			return s.addToHeld(ctx, tx, held, n)
		}
		if !pg.IsNoRows(err) {
			return err
		}
	}
	count := mailstore.CountReport
	if !notice.IsProblem(n.Reports[0]) {
		count = mailstore.CountDigest
	}
	at, err := count(ctx, tx, to.Person, now)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	n.At = now
	if at.After(now) {
		return mailstore.AddHeldMail(ctx, tx, string(notice.Report), to.Email, n, now, at)
	}
	return notice.AddMail(ctx, tx, string(notice.Report), to.Email, n, now, true)
}

// addToHeld adds the notice's reports to a held email.
func (s *Mails) addToHeld(ctx context.Context, tx *db.GateTx, held mailstore.Mail, n notice.Notice) error {
	var all notice.Notice
	if err := json.Unmarshal(held.Data, &all); err != nil {
		return fault.Wrap(fault.Internal, "tenancy.addToHeld", "", err)
	}
	all.Reports = append(all.Reports, n.Reports...)
	all.More += n.More
	all.Bound()
	return mailstore.SetMailData(ctx, tx, held.ID, all)
}
