package store_test

import (
	"testing"
	"time"

	"crier/publishing"
	mediastore "crier/publishing/media/store"
	picturesstore "crier/publishing/pictures/store"
	"crier/tests/fixture"
)

func (r *rig) image() publishing.Medium {
	r.Helper()
	m := fixture.Medium(r.org, time.Now())
	_, err := mediastore.SaveMedium(r.Context(), r.store, m, nil, 0)
	r.ok(err)
	return m
}

func TestWantPictures_OneRowForAnImageAndFormat(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.image()
	small, large := picturesstore.PictureKey{Media: m.ID, Spec: "jpeg-1-1"}, picturesstore.PictureKey{Media: m.ID, Spec: "jpeg-2-2"}
	for range 2 {
		all, err := picturesstore.AddPictures(t.Context(), r.store, r.org, []picturesstore.PictureKey{small, large, small})
		if r.ok(err); len(all) != 2 || all[0].State != picturesstore.PicturePending || all[1].State != picturesstore.PicturePending {
			t.Fatalf("got %+v, want two pending pictures", all)
		}
	}
	r.tenant(`delete from media where id = $1`, m.ID)
	if left, err := picturesstore.Pictures(t.Context(), r.store, r.org, []picturesstore.PictureKey{small, large}); err != nil || len(left) != 0 {
		t.Errorf("%d pictures outlive their image: %v", len(left), err)
	}
}

// A search finds pictures of every organization, even when one of them has very many.
func TestPendingPictures_FindsTheFirstOfEveryOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 20 {
		_, err := picturesstore.AddPictures(t.Context(), r.store, r.org, []picturesstore.PictureKey{{Media: r.image().ID, Spec: "jpeg-1-1"}})
		r.ok(err)
	}
	other := newRigOn(t, r.db)
	single := other.image()
	_, err := picturesstore.AddPictures(t.Context(), other.store, other.org, []picturesstore.PictureKey{{Media: single.ID, Spec: "jpeg-1-1"}})
	r.ok(err)
	found, err := picturesstore.PendingPictures(t.Context(), r.store, r.lease.Shards, 5, 6)
	if r.ok(err); len(found) != 6 || found[0].Media != single.ID && found[1].Media != single.ID {
		t.Errorf("found %+v, want 6 with %s among the first two", found, single.ID)
	}
	if none, err := picturesstore.PendingPictures(t.Context(), r.store, nil, 5, 6); err != nil || len(none) != 0 {
		t.Errorf("without shards: %+v, %v", none, err)
	}
}
