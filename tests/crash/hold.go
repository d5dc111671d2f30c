package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// turn is what can be paused. One pause of it is over before the next begins, or nobody could tell which request opened it.
type turn struct {
	mu            sync.Mutex
	path, session string
	accounts      []string // on the platform
}

// turn of the booking's channel, or of its organization.
func (t *traffic) turn(b booking) *turn {
	c := t.channels[b.Channel]
	x := &turn{path: "/integrations/" + c.id + "/pause", session: c.session, accounts: []string{c.account}}
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
	if t.turns[name] == nil {
		t.turns[name] = x
	}
	return t.turns[name]
}

// hold pauses, waits and resumes.
func (t *traffic) hold(ctx context.Context, b booking) error {
	x := t.turn(b)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := t.setPause(ctx, x, doPause, fmt.Sprint(b.N)); err != nil {
		return err
	}
	pause(ctx, b.Hold)
	return t.setPause(ctx, x, doResume, fmt.Sprint(b.N))
}

func (t *traffic) setPause(ctx context.Context, x *turn, do, name string) error {
	ask := line{Do: do, Key: do + "-" + name, Accounts: x.accounts}
	got, err := t.client.book(ctx, ask, http.MethodPut, x.path, x.session, m{"paused": do == doPause})
	if err == nil && got.Status > 299 && got.Status != http.StatusNotFound { // not found: it was disconnected
		err = fmt.Errorf("%s of %v: status %d: %s", do, x.accounts, got.Status, got.Note)
	}
	return err
}

// resumeAll takes back what a request whose sender had given up may have paused after its resume.
func (t *traffic) resumeAll(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, x := range t.turns {
		if err := t.setPause(ctx, x, doResume, "last-"+name); err != nil {
			return err
		}
	}
	return nil
}

// leave disconnects channels, each at its time.
func (t *traffic) leave(ctx context.Context, all []leave) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range all {
		g.Go(func() error {
			pause(ctx, time.Until(t.start.Add(l.At)))
			c := t.channels[l.Channel]
			ask := line{Do: doLeave, Key: "disconnect-" + c.account, Accounts: []string{c.account}}
			_, err := t.client.book(ctx, ask, http.MethodDelete, "/public/v1/integrations/"+c.id, c.key, nil)
			return err
		})
	}
	return g.Wait()
}

// group is the name of a post's group.
func (t *traffic) group(ctx context.Context, id, key string) (string, error) {
	var got struct{ Group string }
	_, err := t.client.must(ctx, http.MethodGet, "/public/v1/posts/"+id, key, nil, &got)
	return got.Group, err
}
