package connector

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"crier/platform/outbound"
)

// The table holds the rule of FromStatus; before is the kind outside a commit.
func TestFromStatus_ByStatusAndAuthor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status         int
		author         Author
		before, commit Kind
	}{
		{101, ByPlatform, KindTransient, KindUnknown},
		{300, ByPlatform, KindTransient, KindUnknown},
		{301, ByPlatform, KindTransient, KindTransient},
		{302, ByOther, KindTransient, KindUnknown},
		{303, ByOther, KindTransient, KindUnknown},
		{304, ByOther, KindTransient, KindUnknown},
		{307, ByOther, KindTransient, KindTransient},
		{308, ByOther, KindTransient, KindTransient},
		{400, ByPlatform, KindContent, KindContent},
		{400, ByOther, KindTransient, KindUnknown},
		{401, ByPlatform, KindReauth, KindReauth},
		{401, ByOther, KindReauth, KindReauth},
		{403, ByPlatform, KindContent, KindContent},
		{403, ByOther, KindTransient, KindUnknown},
		{404, ByPlatform, KindContent, KindContent},
		{404, ByOther, KindTransient, KindTransient},
		{405, ByPlatform, KindContent, KindContent},
		{405, ByOther, KindTransient, KindTransient},
		{407, ByOther, KindTransient, KindTransient},
		{408, ByPlatform, KindTransient, KindUnknown},
		{408, ByOther, KindTransient, KindUnknown},
		{409, ByOther, KindTransient, KindUnknown},
		{410, ByOther, KindTransient, KindTransient},
		{411, ByOther, KindTransient, KindTransient},
		{413, ByPlatform, KindContent, KindContent},
		{413, ByOther, KindContent, KindContent},
		{414, ByOther, KindContent, KindContent},
		{415, ByOther, KindTransient, KindTransient},
		{417, ByOther, KindTransient, KindTransient},
		{421, ByOther, KindTransient, KindTransient},
		{425, ByOther, KindTransient, KindTransient},
		{426, ByOther, KindTransient, KindTransient},
		{429, ByPlatform, KindTransient, KindTransient},
		{429, ByOther, KindTransient, KindTransient},
		{431, ByOther, KindContent, KindContent},
		{451, ByOther, KindTransient, KindUnknown},
		{499, ByOther, KindTransient, KindUnknown},
		{500, ByPlatform, KindTransient, KindUnknown},
		{502, ByOther, KindTransient, KindUnknown},
		{503, ByOther, KindTransient, KindUnknown},
		{520, ByOther, KindTransient, KindUnknown},
	} {
		resp := &http.Response{StatusCode: tc.status, Header: http.Header{}}
		for committing, want := range map[bool]Kind{false: tc.before, true: tc.commit} {
			e := FromStatus(resp, tc.author, committing)
			if e.Kind != want || e.Status != tc.status || e.Public == "" {
				t.Errorf("%d by %s, in a commit %v: got %s, want %s", tc.status, tc.author, committing, e.Kind, want)
			}
		}
	}
}

// Public must not reveal which names of the private network exist.
func TestFromSend_HidesThatAddressIsBlocked(t *testing.T) {
	t.Parallel()
	blocked, gone := fmt.Errorf("dial: %w", outbound.ErrBlocked), errors.New("no such host")
	for _, committing := range []bool{false, true} {
		if committing {
			blocked, gone = &outbound.SendError{Err: blocked}, &outbound.SendError{Err: gone}
		}
		closed, away := FromSend(blocked, committing), FromSend(gone, committing)
		if closed.Public != away.Public {
			t.Errorf("in a commit %v: got the public texts %q and %q, want the same", committing, closed.Public, away.Public)
		}
		if closed.Kind != KindOperator || away.Kind != KindTransient || !errors.Is(closed, outbound.ErrBlocked) {
			t.Errorf("in a commit %v: got %v and %v, want kinds that differ, and the cause", committing, closed, away)
		}
	}
}

func TestWrongAddress_ByAnswerOfOtherServer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		author Author
		want   bool
	}{
		{404, ByOther, true}, {301, ByOther, true}, {403, ByOther, true}, {413, ByOther, true},
		{404, ByPlatform, false}, {401, ByOther, false}, {408, ByOther, false}, {429, ByOther, false}, {502, ByOther, false},
	} {
		resp := &http.Response{StatusCode: tc.status, Header: http.Header{}}
		if got := WrongAddress(FromStatus(resp, tc.author, false)); got != tc.want {
			t.Errorf("%d by %s: got %v, want %v", tc.status, tc.author, got, tc.want)
		}
	}
	if WrongAddress(FromSend(http.ErrServerClosed, false)) || WrongAddress(nil) {
		t.Error("without an answer: got true, want false")
	}
}

func TestFromSend_BlockedOnceWrittenIsUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err        error
		committing bool
		want       Kind
	}{
		"blocked before anything was sent":       {outbound.ErrBlocked, true, KindOperator},
		"blocked, and known that nothing was":    {&outbound.SendError{Err: outbound.ErrBlocked}, true, KindOperator},
		"blocked at the second try of a call":    {&outbound.SendError{Written: true, Err: outbound.ErrBlocked}, true, KindUnknown},
		"blocked in a call that may be repeated": {&outbound.SendError{Written: true, Err: outbound.ErrBlocked}, false, KindOperator},
		"lost, nothing known":                    {http.ErrServerClosed, true, KindUnknown},
		"lost before anything was sent":          {&outbound.SendError{Err: http.ErrServerClosed}, true, KindTransient},
	} {
		if got := FromSend(c.err, c.committing).Kind; got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestRetryAfter_IsBounded(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "-1": 0, "soon": 0, "": 0,
		"10000000000": 30 * 24 * time.Hour, "9223372036854775807": 30 * 24 * time.Hour,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {value}}); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}
