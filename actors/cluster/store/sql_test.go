package store

import (
	"strings"
	"testing"

	"crier/tests/dbtest"
)

func TestStatements_HaveCorrectHeaders(t *testing.T) {
	t.Parallel()
	dbtest.CheckStatements(t)
}

func TestHeartbeat_NotifiesListenedChannel(t *testing.T) {
	t.Parallel()
	if !strings.Contains(heartbeat, "pg_notify('"+channel+"', '')") {
		t.Errorf("heartbeat.sql does not notify %s", channel)
	}
}
