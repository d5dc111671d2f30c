package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/sender"
	"crier/tenancy"
)

// housekeeping is a Keeper whose parts may fail.
type housekeeping struct {
	*world
	maintain, occurrences error
	more                  bool
	written, swept        int
}

func (h *housekeeping) Maintain(context.Context, publishing.Lease) (sender.Maintained, error) {
	return sender.Maintained{}, h.maintain
}

func (h *housekeeping) WriteOccurrences(context.Context, publishing.Lease) (written int, more bool, err error) {
	h.written++
	return 0, h.more, h.occurrences
}

func (h *housekeeping) Sweep(context.Context, publishing.Lease, time.Duration) (map[tenancy.OrgID]time.Time, time.Time, error) {
	h.swept++
	return nil, time.Time{}, nil
}

func TestLook_WritesOccurrencesWhateverElseFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keeper housekeeping
		swept  int
		again  bool
		logged string
	}{
		"all is well":               {housekeeping{}, 1, false, ""},
		"there is more to write":    {housekeeping{more: true}, 1, true, ""},
		"they cannot be written":    {housekeeping{occurrences: errors.New("no repeats")}, 1, false, "no repeats"},
		"the upkeep fails":          {housekeeping{maintain: errors.New("no upkeep")}, 1, false, "no upkeep"},
		"both fail, both are known": {housekeeping{maintain: errors.New("no upkeep"), occurrences: errors.New("no repeats")}, 1, false, "no repeats"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			k := &c.keeper
			k.world = &world{}
			w := New(Config{InFlight: 1, Sweep: time.Hour}, Deps{
				Claimer: k, Publisher: k, Keeper: k, Actors: k, Clock: clock.System{}, Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: NewMetrics(prometheus.NewRegistry()),
				Lease: func() publishing.Lease { return publishing.Lease{Shards: []int16{1}} },
			})
			w.look(t.Context(), t.Context(), woken{})
			if k.written != 1 || k.swept != c.swept || len(w.sweep) == 1 != c.again || !strings.Contains(log.String(), c.logged) {
				t.Errorf("written %d times, swept %d, again %v, log: %s", k.written, k.swept, len(w.sweep) == 1, log.String())
			}
		})
	}
}
