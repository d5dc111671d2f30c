package proof

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

const sessionProof = `-- tenancy.SessionProof
select created_at, by_factor,
  exists (select from mfa where person_id = s.person_id and confirmed_at is not null) has_factor
from session s where id = $1`

// SessionProof records what was verified when a session began.
type SessionProof struct {
	CreatedAt time.Time `db:"created_at"`
	// ByFactor is true if the second factor was verified at sign-in, or was enabled in this
	// session.
	ByFactor bool `db:"by_factor"`
	// HasFactor is true if the person has a second factor now.
	HasFactor bool `db:"has_factor"`
}

// ReadSignIn returns what was verified when a session began. It returns pgx.ErrNoRows if there is
// no such session.
func ReadSignIn(ctx context.Context, tx *db.GateTx, session tenancy.SessionID) (SessionProof, error) {
	return db.One[SessionProof](ctx, tx, sessionProof, session)
}
