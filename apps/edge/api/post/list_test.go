package post_test

import (
	"strings"
	"testing"
	"time"

	"crier/tests/edgetest"
)

func TestList_ByDatesOrPage(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	a := s.CallAPI(t, "GET", "/public/v1/posts?startDate=2026-01-01&endDate=2026-02-01T00:00:00%2B02:00&customer=cu", "")
	edgetest.Want(t, a, 200, `"state":"ERROR"`, `"status":"failed"`, `"date":"2026-01-02T03:04:05.000Z"`,
		`"path":"http://crier.test/files/`, `"providerIdentifier":"sandbox"`, `"releaseURL":null`,
		`"error":"It was refused."`, `"settings":{"__type":"sandbox"}`)
	if !strings.HasPrefix(a.Body, "[") || a.Header.Get("X-Total-Count") != "" {
		t.Errorf("range mode: %v %s", a.Header, a.Body)
	}
	q := s.Lists[0]
	if q.Page != nil || q.Customer != "cu" || !q.End.Equal(time.Date(2026, 1, 31, 22, 0, 0, 0, time.UTC)) {
		t.Errorf("query: %+v", q)
	}
	a = s.CallAPI(t, "GET", "/api/public/v1/posts?page=1&group=g", "")
	if !strings.HasPrefix(a.Body, `{"posts":[`) || a.Header.Get("X-Total-Count") != "41" || a.Header.Get("X-Has-More") != "true" {
		t.Errorf("page mode on the alias: %v %s", a.Header, a.Body)
	}
	if q := s.Lists[1]; q.Page == nil || q.Page.Number != 1 || q.Page.Limit != 20 || q.Customer != "g" {
		t.Errorf("query: %+v", q)
	}
}

func TestList_RefusesBadQueries(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for query, part := range map[string]string{
		"":                          "startDate is required",
		"startDate=2026-01-01":      "endDate is required",
		"startDate=x&endDate=y":     "startDate must be an ISO 8601 date",
		"page=&limit=":              "startDate is required",
		"page=x":                    "page must be a whole number from 0 to 1000000",
		"page=-1":                   "page must be a whole number from 0 to 1000000",
		"page=1e3":                  "page must be a whole number",
		"limit=0":                   "limit must be a whole number from 1 to 100",
		"limit=101":                 "limit must be a whole number from 1 to 100",
		"page=99999999999999999999": "page must be a whole number",
		"startDate=2026-02-01&endDate=2026-01-01": "endDate must not be before",
		"startDate=2020-01-01&endDate=2026-01-01": "endDate must be at most 366 days",
	} {
		edgetest.Want(t, s.CallAPI(t, "GET", "/public/v1/posts?"+query, ""), 400, `"`+part)
	}
	if len(s.Lists) != 0 {
		t.Error("a bad query was asked")
	}
}
