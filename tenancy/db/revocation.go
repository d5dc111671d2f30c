package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"crier/tenancy"
)

// RevocationChannel is the Postgres channel on which statements announce that credentials, such as
// API keys and access tokens, have stopped working or that what they allow has changed. Postgres
// sends a transaction's notifications when the transaction commits. The payload is one of these:
//
//   - the hash of a credential in hexadecimal
//   - the id of an organization, for all its credentials
//   - PersonRevocation and the id of a person, for all credentials that act for that person
const RevocationChannel = "crier_key_revoked"

// PersonRevocation is the prefix of a revocation of a person's credentials.
const PersonRevocation = "person:"

const announceOrg = `-- tenancy.AnnounceOrg
select pg_notify('` + RevocationChannel + `', $1)`

// AnnounceOrg announces that the rights of somebody in an organization have changed, so that all
// processes look the organization's credentials up again. The announcement is sent at the commit.
func AnnounceOrg(ctx context.Context, tx pgx.Tx, org tenancy.OrgID) error {
	_, err := Exec(ctx, tx, announceOrg, org.String())
	return err
}
