package credential

import (
	"context"
	"time"

	"crier/tenancy/db"
)

// Claim holds what an identity provider reported about a person who has no account yet.
type Claim struct {
	db.IdentityKey
	Email string `db:"email"`
	Name  string `db:"name"`
	// Verified means that the provider has verified the email address. An unverified address cannot
	// be used to register.
	Verified  bool      `db:"verified"`
	ExpiresAt time.Time `db:"expires_at"`
}

const claimInsert = `-- tenancy.ClaimInsert
insert into identity_claim (hash, provider, issuer, subject, email, name, verified, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)`

// CreateClaim stores a claim under the hash of its token.
func CreateClaim(ctx context.Context, tx *db.GateTx, hash []byte, c Claim) error {
	_, err := db.Exec(ctx, tx, claimInsert,
		hash, c.Provider, c.Issuer, c.Subject, c.Email, c.Name, c.Verified, c.ExpiresAt)
	return err
}

const claimTake = `-- tenancy.ClaimTake
delete from identity_claim where hash = $1 and expires_at > $2
returning provider, issuer, subject, email, name, verified, expires_at`

// TakeClaim deletes and returns the claim with the given token hash. It returns pgx.ErrNoRows if
// there is no such claim or the claim has expired.
func TakeClaim(ctx context.Context, tx *db.GateTx, hash []byte, now time.Time) (Claim, error) {
	return db.One[Claim](ctx, tx, claimTake, hash, now)
}
