package analytics_test

import (
	"slices"
	"testing"

	"crier/tests/edgetest"
)

func TestAnalytics_DateIsNumberOfDaysOrFirstDay(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for path, days := range map[string]string{
		"/public/v1/analytics/channel":                `"7"`,
		"/public/v1/analytics/channel?date=30":        `"30"`,
		"/api/public/v1/analytics/channel?date=%2090": `"90"`,
	} {
		a := s.Call(t, "GET", path, "", "Authorization", edgetest.APIKey)
		edgetest.Want(t, a, 200, `[{"label":"Page views","data":[{"total":`+days+`,"date":"2026-01-02"}],"percentageChange":12.5}]`)
		if got := a.Header.Get("Last-Modified"); got != "Fri, 02 Jan 2026 03:04:05 GMT" {
			t.Errorf("%s: got the time %q, want that of the reading", path, got)
		}
	}
	if slices.Contains(s.IDs, "") {
		t.Errorf("got the ids %q, want that of the path", s.IDs)
	}
	edgetest.Want(t, s.Call(t, "GET", "/analytics/channel?date=31&refresh=true", "", "auth", edgetest.UserSession), 200, `"31"`)
	edgetest.Want(t, s.Call(t, "GET", "/public/v1/analytics/post/post?date=30", "", "Authorization", edgetest.APIKey), 200, `{"missing":true}`)
	edgetest.Want(t, s.Call(t, "GET", "/analytics/post/post?date=7", "", "auth", edgetest.UserSession), 200, `[]`)
}

func TestAnalytics_RefusesInvalidWindows(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, date := range []string{"week", "2026-02-30", "3000-01-01", "7.5", "99999999999999999999"} {
		edgetest.Want(t, s.Call(t, "GET", "/public/v1/analytics/channel?date="+date, "", "Authorization", edgetest.APIKey), 400, "date")
	}
	for _, query := range []string{"", "?date=", "?date=7", "?date=2026-13-01"} {
		edgetest.Want(t, s.Call(t, "GET", "/public/v1/connectors/channel/analytics"+query, "", "Authorization", edgetest.APIKey), 400, "date is required")
	}
}

func TestFigures_AreMembersOfAnObject(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	a := s.Call(t, "GET", "/public/v1/connectors/channel/analytics?date=2026-01-05", "", "Authorization", edgetest.APIKey)
	edgetest.Want(t, a, 200, `{"date":"2026-01-05","followers":1.5,"pageViews":3}`)
}
