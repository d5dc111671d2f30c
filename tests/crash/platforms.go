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

// sandbox is a sandbox platform in a separate process.
type sandbox struct {
	proc    *process
	address string // host:port
	journal string // path of the sandbox's journal
}

func (s sandbox) url() string { return "http://" + s.address }

func (s sandbox) judge() sandboxtest.Judge { return sandboxtest.Judge{URL: s.url()} }

// fault scripts a fault for an account, or for every account if account is "".
func (s sandbox) fault(ctx context.Context, account string, fault m) error {
	_, err := s.judge().Fault(ctx, account, fault)
	return err
}

// startPlatforms starts both platforms, and the proxies that can hang in front of the second one.
func (w *harness) startPlatforms(ctx context.Context) (err error) {
	w.platform, err = w.startPlatform(ctx, "platform")
	if err != nil {
		return err
	}
	w.drillPlatform, err = w.startPlatform(ctx, "aside")
	if err != nil {
		return err
	}
	for i := range hangingMachines {
		g, err := faultnet.Listen(fmt.Sprintf("127.0.0.%d:0", i+2), w.drillPlatform.address)
		if err != nil {
			return err
		}
		w.hangProxies, w.closers = append(w.hangProxies, g), append(w.closers, g.Close)
	}
	return w.degradePlatform(ctx, 0)
}

func (w *harness) startPlatform(ctx context.Context, name string) (s sandbox, err error) {
	s.address, err = freePort()
	if err != nil {
		return s, err
	}
	home := filepath.Join(w.dir, name)
	s.journal = filepath.Join(home, "sandbox", "sandbox.log")
	log, err := os.Create(filepath.Join(w.dir, name+".log"))
	if err != nil {
		return s, err
	}
	s.proc, err = launch(log, []string{"CRIER_HOME=" + home, "LOG_LEVEL=warn"}, w.binary, "sandbox", "--address",
		s.address)
	if err != nil {
		return s, err
	}
	w.closers = append(w.closers, func() error { s.proc.kill(); return log.Close() })
	for end := time.Now().Add(startLimit); ; pause(ctx, 50*time.Millisecond) {
		err := s.judge().Clear(ctx, "")
		if err == nil || time.Now().After(end) || ctx.Err() != nil || s.proc.ended() {
			return s, err
		}
	}
}

// always exceeds any number of requests.
const always = 1_000_000_000

// posting matches the calls that publish.
func posting() m { return m{"method": http.MethodPost, "path": "/api/posts"} }

// degradePlatform makes the platform slow and makes it refuse two calls as too many.
func (w *harness) degradePlatform(ctx context.Context, seed int) error {
	nth := posting()
	nth["nth"] = 1 + seed%7
	return errors.Join(w.platform.judge().Clear(ctx, ""),
		w.platform.fault(ctx, "", m{"match": nth, "action": "rate_limit", "retryAfter": 1, "times": 2}),
		w.platform.fault(ctx, "", m{"match": posting(), "action": "slow", "ms": latency, "times": always}))
}

// startPrimary starts a proxy between the nodes and Postgres.
func (w *harness) startPrimary() error {
	u, err := url.Parse(w.server.URL("crier"))
	if err != nil {
		return err
	}
	w.postgresProxy, err = faultnet.Listen(loopback, u.Host)
	if err != nil {
		return err
	}
	w.closers = append(w.closers, w.postgresProxy.Close)
	u.Host = w.postgresProxy.Address
	w.database = u.String()
	return nil
}
