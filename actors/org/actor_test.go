package org

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"crier/platform/clock"
)

// spawnAlone starts an organization's actor without a host and records its calls to retire and
// resend.
func spawnAlone(t *testing.T) (system *actor.ActorSystem, pid *actor.PID, retired, resent *[]any) {
	t.Helper()
	retired, resent = &[]any{}, &[]any{}
	log := slog.New(slog.DiscardHandler)
	system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	o := &organization{
		cfg: Config{Limit: 5, MaxInFlight: 1}, clock: clock.System{}, skew: func() time.Duration { return 0 }, log: log,
		retire: func(self *actor.PID) { *retired = append(*retired, self) },
		resend: func(message any) { *resent = append(*resent, message) },
	}
	pid = system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return o }))
	return system, pid, retired, resent
}

// checkForwards checks that an actor that has left responds to a request with Moved and resends a
// Wake.
func checkForwards(t *testing.T, system *actor.ActorSystem, pid *actor.PID, resent *[]any) {
	t.Helper()
	due := &Wake{DueUnixUs: time.Now().UnixMicro()}
	system.Root.Send(pid, due)
	answer, err := system.Root.RequestFuture(pid, &AdmitRequest{}, time.Second).Result()
	if r, ok := answer.(*AdmitResponse); err != nil || !ok || !r.GetMoved() || r.GetAllowed() {
		t.Errorf("a request: got %v, %v, want Moved", answer, err)
	}
	if len(*resent) != 1 || (*resent)[0] != any(due) {
		t.Errorf("resent: got %v, want the Wake", *resent)
	}
}

func TestActor_IdleForwardsToNextActivation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		system, pid, retired, resent := spawnAlone(t)
		defer system.Shutdown()
		time.Sleep(idleTimeout + time.Second)
		synctest.Wait()
		if len(*retired) != 1 {
			t.Fatalf("got retired %d times, want once", len(*retired))
		}
		checkForwards(t, system, pid, resent)
	})
}

func TestActor_LeftForwardsToNextOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		system, pid, retired, resent := spawnAlone(t)
		defer system.Shutdown()
		system.Root.Send(pid, leave{})
		checkForwards(t, system, pid, resent)
		if len(*retired) != 0 {
			t.Errorf("got retired %d times, want never", len(*retired))
		}
	})
}
