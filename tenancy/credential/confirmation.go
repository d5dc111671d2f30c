package credential

import (
	"context"
	"time"

	"crier/tenancy"
	"crier/tenancy/db"
)

// CreateConfirmation inserts a confirmation without links.
func CreateConfirmation(ctx context.Context, tx *db.GateTx, c Confirmation) error {
	_, err := db.Exec(ctx, tx, confirmationInsert, c.ID, c.Kind, c.Email, c.Person, c.Name, c.Organization,
		c.PasswordHash, c.Invitation, c.Device, c.Provider, c.Issuer, c.Subject, c.CreatedAt, c.ExpiresAt)
	return err
}

// ConfirmationByHash returns the confirmation that has a link with the given token hash. It returns
// pgx.ErrNoRows if the link does not exist, or if its confirmation has expired or is of a different
// kind.
func ConfirmationByHash(
	ctx context.Context, tx *db.GateTx, hash []byte, kind ConfirmationKind, now time.Time,
) (Confirmation, error) {
	return db.One[Confirmation](ctx, tx, confirmationFind, hash, kind, now)
}

// ReadConfirmation returns the confirmation with the given id. It returns pgx.ErrNoRows if there is
// no such confirmation or the confirmation has expired.
func ReadConfirmation(
	ctx context.Context, tx *db.GateTx, confirmation tenancy.ConfirmationID, now time.Time,
) (Confirmation, error) {
	return db.One[Confirmation](ctx, tx, confirmationGet, confirmation, now)
}

// Registrations returns the two newest unexpired registrations for an email address, newest first.
func Registrations(ctx context.Context, tx *db.GateTx, email string, now time.Time) ([]Confirmation, error) {
	return db.List[Confirmation](ctx, tx, confirmationsByEmail, email, now)
}

// AddConfirmationLink adds a link to a confirmation. hash is the hash of the link's token.
func AddConfirmationLink(
	ctx context.Context, tx *db.GateTx, confirmation tenancy.ConfirmationID, hash []byte, side Side,
) error {
	_, err := db.Exec(ctx, tx, confirmationLinkInsert, hash, confirmation, side)
	return err
}

// LockConfirmation is like ConfirmationByHash, but also returns the link's side and locks the
// confirmation until the end of the transaction.
func LockConfirmation(
	ctx context.Context, tx *db.GateTx, hash []byte, kind ConfirmationKind, now time.Time,
) (ConfirmationOf, error) {
	return db.One[ConfirmationOf](ctx, tx, confirmationByHash, hash, kind, now)
}

// FollowLink records that the link with the given hash was followed. It returns the number of the
// confirmation's sides that have a followed link. It returns pgx.ErrNoRows if the link does not
// exist.
func FollowLink(ctx context.Context, tx *db.GateTx, hash []byte, c Confirmation, now time.Time) (sides int, err error) {
	if err := db.Change(ctx, tx, confirmationFollow, hash, now); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, confirmationSides, c.ID).Scan(&sides)
	return sides, err
}

// DeleteConfirmation deletes a confirmation and its links.
func DeleteConfirmation(ctx context.Context, tx *db.GateTx, confirmation tenancy.ConfirmationID) error {
	_, err := db.Exec(ctx, tx, confirmationDelete, confirmation)
	return err
}

// DeleteConfirmations deletes a person's confirmations of the given kind.
func DeleteConfirmations(ctx context.Context, tx *db.GateTx, person tenancy.PersonID, kind ConfirmationKind) error {
	_, err := db.Exec(ctx, tx, confirmationDeleteKind, person, kind)
	return err
}

// ConfirmationKind is the kind of operation that a confirmation completes. The confirmation table
// has a CHECK constraint with the same values.
type ConfirmationKind string

// The kinds of confirmation.
const (
	ConfirmRegistration ConfirmationKind = "registration"
	ConfirmReset        ConfirmationKind = "reset"
	ConfirmAddress      ConfirmationKind = "address"
)

// Side says whether a link for an address change was sent to the old or the new address. Links for
// all other kinds of confirmation have SideNew.
type Side string

// The two sides of an address change.
const (
	SideOld Side = "old"
	SideNew Side = "new"
)

// Confirmation is a pending registration, password reset or address change. It takes effect when
// its emailed link is followed. An address change has two links, one for each side.
type Confirmation struct {
	ID           tenancy.ConfirmationID `db:"id"`
	Kind         ConfirmationKind       `db:"kind"`
	Email        string                 `db:"email"`
	Person       tenancy.PersonID       `db:"person_id"`
	Name         string                 `db:"name"`
	Organization string                 `db:"organization"`
	PasswordHash string                 `db:"password_hash"`
	// Invitation is the hash of the invitation token, or nil if there is no invitation.
	Invitation []byte `db:"invitation"`
	// Device is the hash of the token in the registering browser's device cookie.
	Device    []byte    `db:"device"`
	Provider  string    `db:"provider"`
	Issuer    string    `db:"issuer"`
	Subject   string    `db:"subject"`
	CreatedAt time.Time `db:"created_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

const confirmationColumns = `c.id, c.kind, c.email, c.person_id, c.name, c.organization, c.password_hash, c.invitation, c.device,
c.provider, c.issuer, c.subject, c.created_at, c.expires_at`

const confirmationInsert = `-- tenancy.ConfirmationInsert
insert into confirmation (id, kind, email, person_id, name, organization, password_hash, invitation, device, provider,
  issuer, subject, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

const confirmationFind = `-- tenancy.ConfirmationFind
select ` + confirmationColumns + ` from confirmation_link l join confirmation c on c.id = l.confirmation_id
where l.hash = $1 and c.kind = $2 and c.expires_at > $3`

const confirmationGet = `-- tenancy.ConfirmationGet
select ` + confirmationColumns + ` from confirmation c where c.id = $1 and c.expires_at > $2`

const confirmationsByEmail = `-- tenancy.ConfirmationByEmail
select ` + confirmationColumns + ` from confirmation c
where c.email = $1 and c.kind = 'registration' and c.expires_at > $2 order by c.created_at desc, c.id desc limit 2`

const confirmationLinkInsert = `-- tenancy.ConfirmationLinkInsert
insert into confirmation_link (hash, confirmation_id, side) values ($1, $2, $3)`

const confirmationByHash = `-- tenancy.ConfirmationByHash
select ` + confirmationColumns + `, l.side from confirmation_link l join confirmation c on c.id = l.confirmation_id
where l.hash = $1 and c.kind = $2 and c.expires_at > $3 for update of c`

// ConfirmationOf combines a confirmation with the side of one of its links.
type ConfirmationOf struct {
	Confirmation
	Side Side `db:"side"`
}

const confirmationFollow = `-- tenancy.ConfirmationFollow
update confirmation_link set confirmed_at = $2 where hash = $1`

const confirmationSides = `-- tenancy.ConfirmationSides
select count(distinct side) from confirmation_link where confirmation_id = $1 and confirmed_at is not null`

const confirmationDelete = `-- tenancy.ConfirmationDelete
delete from confirmation where id = $1`

const confirmationDeleteKind = `-- tenancy.ConfirmationDeleteKind
delete from confirmation where person_id = $1 and kind = $2`
