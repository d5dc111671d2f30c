package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// pauseTarget is a channel or an organization that can be paused. Its pauses do not overlap, so
// that the ledger shows which request ended which pause.
type pauseTarget struct {
	mu            sync.Mutex
	path, session string
	// accounts are the names of the affected accounts on the platform.
	accounts []string
}

// pauseTarget returns the channel of the booking, or its organization.
func (t *traffic) pauseTarget(b booking) *pauseTarget {
	c := t.channels[b.Channel]
	x := &pauseTarget{path: "/integrations/" + c.id + "/pause", session: c.session, accounts: []string{c.account}}
	name := x.path
	if b.All {
		x.path, x.accounts, name = "/settings/pause", nil, c.org
		for _, other := range t.channels {
			if other.org == c.org {
				x.accounts = append(x.accounts, other.account)
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauseTargets[name] == nil {
		t.pauseTargets[name] = x
	}
	return t.pauseTargets[name]
}

// pauseAndResume pauses the target of a booking, waits and resumes it.
func (t *traffic) pauseAndResume(ctx context.Context, b booking) error {
	x := t.pauseTarget(b)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := t.setPause(ctx, x, doPause, fmt.Sprint(b.N)); err != nil {
		return err
	}
	pause(ctx, b.Hold)
	return t.setPause(ctx, x, doResume, fmt.Sprint(b.N))
}

func (t *traffic) setPause(ctx context.Context, x *pauseTarget, do, name string) error {
	ask := line{Do: do, Key: do + "-" + name, Accounts: x.accounts}
	got, err := t.client.book(ctx, ask, http.MethodPut, x.path, x.session, m{"paused": do == doPause})
	if err != nil {
		return err
	}
	if got.Status > 299 && got.Status != http.StatusNotFound { // 404: the channel was disconnected
		return fmt.Errorf("%s of %v: status %d: %s", do, x.accounts, got.Status, got.Note)
	}
	return nil
}

// resumeAll resumes everything that was ever paused, because a pause that timed out may have been
// carried out after its resume.
func (t *traffic) resumeAll(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, x := range t.pauseTargets {
		if err := t.setPause(ctx, x, doResume, "last-"+name); err != nil {
			return err
		}
	}
	return nil
}

// disconnect disconnects channels, each at its planned time.
func (t *traffic) disconnect(ctx context.Context, all []disconnect) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range all {
		g.Go(func() error {
			pause(ctx, time.Until(t.start.Add(l.At)))
			c := t.channels[l.Channel]
			ask := line{Do: doDisconnect, Key: "disconnect-" + c.account, Accounts: []string{c.account}}
			_, err := t.client.book(ctx, ask, http.MethodDelete, "/public/v1/integrations/"+c.id, c.key, nil)
			return err
		})
	}
	return g.Wait()
}

// group returns the group of a post.
func (t *traffic) group(ctx context.Context, id, key string) (string, error) {
	var got struct{ Group string }
	_, err := t.client.retryUntilOK(ctx, http.MethodGet, "/public/v1/posts/"+id, key, nil, &got)
	return got.Group, err
}
