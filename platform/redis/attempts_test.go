package redis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"crier/tests/faultnet"
)

// rules delay a client after its fourth attempt on any account. They delay a client on an account
// after its third attempt, or after its second if the account had more than five.
var rules = AttemptRules{
	Delays: [3][]time.Duration{
		{0, 0, 0, time.Second},
		{0, 0, 0, 0, 0, 30 * time.Second},
		{0, 0, time.Minute, 2 * time.Minute},
	},
	Shared: 2, Memory: time.Hour, Most: 100, Timeout: time.Minute,
}

// logIn returns the keys of a client's attempt on an account.
func logIn(client, account string) [3]string {
	return [3]string{"client " + client, "account " + account, "pair " + client + " " + account}
}

func TestAttempts_DelaysGrowAcrossClients(t *testing.T) {
	t.Parallel()
	server, c := serve(t)
	now := time.Unix(1_000_000, 0)
	server.SetTime(now)
	forward := func(d time.Duration) { now = now.Add(d); server.SetTime(now) }
	both := []*Attempts{c.Attempts("log-in", rules), open(t, "redis://"+server.Addr()).Attempts("log-in", rules)}
	turn := 0
	begin := func(client, account string, want time.Duration) {
		t.Helper()
		turn++
		wait, err := both[turn%2].Begin(t.Context(), logIn(client, account))
		if err != nil || wait != want {
			t.Fatalf("%s on %s: got a wait of %s, %v, want %s", client, account, wait, err, want)
		}
	}
	forgive := func(client, account string) {
		t.Helper()
		if err := both[turn%2].Forgive(t.Context(), logIn(client, account)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		begin("a", "x", 0)
	}
	begin("a", "x", time.Minute)
	forward(time.Minute - time.Millisecond)
	begin("a", "x", time.Millisecond) // refused attempts do not lengthen the delay
	forward(time.Millisecond)
	begin("a", "x", 0)
	begin("a", "y", time.Second) // the client's fourth attempt on any account
	begin("a", "x", 2*time.Minute)
	forgive("a", "x")
	begin("a", "x", 0) // a forgiven attempt neither counts nor delays
	begin("b", "x", 0)
	begin("c", "x", 0) // the sixth on the account
	begin("c", "x", 0) // the first attempt of a client on an account causes no delay
	begin("c", "x", 30*time.Second)
	begin("d", "x", 0) // a client without attempts does not wait
	forgive("d", "x")
	begin("d", "x", 0)
	if wait, err := c.Attempts("other", rules).Begin(t.Context(), logIn("a", "x")); err != nil || wait != 0 {
		t.Errorf("another name: got a wait of %s, %v, want none", wait, err)
	}
	forward(2*time.Minute + time.Hour)
	for range 3 { // the earlier attempts have expired
		begin("a", "x", 0)
	}
	begin("a", "x", time.Minute)
	for range 4 { // one more than was counted
		forgive("a", "x")
	}
	begin("a", "x", 0)
}

func TestAttempts_WaitLongerThanEveryDelayIsAnError(t *testing.T) {
	t.Parallel()
	server, c := serve(t)
	now := time.Unix(1_000_000, 0)
	a := c.Attempts("log-in", rules)
	server.SetTime(now.Add(24 * time.Hour)) // a day ahead
	for range 3 {
		if wait, err := a.Begin(t.Context(), logIn("a", "x")); err != nil || wait != 0 {
			t.Fatalf("got a wait of %s, %v, want none", wait, err)
		}
	}
	server.SetTime(now)
	if wait, err := a.Begin(t.Context(), logIn("a", "x")); err == nil || wait != 0 {
		t.Errorf("after the clock was set back: got a wait of %s, %v, want an error", wait, err)
	}
	server.SetTime(now.Add(24 * time.Hour))
	if wait, err := a.Begin(t.Context(), logIn("a", "x")); err != nil || wait != time.Minute {
		t.Errorf("got a wait of %s, %v, want a minute", wait, err)
	}
}

func TestAttempts_ReplaceKeysOfAnotherType(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*miniredis.Miniredis) error{
		"a text for the counts": func(s *miniredis.Miniredis) error { return s.Set("crier:attempts:{log-in}", "x") },
		"a list for the ends": func(s *miniredis.Miniredis) error {
			_, err := s.Lpush("crier:attempts:{log-in}:ends", "x")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, c := serve(t)
			server.SetTime(time.Unix(1_000_000, 0))
			a := c.Attempts("log-in", rules)
			if err := spoil(server); err != nil {
				t.Fatal(err)
			}
			for _, want := range []time.Duration{0, 0, 0, time.Minute} {
				if wait, err := a.Begin(t.Context(), logIn("a", "x")); err != nil || wait != want {
					t.Fatalf("got a wait of %s, %v, want %s", wait, err, want)
				}
			}
		})
	}
}

// counter counts the commands that a client sends.
type counter struct{ atomic.Int64 }

func (c *counter) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (c *counter) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		c.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		c.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

func TestAttempts_AreOneRoundTrip(t *testing.T) {
	t.Parallel()
	server, c := serve(t)
	a := c.Attempts("log-in", rules)
	both := func() {
		t.Helper()
		if wait, err := a.Begin(t.Context(), logIn("a", "x")); wait != 0 || err != nil {
			t.Fatalf("got a wait of %s, %v, want none", wait, err)
		}
		if err := a.Forgive(t.Context(), logIn("a", "x")); err != nil {
			t.Fatal(err)
		}
	}
	both() // loads the scripts into the server
	var sent counter
	c.rdb.AddHook(&sent)
	both()
	if n := sent.Load(); n != 2 {
		t.Errorf("got %d commands for Begin and Forgive, want 2", n)
	}
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("got keys %q after Forgive, want none", keys)
	}
}

func TestAttempts_EndWhenTheServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server, _ := serve(t)
	proxy, address := faultnet.Start(t, "redis://"+server.Addr())
	quick := rules
	quick.Timeout = 50 * time.Millisecond
	a := open(t, address).Attempts("log-in", quick)
	proxy.Set(faultnet.Swallow)
	if _, err := a.Begin(context.Background(), logIn("a", "x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Begin: got %v, want context.DeadlineExceeded", err)
	}
	if err := a.Forgive(context.Background(), logIn("a", "x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Forgive: got %v, want context.DeadlineExceeded", err)
	}
}

func TestAttempts_NumberIsBounded(t *testing.T) {
	t.Parallel()
	server, c := serve(t)
	few := rules
	few.Most = 21
	few.Delays[2] = []time.Duration{time.Minute}
	a := c.Attempts("log-in", few)
	const made = 50
	for i := range made {
		if _, err := a.Begin(t.Context(), logIn(fmt.Sprint(i), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		ends, err := server.ZMembers("crier:attempts:{log-in}:ends")
		if err != nil {
			t.Fatal(err)
		}
		kept, err := server.HKeys("crier:attempts:{log-in}")
		if err != nil {
			t.Fatal(err)
		}
		if len(ends) > few.Most || len(kept) != len(ends) {
			t.Fatalf("got %d keys and %d ends after %d attempts, want at most %d", len(kept), len(ends), i+1, few.Most)
		}
	}
	for name, i := range map[string]int{"the last": made - 1, "the first": 0} {
		wait, err := a.Begin(t.Context(), logIn(fmt.Sprint(i), fmt.Sprint(i)))
		if err != nil || (wait > 0) != (i > 0) {
			t.Errorf("%s: got a wait of %s, %v, want %t: the oldest keys are deleted first", name, wait, err, i > 0)
		}
	}
	server.FastForward(2*time.Hour + time.Second)
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("got keys %q after their memory has ended, want none", keys)
	}
}
