package service

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

const (
	// reportMemory is how long the id of a report is remembered. It is longer than whoever queues one repeats it.
	reportMemory = 14 * 24 * time.Hour
	// heldMargin is how long before the end of its wait a mail takes no further reports, so that none is added while it is
	// being sent.
	heldMargin = time.Minute
)

// QueueReports queues one mail with reports of an organization to each active member who wants some of them, page by page:
// a task of the second queue queues those of the first page. A report with an id that was queued before is left out, so
// that the caller may repeat it after a crash or an error. It does nothing on an instance without mail.
func (a *Accounts) QueueReports(ctx context.Context, of tenancy.OrgID, list []tenancy.Report) error {
	const op = "tenancy.QueueReports"
	if a.deps.Mail == nil || len(list) == 0 {
		return nil
	}
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		fresh, err := a.unused(ctx, tx, list)
		if err != nil || len(fresh) == 0 {
			return err
		}
		org, err := tx.Enter(ctx, of)
		if err != nil {
			return err
		}
		o, err := org.Organization(ctx)
		if err != nil {
			return err
		}
		if tx, err = org.Leave(ctx); err != nil {
			return err
		}
		return a.mailMembers(ctx, tx, mailReport, notice{Org: of, Name: o.Name, Zone: o.Timezone, Reports: fresh})
	})
	if pg.IsNoRows(err) { // the organization is gone
		return nil
	}
	return err
}

// unused records the ids of reports, and returns the reports whose ids were not used before.
func (a *Accounts) unused(ctx context.Context, tx *tenancystore.GateTx, list []tenancy.Report) ([]tenancy.Report, error) {
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = "report " + r.ID
	}
	used, err := tx.UseRequests(ctx, ids, a.clock.Now().Add(reportMemory))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(list), func(r tenancy.Report) bool {
		return !slices.Contains(used, "report "+r.ID)
	}), nil
}

// mailReports queues a mail with reports to a member. When the member had tenancy.MaxReportMails within the hour, the mail
// waits for the next one, and further reports of the organization are added to it. Mails about published posts and
// approvals alone are counted apart, so that they delay none about a problem. A member whose account is gone gets none.
func (a *Accounts) mailReports(ctx context.Context, tx *tenancystore.GateTx, to tenancystore.Recipient, n notice) error {
	n.bound()
	now, first := a.clock.Now(), n.Reports[0].Kind
	if first != tenancy.ReportPublished {
		held, err := tx.HeldMail(ctx, string(mailReport), to.Email, n.Org, now.Add(heldMargin), first == tenancy.ReportApproval)
		if err == nil {
			return a.addToHeld(ctx, tx, held, n)
		}
		if !pg.IsNoRows(err) {
			return err
		}
	}
	count := tx.CountReport
	if !isProblem(n.Reports[0]) {
		count = tx.CountDigest
	}
	at, err := count(ctx, to.Person, now)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	n.At = now
	if at.After(now) {
		return tx.AddHeldMail(ctx, string(mailReport), to.Email, n, now, at)
	}
	return tx.AddMail(ctx, string(mailReport), to.Email, n, now, true)
}

func isProblem(r tenancy.Report) bool {
	return r.Kind != tenancy.ReportPublished && r.Kind != tenancy.ReportApproval
}

// addToHeld adds the reports of a mail to one that waits.
func (a *Accounts) addToHeld(ctx context.Context, tx *tenancystore.GateTx, held tenancystore.Mail, n notice) error {
	var all notice
	if err := json.Unmarshal(held.Data, &all); err != nil {
		return fault.Wrap(fault.Internal, "tenancy.addToHeld", "", err)
	}
	all.Reports = append(all.Reports, n.Reports...)
	all.More += n.More
	all.bound()
	return tx.SetMailData(ctx, held.ID, all)
}

// bound leaves the reports that a mail lists, those of problems first, and counts the others.
func (n *notice) bound() {
	slices.SortStableFunc(n.Reports, func(a, b tenancy.Report) int {
		switch {
		case isProblem(a) == isProblem(b):
			return 0
		case isProblem(a):
			return -1
		}
		return 1
	})
	if extra := len(n.Reports) - tenancy.MaxListedReports; extra > 0 {
		n.Reports, n.More = n.Reports[:tenancy.MaxListedReports], n.More+extra
	}
}
