package pg

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSharesAddUpAndLeaveNobodyOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int32Range(int32(len(roles)), 500).Draw(t, "total")
		var sum int32
		for _, r := range roles {
			n := share(r, total)
			least := int32(1)
			if total >= minConns { // the default, on any machine
				least = 2
			}
			if n < least {
				t.Fatalf("%s has %d of %d", r, n, total)
			}
			sum += n
		}
		if sum != total {
			t.Fatalf("%d given out of %d", sum, total)
		}
		for _, r := range beside {
			if n := share(r, total); n != 1 {
				t.Fatalf("%s has %d connections beside the total, want 1", r, n)
			}
		}
		if n, of := perOrg(total), int(share(Tenant, total)); n < 1 || n > max(1, of/2) {
			t.Fatalf("one organization may have %d connections of %d", n, of)
		}
	})
}

func TestTheDefaultHasRoomInEveryPool(t *testing.T) {
	t.Parallel()
	cfg, err := Config{URL: "postgres://someone@127.0.0.1:1/x"}.checked()
	if err != nil || cfg.MaxConns < minConns {
		t.Fatalf("%d connections, %v", cfg.MaxConns, err)
	}
	if n := share(Clock, cfg.MaxConns); n < 4 {
		t.Errorf("the clock has %d of %d", n, cfg.MaxConns)
	}
}
