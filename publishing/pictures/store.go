package pictures

import (
	"context"

	"crier/publishing/db"
	picturesstore "crier/publishing/pictures/store"
	"crier/tenancy"
)

// Key identifies a picture that is derived from an image, and Derived is that picture.
type (
	Key     = picturesstore.PictureKey
	Derived = picturesstore.DerivedPicture
)

// The states of a Derived picture that is not ready.
const (
	Pending = picturesstore.PicturePending
	Failed  = picturesstore.PictureFailed
)

// Find returns the requested pictures that exist. Any error is pg.ErrOrgBusy or a Postgres error.
func Find(ctx context.Context, d *db.DB, org tenancy.OrgID, keys []Key) ([]Derived, error) {
	return picturesstore.Pictures(ctx, d, org, keys)
}

// Want returns the requested pictures. It first inserts any missing pictures as pending. Any error
// is a Postgres error. If an image has no row, the error is a foreign key violation.
func Want(ctx context.Context, tx *db.Tx, keys []Key) ([]Derived, error) {
	return picturesstore.WantPictures(ctx, tx, keys)
}

// Order is like Want but runs in its own transaction. It can also return pg.ErrOrgBusy. It can be
// repeated after an error.
func Order(ctx context.Context, d *db.DB, org tenancy.OrgID, keys []Key) ([]Derived, error) {
	return picturesstore.AddPictures(ctx, d, org, keys)
}
