package store

import (
	"strings"
	"testing"

	"crier/publishing"
	"crier/tests/dbtest"
)

func TestStatements_HaveCorrectHeaders(t *testing.T) {
	t.Parallel()
	dbtest.CheckStatements(t)
}

// Each statement that gives up posts contains the text, so that it can be executed as it is.
func TestStatements_ContainMaybeSentAdvice(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"expire": expire, "expire_paused": expirePaused, "fail_stuck": failStuck, "reap": reap,
	} {
		if !strings.Contains(sql, "'"+publishing.MaybeSentAdvice+"'") {
			t.Errorf("%s.sql does not contain publishing.MaybeSentAdvice: %q", name, publishing.MaybeSentAdvice)
		}
	}
}
