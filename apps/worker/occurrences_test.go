package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/actors/fairqueue"
	"crier/platform/clock"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// failingMaintainer is a Maintainer whose methods may fail.
type failingMaintainer struct {
	*backend
	maintain, occurrences error
	more                  bool
	written, swept        int
}

func (h *failingMaintainer) Maintain(context.Context, dispatch.Lease) (scheduler.Maintained, error) {
	return scheduler.Maintained{}, h.maintain
}

func (h *failingMaintainer) WriteOccurrences(context.Context, dispatch.Lease) (written int, more bool, err error) {
	h.written++
	return 0, h.more, h.occurrences
}

func (h *failingMaintainer) Sweep(context.Context, dispatch.Lease, time.Duration) (map[tenancy.OrgID]time.Time, time.Time, error) {
	h.swept++
	return nil, time.Time{}, nil
}

func TestSweep_WritesOccurrencesEvenIfOtherPartsFail(t *testing.T) {
	t.Parallel()
	noUpkeep, noRepeats := errors.New("no upkeep"), errors.New("no repeats")
	for name, c := range map[string]struct {
		keeper failingMaintainer
		sweeps int // within one and a half times minSweepGap
		logged string
	}{
		"all is well":               {keeper: failingMaintainer{}, sweeps: 1},
		"there is more to write":    {keeper: failingMaintainer{more: true}, sweeps: 2},
		"they cannot be written":    {keeper: failingMaintainer{occurrences: noRepeats}, sweeps: 1, logged: "no repeats"},
		"the upkeep fails":          {keeper: failingMaintainer{maintain: noUpkeep}, sweeps: 1, logged: "no upkeep"},
		"both fail, both are known": {keeper: failingMaintainer{maintain: noUpkeep, occurrences: noRepeats}, sweeps: 1, logged: "no repeats"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				k := &c.keeper
				k.backend = &backend{}
				w := New(Config{MaxInFlight: 1, SweepInterval: time.Hour}, Deps{
					Claimer: k, Publisher: k, Maintainer: k, Actors: k, Offers: fairqueue.NewOffers(), Clock: clock.System{},
					Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: NewMetrics(prometheus.NewRegistry()),
					Lease: func() dispatch.Lease { return dispatch.Lease{Shards: []int16{1}} },
				})
				w.sweeper.Start(t.Context(), w.sweepSteps(t.Context())...)
				time.Sleep(minSweepGap * 3 / 2)
				if err := w.sweeper.Stop(t.Context()); err != nil {
					t.Error(err)
				}
				if k.written != c.sweeps || k.swept != c.sweeps || !strings.Contains(log.String(), c.logged) {
					t.Errorf("written %d times and swept %d, want %d; log: %s", k.written, k.swept, c.sweeps, log.String())
				}
			})
		})
	}
}
