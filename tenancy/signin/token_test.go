package signin

import (
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
)

// finishAt finishes a sign-in whose id_token has times that are the given numbers of seconds from
// now.
func finishAt(t *testing.T, offsets map[string]int64) error {
	t.Helper()
	f := startForger(t)
	_, err := f.finish(t, func(nonce string) {
		claims, now := f.claims(nonce), time.Now().Unix()
		for claim, offset := range offsets {
			claims[claim] = now + offset
		}
		f.grant(sign(t, f.key, claims))
	})
	return err
}

func TestFinish_FiveMinuteClockDifferenceIsAccepted(t *testing.T) {
	t.Parallel()
	const most = 5*60 - 10 // seconds, minus the time that the test takes
	for name, offsets := range map[string]map[string]int64{
		"issuer ahead":           {"iat": most, "nbf": most, "exp": most + 60},
		"issuer behind":          {"iat": -most - 60, "nbf": -most - 60, "exp": -most},
		"issued before we began": {"iat": -3600, "nbf": -3600, "exp": 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := finishAt(t, offsets); err != nil {
				t.Errorf("Finish: %v", err)
			}
		})
	}
}

func TestFinish_LargerClockDifferenceIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		offsets map[string]int64
		want    string
	}{
		"issued later":            {map[string]int64{"iat": 480, "exp": 540}, "the clock of SSO is 8m0s ahead of this service's"},
		"valid later":             {map[string]int64{"nbf": 480, "exp": 540}, "the clock of SSO is 8m0s ahead of this service's"},
		"expired":                 {map[string]int64{"iat": -480, "exp": -420}, "the clock of SSO is 8m0s behind this service's"},
		"expired when issued":     {map[string]int64{"exp": -480}, "the clock of SSO is 8m0s behind this service's"},
		"milliseconds as seconds": {map[string]int64{"iat": time.Now().UnixMilli()}, "ahead of this service's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := finishAt(t, c.offsets)
			// The seconds that the test takes are part of the difference.
			text := strings.NewReplacer("7m59s", "8m0s", "8m1s", "8m0s", "7m58s", "8m0s", "8m2s", "8m0s").Replace(err.Error())
			if !fault.Is(err, fault.Invalid) || !strings.Contains(text, c.want) {
				t.Errorf("got the error %v, want Invalid with %q", err, c.want)
			}
			for _, word := range []string{"tell the operator", "at most 5 minutes", "synchronize both with a time server"} {
				if !strings.Contains(text, word) {
					t.Errorf("got the error %v, want it to say %q", err, word)
				}
			}
		})
	}
}
