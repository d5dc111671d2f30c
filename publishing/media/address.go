package media

import (
	"context"
	"fmt"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/db"
	mediastore "crier/publishing/media/store"
	"crier/tenancy"
)

const (
	// addressLife is how long an upload address works. An upload that begins in time may finish
	// after the address has expired.
	addressLife = 15 * time.Minute
	// maxAddresses is the maximum number of unused, unexpired addresses of an organization.
	maxAddresses = 100
	// addressPrefix begins the token of every upload address.
	addressPrefix = "cru_"
	// addressLength is the number of base62 characters after the prefix; they hold 256 bits.
	addressLength = 43
)

// CreateAddress returns a new upload address for one file. credential is the SHA-256 hash of the
// principal's API key or access token. The address stops working when the credential does.
// CreateAddress writes no audit entry, because nothing uses a file yet when it is uploaded.
//
// CreateAddress returns TooLarge if the organization's storage is full, and RateLimited if the
// organization has too many unused addresses.
func (s *Media) CreateAddress(
	ctx context.Context, p tenancy.Principal, credential []byte,
) (publishing.UploadAddress, error) {
	const op = "publishing.CreateAddress"
	if _, err := s.storageLeft(ctx, op, p.Org); err != nil {
		return publishing.UploadAddress{}, err
	}
	token, err := secret.Token(addressPrefix, addressLength)
	if err != nil {
		return publishing.UploadAddress{}, pg.Fault(op, err)
	}
	now := s.deps.Clock.Now()
	a := publishing.UploadAddress{
		Org: p.Org, URL: s.cfg.BaseURL + "/upload/" + token, Via: p.Via, Credential: credential,
		ExpiresAt: now.Add(addressLife),
	}
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		stored, err := mediastore.InsertAddress(ctx, tx, secret.HashToken(token), a, now, maxAddresses)
		if err == nil && !stored {
			return tooManyAddresses(op)
		}
		return err
	})
	if err != nil {
		return publishing.UploadAddress{}, db.Fault(op, err)
	}
	return a, nil
}

func tooManyAddresses(op string) error {
	return &fault.Error{
		Kind: fault.RateLimited, Op: op, RetryAfter: time.Minute,
		Message: fmt.Sprintf("Your organization has %d unused upload addresses. Upload to one of them, "+
			"or wait: each address expires after %d minutes.", maxAddresses, int(addressLife.Minutes())),
	}
}

// Address returns the upload address with the given token, so that the caller can authenticate the
// credential that requested it. It returns NotFound if there is no such address, and Gone if the
// address has expired. It returns Unavailable if too many other lookups are in progress, or while
// the database is down.
func (s *Media) Address(ctx context.Context, token string) (publishing.UploadAddress, error) {
	const op = "publishing.Address"
	if !strings.HasPrefix(token, addressPrefix) || len(token) != len(addressPrefix)+addressLength {
		return publishing.UploadAddress{}, noAddress(op)
	}
	leave, err := s.enterLookup(ctx, op)
	if err != nil {
		return publishing.UploadAddress{}, err
	}
	defer leave()
	a, err := mediastore.AddressByHash(ctx, s.db, secret.HashToken(token))
	switch {
	case pg.IsNoRows(err):
		return publishing.UploadAddress{}, noAddress(op)
	case err != nil:
		return publishing.UploadAddress{}, pg.Fault(op, err)
	case !s.deps.Clock.Now().Before(a.ExpiresAt):
		return publishing.UploadAddress{}, fault.New(fault.Gone, op, "This upload address has expired. Request a new one.")
	}
	return a, nil
}

func noAddress(op string) error {
	return fault.New(fault.NotFound, op, "There is no such upload address. Check it, or request a new one.")
}
