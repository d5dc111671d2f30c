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
	"crier/tests/edgetest"
)

// window is a limiter whose window ends at this time.
type window time.Time

func (w window) Admit(context.Context, tenancy.OrgID) org.Admission {
	return org.Admission{Allowed: true, Limit: 60, Remaining: 59, Reset: time.Time(w)}
}

// TestRateLimitReset_IsNotBeforeEndOfWindow: a client that waits until X-RateLimit-Reset must find
// a new window.
func TestRateLimitReset_IsNotBeforeEndOfWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		want  int64 // seconds after day
	}{
		"a whole second":                      {after: 0, want: 0},
		"a millisecond later":                 {after: time.Millisecond, want: 1},
		"half a second later":                 {after: 500 * time.Millisecond, want: 1},
		"a millisecond before the next":       {after: 999 * time.Millisecond, want: 1},
		"a whole second later is that second": {after: time.Second, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edgetest.New(t, nil, func(d *edge.Deps) {
				d.Limiter = window(edgetest.Day.Add(c.after))
				d.Clock = clock.Func(func() time.Time { return edgetest.Day.Add(c.after) })
			})
			want := strconv.FormatInt(edgetest.Day.Unix()+c.want, 10)
			if got := s.CallAPI(t, "GET", "/public/v1/is-connected", "").Header.Get("X-RateLimit-Reset"); got != want {
				t.Errorf("a key's window ends at %s, want %s", got, want)
			}
			got, err := strconv.ParseInt(s.Call(t, "GET", "/integrations/list", "", "auth", edgetest.UserSession).Header.Get("X-RateLimit-Reset"), 10, 64)
			if ahead := got - edgetest.Day.Unix() - c.want; err != nil || ahead != 60 {
				t.Errorf("a session's window ends %d s after %s, %v, want 60 s", ahead, want, err)
			}
		})
	}
}

// TestEveryAnswer_ForbidsReferrers: URLs of this instance may contain tokens, which linked pages
// must not see.
func TestEveryAnswer_ForbidsReferrers(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for name, a := range map[string]edgetest.Answer{
		"a page":            s.Call(t, "GET", "/docs", ""),
		"health":            s.Call(t, "GET", "/health", ""),
		"an answer":         s.CallAPI(t, "GET", "/public/v1/is-connected", ""),
		"a refusal":         s.Call(t, "GET", "/public/v1/is-connected", ""),
		"a file":            s.Call(t, "GET", edgetest.Picture.Path(), ""),
		"an unknown route":  s.Call(t, "GET", "/nowhere", ""),
		"a wrong method":    s.Call(t, "PUT", "/health", ""),
		"a sign-in refused": s.Call(t, "POST", "/auth/login", "{}", "Content-Type", "application/json"),
	} {
		if got := a.Header.Get("Referrer-Policy"); got != "no-referrer" {
			t.Errorf("%s (%d): Referrer-Policy is %q, want no-referrer", name, a.Status, got)
		}
	}
}
