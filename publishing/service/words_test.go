package service

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
			connector.FromSend(syscall.ECONNREFUSED, false), fault.Invalid, "The platform could not be reached." + retry,
		},
		"a timeout is Invalid": {
			connector.FromSend(context.DeadlineExceeded, false), fault.Invalid, "The platform could not be reached." + retry,
		},
		"a blocked address looks like a refused connection": {
			connector.FromSend(blocked, false), fault.Invalid, "The platform could not be reached." + retry,
		},
		"a blocked relay keeps its message": {
			&connector.Error{Kind: connector.KindOperator, Public: "No relay: a cannot be reached.", Err: blocked},
			fault.Invalid, "No relay: a cannot be reached." + retry,
		},
		"an unreadable answer is Invalid": {
			&connector.Error{Kind: connector.KindTransient, Status: 200, Public: "The answer cannot be read."},
			fault.Invalid, "The answer cannot be read." + retry,
		},
		"a failing server is Invalid": {
			&connector.Error{Kind: connector.KindTransient, Status: 502, Public: "It fails."}, fault.Invalid, "It fails." + retry,
		},
		"a refusal keeps its message": {
			&connector.Error{Kind: connector.KindReauth, Status: 401, Public: "The password is wrong."},
			fault.Invalid, "The password is wrong.",
		},
		"a platform that asks to wait is RateLimited": {
			&connector.Error{Kind: connector.KindTransient, Status: 429, After: time.Minute, Public: "Slow down."},
			fault.RateLimited, "Slow down.",
		},
		"so is one that does not name a time": {
			&connector.Error{Kind: connector.KindTransient, Status: 429, Public: "Slow down."}, fault.RateLimited, "Slow down.",
		},
		"another error is Internal": {errors.New("broken"), fault.Internal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fault.Error
			err := connectFault("op", c.err)
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
		if got := quoted(in); got != want {
			t.Errorf("quoted(%q): got %s, want %s", in, got, want)
		}
	}
}
