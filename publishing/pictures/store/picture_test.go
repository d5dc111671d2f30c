package store_test

import (
	"testing"
	"time"

	"crier/publishing"
	mediastore "crier/publishing/media/store"
	picturesstore "crier/publishing/pictures/store"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// image stores the row of a file without its bytes.
func image(r *publishtest.StoreRig) publishing.Medium {
	r.Helper()
	m := fixture.Medium(r.Org, time.Now())
	_, err := mediastore.SaveMedium(r.Context(), r.Store, m, nil, 0)
	r.OK(err)
	return m
}

func TestWantPictures_OneRowForAnImageAndFormat(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	m := image(r)
	small, large := picturesstore.PictureKey{Media: m.ID, Spec: "jpeg-1-1"}, picturesstore.PictureKey{Media: m.ID, Spec: "jpeg-2-2"}
	for range 2 {
		all, err := picturesstore.AddPictures(t.Context(), r.Store, r.Org, []picturesstore.PictureKey{small, large, small})
		if r.OK(err); len(all) != 2 || all[0].State != picturesstore.PicturePending || all[1].State != picturesstore.PicturePending {
			t.Fatalf("got %+v, want two pending pictures", all)
		}
	}
	r.Exec(`delete from media where id = $1`, m.ID)
	if left, err := picturesstore.Pictures(t.Context(), r.Store, r.Org, []picturesstore.PictureKey{small, large}); err != nil || len(left) != 0 {
		t.Errorf("%d pictures outlive their image: %v", len(left), err)
	}
}

// A search finds pictures of every organization, even if one of them has very many.
func TestPendingPictures_FindsTheFirstOfEveryOrganization(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	for range 20 {
		_, err := picturesstore.AddPictures(t.Context(), r.Store, r.Org, []picturesstore.PictureKey{{Media: image(r).ID, Spec: "jpeg-1-1"}})
		r.OK(err)
	}
	other := publishtest.NewStoreRigOn(r.Base)
	single := image(other)
	_, err := picturesstore.AddPictures(t.Context(), other.Store, other.Org, []picturesstore.PictureKey{{Media: single.ID, Spec: "jpeg-1-1"}})
	r.OK(err)
	found, err := picturesstore.PendingPictures(t.Context(), r.Store, r.Lease.Shards, 5, 6)
	if r.OK(err); len(found) != 6 || found[0].Media != single.ID && found[1].Media != single.ID {
		t.Errorf("found %+v, want 6 with %s among the first two", found, single.ID)
	}
	if none, err := picturesstore.PendingPictures(t.Context(), r.Store, nil, 5, 6); err != nil || len(none) != 0 {
		t.Errorf("without shards: %+v, %v", none, err)
	}
}
