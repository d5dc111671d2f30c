package relay

import (
	"strings"
	"testing"
)

func TestForgery_ChangesReadEvents(t *testing.T) {
	t.Parallel()
	r := Start(t)
	k := dial(t, r)
	e := signedEvent(t, 1, "content")
	k.send("EVENT", e)
	k.expect(`["OK"`)
	for lie, want := range map[Lie]string{
		Honest: "", BadSignature: "the signature is wrong", OtherContent: "the id is not the hash",
	} {
		forged := lie.forge(e)
		if got := forged.Check(); got != want || forged.ID != e.ID {
			t.Errorf("%q: got event %s with fault %q, want %q", lie, forged.ID, got, want)
		}
		r.Lie(lie)
		k.send("REQ", "q", map[string]any{})
		k.expect(`["EVENT","q",{"id":"` + e.ID)
		k.expect(`["EOSE"`)
	}
	if got := r.Events(); len(got) != 1 || got[0].Check() != "" {
		t.Errorf("got stored events %+v, want one valid event", got)
	}
}

func TestFault_AcceptsOtherEventFirst(t *testing.T) {
	t.Parallel()
	r := Start(t)
	k := dial(t, r)
	e := signedEvent(t, 1, "content")
	r.Arm(Fault{Alien: true, Refuse: "blocked: not you"})
	k.send("EVENT", e)
	k.expect(`["OK","` + strings.Repeat("0", 64) + `",true,`)
	k.expect(`["OK","` + e.ID + `",false,"blocked`)
}
