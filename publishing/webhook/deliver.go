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
	// drainTime is how long a task keeps sending to a working endpoint before other endpoints get
	// their turn.
	drainTime = 15 * time.Second
	// drainBatch is how many deliveries are read at a time.
	drainBatch = 20
	// inFlight is the number of concurrent calls to a working endpoint. A failing endpoint gets one
	// call per turn.
	inFlight = 2
	// If a call takes slowAnswer milliseconds or longer, its endpoint counts as slow for slowFor,
	// even if the call succeeded. Slow endpoints are served by the same workers as failing
	// endpoints. An endpoint that becomes slow can therefore occupy a worker of the working
	// endpoints for at most one call.
	slowAnswer = 2000
	slowFor    = time.Hour
	// hold is how long a process has the exclusive right to send to an endpoint. It is longer than
	// a turn.
	hold = TaskTimeout
	// errorPause is how long an endpoint is skipped after a database error.
	errorPause = time.Minute
	// saveTimeout is the time limit for storing an attempt. It applies even while the process is
	// stopping.
	saveTimeout = 5 * time.Second
)

// Deliver sends an endpoint's due deliveries. If the endpoint works, Deliver keeps sending for up
// to drainTime. If the endpoint fails, Deliver sends only one delivery. The loop later adds a task
// that sends the rest.
//
// Deliver sends nothing if another process is sending to the endpoint. It also sends nothing if
// this process already has perCreator sends of the same kind in progress for the same creator.
// After a crash, an interrupted call is repeated with the same id once hold has passed.
//
// Each call uses the URL and the signing keys that are stored when the call starts. No call is
// started once the endpoint has been deleted or disabled, or its organization has been suspended or
// deleted. A call in flight is not stopped.
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
		// Wait so that the same call is not repeated over and over.
		notBefore = r.deps.Clock.Now().Add(errorPause)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	return errors.Join(err, webhookstore.EndWebhook(end, d.db, org, webhook, notBefore))
}

// share is the key by which a creator's turns are counted, separately for working endpoints and
// endpoints set aside.
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
	// began is the clock.Boot reading at the start of the turn. No call begins after drainTime has
	// passed. Therefore, even if the endpoint responds slowly, the turn ends within TaskTimeout and
	// every attempt is stored.
	began time.Duration

	mu sync.Mutex
	// failing is set by the first failed attempt and ends the turn.
	failing bool
	// slowed is set by the first slow response of an endpoint that is not set aside. Like failing,
	// it ends the turn.
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

// errClosed means that a secret cannot be decrypted.
var errClosed = errors.New("closed")

// openKeys decrypts sealed keys. It returns errClosed if a key cannot be decrypted.
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
// is the maximum number of concurrent calls.
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

// attempt sends a delivery once and stores the outcome. It sends nothing if the delivery must no
// longer be sent. If ctx ends during the call, the outcome is not stored, and the delivery is sent
// again.
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

// ended records how an attempt affects the turn.
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

// judge disables an endpoint that has responded with 410 Gone or has been failing for too long.
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
