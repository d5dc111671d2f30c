package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"crier/tenancy"
)

// RevocationChannel is the Postgres channel on which statements announce that credentials, such as
// API keys and access tokens, have stopped working or that their permissions have changed. Postgres
// sends a transaction's notifications when the transaction commits. The payload is one of these:
//
//   - the hash of a credential in hexadecimal
//   - the id of an organization, for all its credentials
//   - PersonRevocation and the id of a person, for all credentials that act for that person
const RevocationChannel = "crier_key_revoked"

// PersonRevocation is the prefix of a payload that revokes all of a person's credentials.
const PersonRevocation = "person:"

const announceOrg = `-- tenancy.AnnounceOrg
select pg_notify('` + RevocationChannel + `', $1)`

// AnnounceOrg announces that someone's rights in an organization have changed. All processes then
// look up the organization's credentials again. The announcement is sent when the transaction
// commits.
func AnnounceOrg(ctx context.Context, tx pgx.Tx, org tenancy.OrgID) error {
	_, err := Exec(ctx, tx, announceOrg, org.String())
	return err
}
