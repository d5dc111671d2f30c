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

// SessionProof is what the sign-in of a session proved.
type SessionProof struct {
	CreatedAt time.Time `db:"created_at"`
	// ByFactor means that the sign-in proved the second factor, or that the factor was enabled in
	// this session.
	ByFactor bool `db:"by_factor"`
	// HasFactor means that the person has a second factor now.
	HasFactor bool `db:"has_factor"`
}

// ReadSignIn returns what the sign-in of a session proved, or pgx.ErrNoRows.
func ReadSignIn(ctx context.Context, tx *db.GateTx, session tenancy.SessionID) (SessionProof, error) {
	return db.One[SessionProof](ctx, tx, sessionProof, session)
}
