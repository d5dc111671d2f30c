package redis

import (
	"fmt"
	"testing"
	"time"
)

func TestAttempts_OfAllClientsWaitLongerAfterEach(t *testing.T) {
	t.Parallel()
	server, c := serve(t)
	now := time.Unix(1_000_000, 0)
	server.SetTime(now)
	forward := func(d time.Duration) { now = now.Add(d); server.SetTime(now) }
	both := []*Attempts{c.Attempts("log-in", time.Hour, 100), open(t, "redis://"+server.Addr()).Attempts("log-in", time.Hour, 100)}
	delays := []time.Duration{0, 0, time.Minute, 2 * time.Minute}
	turn := 0
	begin := func(key string, least time.Duration, wantN int, wantWait time.Duration) {
		t.Helper()
		turn++
		n, wait, err := both[turn%2].Begin(t.Context(), key, delays, least)
		if err != nil || n != wantN || wait != wantWait {
			t.Fatalf("%s: %d counted, wait %s, %v; want %d, %s", key, n, wait, err, wantN, wantWait)
		}
	}
	for n := 1; n <= 3; n++ {
		begin("a", 0, n, 0)
	}
	begin("a", 0, 3, time.Minute)
	forward(time.Minute - time.Millisecond)
	begin("a", 0, 3, time.Millisecond) // what was refused did not lengthen the delay
	forward(time.Millisecond)
	begin("a", 0, 4, 0)
	begin("a", 0, 4, 2*time.Minute)
	forward(2 * time.Minute)
	begin("a", 0, 5, 0)
	begin("a", 0, 5, 2*time.Minute) // the last delay goes on
	begin("b", 30*time.Second, 1, 0)
	begin("b", 0, 1, 30*time.Second)
	if err := both[0].Forgive(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	begin("a", 0, 5, 0) // the one that was forgiven is neither counted nor waited for
	if _, wait, err := c.Attempts("other", time.Hour, 100).Begin(t.Context(), "a", delays, 0); err != nil || wait != 0 {
		t.Errorf("another name has to wait %s: %v", wait, err)
	}
	forward(2*time.Minute + time.Hour)
	begin("a", 0, 1, 0)
	if err := both[1].Forgive(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	begin("a", 0, 1, 0)
	if n, _, err := both[0].Begin(t.Context(), "c", nil, 0); err != nil || n != 1 {
		t.Errorf("without delays %d counted, %v", n, err)
	}
}

func TestAttempts_KeepTheirBound(t *testing.T) {
	t.Parallel()
	server, c := serve(t)
	const most = 20
	a := c.Attempts("log-in", time.Hour, most)
	for i := range 5 * most {
		if _, _, err := a.Begin(t.Context(), fmt.Sprint(i), []time.Duration{time.Minute}, 0); err != nil {
			t.Fatal(err)
		}
		ends, err := server.ZMembers("crier:attempts:{log-in}:ends")
		if err != nil {
			t.Fatal(err)
		}
		kept, err := server.HKeys("crier:attempts:{log-in}")
		if err != nil {
			t.Fatal(err)
		}
		if len(ends) > most || len(kept) != len(ends) {
			t.Fatalf("%d keys and %d ends after %d, want at most %d", len(kept), len(ends), i+1, most)
		}
	}
	for _, key := range []string{fmt.Sprint(5*most - 1), "0"} {
		_, wait, err := a.Begin(t.Context(), key, []time.Duration{time.Minute}, 0)
		if err != nil || (wait > 0) != (key != "0") {
			t.Errorf("%s has to wait %s, %v; the oldest is forgotten first", key, wait, err)
		}
	}
	server.FastForward(2*time.Hour + time.Second)
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("%q are left when nobody counts any more", keys)
	}
}
