package worker

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/platform/id"
	"crier/tenancy"
)

func TestMetrics_Lateness(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	read := func(name string) float64 {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == name {
				return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
			}
		}
		t.Fatalf("there is no %s", name)
		return 0
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m.claimed(now.Add(-30*time.Second), now)
	m.claimed(now.Add(time.Second), now)
	if got := read("crier_publish_overdue_total"); got != 0 {
		t.Errorf("%v posts are overdue", got)
	}
	m.claimed(now.Add(-31*time.Second), now)
	if got := read("crier_publish_overdue_total"); got != 1 {
		t.Errorf("%v posts are overdue", got)
	}
	organization := id.New[tenancy.OrgTag]
	m.queued(map[tenancy.OrgID]time.Time{organization(): now.Add(time.Minute), organization(): now.Add(-45 * time.Second), organization(): now.Add(-time.Second)}, now)
	if oldest, waiting := read("crier_publish_oldest_overdue_seconds"), read("crier_publish_queue_organizations"); oldest != 45 || waiting != 3 {
		t.Errorf("oldest %v s, %v organizations", oldest, waiting)
	}
	m.queued(nil, now)
	if got := read("crier_publish_oldest_overdue_seconds"); got != 0 {
		t.Errorf("the oldest is %v s old, and there is none", got)
	}
}
