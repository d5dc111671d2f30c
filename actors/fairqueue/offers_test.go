package fairqueue_test

import (
	"testing"

	"crier/actors/fairqueue"
	"crier/platform/id"
	"crier/tenancy"
)

func TestOffers_ReadyReceivesOnceForManyOffers(t *testing.T) {
	t.Parallel()
	offers := fairqueue.NewOffers()
	if n := len(offers.Ready()); n != 0 {
		t.Errorf("got %d elements before an offer, want 0", n)
	}
	for range 3 {
		offers.Offer(id.New[tenancy.OrgTag](), 1)
	}
	if n := len(offers.Ready()); n != 1 || offers.Len() != 3 {
		t.Errorf("got %d elements and %d organizations after three offers, want 1 and 3", n, offers.Len())
	}
	<-offers.Ready()
	if grants := offers.Take(2, 10); len(grants) != 2 || offers.Len() != 1 {
		t.Errorf("got %d grants and %d organizations left, want 2 and 1", len(grants), offers.Len())
	}
	offers.Offer(id.New[tenancy.OrgTag](), 1)
	if n := len(offers.Ready()); n != 1 {
		t.Errorf("got %d elements after the next offer, want 1", n)
	}
}
