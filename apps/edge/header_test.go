package edge_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"crier/actors/org"
	"crier/apps/edge"
	"crier/platform/clock"
	"crier/tenancy"
)

// window is a limiter whose window ends at a time.
type window time.Time

func (w window) Admit(context.Context, tenancy.OrgID) org.Admission {
	return org.Admission{Allowed: true, Limit: 60, Remaining: 59, Reset: time.Time(w)}
}

// A client that waits until the second of X-RateLimit-Reset must not come before the window has ended.
func TestRateLimitReset_IsNeverBeforeTheEndOfTheWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		want  int64 // seconds after day
	}{
		"a whole second":                      {0, 0},
		"a millisecond later":                 {time.Millisecond, 1},
		"half a second later":                 {500 * time.Millisecond, 1},
		"a millisecond before the next":       {999 * time.Millisecond, 1},
		"a whole second later is that second": {time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil, func(d *edge.Deps) {
				d.Limiter = window(day.Add(c.after))
				d.Clock = clock.Func(func() time.Time { return day.Add(c.after) })
			})
			want := strconv.FormatInt(day.Unix()+c.want, 10)
			if got := s.api(t, "GET", "/public/v1/is-connected", "").header.Get("X-RateLimit-Reset"); got != want {
				t.Errorf("a key's window ends at %s, want %s", got, want)
			}
			got, err := strconv.ParseInt(s.call(t, "GET", "/integrations/list", "", "auth", goodSession).header.Get("X-RateLimit-Reset"), 10, 64)
			if ahead := got - day.Unix() - c.want; err != nil || ahead != 60 {
				t.Errorf("a session's window of a minute ends %d s after %s, %v", ahead, want, err)
			}
		})
	}
}

// Addresses of this instance may hold tokens, so no page that an answer leads to is told of them.
func TestEveryAnswerForbidsReferrers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, a := range map[string]answer{
		"a page":            s.call(t, "GET", "/docs", ""),
		"health":            s.call(t, "GET", "/health", ""),
		"an answer":         s.api(t, "GET", "/public/v1/is-connected", ""),
		"a refusal":         s.call(t, "GET", "/public/v1/is-connected", ""),
		"a file":            s.call(t, "GET", picture.Path(), ""),
		"an unknown route":  s.call(t, "GET", "/nowhere", ""),
		"a wrong method":    s.call(t, "PUT", "/health", ""),
		"a sign-in refused": s.call(t, "POST", "/auth/login", "{}", "Content-Type", "application/json"),
	} {
		if got := a.header.Get("Referrer-Policy"); got != "no-referrer" {
			t.Errorf("%s (%d): Referrer-Policy is %q", name, a.status, got)
		}
	}
}
