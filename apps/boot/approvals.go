package boot

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"crier/platform/id"
	"crier/platform/jobs"
	"crier/platform/mail"
	"crier/publishing"
	"crier/publishing/post"
	"crier/tenancy"
	"crier/tenancy/mails"
	tenancyservice "crier/tenancy/service"
)

const (
	// approvalsInterval is how often requests for approval are searched that have expired or need a reminder.
	approvalsInterval = time.Minute
	// reviewMailWorkers are fewer than those of accounts: no sign-in waits for these mails.
	reviewMailWorkers = 2
)

// openApprovals creates the use cases of approvals.
func (a *App) openApprovals() {
	var mailer publishing.ReviewMailer
	if a.mailer != nil {
		mailer = reviewMailer{
			send: a.mailer, about: mails.Instance{Name: "Crier", URL: a.cfg.Edge.Base()}, log: a.log,
		}
	}
	a.approvals = post.NewApprovals(a.posts, mailer)
}

// approvalsJob returns the job that ends requests for approval and reminds reviewers.
func (a *App) approvalsJob() jobs.Job {
	return jobs.Job{Name: "approvals", Every: approvalsInterval, Timeout: jobTimeout,
		Run: func(ctx context.Context) error {
			_, err := a.approvals.SweepApprovals(ctx)
			return err
		},
	}
}

// reviewMailHandler returns the handler of the tasks that send a mail to a reviewer each.
func (a *App) reviewMailHandler() jobs.Handler {
	return jobs.Handler{
		Kind: post.ReviewMailTask, Workers: reviewMailWorkers, Timeout: taskTimeout, Attempts: mailAttempts,
		MaxWait: mailMaxWait,
		Run: func(ctx context.Context, t jobs.Task, _ jobs.Attempt) error {
			org, approval := id.FromUUID[tenancy.OrgTag](t.Org), id.FromUUID[publishing.ApprovalTag](t.ID)
			return a.approvals.SendReviewMail(ctx, org, approval)
		},
	}
}

// reviewEndedHandler returns the handler of the tasks that tell a guest that their approval has ended.
func (a *App) reviewEndedHandler() jobs.Handler {
	return jobs.Handler{
		Kind: post.ReviewEndedTask, Workers: 1, Timeout: taskTimeout, Attempts: mailAttempts, MaxWait: mailMaxWait,
		Run: func(ctx context.Context, t jobs.Task, _ jobs.Attempt) error {
			org, approval := id.FromUUID[tenancy.OrgTag](t.Org), id.FromUUID[publishing.ApprovalTag](t.ID)
			return a.approvals.SendReviewEnded(ctx, org, approval)
		},
	}
}

// reviewMailer is the port of approvals to mail.
type reviewMailer struct {
	send  tenancyservice.Mailer
	about mails.Instance
	log   *slog.Logger
}

// SendReview returns nil also for a mail that the recipient's server refuses for good, which it logs.
func (m reviewMailer) SendReview(ctx context.Context, r publishing.ReviewMail) error {
	err := m.send.Send(ctx, m.about.Review(mails.Review(r)))
	if errors.Is(err, context.Canceled) || err != nil && !mail.IsPermanent(err) {
		return err
	}
	if err != nil {
		m.log.WarnContext(ctx, "a mail to a reviewer was refused", "to", r.To, "error", err)
	}
	return nil
}
