package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	clusterstore "crier/actors/cluster/store"
)

// rig is a prover without a database, to which the same processes are told every few seconds.
type rig struct {
	*prover
	probes    atomic.Int64
	forgotten atomic.Pointer[[]uuid.UUID]
	refuse    atomic.Bool
}

func newRig() *rig {
	r := &rig{}
	r.prover = newProver(2*time.Second, proverDeps{
		unlocked: func(_ context.Context, nodes []uuid.UUID) ([]uuid.UUID, error) { return nodes, nil },
		forget: func(_ context.Context, nodes []uuid.UUID) ([]uuid.UUID, error) {
			r.forgotten.Store(&nodes)
			return nodes, nil
		},
		refuses: func(ctx context.Context, _ string) bool {
			r.probes.Add(1)
			if r.refuse.Load() {
				return true
			}
			<-ctx.Done()
			return false
		},
		log: slog.New(slog.DiscardHandler),
	})
	return r
}

// during tells the prover the nodes every ten seconds, as a heartbeat does.
func (r *rig) during(t *testing.T, d time.Duration, nodes []clusterstore.Node) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Second) {
		r.tell(slices.Clone(nodes))
	}
}

func TestProver_ASilentProcessIsProbedEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.run(ctx)
		dead := []clusterstore.Node{{ID: uuid.New(), Address: "lost:1"}}
		r.during(t, time.Minute, dead)
		if n := r.probes.Load(); n < 4 {
			t.Errorf("%d probes in the first minute, want 4 or more", n)
		}
		r.during(t, 24*time.Hour, dead)
		if n := r.probes.Load(); n > 300 {
			t.Errorf("%d probes in a day, want 300 at most", n)
		}
		before := r.probes.Load()
		dead[0].Alive = true
		r.during(t, time.Minute, dead)
		dead[0].Alive = false
		r.refuse.Store(true)
		r.during(t, time.Minute, dead)
		if r.probes.Load() == before || r.forgotten.Load() == nil {
			t.Error("a process that came back and died again was not looked at within a minute")
		}
	})
}

func TestProver_AThousandDeadProcessesAllGetTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.run(ctx)
		var dead []clusterstore.Node
		for range 1000 {
			dead = append(dead, clusterstore.Node{ID: uuid.New(), Address: "lost:1"})
		}
		r.during(t, 30*time.Minute, dead)
		synctest.Wait()
		last := dead[999].ID
		if try, known := r.tries[last]; !known || try.next.IsZero() {
			t.Error("the last of a thousand was never looked at")
		}
	})
}
