package media

import (
	"context"
	"fmt"
	"io"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/db"
	mediastore "crier/publishing/media/store"
	"crier/tenancy"
)

// UploadTo is like Upload, but uses up the upload address with the given token. p must be the
// principal of the credential that requested the address. UploadTo returns NotFound if the
// principal's organization has no such address. It returns Conflict, with the id of the stored
// file, if the address has already taken a file, even if the same bytes are sent again.
//
// An address takes exactly one file: its bytes are stored first, and then one transaction inserts
// the file's row and marks the address as used. A crash before the commit leaves bytes without a
// row, which CollectFiles deletes, and an address that still works. A crash after the commit leaves
// the file and a used address. If two uploads arrive at once, the second waits for the transaction
// of the first. If that transaction commits, the second stores nothing. An upload that fails does
// not use up the address.
func (s *Media) UploadTo(
	ctx context.Context, p tenancy.Principal, token, filename string, r io.Reader,
) (publishing.Medium, error) {
	const op = "publishing.UploadTo"
	hash := secret.HashToken(token)
	a, found, err := mediastore.OwnAddress(ctx, s.db, p.Org, hash)
	switch {
	case err != nil:
		return publishing.Medium{}, pg.Fault(op, err)
	case !found:
		return publishing.Medium{}, noAddress(op)
	case !a.Medium.IsZero():
		return publishing.Medium{}, usedAddress(op, a.Medium)
	}
	return s.save(ctx, op, p, upload{name: filename, claims: filename, r: r, address: hash})
}

// useAddress marks an upload address as used by a new file. It returns Conflict if the address has
// already taken another file.
func useAddress(ctx context.Context, tx *db.Tx, hash []byte, medium publishing.MediaID) error {
	const op = "publishing.useAddress"
	taken, err := mediastore.UseAddress(ctx, tx, hash, medium)
	switch {
	case pg.IsNoRows(err):
		return noAddress(op)
	case err != nil:
		return err
	case taken != medium:
		return usedAddress(op, taken)
	}
	return nil
}

func usedAddress(op string, medium publishing.MediaID) error {
	return fault.New(fault.Conflict, op, fmt.Sprintf(
		"This upload address has been used, for the file with the id %s. To upload another file, request a new address.",
		medium))
}

// uploadedTo returns the file that was uploaded to one of the organization's upload addresses. It
// returns Invalid if there is none.
func (s *Media) uploadedTo(
	ctx context.Context, op string, p tenancy.Principal, token string,
) (publishing.Medium, error) {
	a, found, err := mediastore.OwnAddress(ctx, s.db, p.Org, secret.HashToken(token))
	if err != nil {
		return publishing.Medium{}, pg.Fault(op, err)
	}
	invalid := func(message string) error { return fault.New(fault.Invalid, op, message) }
	switch {
	case !found:
		return publishing.Medium{}, invalid("There is no such upload address. Check it, or request a new one.")
	case a.Medium.IsZero() && !s.deps.Clock.Now().Before(a.ExpiresAt):
		return publishing.Medium{}, invalid("The upload address expired before a file was uploaded. Request a new one.")
	case a.Medium.IsZero():
		return publishing.Medium{}, invalid("No file has been uploaded to this address yet. Upload one first; the address " +
			"works until " + a.ExpiresAt.UTC().Format(time.RFC3339) + ".")
	}
	m, err := s.Own(ctx, p, a.Medium.String())
	if fault.Is(err, fault.NotFound) {
		err = invalid("The file that was uploaded to this address has been deleted. To upload it again, request a new address.")
	}
	return m, err
}
