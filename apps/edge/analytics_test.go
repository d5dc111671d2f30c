package edge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"crier/apps/edge"
)

func TestAnalytics_WindowIsANumberOfDaysOrItsFirstDay(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for path, days := range map[string]string{
		"/public/v1/analytics/channel":                `"7"`,
		"/public/v1/analytics/channel?date=30":        `"30"`,
		"/api/public/v1/analytics/channel?date=%2090": `"90"`,
	} {
		a := s.call(t, "GET", path, "", "Authorization", goodKey)
		want(t, a, 200, `[{"label":"Page views","data":[{"total":`+days+`,"date":"2026-01-02"}],"percentageChange":12.5}]`)
		if got := a.header.Get("Last-Modified"); got != "Fri, 02 Jan 2026 03:04:05 GMT" {
			t.Errorf("%s: got the time %q, want that of the reading", path, got)
		}
	}
	if slices.Contains(s.ids, "") {
		t.Errorf("got the ids %q, want that of the path", s.ids)
	}
	want(t, s.call(t, "GET", "/analytics/channel?date=31&refresh=true", "", "auth", goodSession), 200, `"31"`)
	want(t, s.call(t, "GET", "/public/v1/analytics/post/post?date=30", "", "Authorization", goodKey), 200, `{"missing":true}`)
	want(t, s.call(t, "GET", "/analytics/post/post?date=7", "", "auth", goodSession), 200, `[]`)
}

func TestAnalytics_RefusesWhatIsNoWindow(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, date := range []string{"week", "2026-02-30", "3000-01-01", "7.5", "99999999999999999999"} {
		want(t, s.call(t, "GET", "/public/v1/analytics/channel?date="+date, "", "Authorization", goodKey), 400, "date")
	}
	for _, query := range []string{"", "?date=", "?date=7", "?date=2026-13-01"} {
		want(t, s.call(t, "GET", "/public/v1/connectors/channel/analytics"+query, "", "Authorization", goodKey), 400, "date is required")
	}
}

func TestFigures_AreMembersOfAnObject(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.call(t, "GET", "/public/v1/connectors/channel/analytics?date=2026-01-05", "", "Authorization", goodKey)
	want(t, a, 200, `{"date":"2026-01-05","followers":1.5,"pageViews":3}`)
}

func TestTrack_CountsKindsAndNamesTheBrowser(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := start(t, nil, func(d *edge.Deps) { d.Metrics = reg })
	const body = `{"tt":1,"fbclid":"click","additional":{"a":[1]}}`
	first := s.call(t, "POST", "/public/t", body, "Content-Type", "application/json")
	want(t, first, 201, `{"track":"`)
	name := first.header.Get("Set-Cookie")
	again := s.call(t, "POST", "/user/t", body, "Content-Type", "application/json", "auth", goodSession, "Cookie", name)
	if again.body != first.body {
		t.Errorf("with the cookie: got %s, want the same name as before: %s", again.body, first.body)
	}
	forged := s.call(t, "POST", "/public/t", body, "Content-Type", "application/json", "Cookie", "track=<script>")
	if want(t, forged, 201, `{"track":"`); forged.body == first.body || forged.header.Get("Set-Cookie") == "" {
		t.Errorf("with a forged cookie: got %s, want a new name", forged.body)
	}
	for _, ignored := range []string{
		`{"tt":0,"fbclid":"` + strings.Repeat("x", 2000) + `"}`, `{"tt":0,"additional":[]}`, `{"tt":0,"fbclid":1,"additional":"x"}`, `{"tt":0,"fbclid":null,"additional":null}`,
	} {
		want(t, s.call(t, "POST", "/public/t", ignored, "Content-Type", "application/json"), 201)
	}
	want(t, s.call(t, "POST", "/public/t", `{"tt":0}`, "Content-Type", "text/plain;charset=UTF-8"), 201, `{"track":"`)
	want(t, s.call(t, "POST", "/auth/login", `{}`, "Content-Type", "text/plain"), 400)
	for _, wrong := range []string{`{}`, `{"tt":5}`, `{"tt":-1}`, `{"tt":"1"}`} {
		want(t, s.call(t, "POST", "/public/t", wrong, "Content-Type", "application/json"), 400, "tt")
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	registrations := families[1].GetMetric()[0] // in the order of the names of the kinds
	if n := registrations.GetCounter().GetValue(); n != 3 || strings.Contains(families[1].String(), "click") {
		t.Errorf("got %v, want three registrations and nothing else of the requests", families[1])
	}
}
