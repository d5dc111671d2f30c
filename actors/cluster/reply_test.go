package cluster_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"crier/actors/cluster"
)

// TestRequest_ReplyRacingTimeoutIsNotMixedUp lets replies arrive at about the time of the timeout,
// so that the race detector sees both.
func TestRequest_ReplyRacingTimeoutIsNotMixedUp(t *testing.T) {
	t.Parallel()
	const budget = 5 * time.Millisecond
	h, err := cluster.NewHost(cluster.Config{}, cluster.Kind{
		Name:    "echo",
		Produce: func(string) actor.Actor { return echo{budget} },
		Shard:   func(string) (int16, bool) { return 0, true },
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			for i := range 50 {
				answer, err := h.Request("a", n*1000+i, budget)
				if err != nil && !errors.Is(err, cluster.ErrSilent) || err == nil && answer != n*1000+i {
					t.Errorf("got %v, %v, want the number that was sent or ErrSilent", answer, err)
				}
			}
		})
	}
	wg.Wait()
	if answer, err := h.Request("a", -1, time.Minute); err != nil || answer != -1 {
		t.Errorf("got %v, %v afterwards, want the answer to this request and no earlier one", answer, err)
	}
}

// echo replies with the message after about budget.
type echo struct{ budget time.Duration }

func (e echo) Receive(c actor.Context) {
	n, ok := c.Message().(int)
	if !ok {
		return
	}
	system, sender := c.ActorSystem(), c.Sender()
	if n < 0 {
		c.Respond(n)
		return
	}
	late := e.budget - time.Millisecond + rand.N(2*time.Millisecond)
	time.AfterFunc(late, func() { system.Root.Send(sender, n) })
}
