package channel_test

import (
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tests/publishtest"
)

// TestHoldCode_EndsAfterTenMinutes checks that a page that waits for consent becomes useless after
// ten minutes, even to somebody who finds it.
func TestHoldCode_EndsAfterTenMinutes(t *testing.T) {
	t.Parallel()
	r, now := publishtest.NewRig(t), time.Now()
	r.Deps.Clock = clock.Func(func() time.Time { return now })
	channels := r.Deps.Channels(publishtest.Limits)
	cmd := publishing.FinishConnect{Connector: "sandbox", State: "state", Code: "the code"}
	token, err := channels.HoldCode(cmd)
	r.OK(err)
	if strings.Contains(token, "code") {
		t.Errorf("the token %s shows what it holds", token)
	}
	if got, err := channels.ReleaseCode("sandbox", token); err != nil || got.State != cmd.State || got.Code != cmd.Code {
		t.Errorf("got %+v and the error %v, want %+v", got, err, cmd)
	}
	for name, try := range map[string]func() error{
		"another platform": func() error { _, err := channels.ReleaseCode("other", token); return err },
		"a changed token":  func() error { _, err := channels.ReleaseCode("sandbox", token[:len(token)-2]); return err },
		"no token":         func() error { _, err := channels.ReleaseCode("sandbox", ""); return err },
		"for Disown":       func() error { _, err := channels.Disown(t.Context(), token); return err },
		"after ten minutes": func() error {
			now = now.Add(10 * time.Minute)
			defer func() { now = now.Add(-10 * time.Minute) }()
			_, err := channels.ReleaseCode("sandbox", token)
			return err
		},
	} {
		if err := try(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got the error %v, want Invalid", name, err)
		}
	}
}

func TestDisown_EndsAfterSevenDays(t *testing.T) {
	t.Parallel()
	r, now := publishtest.NewRig(t), time.Now()
	r.Register(&passwordPlatform{Platform: r.Platform})
	r.Deps.Clock = clock.Func(func() time.Time { return now })
	channels, who := r.Deps.Channels(publishtest.Limits), r.Member().Who
	state, err := channels.Begin(t.Context(), who, publishing.BeginConnect{Connector: "sandbox"})
	r.OK(err)
	done, err := channels.Finish(t.Context(), publishing.FinishConnect{
		Connector: "sandbox", State: state, Fields: map[string]string{"password": "right"},
	})
	r.OK(err)
	now = now.Add(7 * 24 * time.Hour)
	if now.Before(done.DisownUntil) {
		t.Errorf("the token ends at %s, want seven days", done.DisownUntil)
	}
	if _, err := channels.Disown(t.Context(), done.Disown); !fault.Is(err, fault.Gone) {
		t.Errorf("after seven days: got the error %v, want Gone", err)
	}
	now = now.Add(-time.Minute)
	if out, err := channels.Disown(t.Context(), done.Disown); err != nil || !out.Disconnected || out.Channel != "A" {
		t.Errorf("before: got %+v and the error %v, want that the channel A is disconnected", out, err)
	}
}
