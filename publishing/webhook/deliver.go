package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"crier/platform/clock"
	"crier/platform/failpoint"
	"crier/publishing"
	"crier/publishing/db"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
)

const (
	// drainTime is how long a task keeps sending to a working endpoint before other endpoints have
	// their turn.
	drainTime = 15 * time.Second
	// drainBatch is how many deliveries are read at a time.
	drainBatch = 20
	// inFlight is the number of concurrent calls to a working endpoint. A failing endpoint gets one
	// call per turn.
	inFlight = 2
	// A call that takes slowAnswer milliseconds or longer, however it ends, marks its endpoint as
	// slow for slowFor. Slow endpoints share the workers of failing endpoints. A slow endpoint can
	// therefore occupy a worker of the working endpoints for at most one call.
	slowAnswer = 2000
	slowFor    = time.Hour
	// hold is how long a process owns an endpoint. It is longer than a turn.
	hold = TaskTimeout
	// errorPause is how long an endpoint waits after a database error.
	errorPause = time.Minute
	// saveTimeout is the deadline for storing an attempt, even while the process is stopping.
	saveTimeout = 5 * time.Second
)

// Deliver sends an endpoint's due deliveries. It sends for up to drainTime if the endpoint works,
// and sends only one delivery if the endpoint fails. The next task, which the loop adds, sends the
// rest. Deliver sends nothing if another process is sending to the endpoint, or if this process is
// already sending to perCreator endpoints of the same creator in tasks of the same kind. After a
// crash, a call is repeated with the same id once hold has passed.
//
// Each call uses the URL and the signing keys that are stored at its start. No call starts after
// the endpoint has been deleted or disabled, or its organization has been suspended or deleted. A
// call in flight is not stopped.
func (d *Deliverer) Deliver(ctx context.Context, org tenancy.OrgID, webhook publishing.WebhookID) error {
	now := d.deps.Clock.Now()
	turn, found, err := webhookstore.BeginWebhook(ctx, d.db, org, webhook, now, now.Add(hold))
	if err != nil || !found {
		return err
	}
	r := &run{
		Deliverer: d, org: org, webhook: webhook, WebhookTurn: turn, failing: turn.Failing, began: clock.Boot(),
	}
	notBefore := now
	leave, ok := d.shares.TryEnter(share{creator: turn.Creator, aside: turn.Aside})
	if ok {
		err = r.drain(ctx)
		leave()
	}
	switch {
	case errors.Is(err, errClosed):
		d.deps.Log.ErrorContext(ctx, "a webhook's secret cannot be opened, so nothing is sent to it", "org", org,
			"webhook", webhook, "error", err)
		notBefore, err = now.Add(inactiveFor), nil
	case err != nil:
		// Wait, to avoid repeating a call over and over.
		notBefore = r.deps.Clock.Now().Add(errorPause)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	return errors.Join(err, webhookstore.EndWebhook(end, d.db, org, webhook, notBefore))
}

// share identifies a creator's share of the workers of one kind.
type share struct {
	creator uuid.UUID
	aside   bool
}

// run is an endpoint's turn, during which this process sends to the endpoint.
type run struct {
	*Deliverer
	webhookstore.WebhookTurn
	org     tenancy.OrgID
	webhook publishing.WebhookID
	// began is when the turn began, by clock.Boot. No call begins after drainTime, so the turn ends
	// within TaskTimeout and every call is stored, even if the endpoint responds slowly.
	began time.Duration

	mu sync.Mutex
	// failing is set by the first failed attempt and ends the turn.
	failing bool
	// slowed is set by the first slow response of an endpoint that is not set aside. It also ends
	// the turn.
	slowed bool
	err    error
}

func (r *run) drain(ctx context.Context) error {
	for clock.Boot()-r.began < drainTime {
		limit, at := drainBatch, inFlight
		if r.failing {
			limit, at = 1, 1
		}
		due, err := webhookstore.DueDeliveries(ctx, r.db, r.org, r.webhook, r.deps.Clock.Now(), limit)
		if err != nil || len(due) == 0 {
			return err
		}
		r.sendAll(ctx, due, at)
		if r.err != nil || r.failing || r.slowed {
			return r.err
		}
	}
	return nil
}

// errClosed means that a secret cannot be opened.
var errClosed = errors.New("closed")

// openKeys opens sealed keys. It returns errClosed if a key cannot be opened.
func (r *run) openKeys(sealed [][]byte) ([][]byte, error) {
	keys := make([][]byte, len(sealed))
	for i, s := range sealed {
		key, err := r.deps.Keyring.Open(s, r.org.String())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errClosed, err)
		}
		keys[i] = key
	}
	return keys, nil
}

// sendAll sends deliveries until a call fails or the turn ends, but always sends the first one. at
// limits the concurrent calls.
func (r *run) sendAll(ctx context.Context, due []webhookstore.DueDelivery, at int) {
	var taken atomic.Int64
	var senders sync.WaitGroup
	for range min(at, len(due)) {
		senders.Go(func() {
			for {
				i := int(taken.Add(1)) - 1
				if i >= len(due) || i > 0 && r.isOver(ctx) {
					return
				}
				r.attempt(ctx, due[i])
			}
		})
	}
	senders.Wait()
}

// isOver reports whether the turn must not begin another call.
func (r *run) isOver(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing || r.slowed || r.err != nil || ctx.Err() != nil || clock.Boot()-r.began >= drainTime
}

// attempt sends one delivery once, if it must still be sent, and stores the outcome. An attempt
// that was interrupted because ctx ended is not stored, and the delivery is sent again.
func (r *run) attempt(ctx context.Context, one webhookstore.DueDelivery) {
	failpoint.At(failpoint.WebhookSending, one.ID.String())
	now := r.deps.Clock.Now()
	target, found, err := webhookstore.DeliveryTarget(ctx, r.db, r.org, r.webhook, one, now)
	keys, closed := r.openKeys(target.Keys)
	if err := errors.Join(err, closed); err != nil || !found {
		r.ended(false, false, err)
		return
	}
	c := call{id: one.ID, event: one.Event, attempt: one.Attempts + 1, at: now, body: one.Body, keys: keys}
	a := send(ctx, r.deps.HTTP, target.URL, c.headers(), one.Body, now)
	if ctx.Err() != nil {
		return
	}
	failpoint.At(failpoint.WebhookSent, one.ID.String())
	result := r.result(one, target.URL, a, now)
	save, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	now = r.deps.Clock.Now()
	since, err := webhookstore.SaveAttempt(save, r.db, r.org, r.webhook, result, now)
	if err == nil && a.problem != "" && !result.IsTest {
		err = r.judge(save, target.URL, a, since, now)
	}
	r.ended(a.problem != "", result.SlowUntil != nil && !r.Aside, err)
}

// ended records an attempt's consequences for the turn.
func (r *run) ended(failing, slowed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing, r.slowed, r.err = r.failing || failing, r.slowed || slowed, errors.Join(r.err, err)
}

// result returns the AttemptResult of a call to url.
func (r *run) result(
	one webhookstore.DueDelivery, url string, a answer, now time.Time,
) webhookstore.AttemptResult {
	out := webhookstore.AttemptResult{
		Delivery: one.ID, URL: url, State: publishing.DeliveryDelivered, IsTest: one.Event == publishing.WebhookTest,
		Attempt: publishing.WebhookAttempt{
			Number: one.Attempts + 1, At: now, Millis: a.took.Milliseconds(), Status: a.status, Error: a.problem,
			Answer: a.excerpt,
		},
	}
	if a.took.Milliseconds() >= slowAnswer {
		until := now.Add(slowFor)
		out.SlowUntil = &until
	}
	if a.problem == "" {
		return out
	}
	if a.cause != nil {
		r.deps.Log.Info("a webhook could not be called", "org", r.org, "webhook", r.webhook, "host", hostOf(url),
			"error", withoutURL(a.cause))
	}
	out.State = publishing.DeliveryFailed
	if pause := publishing.WebhookPause(a.after); pause > 0 {
		until := now.Add(pause)
		out.NotBefore = &until
	}
	wait, again := publishing.WebhookWait(one.Attempts+1-one.PlannedFrom, r.deps.Chance(), a.after)
	if again && !out.IsTest {
		at := now.Add(wait)
		out.State, out.NextAt = publishing.DeliveryPending, &at
	}
	return out
}

// judge disables an endpoint whose URL is gone or that has failed for too long.
func (r *run) judge(ctx context.Context, url string, a answer, since *time.Time, now time.Time) error {
	why, text := publishing.WebhookDisabled(""), ""
	switch {
	case a.status == http.StatusGone:
		why, text = publishing.DisabledGone, "The endpoint answered 410, so the webhook was disabled."
	case since != nil && now.Sub(*since) >= publishing.WebhookGiveUp:
		why, text = publishing.DisabledFailing, "All deliveries failed for five days, so the webhook was disabled."
	default:
		return nil
	}
	done := false
	err := r.db.InOrg(ctx, r.org, func(tx *db.Tx) (err error) {
		done, err = webhookstore.DisableWebhook(ctx, tx, r.webhook, url, why, text, now)
		if err != nil || !done {
			return err
		}
		service := tenancy.Principal{Org: r.org, Via: tenancy.ViaInstance, Name: "the service"}
		return r.db.Audit(ctx, tx, service, tenancy.ActionWebhookDisabled, r.Name+" ("+string(why)+")")
	})
	if err != nil || !done {
		return err
	}
	r.deps.Log.WarnContext(ctx, "a webhook was disabled", "org", r.org, "webhook", r.webhook, "reason", why)
	return nil
}
