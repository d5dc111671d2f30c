package service

import (
	"context"
	"time"

	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// reportMemory is how long the id of a report is remembered. It is longer than whoever queues one repeats it.
const reportMemory = 14 * 24 * time.Hour

// QueueReport queues a mail to each active member of an organization who wants mails of its kind, page by page: a task
// that begins at once queues those of the first page. A report with an id that was queued before is ignored, so that the
// caller may repeat it after a crash or an error. It does nothing on an instance without mail.
func (a *Accounts) QueueReport(ctx context.Context, r tenancy.Report) error {
	const op = "tenancy.QueueReport"
	if a.deps.Mail == nil {
		return nil
	}
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if err := tx.UseRequest(ctx, "report "+r.ID, a.clock.Now().Add(reportMemory)); err != nil {
			return err
		}
		org, err := tx.Enter(ctx, r.Org)
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
		return a.mailMembers(ctx, tx, mailReport, notice{Org: r.Org, Name: o.Name, Report: &r})
	})
	if pg.IsNoRows(err) { // it was queued before, or the organization is gone
		return nil
	}
	return err
}
