package approval

import (
	"cmp"
	"context"
	"strings"
	"time"

	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
	"crier/tenancy"
)

const (
	// ReviewMailTask is the kind of task that SendReviewMail handles.
	ReviewMailTask = "review-mail"
	// ReviewEndedTask is the kind of task that SendReviewEnded handles.
	ReviewEndedTask = "review-ended-mail"
)

// SendReviewMail emails a request's review link to the reviewer. If the request can no longer be
// answered, it sends nothing and returns nil. After a crash, the email may be sent twice.
//
// SendReviewMail returns any error from the mailer. If this process has no mailer, it returns
// jobs.ErrLater, because another process may have one. It also returns jobs.ErrLater while the
// organization has no access.
func (s *Approvals) SendReviewMail(
	ctx context.Context, org tenancy.OrgID, approval publishing.ApprovalID,
) error {
	const op = "publishing.SendReviewMail"
	stored, err := approvalstore.Approval(ctx, s.db, org, approval)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return pg.Fault(op, err)
	}
	if stored.Open(s.requests.deps.Clock.Now()) != nil || stored.ReviewerEmail == nil {
		return nil
	}
	return s.sendReview(ctx, op, org, stored, false)
}

// SendReviewEnded tells a guest by email that the approval they gave no longer applies. It sends
// nothing if the guest's address is unknown or has been removed. It returns the same errors as
// SendReviewMail. After a crash, the email may be sent twice.
func (s *Approvals) SendReviewEnded(
	ctx context.Context, org tenancy.OrgID, approval publishing.ApprovalID,
) error {
	const op = "publishing.SendReviewEnded"
	stored, err := approvalstore.Approval(ctx, s.db, org, approval)
	if pg.IsNoRows(err) || err == nil && stored.ReviewerEmail == nil {
		return nil
	}
	if err != nil {
		return pg.Fault(op, err)
	}
	return s.sendReview(ctx, op, org, stored, true)
}

func (s *Approvals) sendReview(
	ctx context.Context, op string, org tenancy.OrgID, stored approvalstore.StoredApproval, ended bool,
) error {
	if s.deps.Mailer == nil {
		return jobs.ErrLater
	}
	_, active, err := approvalstore.Reviewable(ctx, s.db, org)
	if err != nil {
		return pg.Fault(op, err)
	}
	if !ended && active {
		works, err := s.linkWorks(ctx, org, stored.ID)
		if err != nil || !works {
			return pg.Fault(op, err)
		}
	}
	if !active {
		return jobs.ErrLater // the organization may get its access back
	}
	m, err := s.reviewMail(ctx, org, stored)
	if err != nil {
		return pg.Fault(op, err)
	}
	m.Ended, m.Reminder = ended, !ended && isReminder(stored.Approval, s.requests.deps.Clock.Now())
	return s.deps.Mailer.SendReview(ctx, m)
}

func (s *Approvals) reviewMail(
	ctx context.Context, org tenancy.OrgID, stored approvalstore.StoredApproval,
) (m ReviewMail, err error) {
	m = ReviewMail{To: *stored.ReviewerEmail, ExpiresAt: stored.ExpiresAt}
	about, err := approvalstore.FindReviewAbout(ctx, s.db, org, stored.Person)
	if err != nil {
		return m, err
	}
	m.Organization, m.Zone, m.By = about.Organization, about.Timezone, about.Requester
	if m.By == "" && stored.PersonEmail != nil {
		m.By = *stored.PersonEmail
	}
	if stored.Note != nil {
		m.Note = *stored.Note
	}
	if !stored.Impersonator.IsZero() {
		m.By = strings.TrimSpace("an operator for " + m.By)
	}
	m.Link, err = s.mailedURL(org, stored)
	if err != nil {
		return m, err
	}
	post, found, err := s.deps.Threads.FindThread(ctx, org, stored.Post)
	if err != nil || !found {
		return m, err
	}
	m.PublishDate, m.Channel, m.Platform = post.Root.PublishDate, post.Channel.Name, s.platformName(post.Channel.Connector)
	if len(post.Root.Parts) > 0 {
		m.Words = post.Root.Parts[0].Content.Excerpt()
	}
	return m, nil
}

// platformName returns a platform's display name, or its id if the platform is unknown.
func (s *Approvals) platformName(id string) string {
	c, ok := s.deps.Connectors.Get(id)
	if !ok {
		return id
	}
	return cmp.Or(c.Describe().Name, id)
}

// ReviewMail is an email to a request's reviewer.
type ReviewMail struct {
	To           string
	Organization string
	// By is the requester's name or, if there is none, the requester's address. If neither is
	// known, By is "". If an operator was impersonating the requester, By says so.
	By string
	// Note is the requester's message to the reviewer.
	Note string
	// Words is the beginning of the post's text.
	Words string
	// Channel is the name of the post's channel, and Platform is the name of the channel's
	// platform.
	Channel, Platform string
	// Zone is the organization's time zone.
	Zone        string
	Link        string
	PublishDate time.Time
	ExpiresAt   time.Time
	// Reminder is true for the second email about a request.
	Reminder bool
	// Ended is true for the email to a guest whose approval no longer applies.
	Ended bool
}
