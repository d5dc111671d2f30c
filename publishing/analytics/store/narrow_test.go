package store

import (
	"testing"

	"crier/tests/sqltest"
)

// insightsSave is left out: it looks one row up by its key, and now reads the row instead of only
// the index.
func TestPlan_NarrowPoliciesChangeNoPlan(t *testing.T) {
	t.Parallel()
	sqltest.KeepsPlans(t, map[string]string{
		"ReportPosts": reportPosts, "ReportChannels": reportChannels, "ReportErrors": reportErrors, "InsightRead": insightRead,
		"InsightDays": insightDays, "ReleasedPost": releasedPost, "ReleasedLately": releasedLately,
	})
}
