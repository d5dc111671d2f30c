package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"crier/tests/faultnet"
	"crier/tests/sandboxtest"
)

// site is one pretend platform in a process of its own.
type site struct {
	proc    *process
	address string // host:port
	journal string // file
}

func (s site) url() string { return "http://" + s.address }

func (s site) judge() sandboxtest.Judge { return sandboxtest.Judge{URL: s.url()} }

// fault scripts one for an account; "" is every account.
func (s site) fault(ctx context.Context, account string, fault m) error {
	_, err := s.judge().Fault(ctx, account, fault)
	return err
}

// startPlatforms brings up both platforms, and the machines before the second one that can hang.
func (w *world) startPlatforms(ctx context.Context) (err error) {
	if w.platform, err = w.startPlatform(ctx, "platform"); err != nil {
		return err
	}
	if w.aside, err = w.startPlatform(ctx, "aside"); err != nil {
		return err
	}
	for i := range hangingMachines {
		g, err := faultnet.Listen(fmt.Sprintf("127.0.0.%d:0", i+2), w.aside.address)
		if err != nil {
			return err
		}
		w.hanging, w.stops = append(w.hanging, g), append(w.stops, g.Close)
	}
	return w.trouble(ctx, 0)
}

func (w *world) startPlatform(ctx context.Context, name string) (s site, err error) {
	if s.address, err = freePort(); err != nil {
		return s, err
	}
	home := filepath.Join(w.dir, name)
	s.journal = filepath.Join(home, "sandbox", "sandbox.log")
	log, err := os.Create(filepath.Join(w.dir, name+".log"))
	if err != nil {
		return s, err
	}
	if s.proc, err = launch(log, []string{"CRIER_HOME=" + home, "LOG_LEVEL=warn"}, w.binary, "sandbox", "--address", s.address); err != nil {
		return s, err
	}
	w.stops = append(w.stops, func() error { s.proc.kill(); return log.Close() })
	for end := time.Now().Add(startLimit); ; pause(ctx, 50*time.Millisecond) {
		err := s.judge().Clear(ctx, "")
		if err == nil || time.Now().After(end) || ctx.Err() != nil || s.proc.ended() {
			return s, err
		}
	}
}

// always is more often than any request is made.
const always = 1_000_000_000

// posting matches the calls that publish.
func posting() m { return m{"method": http.MethodPost, "path": "/api/posts"} }

// trouble makes the platform slow, and lets it refuse a few calls for being too many.
func (w *world) trouble(ctx context.Context, seed int) error {
	nth := posting()
	nth["nth"] = 1 + seed%7
	return errors.Join(w.platform.judge().Clear(ctx, ""),
		w.platform.fault(ctx, "", m{"match": nth, "action": "rate_limit", "retryAfter": 1, "times": 2}),
		w.platform.fault(ctx, "", m{"match": posting(), "action": "slow", "ms": latency, "times": always}))
}

// startPrimary puts a proxy between the nodes and Postgres.
func (w *world) startPrimary() error {
	u, err := url.Parse(w.server.URL("crier"))
	if err != nil {
		return err
	}
	if w.primary, err = faultnet.Listen(loopback, u.Host); err != nil {
		return err
	}
	w.stops = append(w.stops, w.primary.Close)
	u.Host = w.primary.Address
	w.database = u.String()
	return nil
}
