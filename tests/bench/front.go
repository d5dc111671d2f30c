package main

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"crier/tests/faultnet"
)

const (
	callers   = 8 // clients that call the API, each twenty times a second at most
	callEvery = 50 * time.Millisecond
)

// said is how the API answered.
type said struct {
	took   []time.Duration // of all calls
	wrong  []error
	wrongs []time.Time // when each was over
}

func (s *said) first() error {
	if len(s.wrong) == 0 {
		return nil
	}
	return s.wrong[0]
}

// tell adds to a line what clients saw of a process's end.
func (s *said) tell(line m, killed time.Time) {
	slices.Sort(s.took)
	line["apiCalls"], line["apiErrors"], line["apiP99Ms"], line["apiMaxMs"] = len(s.took), len(s.wrong), ms(quantile(s.took, .99)), ms(quantile(s.took, 1))
	if len(s.wrong) > 0 {
		line["firstApiError"], line["lastApiErrorMs"] = s.wrong[0].Error(), ms(slices.MaxFunc(s.wrongs, time.Time.Compare).Sub(killed))
	}
}

// callAPI calls the API of the processes, each request once, on a connection of its own, until it is told to stop.
func callAPI(ctx context.Context, nodes []*node, all []tenant) (stop func() *said) {
	balancer := faultnet.Balance(ctx, func() (addresses []string) {
		for _, n := range nodes {
			addresses = append(addresses, n.address)
		}
		return addresses
	})
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		for range nodes { // to another process when a connection cannot be had
			if conn, err = balancer.Dial(ctx, network, address); err == nil {
				return conn, nil
			}
		}
		return nil, err
	}
	end := make(chan struct{})
	out := &said{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for user := range callers {
		transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
		c := &client{&http.Client{Transport: transport, Timeout: 30 * time.Second}, "http://crier.bench/public/v1"}
		group.Go(func() {
			for i := user; ; i += callers {
				select {
				case <-end:
					return
				case <-time.After(callEvery):
				}
				began := now()
				err := c.either(ctx, all[i%len(all)], i/callers%2 == 0)
				mu.Lock()
				out.took = append(out.took, now().Sub(began))
				if err != nil {
					out.wrong, out.wrongs = append(out.wrong, err), append(out.wrongs, now())
				}
				mu.Unlock()
			}
		})
	}
	return func() *said {
		close(end)
		group.Wait()
		return out
	}
}

// either reads, or books a post that falls due tomorrow.
func (c *client) either(ctx context.Context, t tenant, reads bool) error {
	if reads {
		return c.call(ctx, t.key, http.MethodGet, "/integrations", nil, http.StatusOK)
	}
	later := now().Add(24 * time.Hour)
	return c.book(ctx, t, 0, later, content(t.first, 0, later))
}
