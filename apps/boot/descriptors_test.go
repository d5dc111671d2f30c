package boot

import (
	"log/slog"
	"math"
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/tests/syncbuffer"
)

func TestFitConnections_LowersLimitToDescriptors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit      uint64
		conns      int
		want       int
		sufficient bool
	}{
		{256, 16384, 64, false},
		{600, 16384, 64, false},
		{1023, 16384, 255, false},
		{1024, 16384, 256, true},
		{1024, 256, 256, true},
		{1024, 10, 10, true},
		{20000, 16384, 9744, true},
		{33279, 16384, 16383, true},
		{33280, 16384, 16384, true},
		{math.MaxUint64, 16384, 16384, true}, // no limit
		{256, 10, 10, false},
	} {
		var log syncbuffer.Buffer
		cfg := Config{Edge: edge.Config{MaxConns: c.conns}}
		cfg.fitConnections(c.limit, slog.New(slog.NewTextHandler(&log, nil)))
		if cfg.Edge.MaxConns != c.want || (checkDescriptors(c.limit) == nil) != c.sufficient {
			t.Errorf("of %d connections and %d descriptors: %d are accepted, %v; want %d", c.conns, c.limit, cfg.Edge.MaxConns, checkDescriptors(c.limit), c.want)
		}
		if warned := strings.Contains(log.String(), "level=WARN"); warned != (c.want < c.conns) {
			t.Errorf("of %d connections and %d descriptors a warning is logged: %t: %s", c.conns, c.limit, warned, log.String())
		}
	}
}

func TestCheckDescriptors_RefusesLowLimit(t *testing.T) {
	t.Parallel()
	if n, err := descriptorLimit(); err != nil || n == 0 {
		t.Errorf("%d, %v", n, err)
	}
}
