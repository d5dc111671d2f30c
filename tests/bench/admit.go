package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"crier/actors/cluster"
	"crier/actors/org"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/ratelimit"
	"crier/tenancy"
)

// noOffers is a queue that ignores offers.
type noOffers struct{}

func (noOffers) Offer(tenancy.OrgID, int) {}

// admitting measures the rate limiter of an organization's actor on this node and on another node.
func admitting(ctx context.Context, r *rig) (err error) {
	all := make([]tenancy.OrgID, 64)
	for i := range all {
		all[i] = id.New[tenancy.OrgTag]()
	}
	var clients [3]*org.Client
	places := [3]func(int16) (string, bool){
		nil,
		func(int16) (string, bool) { return clients[2].Address(), false },
		func(int16) (string, bool) { return clients[2].Address(), true },
	}
	for i, listen := range []string{"", "127.0.0.1:0", "127.0.0.1:0"} {
		cfg := org.Config{Limit: admitLimit, MaxInFlight: 1, Timeout: time.Second}
		clients[i], err = org.New(cfg, cluster.Config{Listen: listen}, org.Deps{
			Offers: noOffers{}, Place: places[i], Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, clients[i].Close(context.WithoutCancel(ctx))) }()
	}
	here, near, far := clients[0], clients[1], clients[2]
	for _, x := range []struct {
		where string
		*org.Client
		floor func(context.Context, int, time.Duration, func(int)) (load, error)
	}{{where: "local", Client: here, floor: direct}, {where: "another node", Client: near, floor: overLoopback}} {
		for _, users := range []int{1, 64} {
			if err := r.admitting(ctx, x.where, x.Client, all, users, x.floor); err != nil {
				return err
			}
		}
	}
	if far.ActorCount() != len(all) || near.ActorCount() != 0 {
		return fmt.Errorf("%d organizations are active on the other node and %d on this one",
			far.ActorCount(), near.ActorCount())
	}
	return nil
}

const admitLimit = 1 << 40

// admitting compares the actor with the same window behind a mutex, which floor calls.
func (r *rig) admitting(ctx context.Context, where string, c *org.Client, all []tenancy.OrgID, users int,
	floor func(context.Context, int, time.Duration, func(int)) (load, error),
) error {
	span := time.Duration(r.opts.seconds) * time.Second / 12
	alone := c.LocalAdmissions()
	ours, err := drive(users, untilOver(span), func(i int) error {
		if a := c.Admit(ctx, all[i%len(all)]); !a.Allowed {
			return fmt.Errorf("refused: %+v", a)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	windows := make([]ratelimit.Window, len(all))
	bare, err := floor(ctx, users, span, func(i int) {
		mu.Lock()
		defer mu.Unlock()
		windows[i%len(all)].Take(now(), admitLimit)
	})
	if err != nil {
		return err
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	return r.emit(m{
		"bench": "admit", "where": where, "callers": users, "unit": "requests/s", "ours": ours.rate,
		"floor": bare.rate, "ratio": ours.rate / bare.rate,
		"p50Us": us(ours.p50), "p99Us": us(ours.p99), "floorP50Us": us(bare.p50), "floorP99Us": us(bare.p99),
		"unanswered": c.LocalAdmissions() - alone,
	})
}

// direct calls work in this process, without a connection.
func direct(_ context.Context, users int, span time.Duration, work func(int)) (load, error) {
	return drive(users, untilOver(span), func(i int) error {
		work(i)
		return nil
	})
}

// overLoopback calls work at the other end of loopback connections, one per caller. Each call sends
// an organization's id there and back.
func overLoopback(ctx context.Context, users int, span time.Duration, work func(int)) (out load, err error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return out, err
	}
	idle := make(chan net.Conn, users)
	var group sync.WaitGroup
	defer func() {
		close(idle)
		for c := range idle {
			err = errors.Join(err, c.Close())
		}
		err = errors.Join(err, ln.Close())
		group.Wait()
	}()
	for range users {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
		if err != nil {
			return out, err
		}
		idle <- c
		far, err := ln.Accept()
		if err != nil {
			return out, err
		}
		group.Go(func() { echo(far, work) })
	}
	return drive(users, untilOver(span), func(int) error {
		c := <-idle
		defer func() { idle <- c }()
		var name [36]byte
		if _, err := c.Write(name[:]); err != nil {
			return err
		}
		_, err := io.ReadFull(c, name[:])
		return err
	})
}

// echo calls work for each id that it receives, until the caller closes the connection.
func echo(c net.Conn, work func(int)) {
	defer c.Close()
	var name [36]byte
	for i := 0; ; i++ {
		if _, err := io.ReadFull(c, name[:]); err != nil {
			return // the caller has disconnected
		}
		work(i)
		if _, err := c.Write(name[:]); err != nil {
			return
		}
	}
}
