package pg

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPoolSize_AddsUpAndGivesEachRoleOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int32Range(int32(len(sharedRoles)), 500).Draw(t, "total")
		var sum int32
		for _, r := range sharedRoles {
			n := poolSize(r, total)
			least := int32(1)
			if total >= minConns { // the default, on any machine
				least = 2
			}
			if n < least {
				t.Fatalf("%s gets %d of %d connections, want at least %d", r, n, total, least)
			}
			sum += n
		}
		if sum != total {
			t.Fatalf("all pools together have %d connections, want %d", sum, total)
		}
		for _, r := range singleRoles {
			if n := poolSize(r, total); n != 1 {
				t.Fatalf("%s has %d connections of its own, want 1", r, n)
			}
		}
		if n, of := orgConns(total), int(poolSize(Tenant, total)); n < 1 || n > max(1, of/2) {
			t.Fatalf("one organization may have %d of %d connections, want at most half", n, of)
		}
	})
}

func TestConfig_DefaultHasRoomInEveryPool(t *testing.T) {
	t.Parallel()
	cfg := Config{URL: "postgres://someone@127.0.0.1:1/x"}.withDefaults()
	if err := cfg.Validate(); err != nil || cfg.MaxConns < minConns {
		t.Fatalf("got %d connections, %v; want at least %d", cfg.MaxConns, err, minConns)
	}
	if n := poolSize(Clock, cfg.MaxConns); n < 4 {
		t.Errorf("the clock role gets %d of %d connections, want at least 4", n, cfg.MaxConns)
	}
}
