package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// silenceFault returns the fault that a platform has for every call after it accepted a post and
// the response was lost.
func silenceFault(n int) m {
	return []m{
		{"action": "error_before", "times": always},
		{"action": "rate_limit", "retryAfter": 4, "times": always},
		{"action": "hold", "times": always},
	}[n%3]
}

const (
	silenceStep = 2 * time.Second
	silenceMore = 30 * time.Second // beyond both windows, for two reconcile attempts and retries
)

// silence makes a platform accept a post, lose the response and then fail for longer than
// RECONCILE_WINDOW and RETRY_WINDOW together. During that time, and once after it, the post is
// read, edited and scheduled again without republish.
func (t *traffic) silence(ctx context.Context, s fault) error {
	b := t.plan(silence, t.drillChannel(s), time.Now().Add(2*time.Second), "before the silence")
	account := t.channels[b.Channel].account
	if err := errors.Join(t.drillPlatform.fault(ctx, account, m{"match": posting(), "action": "drop_answer"}),
		t.drillPlatform.fault(ctx, account, silenceFault(s.Nth))); err != nil {
		return err
	}
	if err := t.create(ctx, b); err != nil {
		return err
	}
	for end := time.Now().Add(startLimit); ; pause(ctx, 200*time.Millisecond) {
		there, err := t.drillPlatform.judge().Posts(ctx, account)
		if err != nil || time.Now().After(end) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err(), fmt.Errorf("post %d did not reach its platform", b.N))
		}
		if len(there) > 0 {
			break
		}
	}
	if err := t.hit(silence); err != nil {
		return err
	}
	end := time.Now().Add(2*t.s.Window + silenceMore)
	for i := 0; time.Now().Before(end) && ctx.Err() == nil; i++ {
		if err := t.readAndChange(ctx, b, i); err != nil {
			return err
		}
		pause(ctx, silenceStep)
	}
	if err := t.drillPlatform.judge().Clear(ctx, account); err != nil {
		return err
	}
	pause(ctx, silenceStep)
	return errors.Join(t.readAndChange(ctx, b, -1), t.readAndChange(ctx, b, -2))
}

// readAndChange reads a post and then edits it if i is even, or schedules it again if i is odd.
func (t *traffic) readAndChange(ctx context.Context, b booking, i int) error {
	got, err := t.read(ctx, b)
	if err != nil {
		return err
	}
	got.Do = doPoll
	if err := t.ledger.write(got); err != nil {
		return err
	}
	key, id := t.channels[b.Channel].key, t.id(b.N)
	if i%2 == 0 {
		text := fmt.Sprintf("post %d edited in the silence, %d", b.N, i)
		due := time.Since(t.start) + time.Second
		ask := line{Do: doEdit, Post: b.N, Key: fmt.Sprintf("edit-%d-%d", b.N, i),
			Due: t.start.Add(due.Truncate(time.Millisecond)), Text: text}
		_, err = t.client.book(ctx, ask, http.MethodPost, "/public/v1/posts", key,
			t.body("update", b, text, due.Truncate(time.Millisecond), id))
		return err
	}
	ask := line{Do: doSchedule, Post: b.N, Key: fmt.Sprintf("schedule-%d-%d", b.N, i)}
	_, err = t.client.book(ctx, ask, http.MethodPut, "/public/v1/posts/"+id+"/status", key, m{"status": doSchedule})
	return err
}
