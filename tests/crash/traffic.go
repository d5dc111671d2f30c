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

// traffic books the posts and makes the planned changes to them.
type traffic struct {
	*harness
	// start is the time of the first fault.
	start time.Time
	mu    sync.Mutex
	ids   map[int]string
	// pauseTargets are the targets that were ever paused, by path or organization id.
	pauseTargets map[string]*pauseTarget
	// extra are the bookings of drills.
	extra []booking
	// stale maps the ids of posts past MAX_LATENESS to their numbers.
	stale map[string]int
	// last is the highest post number in use.
	last int
}

func (t *traffic) id(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[n]
}

// clients is the number of concurrent requests.
const clients = 12

// book sends the create requests that precede the faults.
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

// during sends the requests that are planned for the time of the faults, each at its planned time.
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
	ask := line{Do: doCreate, Post: b.N, Key: fmt.Sprintf("create-%d", b.N), Account: c.account, Grade: c.grade,
		Due: t.start.Add(b.Due), Text: b.Text, Fault: b.Fault}
	got, err := t.client.book(ctx, ask, http.MethodPost, "/public/v1/posts", c.key,
		t.body("schedule", b, b.Text, b.Due, ""))
	if err != nil || got.Status != http.StatusCreated {
		return fmt.Errorf("post %d cannot be booked: status %d: %s: %w", b.N, got.Status, got.Note, err)
	}
	t.mu.Lock()
	t.ids[b.N] = got.ID
	t.mu.Unlock()
	return nil
}

// change edits, moves, unschedules or deletes a post, or pauses its channel or organization, at the
// planned time. Refusals are recorded for the judge and are not errors.
func (t *traffic) change(ctx context.Context, b booking) (err error) {
	key, id, group := t.channels[b.Channel].key, t.id(b.N), ""
	if b.Do == doGroup {
		pause(ctx, time.Until(t.start.Add(b.At-2*time.Second)))
		group, err = t.group(ctx, id, key)
		if errors.Is(err, errGone) {
			return nil // the judge reports the post as lost
		}
		if err != nil {
			return err
		}
	}
	pause(ctx, time.Until(t.start.Add(b.At)))
	switch b.Do {
	case doPause:
		return t.pauseAndResume(ctx, b)
	case doGroup:
		ask := line{Do: doGroup, Post: b.N, Key: fmt.Sprintf("deleteGroup-%d", b.N)}
		_, err = t.client.book(ctx, ask, http.MethodDelete, "/public/v1/posts/group/"+group, key, nil)
	case doEdit:
		ask := line{Do: doEdit, Post: b.N, Key: fmt.Sprintf("edit-%d", b.N), Due: t.start.Add(b.NewDue),
			Text: b.NewText}
		_, err = t.client.book(ctx, ask, http.MethodPost, "/public/v1/posts", key,
			t.body("update", b, b.NewText, b.NewDue, id))
	case doDelete:
		ask := line{Do: doDelete, Post: b.N, Key: fmt.Sprintf("delete-%d", b.N)}
		_, err = t.client.book(ctx, ask, http.MethodDelete, "/public/v1/posts/"+id, key, nil)
	default:
		status, err := t.status(ctx, b, doDraft, id, key)
		if err != nil || status > 299 || b.Do != doSchedule {
			return err
		}
		_, err = t.status(ctx, b, doSchedule, id, key)
		return err
	}
	return err
}

func (t *traffic) status(ctx context.Context, b booking, to, id, key string) (int, error) {
	got, err := t.client.book(ctx, line{Do: to, Post: b.N, Key: fmt.Sprintf("%s-%d", to, b.N)}, http.MethodPut,
		"/public/v1/posts/"+id+"/status", key, m{"status": to})
	return got.Status, err
}
