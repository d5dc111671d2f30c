package post

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/outbound"
	"crier/publishing/channel"
	"crier/publishing/connector"
)

func TestConnectFault(t *testing.T) {
	t.Parallel()
	blocked := fmt.Errorf("dial: %w", outbound.ErrBlocked)
	const retry = " Check what you typed, or try again later."
	for name, c := range map[string]struct {
		err     error
		kind    fault.Kind
		message string
	}{
		"a refused connection is Invalid": {
			err: connector.FromSend(syscall.ECONNREFUSED, false), kind: fault.Invalid, message: "The platform could not be reached." + retry,
		},
		"a timeout is Invalid": {
			err: connector.FromSend(context.DeadlineExceeded, false), kind: fault.Invalid, message: "The platform could not be reached." + retry,
		},
		"a blocked address looks like a refused connection": {
			err: connector.FromSend(blocked, false), kind: fault.Invalid, message: "The platform could not be reached." + retry,
		},
		"a blocked relay keeps its message": {
			err:  &connector.Error{Kind: connector.KindOperator, Public: "No relay: a cannot be reached.", Err: blocked},
			kind: fault.Invalid, message: "No relay: a cannot be reached." + retry,
		},
		"an unreadable answer is Invalid": {
			err:  &connector.Error{Kind: connector.KindTransient, Status: 200, Public: "The answer cannot be read."},
			kind: fault.Invalid, message: "The answer cannot be read." + retry,
		},
		"a failing server is Invalid": {
			err: &connector.Error{Kind: connector.KindTransient, Status: 502, Public: "It fails."}, kind: fault.Invalid, message: "It fails." + retry,
		},
		"a refusal keeps its message": {
			err:  &connector.Error{Kind: connector.KindReauth, Status: 401, Public: "The password is wrong."},
			kind: fault.Invalid, message: "The password is wrong.",
		},
		"a platform that asks to wait is RateLimited": {
			err:  &connector.Error{Kind: connector.KindTransient, Status: 429, After: time.Minute, Public: "Slow down."},
			kind: fault.RateLimited, message: "Slow down.",
		},
		"so is one that does not name a time": {
			err: &connector.Error{Kind: connector.KindTransient, Status: 429, Public: "Slow down."}, kind: fault.RateLimited, message: "Slow down.",
		},
		"another error is Internal": {err: errors.New("broken"), kind: fault.Internal, message: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fault.Error
			err := channel.ConnectFault("op", c.err)
			if !errors.As(err, &f) || f.Kind != c.kind || f.Message != c.message || !errors.Is(err, c.err) {
				t.Errorf("got %v, want %s %q with the cause %v", err, c.kind, c.message, c.err)
			}
		})
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": `""`, "c\u00fcr": `"cür"`, `a"b\c`: `"a"b\c"`, "a\nb\x00c": `"a b c"`, strings.Repeat("é", 200): `"` + strings.Repeat("é", 100) + `…"`,
	} {
		if got := connector.Quote(in); got != want {
			t.Errorf("connector.Quote(%q): got %s, want %s", in, got, want)
		}
	}
}
