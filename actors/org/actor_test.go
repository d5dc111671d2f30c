package org

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"crier/platform/clock"
)

// lonely is an organization's actor without a host around it.
func lonely(t *testing.T) (system *actor.ActorSystem, pid *actor.PID, retired, resent *[]any) {
	t.Helper()
	retired, resent = &[]any{}, &[]any{}
	log := slog.New(slog.DiscardHandler)
	system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	o := &organization{
		cfg: Config{Limit: 5, InFlight: 1}, clock: clock.System{}, skew: func() time.Duration { return 0 }, log: log,
		retire: func(self *actor.PID) { *retired = append(*retired, self) },
		resend: func(message any) { *resent = append(*resent, message) },
	}
	pid = system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return o }))
	return system, pid, retired, resent
}

// passesOn checks that an actor that has left answers no request and loses no wake-up.
func passesOn(t *testing.T, system *actor.ActorSystem, pid *actor.PID, resent *[]any) {
	t.Helper()
	due := &Wake{DueUnixUs: time.Now().UnixMicro()}
	system.Root.Send(pid, due)
	answer, err := system.Root.RequestFuture(pid, &AdmitRequest{}, time.Second).Result()
	if r, ok := answer.(*AdmitResponse); err != nil || !ok || !r.GetMoved() || r.GetAllowed() {
		t.Errorf("a request is answered with %v, %v", answer, err)
	}
	if len(*resent) != 1 || (*resent)[0] != any(due) {
		t.Errorf("sent on: %v, want the wake-up", *resent)
	}
}

func TestActor_AfterItsIdleTimeMessagesGoToTheNextActivation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		system, pid, retired, resent := lonely(t)
		defer system.Shutdown()
		time.Sleep(passivate + time.Second)
		synctest.Wait()
		if len(*retired) != 1 {
			t.Fatalf("retired %d times, want once", len(*retired))
		}
		passesOn(t, system, pid, resent)
	})
}

func TestActor_AfterItsShardMovedMessagesGoToTheNextOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		system, pid, retired, resent := lonely(t)
		defer system.Shutdown()
		system.Root.Send(pid, leave{})
		passesOn(t, system, pid, resent)
		if len(*retired) != 0 {
			t.Errorf("retired %d times, want never", len(*retired))
		}
	})
}
