package connect_test

import (
	"net/url"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

func FuzzBegin(f *testing.F) {
	s := edgetest.New(f, map[string]string{"APP_LIMIT": "1000000000"})
	for _, seed := range []string{"refresh=%00", "refresh=%ff", "redirectUrl=/%00", "redirectUrl=%00", "onboarding=%00&externalUrl=%c3%28", "%00", "refresh=%u0000", "refresh=%2500"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if _, err := url.Parse(s.URL + "/?" + query); err != nil || strings.ContainsAny(query, " \r\n#") {
			t.Skip() // no HTTP client sends this
		}
		edgetest.WantNoServerError(t, s.Call(t, "GET", "/integrations/social/bluesky?"+query, "", "auth", edgetest.UserSession))
	})
}
