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

// The states of a Derived that is not ready.
const (
	Pending = picturesstore.PicturePending
	Failed  = picturesstore.PictureFailed
)

// Find returns the requested pictures that exist. It returns pg.ErrOrgBusy or the Postgres error.
func Find(ctx context.Context, d *db.DB, org tenancy.OrgID, keys []Key) ([]Derived, error) {
	return picturesstore.Pictures(ctx, d, org, keys)
}

// Want inserts the missing pictures as pending and returns all of them. It returns the Postgres
// error, which is a foreign key violation if an image has no row.
func Want(ctx context.Context, tx *db.Tx, keys []Key) ([]Derived, error) {
	return picturesstore.WantPictures(ctx, tx, keys)
}

// Order is like Want, but in its own transaction. It can also return pg.ErrOrgBusy, and can be
// repeated after an error.
func Order(ctx context.Context, d *db.DB, org tenancy.OrgID, keys []Key) ([]Derived, error) {
	return picturesstore.AddPictures(ctx, d, org, keys)
}
