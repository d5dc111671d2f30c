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
	callers   = 8 // clients of the API, each with at most twenty calls per second
	callEvery = 50 * time.Millisecond
)

// apiResult is the measurement of calls to the API.
type apiResult struct {
	took       []time.Duration // duration of every call
	errs       []error
	errorTimes []time.Time // end of each failed call
}

func (s *apiResult) first() error {
	if len(s.errs) == 0 {
		return nil
	}
	return s.errs[0]
}

// addTo adds figures to a line that show how the end of a process affected clients.
func (s *apiResult) addTo(line m, killed time.Time) {
	slices.Sort(s.took)
	line["apiCalls"], line["apiErrors"], line["apiP99Ms"], line["apiMaxMs"] = len(s.took), len(s.errs),
		ms(quantile(s.took, .99)), ms(quantile(s.took, 1))
	if len(s.errs) > 0 {
		line["firstApiError"], line["lastApiErrorMs"] = s.errs[0].Error(),
			ms(slices.MaxFunc(s.errorTimes, time.Time.Compare).Sub(killed))
	}
}

// callAPI calls the API of the processes until stop is called. It makes each request once, on a new
// connection.
func callAPI(ctx context.Context, nodes []*node, all []tenant) (stop func() *apiResult) {
	balancer := faultnet.Balance(ctx, func() (addresses []string) {
		for _, n := range nodes {
			addresses = append(addresses, n.address)
		}
		return addresses
	})
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		for range nodes { // try the next process if the connection fails
			conn, err = balancer.Dial(ctx, network, address)
			if err == nil {
				return conn, nil
			}
		}
		return nil, err
	}
	end := make(chan struct{})
	out := &apiResult{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for user := range callers {
		transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
		c := &client{http: &http.Client{Transport: transport, Timeout: 30 * time.Second},
			address: "http://crier.bench/public/v1"}
		group.Go(func() {
			for i := user; ; i += callers {
				select {
				case <-end:
					return
				case <-time.After(callEvery):
				}
				began := now()
				err := c.readOrBook(ctx, all[i%len(all)], i/callers%2 == 0)
				mu.Lock()
				out.took = append(out.took, now().Sub(began))
				if err != nil {
					out.errs, out.errorTimes = append(out.errs, err), append(out.errorTimes, now())
				}
				mu.Unlock()
			}
		})
	}
	return func() *apiResult {
		close(end)
		group.Wait()
		return out
	}
}

// readOrBook reads the channels, or books a post that is due tomorrow.
func (c *client) readOrBook(ctx context.Context, t tenant, reads bool) error {
	if reads {
		return c.call(ctx, t.key, http.MethodGet, "/integrations", nil, http.StatusOK)
	}
	later := now().Add(24 * time.Hour)
	return c.book(ctx, t, 0, later, content(t.first, 0, later))
}
