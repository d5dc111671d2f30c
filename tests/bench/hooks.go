package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"crier/tests/faultnet"
)

const (
	// crowdOrgs organizations of one person have crowdHooks webhooks each, whose server never
	// responds.
	crowdOrgs, crowdHooks = 30, 20
	crowdGoal             = 2 * time.Second // goal for the added delay of another organization
	// dueOrgs organizations of one person have dueHooks webhooks each, all with something to send.
	dueOrgs, dueHooks = 250, 100
	dueGoal           = 50 * time.Millisecond // goal for the statements that find due webhooks
	dueSpan           = 15 * time.Second
)

// crowded measures how late an organization's delivery is while the organizations of one person
// have many webhooks that accept calls and never respond. The floor is the same organization's
// deliveries before that, in the same run. Each delivery is the first one of a new webhook, which
// uses the same workers as the hanging webhooks.
func (r *rig) crowded(ctx context.Context) error {
	box, err := newMailbox(ctx)
	if err != nil {
		return err
	}
	hang, err := silentServer()
	if err != nil {
		return errors.Join(err, box.server.Close())
	}
	var before, with []time.Duration
	err = r.withDB(ctx, func(b *testDB) (err error) {
		all, err := b.createTenants(ctx, crowdOrgs+1, 1)
		if err != nil {
			return err
		}
		past := spread(all, now().Add(-time.Hour))
		if _, err := b.insertPosts(ctx, len(all), func(i int) booking {
			x := past(i)
			x.done = true
			return x
		}); err != nil {
			return err
		}
		n, err := b.serve(ctx, append(
			b.opts.settings, "OUTBOUND_ALLOW="+strings.TrimPrefix(box.url, "http://")+","+hang.Address,
		)...)
		if err != nil {
			return err
		}
		// In this order, because stopping the service waits for its calls.
		defer func() { err = errors.Join(err, hang.Close(), n.stop()) }()
		if err := wait(ctx, startUp); err != nil {
			return err
		}
		before, err = b.firstDeliveries(ctx, all[crowdOrgs], box)
		if err != nil {
			return err
		}
		if err := b.insertCrowd(ctx, all[:crowdOrgs], crowdHooks, "http://"+hang.Address); err != nil {
			return err
		}
		if err := b.told(ctx, all[:crowdOrgs]); err != nil {
			return err
		}
		for hang.Accepted() == 0 {
			if err := wait(ctx, time.Millisecond); err != nil {
				return err
			}
		}
		with, err = b.firstDeliveries(ctx, all[crowdOrgs], box)
		return err
	})
	if err := errors.Join(err, box.server.Close()); err != nil {
		return err
	}
	ours, floor := quantile(with, 1), quantile(before, 1)
	return r.emit(m{
		"bench": "webhook-crowd", "unit": "s to the latest of an organization's deliveries", "ours": ours.Seconds(),
		"floor": floor.Seconds(), "ratio": ours.Seconds() / floor.Seconds(), "difference": (ours - floor).Seconds(),
		"hangingEndpoints": crowdOrgs * crowdHooks, "organizations": crowdOrgs, "hangingCalls": hang.Accepted(),
		"deliveries": len(with), "p50": quantile(with, .5).Seconds(), "floorP50": quantile(before, .5).Seconds(),
		"goal": crowdGoal.Seconds(), "goalMet": ours-floor <= crowdGoal,
	})
}

// firstDeliveries measures ten times how long after its event the first delivery of a new webhook
// arrives. It returns the durations, shortest first.
func (b *testDB) firstDeliveries(ctx context.Context, t tenant, box *mailbox) (took []time.Duration, err error) {
	for range 10 {
		if _, err := b.super.Exec(ctx, `delete from webhook where org_id = $1`, t.org.UUID()); err != nil {
			return nil, err
		}
		if err := b.insertWebhooks(ctx, []tenant{t}, box.url); err != nil {
			return nil, err
		}
		calls, began := box.calls.Load(), now()
		if err := b.told(ctx, []tenant{t}); err != nil {
			return nil, err
		}
		for box.calls.Load() == calls {
			if err := wait(ctx, time.Millisecond); err != nil {
				return nil, err
			}
			if now().Sub(began) > 5*time.Minute {
				return nil, errors.New("a delivery did not arrive within five minutes")
			}
		}
		took = append(took, now().Sub(began))
		if err := wait(ctx, 700*time.Millisecond); err != nil { // to another phase of the loop
			return nil, err
		}
	}
	slices.Sort(took)
	return took, nil
}

// told adds an event about each organization's post.
func (b *testDB) told(ctx context.Context, all []tenant) error {
	orgs := make([]uuid.UUID, len(all))
	for i, t := range all {
		orgs[i] = t.org.UUID()
	}
	_, err := b.super.Exec(ctx, `insert into webhook_event (org_id, event, post_id, state)
		select org_id, 'post.published', id, 'PUBLISHED' from post where org_id = any ($1)`, orgs)
	return err
}

// insertCrowd assigns the organizations to one creator and adds webhooks to each.
func (b *testDB) insertCrowd(ctx context.Context, all []tenant, each int, url string) error {
	person := uuid.Must(uuid.NewV7())
	if _, err := b.super.Exec(
		ctx, `insert into person (id, email) values ($1, 'crowd@example.com')`, person,
	); err != nil {
		return err
	}
	for _, t := range all {
		if _, err := b.super.Exec(
			ctx, `update organization set created_by = $2 where id = $1`, t.org.UUID(), person,
		); err != nil {
			return err
		}
	}
	for range each {
		if err := b.insertWebhooks(ctx, all, url); err != nil {
			return err
		}
	}
	return nil
}

// dueQuery measures the statements that the loop uses to find due webhooks while the organizations
// of one person have many of them. The times are Postgres' own, from the rounds of the running
// service.
func (r *rig) dueQuery(ctx context.Context) error {
	hang, err := silentServer()
	if err != nil {
		return err
	}
	return r.withDB(ctx, func(b *testDB) (err error) {
		all, err := b.createTenants(ctx, dueOrgs, 1)
		if err != nil {
			return err
		}
		if err := b.insertCrowd(ctx, all, dueHooks, "http://"+hang.Address); err != nil {
			return err
		}
		for _, sql := range []string{
			`insert into webhook_delivery (org_id, id, webhook_id, number, event, body, next_at, created_at)
				select org_id, gen_random_uuid(), id, 1, 'post.published', '[]', now(), now() from webhook`,
			`update webhook set next_at = now(), last_number = 1`,
		} {
			if _, err := b.super.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		n, err := b.serve(ctx, append(b.opts.settings, "OUTBOUND_ALLOW="+hang.Address)...)
		if err != nil {
			return err
		}
		// In this order, because stopping the service waits for its calls.
		defer func() { err = errors.Join(err, hang.Close(), n.stop()) }()
		if err := wait(ctx, dueSpan); err != nil {
			return err
		}
		line := m{
			"bench": "webhook-due", "unit": "ms of a round's statements",
			"due": dueOrgs * dueHooks, "organizations": dueOrgs,
			"hangingCalls": hang.Accepted(), "goal": ms(dueGoal),
		}
		var mean, worst float64
		for name, statement := range map[string]string{
			"due": "publishing.WebhookDue", "turns": "publishing.WebhookTurns",
		} {
			var calls int64
			var one, most float64
			if err := b.super.QueryRow(ctx, `select sum(calls)::bigint, sum(total_exec_time) / sum(calls), max(max_exec_time)
				from pg_stat_statements where query like '-- ' || $1 || e'\n%' having count(*) > 0`, statement).Scan(&calls, &one, &most); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
			line[name+"Rounds"], line[name+"Ms"], line[name+"WorstMs"] = calls, one, most
			mean, worst = mean+one, worst+most
		}
		line["ours"], line["worst"], line["goalMet"] = mean, worst, mean <= ms(dueGoal)
		return r.emit(line)
	})
}

// silentServer returns a server that accepts connections and never responds.
func silentServer() (*faultnet.Proxy, error) {
	s, err := faultnet.Listen("127.0.0.1:0", "")
	if err != nil {
		return nil, err
	}
	s.Set(faultnet.Swallow)
	return s, nil
}
