package problem_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tests/edgetest"
)

func TestFault_IsErrorOfContract(t *testing.T) {
	t.Parallel()
	secret := "password=hunter2"
	for name, c := range map[string]struct {
		err    error
		status int
		parts  []string
		retry  string
	}{
		"channels": {err: &fault.Error{Kind: fault.Invalid, Items: []fault.Item{{ID: "c1", Kind: "x", Name: "News", Message: "Too long."}}}, status: 400,
			parts: []string{`"message":"Too long."`, `"provider":"x"`, `"name":"News"`, `"errors":[{"integration":"c1"`}, retry: ""},
		"quota":       {err: fault.New(fault.Quota, "op", "Your plan has no posts left."), status: 402, parts: []string{`"url":"http://crier.test/app/billing"`, "no posts left"}, retry: ""},
		"forbidden":   {err: fault.New(fault.Forbidden, "op", ""), status: 403, parts: []string{`"message":"Forbidden"`}, retry: ""},
		"not found":   {err: fault.New(fault.NotFound, "op", "There is no such post."), status: 404, parts: []string{`"msg":"There is no such post."`}, retry: ""},
		"conflict":    {err: &fault.Error{Kind: fault.Conflict, Message: "Busy.", RetryAfter: time.Second}, status: 409, parts: nil, retry: "1"},
		"gone":        {err: fault.New(fault.Gone, "op", ""), status: 410, parts: nil, retry: ""},
		"unavailable": {err: &fault.Error{Kind: fault.Unavailable, RetryAfter: 2100 * time.Millisecond, Err: errSecret(secret)}, status: 503, parts: nil, retry: "3"},
		"internal":    {err: fault.Wrap(fault.Internal, "op", secret, errSecret(secret)), status: 500, parts: []string{`"message":"Internal server error"`}, retry: ""},
		"foreign":     {err: errSecret(secret), status: 500, parts: []string{`"message":"Internal server error"`}, retry: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edgetest.New(t, nil)
			s.Err = c.err
			a := s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody)
			edgetest.Want(t, a, c.status, c.parts...)
			if a.Header.Get("Retry-After") != c.retry || strings.Contains(a.Body, secret) {
				t.Errorf("got %v %s, want Retry-After %q and no cause", a.Header, a.Body, c.retry)
			}
			if c.status == 500 && !strings.Contains(s.Log.String(), secret) {
				t.Error("the log does not contain the cause")
			}
		})
	}
}

type errSecret string

func (e errSecret) Error() string { return string(e) }

func TestFault_CountsBeyondFifty(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	list := "[" + strings.Repeat("1,", 74) + "1]"
	a := s.CallAPI(t, "POST", "/public/v1/posts", `{"type":"draft","date":"2030-01-01","posts":`+list+`}`)
	got := edgetest.Decode[struct {
		Message []string
		More    int
	}](t, a)
	if len(got.Message) != fault.MaxListed || got.More == 0 {
		t.Errorf("got %d faults and %d more, want %d and some: %s", len(got.Message), got.More, fault.MaxListed, a.Body)
	}
	var channels []fault.Item
	for range 60 {
		channels = append(channels, fault.Item{ID: "c", Message: "It is wrong."})
	}
	s.Err = &fault.Error{Kind: fault.Invalid, Items: channels}
	listed := edgetest.Decode[struct {
		Errors []json.RawMessage
		More   int
	}](t, s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody))
	if len(listed.Errors) != fault.MaxListed || listed.More != 10 {
		t.Errorf("got %d faults of channels and %d more, want %d and 10", len(listed.Errors), listed.More, fault.MaxListed)
	}
}

// TestOrgBusy_Is429WithRetryAfter: an organization may use only a share of the database connections
// across all processes.
func TestOrgBusy_Is429WithRetryAfter(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	s.Err = pg.Fault("fake", pg.ErrOrgBusy)
	a := s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody)
	edgetest.Want(t, a, 429, "Your organization has too many requests in progress; try again in a second.", `"retryAfter":1`)
	if got := a.Header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After is %q, want 1", got)
	}
	if log := s.Log.String(); !strings.Contains(log, "level=INFO msg=request") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log has no request at INFO, or an error: %s", log)
	}
}
