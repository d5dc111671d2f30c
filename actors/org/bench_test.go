package org_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"crier/actors/cluster"
	"crier/actors/org"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/tenancy"
)

// BenchmarkAdmit_Alone measures a request while no process owns the shards, after many
// organizations have each made a request.
func BenchmarkAdmit_Alone(b *testing.B) {
	for _, organizations := range []int{2_000, 64_000} {
		b.Run(fmt.Sprint(organizations), func(b *testing.B) {
			cfg := org.Config{Limit: 60, MaxInFlight: 1, Timeout: 250 * time.Millisecond}
			c, err := org.New(cfg, cluster.Config{Listen: "127.0.0.1:0"}, org.Deps{
				Offers: &offerRecorder{}, Place: func(int16) (string, bool) { return "", false },
				Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				b.Fatal(err)
			}
			all := make([]tenancy.OrgID, organizations)
			for i := range all {
				all[i] = id.New[tenancy.OrgTag]()
				c.Admit(b.Context(), all[i])
			}
			b.ResetTimer()
			for i := range b.N {
				c.Admit(b.Context(), all[i%len(all)])
			}
			b.StopTimer()
			if err := c.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
