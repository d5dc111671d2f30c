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
	for name, c := range map[string]struct {
		err  error
		kind fault.Kind
		says string
	}{
		"a host that is not there is the form's":       {connector.FromSend(syscall.ECONNREFUSED, false), fault.Invalid, "The platform could not be reached. Check what you typed, or try again later."},
		"a host that is too slow is the form's":        {connector.FromSend(context.DeadlineExceeded, false), fault.Invalid, "The platform could not be reached. Check what you typed, or try again later."},
		"an address that is closed to us is too":       {connector.FromSend(blocked, false), fault.Invalid, "The platform could not be reached. Check what you typed, or try again later."},
		"a relay that is closed to us keeps its words": {&connector.Error{Kind: connector.KindOperator, Public: "No relay: a cannot be reached.", Err: blocked}, fault.Invalid, "No relay: a cannot be reached. Check what you typed, or try again later."},
		"an answer that makes no sense is too":         {&connector.Error{Kind: connector.KindTransient, Status: 200, Public: "The answer cannot be read."}, fault.Invalid, "The answer cannot be read. Check what you typed, or try again later."},
		"a server that fails is too":                   {&connector.Error{Kind: connector.KindTransient, Status: 502, Public: "It fails."}, fault.Invalid, "It fails. Check what you typed, or try again later."},
		"a refusal keeps its words":                    {&connector.Error{Kind: connector.KindReauth, Status: 401, Public: "The password is wrong."}, fault.Invalid, "The password is wrong."},
		"a platform that wants us to wait is nobody's": {&connector.Error{Kind: connector.KindTransient, Status: 429, After: time.Minute, Public: "Slow down."}, fault.RateLimited, "Slow down."},
		"one that does not say how long is too":        {&connector.Error{Kind: connector.KindTransient, Status: 429, Public: "Slow down."}, fault.RateLimited, "Slow down."},
		"a failure of ours is ours":                    {errors.New("broken"), fault.Internal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fault.Error
			if err := connectFault("op", c.err); !errors.As(err, &f) || f.Kind != c.kind || f.Message != c.says || !errors.Is(err, c.err) {
				t.Fatalf("%v", err)
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
			t.Errorf("%q becomes %s", in, got)
		}
	}
}
