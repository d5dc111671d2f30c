package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"crier/tests/faultnet"
)

// site is one pretend platform in a process of its own.
type site struct {
	proc    *process
	address string // host:port
	journal string // file
}

func (s site) url() string { return "http://" + s.address }

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
		err := s.clear(ctx, "")
		if err == nil || time.Now().After(end) || ctx.Err() != nil || s.proc.ended() {
			return s, err
		}
	}
}

// call asks the platform itself, as its tests do.
func (s site) call(ctx context.Context, method, path string, body, out any) error {
	var in bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&in).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url()+"/_sim/"+path, &in)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode > 299 {
		err = fmt.Errorf("the platform answers %s", resp.Status)
	} else if out != nil {
		err = json.NewDecoder(resp.Body).Decode(out)
	}
	return errors.Join(err, resp.Body.Close())
}

// fault scripts one for an account; "" is every account.
func (s site) fault(ctx context.Context, account string, fault m) error {
	if account != "" {
		fault["account"] = account
	}
	return s.call(ctx, http.MethodPost, "faults", fault, nil)
}

// clear takes the faults of an account back; "" is every account.
func (s site) clear(ctx context.Context, account string) error {
	path := "faults"
	if account != "" {
		path += "?account=" + url.QueryEscape(account)
	}
	return s.call(ctx, http.MethodDelete, path, nil, nil)
}

// has returns how many posts of an account are live.
func (s site) has(ctx context.Context, account string) (int, error) {
	var got struct{ Posts []struct{ ID string } }
	err := s.call(ctx, http.MethodGet, "posts?account="+url.QueryEscape(account), nil, &got)
	return len(got.Posts), err
}

// always is more often than any request is made.
const always = 1_000_000_000

// posting matches the calls that publish.
func posting() m { return m{"method": http.MethodPost, "path": "/api/posts"} }

// trouble makes the platform slow, and lets it refuse a few calls for being too many.
func (w *world) trouble(ctx context.Context, seed int) error {
	nth := posting()
	nth["nth"] = 1 + seed%7
	return errors.Join(w.platform.clear(ctx, ""),
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
