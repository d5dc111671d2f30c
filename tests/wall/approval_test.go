package wall

import (
	"slices"
	"testing"
	"time"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
	publishingdb "crier/publishing/db"
	poststore "crier/publishing/post/store"
)

// addApproval adds a pending request for approval whose reminder is due.
func (e *tenantFixture) addApproval(t *testing.T, s *publishingdb.DB) {
	t.Helper()
	e.approval = id.New[publishing.ApprovalTag]()
	must(t, s.InOrg(t.Context(), e.org, func(tx *publishingdb.Tx) error {
		return approvalstore.AddApproval(t.Context(), tx, e.request(e.approval), secret.HashToken(e.approval.String()), []byte("sealed"), &now, nil)
	}))
}

func (e tenantFixture) request(approval publishing.ApprovalID) publishing.Approval {
	note, reviewer := "secret words", "client@"+e.org.String()+".test"
	return publishing.Approval{
		ID: approval, Post: e.post.ID, Status: publishing.ApprovalPending, Note: &note, ReviewerEmail: &reviewer,
		Person: e.person, RequestedAt: now, ExpiresAt: time.Now().Add(time.Hour),
	}
}

// approvalQuestions returns the questions about requests for approval.
func approvalQuestions(s *publishingdb.DB) map[string]question {
	later := time.Now().Add(time.Minute)
	return map[string]question{
		"approval.FindApprovalOf": func(t *testing.T, m, th tenantFixture) bool {
			_, err := approvalstore.FindApprovalOf(t.Context(), s, m.org, th.post.ID)
			return pg.IsNoRows(err)
		},
		"approval.Approval": func(t *testing.T, m, th tenantFixture) bool {
			_, err := approvalstore.Approval(t.Context(), s, m.org, th.approval)
			return pg.IsNoRows(err)
		},
		"approval.ApprovalAny": func(t *testing.T, m, th tenantFixture) bool {
			_, err := approvalstore.ApprovalAny(t.Context(), s, m.org, th.approval)
			return pg.IsNoRows(err)
		},
		"approval.Approvals": func(t *testing.T, m, th tenantFixture) bool {
			list, err := approvalstore.Approvals(t.Context(), s, m.org, publishing.ApprovalID{}, "", now, 10)
			return err == nil && !slices.ContainsFunc(list, func(a approvalstore.StoredApproval) bool { return a.ID == th.approval })
		},
		"approval.ForgetReviewer": func(t *testing.T, m, th tenantFixture) bool {
			return approvalstore.ForgetReviewer(t.Context(), s, m.org, "client@"+th.org.String()+".test") == nil
		},
		"approval.ApprovalOf": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := approvalstore.ApprovalOf(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"approval.AddApproval": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			made := id.New[publishing.ApprovalTag]()
			return true, approvalstore.AddApproval(t.Context(), tx, th.request(made), secret.HashToken(made.String()), []byte("sealed"), nil, nil)
		}),
		"approval.EndApproval": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			a := th.request(th.approval)
			a.Status = publishing.ApprovalApproved
			ended, err := approvalstore.EndApproval(t.Context(), tx, a, publishing.ApprovalPending)
			return !ended, err
		}),
		"approval.AddApprovalEvent": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, approvalstore.AddApprovalEvent(t.Context(), tx, th.post.ID, publishing.EventApproved, "me", "stolen")
		}),
		"post.ContentOf": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			content, err := poststore.ContentOf(t.Context(), tx, th.post.Group)
			return len(content) == 0, err
		}),
		"post.ApproveContent": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, poststore.ApproveContent(t.Context(), tx, th.post.Group)
		}),
		"post.RejectContent": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, poststore.RejectContent(t.Context(), tx, th.post.Group)
		}),
		"post.FreeContent": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, poststore.FreeContent(t.Context(), tx, th.post.Group)
		}),
		"post.MarkTemplate": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, poststore.MarkTemplate(t.Context(), tx, th.post.ID, poststore.TemplateHeld)
		}),
		"post.TemplateMarked": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			marked, err := poststore.TemplateMarked(t.Context(), tx, th.post.ID)
			return !marked, err
		}),
		"post.IsSeriesHeld": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := poststore.IsSeriesHeld(t.Context(), tx, th.series())
			return false, err
		}),
		"approval.ApprovalInForce": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := approvalstore.ApprovalInForce(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"approval.ManagerEmail": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := approvalstore.ManagerEmail(t.Context(), tx, th.person)
			return false, err
		}),
		"approval.MemberEmail": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			email, err := approvalstore.MemberEmail(t.Context(), tx, th.person)
			return email == "", err
		}),
		"approval.MailboxMembers": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			// The id is the mailbox of the member's unverified address.
			members, err := approvalstore.MailboxMembers(t.Context(), tx, th.person.String())
			return len(members) == 0, err
		}),
		"approval.LinkWorks": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			works, err := approvalstore.LinkWorks(t.Context(), tx, th.approval)
			return !works, err
		}),
		"approval.Reminded": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			remind, err := approvalstore.Reminded(t.Context(), tx, th.approval, later)
			return !remind, err
		}),
	}
}
