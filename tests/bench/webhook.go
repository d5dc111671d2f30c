package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// hookOrgs is the number of organizations with webhooks. Each has one webhook.
	hookOrgs = 100
	// hookClients is the number of calls that the floor makes at once. It equals the service's: two
	// for each of its workers.
	hookClients = 32
	hookSize    = 600 // bytes in a body of the floor, about the same as the service's
)

// mailbox receives the webhooks. It reads each call and responds with 204.
type mailbox struct {
	server *http.Server
	url    string
	calls  atomic.Int64
}

func newMailbox(ctx context.Context) (*mailbox, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	box := &mailbox{url: "http://" + ln.Addr().String()}
	box.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			box.calls.Add(1)
			w.WriteHeader(http.StatusNoContent)
		}),
	}
	go func() { _ = box.server.Serve(ln) }() // it returns when the server is closed
	return box, nil
}

// webhooks measures how fast events become deliveries, from the moment when all events exist until
// the last delivery is stored. The floor is the same number of signed POSTs by a bare client to the
// same receiver in the same run. Its processor time is measured in this process and includes the
// receiver, while ours is measured in the service and Postgres.
//
// Then webhooks measures what one person's many webhooks cost others.
func webhooks(ctx context.Context, r *rig) error {
	deliveries := min(10_000, max(hookOrgs, r.opts.posts/10))
	var ours, floors, cpu, floorCPU []float64
	for range max(1, r.opts.rounds) {
		box, err := newMailbox(ctx)
		if err != nil {
			return err
		}
		span, used, err := r.deliver(ctx, box, deliveries)
		if err != nil {
			return errors.Join(err, box.server.Close())
		}
		before, began := usageOf(os.Getpid()), now()
		err = errors.Join(postAll(ctx, box, deliveries), box.server.Close())
		if err != nil {
			return err
		}
		bare := now().Sub(began)
		client := usageOf(os.Getpid()).cpu - before.cpu
		n := float64(deliveries)
		ours, floors = append(ours, n/span.Seconds()), append(floors, n/bare.Seconds())
		cpu, floorCPU = append(cpu, ms(used.cpu())/n), append(floorCPU, ms(client)/n)
		line := m{
			"bench": "webhook", "unit": "deliveries/s", "ours": mean(ours), "floor": mean(floors),
			"ratio": mean(ours) / mean(floors), "deliveries": deliveries, "endpoints": hookOrgs, "rounds": len(ours),
			"eachOurs": ours, "eachFloor": floors, "cpuMsEach": mean(cpu), "floorCpuMsEach": mean(floorCPU),
			"cpuMsEachCrier": ms(used.crier) / n, "cpuMsEachPostgres": ms(used.postgres) / n,
			"statementsEach": float64(used.statements) / n,
		}
		if err := r.emit(line); err != nil {
			return err
		}
	}
	return errors.Join(r.crowded(ctx), r.dueQuery(ctx))
}

// deliver lets the service deliver one event per post, for this number of posts, to the receiver.
func (r *rig) deliver(ctx context.Context, box *mailbox, deliveries int) (span time.Duration, used cost, err error) {
	err = r.withDB(ctx, func(b *testDB) (err error) {
		all, err := b.createTenants(ctx, hookOrgs, 1)
		if err != nil {
			return err
		}
		past := spread(all, now().Add(-time.Hour))
		if _, err := b.insertPosts(ctx, deliveries, func(i int) booking {
			x := past(i)
			x.done = true
			return x
		}); err != nil {
			return err
		}
		if err := b.insertWebhooks(ctx, all, box.url); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		n, err := b.serve(ctx, append(b.opts.settings, "OUTBOUND_ALLOW="+strings.TrimPrefix(box.url, "http://"))...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.stop()) }()
		if err := wait(ctx, startUp); err != nil {
			return err
		}
		before, err := b.cost(ctx, n)
		if err != nil {
			return err
		}
		began := now()
		if _, err := b.super.Exec(ctx, `insert into webhook_event (org_id, event, post_id, state)
			select org_id, 'post.published', id, 'PUBLISHED' from post`); err != nil {
			return err
		}
		if err := b.delivered(ctx, box, deliveries); err != nil {
			return err
		}
		span = now().Sub(began)
		after, err := b.cost(ctx, n)
		used = after.since(before)
		return err
	})
	return span, used, err
}

// insertWebhooks adds a webhook to each organization.
func (b *testDB) insertWebhooks(ctx context.Context, all []tenant, url string) error {
	rows := pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
		sealed, err := b.keyring.Seal(bytes.Repeat([]byte("k"), 32), all[i].org.String())
		return []any{all[i].org.UUID(), uuid.Must(uuid.NewV7()), "bench", url, sealed, now(), now()}, err
	})
	_, err := b.super.CopyFrom(ctx, pgx.Identifier{"webhook"},
		[]string{"org_id", "id", "name", "url", "signing_key", "created_at", "updated_at"}, rows)
	return err
}

// delivered waits until every delivery is stored as delivered. It queries only after the receiver
// has all of them.
func (b *testDB) delivered(ctx context.Context, box *mailbox, deliveries int) error {
	patience, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		if box.calls.Load() >= int64(deliveries) {
			var left int
			err := b.super.QueryRow(patience, `select $1 - count(*) from webhook_delivery where state = 'delivered'`,
				deliveries).Scan(&left)
			if err != nil || left == 0 {
				return err
			}
		}
		if err := wait(patience, 10*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d deliveries arrived: %w", box.calls.Load(), deliveries, err)
		}
	}
}

// postAll makes signed calls with a bare client.
func postAll(ctx context.Context, box *mailbox, calls int) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: hookClients}}
	defer client.CloseIdleConnections()
	body := strings.Repeat("x", hookSize)
	var next atomic.Int64
	var workers sync.WaitGroup
	errs := make([]error, hookClients)
	for i := range errs {
		workers.Go(func() {
			for next.Add(1) <= int64(calls) && errs[i] == nil {
				errs[i] = postOne(ctx, client, box.url, body)
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

func postOne(ctx context.Context, client *http.Client, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	key, id := bytes.Repeat([]byte("k"), 32), uuid.NewString()
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + body)) // a hash returns no error
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}
