package store

import (
	"testing"

	"crier/platform/pg"
	"crier/tests/sqltest"
)

// The scheduler's statements are planned once per connection, perhaps while tables are empty or
// nothing is due. The plans must still be good when that has changed.
func TestPlan_ReadsNoTableWhole(t *testing.T) {
	t.Parallel()
	sqltest.NoTableRead(t, map[pg.Role][]string{
		pg.Clock: {
			claim, giveBackClaims, holdRepair, setAsideChannel, sweep, sweepChannels, findExpire, expire, findReap, reap,
			findStuck, failStuck, findOrphans, failOrphans, finish, findUnknown, claimUnknown, setAside, handleSave,
			markCommitting, savePartDone, unmarkCommitting, stoppedOrgs,
		},
		pg.Sender: {loadWork, workMedia},
	})
}
