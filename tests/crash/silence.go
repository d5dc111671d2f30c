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
	silenceTries = 4
	silenceStart = 20 * time.Second // from the booking until the post is live, restarts included
	silenceStep  = 2 * time.Second
	silenceMore  = 30 * time.Second // beyond both windows, for two reconcile attempts and retries
)

// silence makes a platform accept a post, lose the response and then fail for longer than
// RECONCILE_WINDOW and RETRY_WINDOW together. During that time, and once after it, the post is
// read, edited and scheduled again without republish.
func (t *traffic) silence(ctx context.Context, s fault) error {
	b, err := t.beginSilence(ctx, s)
	if err != nil {
		return err
	}
	account := t.channels[b.Channel].account
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

// beginSilence books a post whose platform publishes it without a response and then fails every
// call. It returns the booking when the post is on the platform.
//
// Another fault can stop a node between the mark of a call and the call itself. The reconciling
// call then meets the failing platform, and the post ends unpublished. In this case the platform
// recovers until the post has ended, and the next post is tried.
func (t *traffic) beginSilence(ctx context.Context, s fault) (booking, error) {
	for range silenceTries {
		b := t.plan(silence, t.drillChannel(s), time.Now().Add(2*time.Second), "before the silence")
		account := t.channels[b.Channel].account
		err := errors.Join(t.drillPlatform.fault(ctx, account, m{"match": posting(), "action": "drop_answer"}),
			t.drillPlatform.fault(ctx, account, silenceFault(s.Nth)))
		if err != nil {
			return b, err
		}
		if err := t.create(ctx, b); err != nil {
			return b, err
		}
		live, err := t.awaitLive(ctx, b)
		if live || err != nil {
			return b, err
		}
		if err := t.drillPlatform.judge().Clear(ctx, account); err != nil {
			return b, err
		}
		if err := t.awaitEnd(ctx, b); err != nil {
			return b, err
		}
	}
	return booking{}, fmt.Errorf("none of %d posts was published before the silence", silenceTries)
}

// awaitLive waits until a post is on the drill platform, and returns false if silenceStart is too
// short for that.
func (t *traffic) awaitLive(ctx context.Context, b booking) (bool, error) {
	for end := time.Now().Add(silenceStart); time.Now().Before(end); pause(ctx, 200*time.Millisecond) {
		there, err := t.drillPlatform.judge().Posts(ctx, t.channels[b.Channel].account)
		if err != nil || ctx.Err() != nil {
			return false, errors.Join(err, ctx.Err())
		}
		for _, p := range there {
			if p.Text == b.Text {
				return true, nil
			}
		}
	}
	return false, nil
}

// awaitEnd waits until a post is published or has failed.
func (t *traffic) awaitEnd(ctx context.Context, b booking) error {
	for end := time.Now().Add(startLimit); time.Now().Before(end); pause(ctx, time.Second) {
		got, err := t.read(ctx, b)
		if err != nil || got.State == "PUBLISHED" || got.State == "ERROR" {
			return err
		}
	}
	return fmt.Errorf("post %d did not end", b.N)
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
