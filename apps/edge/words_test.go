package edge_test

import (
	"net/url"
	"testing"
	"time"

	"crier/apps/edge/publicv1"
)

func TestWhatCannotBeStoredNamesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{"/integrations/social/bluesky?refresh=%00", "/public/v1/posts?customer=%ff", "/public/v1/is-connected?%00=1"} {
		want(t, s.call(t, "GET", path, "", "Authorization", goodKey, "auth", goodSession), 400, "cannot be stored")
	}
	if len(s.ids) != 0 || len(s.lists) != 0 {
		t.Errorf("reached a port: %q", s.ids)
	}
}

func TestOnlyJSONIsJSON(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for kind, status := range map[string]int{"": 201, "application/json": 201, "Application/JSON; charset=utf-8": 201, "text/plain": 400, "application/cbor": 400, "application/x-www-form-urlencoded": 400, ";": 400} {
		want(t, s.call(t, "POST", "/public/v1/posts", goodPost, "Authorization", goodKey, "Content-Type", kind), status)
	}
	want(t, s.api(t, "POST", "/public/v1/posts", "\xef\xbb\xbf"+goodPost), 201)
}

func TestSentencesOfTheListAreReadable(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	want(t, s.api(t, "GET", "/public/v1/posts?page=x", ""), 400, `"page must be an integer"`)
}

func TestAPlusMayArriveAsASpace(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 22, 30, 0, 0, time.UTC)
	for _, s := range []string{"2026-01-02T00:30:00+02:00", "2026-01-02T00:30:00 02:00", "2026-01-02 00:30:00 02:00", "2026-01-02T00:30:00 0200"} {
		if got, ok := publicv1.ParseDate(s); !ok || !got.Equal(at) {
			t.Errorf("%s is %v", s, got)
		}
	}
	s := start(t, nil)
	want(t, s.api(t, "GET", "/public/v1/posts?startDate=2026-01-02T00:30:00+02:00&endDate="+url.QueryEscape("2026-01-03T00:30:00+02:00"), ""), 200)
	if len(s.lists) != 1 || !s.lists[0].Start.Equal(at) {
		t.Errorf("%+v", s.lists)
	}
}
