package store

import (
	"testing"

	"crier/tests/sqltest"
)

// eventReasoned is left out: it looks one row up by its key, and now reads the row instead of only
// the index.
func TestPlan_NarrowPoliciesChangeNoPlan(t *testing.T) {
	t.Parallel()
	sqltest.KeepsPlans(t, map[string]string{
		"ApprovalOf": approvalOf, "ApprovalByID": approvalByID, "ApprovalList": approvalList, "ApprovalInForce": approvalInForce,
		"ApprovalInsert": approvalInsert, "ApprovalEnd": approvalEnd, "ReviewMails": reviewMails,
	})
}
