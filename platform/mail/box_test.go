package mail

import (
	"fmt"
	"sync"
	"testing"
)

func TestBox_KeepsNewestFirst(t *testing.T) {
	t.Parallel()
	box := NewBox(noon)
	for i := range boxSize + 5 {
		m := hello()
		m.Subject = fmt.Sprint(i)
		if err := box.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	got := box.Messages()
	if len(got) != boxSize || got[0].Subject != "204" || got[boxSize-1].Subject != "5" || !got[0].At.Equal(noon.Now()) {
		t.Errorf("got %d messages from %s to %s at %s, want 200 from 204 to 5 at %s",
			len(got), got[0].Subject, got[len(got)-1].Subject, got[0].At, noon.Now())
	}
	got[0].Subject = "changed"
	if box.Messages()[0].Subject != "204" {
		t.Error("a change of the result changed the box")
	}
}

func TestBox_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	box := NewBox(noon)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := box.Send(t.Context(), hello()); err != nil {
				t.Error(err)
			}
			box.Messages()
		})
	}
	wg.Wait()
	if n := len(box.Messages()); n != 20 {
		t.Errorf("got %d messages, want 20", n)
	}
}
