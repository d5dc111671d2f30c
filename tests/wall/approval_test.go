package wall

import (
	"slices"
	"testing"
	"time"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	publishingstore "crier/publishing/store"
)

// addApproval adds a pending request whose reminder is due.
func (e *tenantFixture) addApproval(t *testing.T, s *publishingstore.Store) {
	t.Helper()
	e.approval = id.New[publishing.ApprovalTag]()
	must(t, s.InOrg(t.Context(), e.org, func(tx *publishingstore.Tx) error {
		return publishingstore.AddApproval(t.Context(), tx, e.request(e.approval), secret.HashToken(e.approval.String()), []byte("sealed"), &now, nil)
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
func approvalQuestions(s *publishingstore.Store) map[string]question {
	later := time.Now().Add(time.Minute)
	return map[string]question{
		"Store.ApprovalOf": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.FindApprovalOf(t.Context(), s, m.org, th.post.ID)
			return pg.IsNoRows(err)
		},
		"Store.Approval": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.Approval(t.Context(), s, m.org, th.approval)
			return pg.IsNoRows(err)
		},
		"Store.ApprovalAny": func(t *testing.T, m, th tenantFixture) bool {
			_, err := publishingstore.ApprovalAny(t.Context(), s, m.org, th.approval)
			return pg.IsNoRows(err)
		},
		"Store.Approvals": func(t *testing.T, m, th tenantFixture) bool {
			list, err := publishingstore.Approvals(t.Context(), s, m.org, publishing.ApprovalID{}, "", now, 10)
			return err == nil && !slices.ContainsFunc(list, func(a publishingstore.StoredApproval) bool { return a.ID == th.approval })
		},
		"Store.ForgetReviewer": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.ForgetReviewer(t.Context(), s, m.org, "client@"+th.org.String()+".test") == nil
		},
		"Tx.ApprovalOf": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.ApprovalOf(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"Tx.AddApproval": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			made := id.New[publishing.ApprovalTag]()
			return true, publishingstore.AddApproval(t.Context(), tx, th.request(made), secret.HashToken(made.String()), []byte("sealed"), nil, nil)
		}),
		"Tx.EndApproval": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			a := th.request(th.approval)
			a.Status = publishing.ApprovalApproved
			ended, err := publishingstore.EndApproval(t.Context(), tx, a, publishing.ApprovalPending)
			return !ended, err
		}),
		"Tx.AddApprovalEvent": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.AddApprovalEvent(t.Context(), tx, th.post.ID, publishing.EventApproved, "me", "stolen")
		}),
		"Tx.Content": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			content, err := publishingstore.ContentOf(t.Context(), tx, th.post.Group)
			return len(content) == 0, err
		}),
		"Tx.ApproveContent": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.ApproveContent(t.Context(), tx, th.post.Group)
		}),
		"Tx.RejectContent": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.RejectContent(t.Context(), tx, th.post.Group)
		}),
		"Tx.FreeContent": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.FreeContent(t.Context(), tx, th.post.Group)
		}),
		"Tx.MarkTemplate": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.MarkTemplate(t.Context(), tx, th.post.ID, publishingstore.TemplateHeld)
		}),
		"Tx.TemplateMarked": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			marked, err := publishingstore.TemplateMarked(t.Context(), tx, th.post.ID)
			return !marked, err
		}),
		"Tx.ApprovalInForce": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.ApprovalInForce(t.Context(), tx, th.post.ID)
			return false, err
		}),
		"Tx.ManagerEmail": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.ManagerEmail(t.Context(), tx, th.person)
			return false, err
		}),
		"Tx.MemberEmail": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			email, err := publishingstore.MemberEmail(t.Context(), tx, th.person)
			return email == "", err
		}),
		"Store.MemberEmail": func(t *testing.T, m, th tenantFixture) bool {
			email, err := publishingstore.FindMemberEmail(t.Context(), s, m.org, th.person)
			return email == "" && err == nil
		},
		"Tx.MailboxMembers": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			members, err := publishingstore.MailboxMembers(t.Context(), tx, th.person.String()) // the mailbox of an unverified address
			return len(members) == 0, err
		}),
		"Tx.LinkWorks": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			works, err := publishingstore.LinkWorks(t.Context(), tx, th.approval)
			return !works, err
		}),
		"Tx.Reminded": inOrg(s, func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			remind, err := publishingstore.Reminded(t.Context(), tx, th.approval, later)
			return !remind, err
		}),
	}
}
