package faultnet

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	probeEvery = 200 * time.Millisecond
	probeLimit = time.Second
)

// Balancer dials, in turn, the servers that respond to /health with 200.
type Balancer struct {
	servers func() []string // returns addresses, host:port
	client  http.Transport
	well    atomic.Pointer[[]string]
	next    atomic.Int64
}

// Balance returns a Balancer. It probes the servers once before it returns, and then every
// probeEvery until ctx is done.
func Balance(ctx context.Context, servers func() []string) *Balancer {
	b := &Balancer{servers: servers, client: http.Transport{DisableKeepAlives: true}}
	b.probe(ctx)
	go func() {
		for ctx.Err() == nil {
			time.Sleep(probeEvery)
			b.probe(ctx)
		}
	}()
	return b
}

func (b *Balancer) probe(ctx context.Context) {
	well := []string{}
	for _, server := range b.servers() {
		if b.isHealthy(ctx, server) {
			well = append(well, server)
		}
	}
	b.well.Store(&well)
}

func (b *Balancer) isHealthy(ctx context.Context, server string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server+"/health", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := b.client.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // only the status counts
	return resp.StatusCode == http.StatusOK
}

// Dial connects to the next healthy server, or returns an error if there is none. It can be used as
// http.Transport.DialContext; it ignores the address.
func (b *Balancer) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	well := *b.well.Load()
	if len(well) == 0 {
		return nil, errors.New("no server is healthy")
	}
	return new(net.Dialer).DialContext(ctx, network, well[int(b.next.Add(1))%len(well)])
}
