package webhook_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/webhook"
	"crier/tests/dbtest"
)

// backlog is how many deliveries wait when a turn begins; a turn reads 20 at a time.
const backlog = 50

// holding is a receiver that holds its first two calls until they are released. A turn makes two
// calls at once.
type holding struct {
	*receiver
	held sync.WaitGroup
	let  chan struct{}
}

func newHolding(t *testing.T) *holding {
	h := &holding{let: make(chan struct{})}
	h.held.Add(2)
	var calls sync.Mutex
	left := 2
	h.receiver = newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Lock()
		hold := left > 0
		left--
		calls.Unlock()
		if hold {
			h.held.Done()
			<-h.let
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return h
}

// during runs a turn of an endpoint with a backlog, and calls change for another process while two
// calls of the turn are in flight. It returns how many calls the receiver got before change
// returned and how many after that.
func (r *rig) during(h *holding, w publishing.Webhook, change func(other *webhook.Webhooks) error) (n, after int) {
	r.Helper()
	for range backlog {
		r.publish("an event")
	}
	_, err := r.deliverer.Step(r.Context())
	r.OK(err)
	var turn sync.WaitGroup
	turn.Go(func() { r.OK(r.deliverer.Deliver(r.Context(), r.org.Org, w.ID)) })
	h.held.Wait()
	other := webhook.NewWebhooks(webhook.Config{MaxWebhooks: 10}, webhook.Deps{
		DB: db.New(dbtest.OpenURL(r.T, r.Address)), Keyring: r.Keyring, Clock: clock.Func(r.time), Log: r.Logger, HTTP: r.client,
	})
	err = change(other)
	n = len(h.take())
	close(h.let)
	turn.Wait()
	r.OK(err)
	return n, len(h.take())
}

// A turn that has read a backlog sends nothing more to the old URL once the request that changes
// the URL has returned.
func TestUpdate_NoCallBeginsToTheOldURL(t *testing.T) {
	t.Parallel()
	old, fresh := newHolding(t), newReceiver(t, status(204))
	r := newRig(t, old.receiver, fresh)
	w, _ := r.create(old.server.URL)
	before, after := r.during(old, w, func(other *webhook.Webhooks) error {
		_, err := other.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{URL: &fresh.server.URL})
		return err
	})
	if before != 2 || after != 0 {
		t.Errorf("the address before got %d calls and %d after the answer, want 2 and 0", before, after)
	}
	if n := len(fresh.take()); n != backlog-before {
		t.Errorf("the new address got %d calls in the same turn, want %d", n, backlog-before)
	}
}

func TestUpdate_NoCallBeginsOnceDisabled(t *testing.T) {
	t.Parallel()
	x := newHolding(t)
	r := newRig(t, x.receiver)
	w, _ := r.create(x.server.URL)
	off, on := true, false
	before, after := r.during(x, w, func(other *webhook.Webhooks) error {
		_, err := other.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{Disabled: &off})
		if err != nil {
			return err
		}
		// Even if the endpoint is enabled again at once, it gets none of the deliveries that were
		// given up.
		_, err = other.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{Disabled: &on})
		return err
	})
	if before != 2 || after != 0 {
		t.Errorf("got %d calls and %d after the answer, want 2 and 0", before, after)
	}
}

func TestDelete_NoCallBegins(t *testing.T) {
	t.Parallel()
	x := newHolding(t)
	r := newRig(t, x.receiver)
	w, _ := r.create(x.server.URL)
	before, after := r.during(x, w, func(other *webhook.Webhooks) error {
		_, err := other.Delete(r.Context(), r.org, w.ID.String())
		return err
	})
	if before != 2 || after != 0 {
		t.Errorf("got %d calls and %d after the answer, want 2 and 0", before, after)
	}
}

func TestDeliver_NoCallBeginsOnceSuspended(t *testing.T) {
	t.Parallel()
	x := newHolding(t)
	r := newRig(t, x.receiver)
	w, _ := r.create(x.server.URL)
	before, after := r.during(x, w, func(*webhook.Webhooks) error { r.suspend(true); return nil })
	if before != 2 || after != 0 {
		t.Errorf("got %d calls and %d after the suspension, want 2 and 0", before, after)
	}
	r.suspend(false)
	r.step()
	if n := len(x.take()); n != backlog-2 {
		t.Errorf("got %d calls after the suspension, want %d", n, backlog-2)
	}
}

// After a rotation, both the new and the previous key sign the rest of a running turn.
func TestRotateSecret_SignsTheRestOfATurn(t *testing.T) {
	t.Parallel()
	x := newHolding(t)
	r := newRig(t, x.receiver)
	w, old := r.create(x.server.URL)
	var fresh string
	for range backlog {
		r.publish("an event")
	}
	_, err := r.deliverer.Step(r.Context())
	r.OK(err)
	var turn sync.WaitGroup
	turn.Go(func() { r.OK(r.deliverer.Deliver(r.Context(), r.org.Org, w.ID)) })
	x.held.Wait()
	_, fresh, err = r.hooks.RotateSecret(r.Context(), r.org, w.ID.String(), nil)
	x.take()
	close(x.let)
	turn.Wait()
	r.OK(err)
	rest := x.take()
	if len(rest) != backlog-2 {
		t.Errorf("got %d calls after the rotation, want %d", len(rest), backlog-2)
	}
	verify(t, fresh, rest)
	verifyStandard(t, old, rest)
}

// The response of a URL says nothing about the URL that has replaced it since.
func TestDeliver_ResponseOfTheOldURLDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"410": 410, "500": 500, "429 with a pause": 429} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, fresh := newReceiver(t, nil), newReceiver(t, status(204))
			r := newRig(t, old, fresh)
			w, _ := r.create(old.server.URL)
			old.set(func(rw http.ResponseWriter, _ *http.Request) {
				_, err := r.hooks.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{URL: &fresh.server.URL})
				if err != nil {
					t.Error(err)
				}
				rw.Header().Set("Retry-After", "86400")
				rw.WriteHeader(code)
			})
			r.publish("one")
			r.step()
			if got := r.record(w); got.DisabledAt != nil || got.FailingSince != nil || len(r.disabled) != 0 {
				t.Errorf("got the webhook %+v, %v, want one that works", got, r.disabled)
			}
			r.publish("two")
			r.step()
			if n := len(fresh.take()); n != 1 {
				t.Errorf("the new address got %d calls, want that of the second event", n)
			}
		})
	}
}

// A new URL gets the deliveries at once that were waiting for the end of a pause that the old URL
// had asked for.
func TestUpdate_AnotherURLEndsThePause(t *testing.T) {
	t.Parallel()
	old, fresh := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusServiceUnavailable)
	}), newReceiver(t, status(204))
	r := newRig(t, old, fresh)
	w, _ := r.create(old.server.URL)
	r.publish("one")
	r.step()
	r.publish("two")
	_, err := r.hooks.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{URL: &fresh.server.URL})
	r.OK(err)
	r.step()
	if n := len(fresh.take()); n != 1 {
		t.Errorf("the new address got %d calls, want that of the second event", n)
	}
}

// Each earlier secret signs until its own end, however often the secret is replaced before that.
func TestRotateSecret_EveryOldSecretSignsUntilItsEnd(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	w, first := r.create(x.server.URL)
	secrets := []string{first}
	var ends []time.Time
	for i := range 3 {
		got, secret, err := r.hooks.RotateSecret(r.Context(), r.org, w.ID.String(), nil)
		r.OK(err)
		ends = append(ends, r.time().Add(publishing.WebhookOverlap))
		if !slices.EqualFunc(got.PreviousUntil, ends, time.Time.Equal) {
			t.Errorf("rotation %d: got the ends %s, want %s", i+1, got.PreviousUntil, ends)
		}
		secrets = append(secrets, secret)
		r.wait(time.Hour)
	}
	_, _, err := r.hooks.RotateSecret(r.Context(), r.org, w.ID.String(), nil)
	wantFull(t, err, ends[0])
	_, err = r.hooks.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{Secret: &first})
	wantFull(t, err, ends[0])
	if got := r.record(w); !slices.EqualFunc(got.PreviousUntil, ends, time.Time.Equal) {
		t.Errorf("got the ends %s in the list, want %s", got.PreviousUntil, ends)
	}
	for ended := range 4 {
		if ended > 0 {
			r.wait(ends[ended-1].Sub(r.time()))
		}
		r.publish("x")
		r.step()
		calls := x.take()
		if got := strings.Fields(calls[0].Header.Get(webhook.StandardSignature)); len(got) != 4-ended {
			t.Errorf("got %d signatures when %d secrets have ended, want %d", len(got), ended, 4-ended)
		}
		for _, s := range secrets[ended:] {
			verifyStandard(t, s, calls)
		}
		verify(t, secrets[3], calls)
		if got := r.record(w).PreviousUntil; len(got) != 3-ended {
			t.Errorf("got the ends %s when %d secrets have ended, want %d", got, ended, 3-ended)
		}
	}
	got, err := r.hooks.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{Secret: &first})
	r.OK(err)
	if want := r.time().Add(publishing.WebhookOverlap); len(got.PreviousUntil) != 1 || !got.PreviousUntil[0].Equal(want) {
		t.Errorf("got the ends %s after a new secret in an update, want %s", got.PreviousUntil, want)
	}
}

func wantFull(t *testing.T, err error, first time.Time) {
	t.Helper()
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), first.UTC().Format(publishing.WireTime)) {
		t.Errorf("got %v, want Conflict that names %s", err, first)
	}
}

// Concurrent rotations all keep their promises: the earlier secrets and the current one sign.
func TestRotateSecret_TwoAtOnceKeepBothPromises(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	w, first := r.create(x.server.URL)
	var secrets [3]string
	var ends [3]int
	var both sync.WaitGroup
	for i := range secrets {
		both.Go(func() {
			got, secret, err := r.hooks.RotateSecret(r.Context(), r.org, w.ID.String(), nil)
			if err != nil {
				t.Error(err)
			}
			secrets[i], ends[i] = secret, len(got.PreviousUntil)
		})
	}
	both.Wait()
	slices.Sort(ends[:])
	if ends != [3]int{1, 2, 3} {
		t.Errorf("got %v ends in the answers, want 1, 2 and 3", ends)
	}
	r.publish("x")
	r.step()
	calls := x.take()
	for _, s := range append(secrets[:], first) {
		verifyStandard(t, s, calls)
	}
}

// Repeating a request with the same secret changes nothing, so it does not use up a place for an
// earlier secret.
func TestRotateSecret_SameSecretChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, _ := r.create("https://example.com")
	secret := publishing.FormatWebhookSecret([]byte(strings.Repeat("k", 32)))
	for range 5 {
		got, shown, err := r.hooks.RotateSecret(r.Context(), r.org, w.ID.String(), &secret)
		r.OK(err)
		if shown != secret || len(got.PreviousUntil) != 1 {
			t.Errorf("got the secret %s and the ends %s, want the given one and one end", shown, got.PreviousUntil)
		}
		got, err = r.hooks.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{Secret: &secret})
		r.OK(err)
		if len(got.PreviousUntil) != 1 {
			t.Errorf("got the ends %s after an update, want one", got.PreviousUntil)
		}
	}
}

// fill creates endpoints that have never responded, each with something to send, in organizations
// of one person.
func (r *rig) fill(organizations, endpoints int) {
	r.Helper()
	_, err := r.super().Exec(r.Context(), `with maker as (
			insert into person (id, email) values (gen_random_uuid(), 'maker@example.com') returning id),
		made as (
			insert into organization (id, name, created_by) select gen_random_uuid(), 'one of many', m.id
			from maker m, generate_series(1, $1) returning id),
		owned as (
			insert into member (org_id, person_id, role) select o.id, m.id, 'SUPERADMIN' from made o, maker m)
		insert into webhook (org_id, id, name, url, signing_key, created_at, updated_at, next_at)
		select m.id, gen_random_uuid(), 'h', 'https://example.com', 'sealed', now(), now(), $3
		from made m, generate_series(1, $2)`, organizations, endpoints, r.time().Add(-time.Hour))
	r.OK(err)
}

// All organizations of one person share that person's limit. Another person's endpoints are served
// at once, however many endpoints were due earlier.
func TestStep_OrganizationsOfOnePersonShare(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	mine := r.org
	r.fill(30, 50) // more than a single round looks at
	w, _ := r.create(x.server.URL)
	r.publish("x")
	_, err := r.deliverer.Step(r.Context())
	r.OK(err)
	queued := r.queued()
	if queued[mine.Org] != 1 {
		t.Errorf("got %d tasks of another person's organization, want 1", queued[mine.Org])
	}
	delete(queued, mine.Org)
	sum, most := 0, 0
	for _, n := range queued {
		sum, most = sum+n, max(most, n)
	}
	if sum != webhook.PerCreator || most > 1 {
		t.Errorf("got %d tasks of one person and %d of one organization of it, want %d, of as many organizations", sum, most, webhook.PerCreator)
	}
	r.OK(r.deliverer.Deliver(r.Context(), mine.Org, w.ID))
	_, err = r.deliverer.Step(r.Context())
	r.OK(err)
	if again := r.queued(); len(again) != 0 {
		t.Errorf("got the tasks %v while those wait, want none", again)
	}
}

// The turns that a process runs for one person's endpoints at once never exceed the share. This
// includes endpoints that are deleted while their calls wait, which the database no longer counts.
func TestDeliver_DeletedEndpointsCountUntilTheirCallsEnd(t *testing.T) {
	t.Parallel()
	var arrived sync.WaitGroup
	let := make(chan struct{})
	x := newReceiver(t, func(http.ResponseWriter, *http.Request) { arrived.Done(); <-let })
	r := newRig(t, x)
	var turns sync.WaitGroup
	begin := func() {
		w, _ := r.create(x.server.URL)
		_, err := r.hooks.Test(r.Context(), r.org, w.ID.String())
		r.OK(err)
		turns.Go(func() {
			if err := r.deliverer.Deliver(context.WithoutCancel(r.Context()), r.org.Org, w.ID); err != nil {
				t.Error(err)
			}
		})
		arrived.Wait()
		_, err = r.hooks.Delete(r.Context(), r.org, w.ID.String())
		r.OK(err)
	}
	for range webhook.PerCreator {
		arrived.Add(1)
		begin()
	}
	w, _ := r.create(x.server.URL)
	_, err := r.hooks.Test(r.Context(), r.org, w.ID.String())
	r.OK(err)
	x.take()
	r.OK(r.deliverer.Deliver(r.Context(), r.org.Org, w.ID))
	if n := len(x.take()); n != 0 {
		t.Errorf("got %d calls beyond the share, want 0", n)
	}
	close(let)
	turns.Wait()
	arrived.Add(1)
	r.OK(r.deliverer.Deliver(r.Context(), r.org.Org, w.ID))
	if n := len(x.take()); n != 1 {
		t.Errorf("got %d calls once the others have ended, want 1", n)
	}
}

// An endpoint is set aside until a call to its URL succeeds.
func TestStep_NewEndpointIsAsideUntilItsFirstSuccess(t *testing.T) {
	t.Parallel()
	x, other := newReceiver(t, status(200)), newReceiver(t, status(200))
	r := newRig(t, x, other)
	w, _ := r.create(x.server.URL)
	kind := func() string {
		t.Helper()
		r.publish("x")
		_, err := r.deliverer.Step(r.Context())
		r.OK(err)
		made := r.tasks()
		if len(made) != 1 {
			t.Fatalf("got %d tasks, want 1", len(made))
		}
		r.OK(r.deliverer.Deliver(r.Context(), r.org.Org, w.ID))
		return made[0].Kind
	}
	want := func(when, want string) {
		t.Helper()
		if got := kind(); got != want {
			t.Errorf("%s: got the task %s, want %s", when, got, want)
		}
	}
	want("a new endpoint", webhook.TaskAside)
	want("one that has answered", webhook.TaskHealthy)
	_, err := r.hooks.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{URL: &other.server.URL})
	r.OK(err)
	want("one with another URL", webhook.TaskAside)
	want("one whose URL has answered", webhook.TaskHealthy)
	other.set(status(500))
	want("one that works", webhook.TaskHealthy)
	want("one that has failed", webhook.TaskAside)
}
