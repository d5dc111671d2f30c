package post

import (
	"cmp"
	"context"
	"strings"
	"time"

	"crier/platform/batch"
	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

const (
	// ReviewMailTask is the kind of the tasks whose ids SendReviewMail takes.
	ReviewMailTask = "review-mail"
	// ReviewEndedTask is the kind of the tasks whose ids SendReviewEnded takes.
	ReviewEndedTask = "review-ended-mail"
	// approvalsAtOnce is how many requests are searched at once.
	approvalsAtOnce = 200
	// approvalWait is the longest wait for a connection of one organization.
	approvalWait = 200 * time.Millisecond
)

type approvalSweep = *batch.Sweep[poststore.DueApproval]

// SweepApprovals ends the requests that have expired and queues the reminders that are due, of all organizations, each
// in its own transaction. It returns how many it has changed. One that fails does not stop the others and is tried again
// by the next call; the first such error is returned at the end.
func (s *Approvals) SweepApprovals(ctx context.Context) (int, error) {
	return s.sweep.Run(pg.WithOrgWait(ctx, approvalWait))
}

func (s *Approvals) newSweep() approvalSweep {
	return &batch.Sweep[poststore.DueApproval]{
		Size: approvalsAtOnce, PauseFactor: 1,
		IsItemError: func(err error) bool { return pg.IsRowError(err) || pg.IsOrgBusy(err) },
		Find: func(
			ctx context.Context, after poststore.DueApproval, limit int,
		) ([]poststore.DueApproval, error) {
			return poststore.ApprovalsDue(ctx, s.db, after, s.deps.Clock.Now(), limit)
		},
		Do: func(ctx context.Context, items []poststore.DueApproval) (n int, _ error) {
			for _, item := range items {
				if err := s.sweepOne(ctx, item); err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
	}
}

// sweepOne ends one request or queues its reminder. One that has changed since it was found is left.
func (s *Approvals) sweepOne(ctx context.Context, due poststore.DueApproval) error {
	stored, err := poststore.ApprovalAny(ctx, s.db, due.Org, due.Approval)
	if pg.IsNoRows(err) || err == nil && stored.Status != publishing.ApprovalPending {
		return nil
	}
	if err != nil {
		return err
	}
	now := s.deps.Clock.Now()
	return s.db.InOrg(ctx, due.Org, func(tx *db.Tx) error {
		if a := stored.At(now); a.Status == publishing.ApprovalExpired {
			_, err := s.endApproval(ctx, tx, a, publishing.ApprovalPending, publishing.EventApprovalExpired, "", "")
			return err
		}
		remind, err := poststore.Reminded(ctx, tx, due.Approval, now)
		if err != nil || !remind || s.deps.ReviewMails == nil {
			return err
		}
		return poststore.AddReviewTask(ctx, tx, s.deps.ReviewMails, ReviewMailTask, due.Approval)
	})
}

// SendReviewMail sends the link of a request to its reviewer. A request that cannot be answered any more is no error, and
// nothing is sent. After a crash the mail may be sent twice. It returns the errors of the mailer, and jobs.ErrLater
// without one, because another process may have one, and while the organization has no access.
func (s *Approvals) SendReviewMail(
	ctx context.Context, org tenancy.OrgID, approval publishing.ApprovalID,
) error {
	const op = "publishing.SendReviewMail"
	stored, err := poststore.Approval(ctx, s.db, org, approval)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return pg.Fault(op, err)
	}
	if stored.Open(s.deps.Clock.Now()) != nil || stored.ReviewerEmail == nil {
		return nil
	}
	return s.sendReview(ctx, op, org, stored, false)
}

// SendReviewEnded tells the guest who approved a post that the approval no longer applies. It sends
// nothing if the guest's address is unknown or has been removed since. It returns the errors of
// SendReviewMail, and may send the mail twice after a crash.
func (s *Approvals) SendReviewEnded(
	ctx context.Context, org tenancy.OrgID, approval publishing.ApprovalID,
) error {
	const op = "publishing.SendReviewEnded"
	stored, err := poststore.Approval(ctx, s.db, org, approval)
	if pg.IsNoRows(err) || err == nil && stored.ReviewerEmail == nil {
		return nil
	}
	if err != nil {
		return pg.Fault(op, err)
	}
	return s.sendReview(ctx, op, org, stored, true)
}

func (s *Approvals) sendReview(
	ctx context.Context, op string, org tenancy.OrgID, stored poststore.StoredApproval, ended bool,
) error {
	if s.mailer == nil {
		return jobs.ErrLater
	}
	_, active, err := poststore.Reviewable(ctx, s.db, org)
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
	m.Ended, m.Reminder = ended, !ended && stored.Reminds(s.deps.Clock.Now())
	return s.mailer.SendReview(ctx, m)
}

func (s *Approvals) reviewMail(
	ctx context.Context, org tenancy.OrgID, stored poststore.StoredApproval,
) (m publishing.ReviewMail, err error) {
	m = publishing.ReviewMail{To: *stored.ReviewerEmail, ExpiresAt: stored.ExpiresAt}
	about, err := poststore.FindReviewAbout(ctx, s.db, org, stored.Person)
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
	if !stored.Behind.IsZero() {
		m.By = strings.TrimSpace("an operator for " + m.By)
	}
	m.Link, err = s.mailedURL(org, stored)
	if err != nil {
		return m, err
	}
	roots, err := poststore.Root(ctx, s.db, org, stored.Post)
	if err != nil || len(roots) == 0 {
		return m, err
	}
	threads, err := s.threads(ctx, org, roots)
	if err != nil {
		return m, err
	}
	post := threads[0]
	m.PublishDate, m.Channel, m.Platform = post.Root.PublishDate, post.Channel.Name, s.platformName(post.Channel.Connector)
	if len(post.Root.Parts) > 0 {
		m.Words = post.Root.Parts[0].Content.Excerpt()
	}
	return m, nil
}

// platformName returns the display name of a platform.
func (s *Approvals) platformName(id string) string {
	c, ok := s.deps.Connectors.Get(id)
	if !ok {
		return id
	}
	return cmp.Or(c.Describe().Name, id)
}

// approvalBody is the member approval of webhooks: the record of the API without its link.
type approvalBody struct {
	ID           string                    `json:"id"`
	PostID       string                    `json:"postId"`
	Status       publishing.ApprovalStatus `json:"status"`
	Note         *string                   `json:"note"`
	ReviewerNote *string                   `json:"reviewerNote"`
	ReviewerName *string                   `json:"reviewerName"`
	Guest        bool                      `json:"guest,omitempty"`
	RequestedBy  *requesterBody            `json:"requestedBy"`
	RequestedAt  string                    `json:"requestedAt"`
	ResolvedAt   *string                   `json:"resolvedAt"`
	ExpiresAt    string                    `json:"expiresAt"`
	AutoSchedule bool                      `json:"autoSchedule"`
	ReviewURL    *string                   `json:"reviewUrl"`
}

type requesterBody struct {
	ID       string  `json:"id"`
	Email    *string `json:"email"`
	Operator bool    `json:"operator,omitempty"`
}

func approvalData(a publishing.Approval) approvalBody {
	out := approvalBody{
		ID: a.ID.String(), PostID: a.Post.String(), Status: a.Shown(), Note: a.Note, ReviewerNote: a.ReviewerNote,
		ReviewerName: a.ReviewerName, Guest: a.ByGuest(), RequestedAt: wireTime(a.RequestedAt),
		ExpiresAt:    wireTime(a.ExpiresAt),
		AutoSchedule: a.AutoSchedule,
	}
	if !a.Person.IsZero() {
		out.RequestedBy = &requesterBody{ID: a.Person.String(), Email: a.PersonEmail, Operator: !a.Behind.IsZero()}
	}
	if a.ResolvedAt != nil {
		at := wireTime(*a.ResolvedAt)
		out.ResolvedAt = &at
	}
	return out
}

// voidData is approvalData for an approval that has ended. Clients see such an approval as NONE,
// but the webhook reports how it ended.
func voidData(a publishing.Approval) approvalBody {
	out := approvalData(a)
	out.Status = publishing.ApprovalVoid
	return out
}

func wireTime(t time.Time) string { return t.UTC().Format(publishing.WireTime) }

// forgetSize is how many organizations one search of ForgetReviewer returns.
const forgetSize = 200

// ForgetReviewer removes the address of a person who is being purged from the approval requests of
// all organizations. It returns Unavailable if the database cannot be reached. After a crash or an
// error, the next call continues.
func (s *Approvals) ForgetReviewer(ctx context.Context, email string) error {
	const op = "publishing.ForgetReviewer"
	for {
		orgs, err := poststore.ReviewerOrgs(ctx, s.db, email, forgetSize)
		if err != nil || len(orgs) == 0 {
			return pg.Fault(op, err)
		}
		for _, org := range orgs {
			if err := poststore.ForgetReviewer(ctx, s.db, org, email); err != nil {
				return pg.Fault(op, err)
			}
		}
	}
}
