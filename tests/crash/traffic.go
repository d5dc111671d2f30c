package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// traffic books the posts and does to them what the plan says.
type traffic struct {
	*world
	start time.Time // of the faults
	mu    sync.Mutex
	ids   map[int]string
	turns map[string]*turn // of what was paused at some time, by its path
	extra []booking        // of the drills
	stale map[string]int   // posts past MAX_LATE by their ids
	last  int              // number of the last post
}

func (t *traffic) id(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[n]
}

// clients is how many requests are under way at once.
const clients = 12

// book sends the creates that come before the faults.
func (t *traffic) book(ctx context.Context, all []booking) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(clients)
	for _, b := range all {
		if b.Book == 0 {
			g.Go(func() error { return t.create(ctx, b) })
		}
	}
	return g.Wait()
}

// during does everything that the plan has for the time of the faults, each at its time.
func (t *traffic) during(ctx context.Context, all []booking) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, b := range all {
		if b.Book == 0 && b.Do == "" {
			continue
		}
		g.Go(func() error {
			if b.Book > 0 {
				pause(ctx, time.Until(t.start.Add(b.Book)))
				if err := t.create(ctx, b); err != nil {
					return err
				}
			}
			if b.Do == "" {
				return nil
			}
			return t.change(ctx, b)
		})
	}
	return g.Wait()
}

func (t *traffic) body(kind string, b booking, text string, due time.Duration, id string) m {
	value := m{"content": text, "image": []m{}}
	if id != "" {
		value["id"] = id
	}
	return m{"type": kind, "date": t.start.Add(due).UTC().Format(time.RFC3339Nano), "shortLink": false, "tags": []any{},
		"posts": []m{{"integration": m{"id": t.channels[b.Channel].id}, "value": []m{value}}}}
}

func (t *traffic) create(ctx context.Context, b booking) error {
	c := t.channels[b.Channel]
	ask := line{Do: doCreate, Post: b.N, Key: fmt.Sprintf("create-%d", b.N), Account: c.account, Grade: c.grade, Due: t.start.Add(b.Due), Text: b.Text, Fault: b.Fault}
	got, err := t.client.book(ctx, ask, http.MethodPost, "/public/v1/posts", c.key, t.body("schedule", b, b.Text, b.Due, ""))
	if err != nil || got.Status != http.StatusCreated {
		return fmt.Errorf("post %d cannot be booked: status %d: %s: %w", b.N, got.Status, got.Note, err)
	}
	t.mu.Lock()
	t.ids[b.N] = got.ID
	t.mu.Unlock()
	return nil
}

// change edits, moves, un-schedules or deletes a post, or pauses its channel, when it is time. What a refusal means is the judge's to say.
func (t *traffic) change(ctx context.Context, b booking) (err error) {
	key, id, group := t.channels[b.Channel].key, t.id(b.N), ""
	if b.Do == doGroup {
		pause(ctx, time.Until(t.start.Add(b.At-2*time.Second)))
		if group, err = t.group(ctx, id, key); errors.Is(err, errGone) {
			return nil // the judge finds that it is lost
		} else if err != nil {
			return err
		}
	}
	pause(ctx, time.Until(t.start.Add(b.At)))
	switch b.Do {
	case doPause:
		return t.hold(ctx, b)
	case doGroup:
		_, err = t.client.book(ctx, line{Do: doGroup, Post: b.N, Key: fmt.Sprintf("deleteGroup-%d", b.N)}, http.MethodDelete, "/public/v1/posts/group/"+group, key, nil)
	case doEdit:
		ask := line{Do: doEdit, Post: b.N, Key: fmt.Sprintf("edit-%d", b.N), Due: t.start.Add(b.NewDue), Text: b.NewText}
		_, err = t.client.book(ctx, ask, http.MethodPost, "/public/v1/posts", key, t.body("update", b, b.NewText, b.NewDue, id))
	case doDelete:
		_, err = t.client.book(ctx, line{Do: doDelete, Post: b.N, Key: fmt.Sprintf("delete-%d", b.N)}, http.MethodDelete, "/public/v1/posts/"+id, key, nil)
	default:
		status := 0
		status, err = t.status(ctx, b, doDraft, id, key)
		if err == nil && status < 300 && b.Do == doSchedule {
			_, err = t.status(ctx, b, doSchedule, id, key)
		}
	}
	return err
}

func (t *traffic) status(ctx context.Context, b booking, to, id, key string) (int, error) {
	got, err := t.client.book(ctx, line{Do: to, Post: b.N, Key: fmt.Sprintf("%s-%d", to, b.N)}, http.MethodPut, "/public/v1/posts/"+id+"/status", key, m{"status": to})
	return got.Status, err
}
