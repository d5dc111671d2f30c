package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"crier/tests/call"
)

// client calls the API as a number of concurrent users, each with a persistent connection.
type client struct {
	http    *http.Client
	address string
}

func newClient(n *node, users int) *client {
	return &client{
		http:    &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: users}, Timeout: time.Minute},
		address: "http://" + n.address + "/public/v1",
	}
}

func (c *client) call(ctx context.Context, key, method, path string, body any, want int) error {
	a, err := call.Do(ctx, c.http, method, c.address+path, body, "Authorization", key)
	if err != nil {
		return err
	}
	if a.Status != want {
		return fmt.Errorf("%s %s: got %.300v, want status %d", method, path, a, want)
	}
	return nil
}

// m is a JSON object.
type m = map[string]any

func (c *client) book(ctx context.Context, t tenant, channel int, due time.Time, text string) error {
	return c.call(ctx, t.key, http.MethodPost, "/posts", m{
		"type": "schedule", "date": due.UTC().Format("2006-01-02T15:04:05.000Z"), "shortLink": false, "tags": []any{},
		"posts": []m{{"integration": m{"id": t.channels[channel].String()},
			"value": []m{{"content": text, "image": []any{}}}}},
	}, http.StatusCreated)
}

// load is the measurement of a number of calls.
type load struct {
	rate     float64 // calls per second
	p50, p99 time.Duration
	calls    int
}

// drive makes calls as a number of concurrent users, until enough returns true for the next call or
// a call fails. It returns the joined errors.
func drive(users int, enough func(i int) bool, call func(i int) error) (load, error) {
	var next, failed atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	var first error
	began := now()
	var group sync.WaitGroup
	for range users {
		group.Go(func() {
			var mine []time.Duration
			for failed.Load() == 0 {
				i := int(next.Add(1)) - 1
				if enough(i) {
					break
				}
				start := now()
				if err := call(i); err != nil {
					failed.Add(1)
					mu.Lock()
					first = errors.Join(first, err)
					mu.Unlock()
					break
				}
				mine = append(mine, now().Sub(start))
			}
			mu.Lock()
			took = append(took, mine...)
			mu.Unlock()
		})
	}
	group.Wait()
	span := now().Sub(began)
	slices.Sort(took)
	return load{rate: float64(len(took)) / span.Seconds(), p50: quantile(took, .5), p99: quantile(took, .99),
		calls: len(took)}, first
}

// untilOver returns an enough function for drive that stops it after a time span.
func untilOver(span time.Duration) func(int) bool {
	end := now().Add(span)
	return func(int) bool { return now().After(end) }
}
