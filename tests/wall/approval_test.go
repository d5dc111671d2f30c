package wall

import (
	"slices"
	"testing"
	"time"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	publishingdb "crier/publishing/db"
	poststore "crier/publishing/post/store"
)

// addApproval adds a pending request whose reminder is due.
func (e *tenantFixture) addApproval(t *testing.T, s *publishingdb.DB) {
	t.Helper()
	e.approval = id.New[publishing.ApprovalTag]()
	must(t, s.InOrg(t.Context(), e.org, func(tx *publishingdb.Tx) error {
		return poststore.AddApproval(t.Context(), tx, e.request(e.approval), secret.HashToken(e.approval.String()), []byte("sealed"), &now, nil)
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
		"post.FindApprovalOf": func(t *testing.T, m, th tenantFixture) bool {
			_, err := poststore.FindApprovalOf(t.Context(), s, m.org, th.post.ID)
			return pg.IsNoRows(err)
		},
		"post.Approval": func(t *testing.T, m, th tenantFixture) bool {
			_, err := poststore.Approval(t.Context(), s, m.org, th.approval)
			return pg.IsNoRows(err)
		},
		"post.ApprovalAny": func(t *testing.T, m, th tenantFixture) bool {
			_, err := poststore.ApprovalAny(t.Context(), s, m.org, th.approval)
			return pg.IsNoRows(err)
		},
		"post.Approvals": func(t *testing.T, m, th tenantFixture) bool {
			list, err := poststore.Approvals(t.Context(), s, m.org, publishing.ApprovalID{}, "", now, 10)
			return err == nil && !slices.ContainsFunc(list, func(a poststore.StoredApproval) bool { return a.ID == th.approval })
		},
		"post.ForgetReviewer": func(t *testing.T, m, th tenantFixture) bool {
			return poststore.ForgetReviewer(t.Context(), s, m.org, "client@"+th.org.String()+".test") == nil
		},
		"post.ApprovalOf": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := poststore.ApprovalOf(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"post.AddApproval": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			made := id.New[publishing.ApprovalTag]()
			return true, poststore.AddApproval(t.Context(), tx, th.request(made), secret.HashToken(made.String()), []byte("sealed"), nil, nil)
		}),
		"post.EndApproval": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			a := th.request(th.approval)
			a.Status = publishing.ApprovalApproved
			ended, err := poststore.EndApproval(t.Context(), tx, a, publishing.ApprovalPending)
			return !ended, err
		}),
		"post.AddApprovalEvent": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, poststore.AddApprovalEvent(t.Context(), tx, th.post.ID, publishing.EventApproved, "me", "stolen")
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
		"post.ApprovalInForce": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := poststore.ApprovalInForce(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"post.ManagerEmail": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := poststore.ManagerEmail(t.Context(), tx, th.person)
			return false, err
		}),
		"post.MemberEmail": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			email, err := poststore.MemberEmail(t.Context(), tx, th.person)
			return email == "", err
		}),
		"post.FindMemberEmail": func(t *testing.T, m, th tenantFixture) bool {
			email, err := poststore.FindMemberEmail(t.Context(), s, m.org, th.person)
			return email == "" && err == nil
		},
		"post.MailboxMembers": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			members, err := poststore.MailboxMembers(t.Context(), tx, th.person.String()) // the mailbox of an unverified address
			return len(members) == 0, err
		}),
		"post.LinkWorks": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			works, err := poststore.LinkWorks(t.Context(), tx, th.approval)
			return !works, err
		}),
		"post.Reminded": inOrg(s, func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			remind, err := poststore.Reminded(t.Context(), tx, th.approval, later)
			return !remind, err
		}),
	}
}
