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
		{limit: 256, conns: 16384, want: 64},
		{limit: 600, conns: 16384, want: 64},
		{limit: 1023, conns: 16384, want: 255},
		{limit: 1024, conns: 16384, want: 256, sufficient: true},
		{limit: 1024, conns: 256, want: 256, sufficient: true},
		{limit: 1024, conns: 10, want: 10, sufficient: true},
		{limit: 20000, conns: 16384, want: 9744, sufficient: true},
		{limit: 33279, conns: 16384, want: 16383, sufficient: true},
		{limit: 33280, conns: 16384, want: 16384, sufficient: true},
		{limit: math.MaxUint64, conns: 16384, want: 16384, sufficient: true}, // no limit
		{limit: 256, conns: 10, want: 10},
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
