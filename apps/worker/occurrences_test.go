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

	"crier/actors/fairqueue"
	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/scheduler"
	"crier/tenancy"
)

// failingMaintainer is a Maintainer whose parts may fail.
type failingMaintainer struct {
	*backend
	maintain, occurrences error
	more                  bool
	written, swept        int
}

func (h *failingMaintainer) Maintain(context.Context, publishing.Lease) (scheduler.Maintained, error) {
	return scheduler.Maintained{}, h.maintain
}

func (h *failingMaintainer) WriteOccurrences(context.Context, publishing.Lease) (written int, more bool, err error) {
	h.written++
	return 0, h.more, h.occurrences
}

func (h *failingMaintainer) Sweep(context.Context, publishing.Lease, time.Duration) (map[tenancy.OrgID]time.Time, time.Time, error) {
	h.swept++
	return nil, time.Time{}, nil
}

func TestSweep_WritesOccurrencesThoughOtherPartsFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keeper failingMaintainer
		swept  int
		again  bool
		logged string
	}{
		"all is well":               {keeper: failingMaintainer{}, swept: 1},
		"there is more to write":    {keeper: failingMaintainer{more: true}, swept: 1, again: true},
		"they cannot be written":    {keeper: failingMaintainer{occurrences: errors.New("no repeats")}, swept: 1, logged: "no repeats"},
		"the upkeep fails":          {keeper: failingMaintainer{maintain: errors.New("no upkeep")}, swept: 1, logged: "no upkeep"},
		"both fail, both are known": {keeper: failingMaintainer{maintain: errors.New("no upkeep"), occurrences: errors.New("no repeats")}, swept: 1, logged: "no repeats"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			k := &c.keeper
			k.backend = &backend{}
			w := New(Config{MaxInFlight: 1, SweepInterval: time.Hour}, Deps{
				Claimer: k, Publisher: k, Maintainer: k, Actors: k, Offers: fairqueue.NewOffers(), Clock: clock.System{},
				Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: NewMetrics(prometheus.NewRegistry()),
				Lease: func() publishing.Lease { return publishing.Lease{Shards: []int16{1}} },
			})
			w.runSweep(t.Context(), t.Context(), wakeRound{})
			if k.written != 1 || k.swept != c.swept || len(w.sweep) == 1 != c.again || !strings.Contains(log.String(), c.logged) {
				t.Errorf("written %d times, swept %d, again %v, log: %s", k.written, k.swept, len(w.sweep) == 1, log.String())
			}
		})
	}
}
