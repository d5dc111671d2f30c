package scheduler_test

import (
	"testing"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
)

// An absent post is sent again only when its call can no longer take effect: after the deadline of
// a request and then SETTLE_DELAY, during which the platform may still process the request.
func TestDecide_AbsentPostWaitsForDeadlineAndSettleTime(t *testing.T) {
	t.Parallel()
	settled := cfg.PlatformTimeout + cfg.SettleDelay
	for name, tc := range map[string]struct {
		age  time.Duration
		want dispatch.Result
	}{
		"waits until the deadline":             {age: cfg.PlatformTimeout, want: dispatch.ResultLater},
		"waits until the settle time":          {age: cfg.SettleDelay, want: dispatch.ResultLater},
		"waits beyond the settle time":         {age: cfg.SettleDelay + time.Millisecond, want: dispatch.ResultLater},
		"waits within the deadline beside it":  {age: settled - time.Millisecond, want: dispatch.ResultLater},
		"waits to the end of both":             {age: settled, want: dispatch.ResultLater},
		"is sent again right after both":       {age: settled + time.Nanosecond, want: dispatch.ResultRetry},
		"is sent again long after both, still": {age: cfg.ReconcileWindow - time.Millisecond, want: dispatch.ResultRetry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, grade := range []publishing.Grade{publishing.GradeMarked, publishing.GradeSearchable} {
				if got := scheduler.Decide(connector.NotPublished, unknownAfter(grade, tc.age, true, true, 3), cfg); got != tc.want {
					t.Errorf("grade %s after %s: got %s, want %s", grade, tc.age, got, tc.want)
				}
			}
		})
	}
}
