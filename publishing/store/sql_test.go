package store

import (
	"strings"
	"testing"

	"crier/publishing"
	"crier/tests/dbtest"
)

func TestStatements_ArePlannedAsTheirHeadersSay(t *testing.T) {
	t.Parallel()
	dbtest.CheckStatements(t)
}

// The statements that give posts up write the advice themselves, so that each can be run as it is.
func TestStatements_GiveUpWithTheSameAdvice(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"expire": expire, "expire_paused": expirePaused, "fail_stuck": failStuck, "reap": reap,
	} {
		if !strings.Contains(sql, "'"+publishing.MaybeSentAdvice+"'") {
			t.Errorf("%s.sql does not contain publishing.MaybeSentAdvice: %q", name, publishing.MaybeSentAdvice)
		}
	}
}
