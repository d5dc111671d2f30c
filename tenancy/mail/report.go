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
	// reportMemory is how long a report id is remembered. It is longer than any caller keeps
	// retrying a report.
	reportMemory = 14 * 24 * time.Hour
	// heldMargin is how close to its send time a held email stops accepting reports. Otherwise a
	// report could be added while the email is being sent.
	heldMargin = time.Minute
)

// QueueReports emails reports to the active members of an organization. Each member who wants at
// least one of the reports gets a single email. QueueReports queues a task in the second queue.
// That task queues the emails for the first page of members and a task for the next page.
//
// Reports whose ids have been queued before are left out, so that a caller can retry after a crash
// or an error. On an instance that sends no email, QueueReports does nothing.
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

// unused records the report ids and returns the reports whose ids had not been recorded before.
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

// mailReports queues an email with reports to a member. If the member has already had
// tenancy.MaxReportMails emails within the hour, the email is held until the next hour, and further
// reports about the organization are added to it. Emails that contain only published posts and
// approvals are counted separately, so that they never delay an email about a problem. A member
// whose account no longer exists gets no email.
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

// addToHeld adds a notice's reports to an email that is being held.
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
