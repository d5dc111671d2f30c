package boot

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/jobs"
	"crier/platform/mail"
	"crier/publishing"
	"crier/publishing/approval"
	"crier/publishing/db"
	"crier/publishing/post"
	"crier/tenancy"
	tenancymail "crier/tenancy/mail"
	"crier/tenancy/mails"
)

const (
	// approvalsInterval is how often the service looks for approval requests that have expired or
	// need a reminder.
	approvalsInterval = time.Minute
	// reviewMailWorkers is lower than mailWorkers because no sign-in waits for these emails.
	reviewMailWorkers = 2
)

// openRequests creates the approval.Requests, which the post use cases need so that a change to a
// post ends its approval request. openApprovals is a separate step, because the approval use cases
// need the post use cases.
func (a *App) openRequests(d *db.DB) (*approval.Requests, error) {
	deps := approval.RequestDeps{DB: d, Clock: clock.System{}, Notices: a.bell, Events: a.hooks}
	if a.mailer != nil {
		var err error
		if deps.Mails, err = jobs.NewQueue(); err != nil {
			return nil, err
		}
	}
	return approval.NewRequests(deps), nil
}

// openApprovals creates the approval use cases.
func (a *App) openApprovals(requests *approval.Requests) {
	var mailer approval.ReviewMailer
	if a.mailer != nil {
		mailer = reviewMailer{
			send: a.mailer, about: mails.Instance{Name: "Crier", URL: a.cfg.Edge.Base()}, log: a.log,
		}
	}
	a.approvals = approval.New(approval.Config{BaseURL: a.cfg.Posts.BaseURL}, approval.Deps{
		Requests: requests, Threads: a.posts, Drafts: post.NewDrafts(a.posts), Keyring: a.keyring,
		Connectors: a.connectors, Waker: a.actors, Log: a.log, Pictures: a.pictures, Mailer: mailer,
	})
}

// approvalsJob returns the job that ends expired approval requests and sends reminders to
// reviewers.
func (a background) approvalsJob() jobs.Job {
	return jobs.Job{Name: "approvals", Every: approvalsInterval, Timeout: jobTimeout,
		Run: func(ctx context.Context) error {
			_, err := a.approvals.SweepApprovals(ctx)
			return err
		},
	}
}

// reviewMailHandler returns the handler for tasks that send an email to a reviewer.
func (a background) reviewMailHandler() jobs.Handler {
	return jobs.Handler{
		Kind: approval.ReviewMailTask, Workers: reviewMailWorkers, Timeout: taskTimeout, Attempts: mailAttempts,
		MaxWait: mailMaxWait,
		Run: func(ctx context.Context, t jobs.Task, _ jobs.Attempt) error {
			org, request := id.FromUUID[tenancy.OrgTag](t.Org), id.FromUUID[publishing.ApprovalTag](t.ID)
			return a.approvals.SendReviewMail(ctx, org, request)
		},
	}
}

// reviewEndedHandler returns the handler for tasks that tell a guest that their approval request
// has ended.
func (a background) reviewEndedHandler() jobs.Handler {
	return jobs.Handler{
		Kind: approval.ReviewEndedTask, Workers: 1, Timeout: taskTimeout, Attempts: mailAttempts, MaxWait: mailMaxWait,
		Run: func(ctx context.Context, t jobs.Task, _ jobs.Attempt) error {
			org, request := id.FromUUID[tenancy.OrgTag](t.Org), id.FromUUID[publishing.ApprovalTag](t.ID)
			return a.approvals.SendReviewEnded(ctx, org, request)
		},
	}
}

// reviewMailer sends approval emails.
type reviewMailer struct {
	send  tenancymail.Mailer
	about mails.Instance
	log   *slog.Logger
}

// SendReview sends an email to a reviewer. If the recipient's server permanently rejects the email,
// SendReview logs it and returns nil.
func (m reviewMailer) SendReview(ctx context.Context, r approval.ReviewMail) error {
	err := m.send.Send(ctx, m.about.Review(mails.Review(r)))
	if errors.Is(err, context.Canceled) || err != nil && !mail.IsPermanent(err) {
		return err
	}
	if err != nil {
		m.log.WarnContext(ctx, "a mail to a reviewer was refused", "to", r.To, "error", err)
	}
	return nil
}
