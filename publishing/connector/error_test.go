package connector

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"crier/platform/outbound"
)

// The table is the rule of FromStatus; before is the kind outside a commit.
func TestFromStatus_ByStatusAndAuthor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status         int
		author         Author
		before, commit Kind
	}{
		{status: 101, author: ByPlatform, before: KindTransient, commit: KindUnknown},
		{status: 300, author: ByPlatform, before: KindTransient, commit: KindUnknown},
		{status: 301, author: ByPlatform, before: KindTransient, commit: KindTransient},
		{status: 302, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 303, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 304, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 307, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 308, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 400, author: ByPlatform, before: KindContent, commit: KindContent},
		{status: 400, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 401, author: ByPlatform, before: KindReauth, commit: KindReauth},
		{status: 401, author: ByOther, before: KindReauth, commit: KindReauth},
		{status: 403, author: ByPlatform, before: KindContent, commit: KindContent},
		{status: 403, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 404, author: ByPlatform, before: KindContent, commit: KindContent},
		{status: 404, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 405, author: ByPlatform, before: KindContent, commit: KindContent},
		{status: 405, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 407, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 408, author: ByPlatform, before: KindTransient, commit: KindUnknown},
		{status: 408, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 409, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 410, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 411, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 413, author: ByPlatform, before: KindContent, commit: KindContent},
		{status: 413, author: ByOther, before: KindContent, commit: KindContent},
		{status: 414, author: ByOther, before: KindContent, commit: KindContent},
		{status: 415, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 417, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 421, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 425, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 426, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 429, author: ByPlatform, before: KindTransient, commit: KindTransient},
		{status: 429, author: ByOther, before: KindTransient, commit: KindTransient},
		{status: 431, author: ByOther, before: KindContent, commit: KindContent},
		{status: 451, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 499, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 500, author: ByPlatform, before: KindTransient, commit: KindUnknown},
		{status: 502, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 503, author: ByOther, before: KindTransient, commit: KindUnknown},
		{status: 520, author: ByOther, before: KindTransient, commit: KindUnknown},
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

// Public must not reveal which names exist in the private network.
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

func TestFromSend_NamesThePorts(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("%w: %w", outbound.ErrBlocked, outbound.ErrPort)
	for committing, err := range map[bool]error{false: refused, true: &outbound.SendError{Err: refused}} {
		e := FromSend(err, committing)
		if e.Kind != KindOperator || !strings.Contains(e.Public, "a port other than 80 and 443") {
			t.Errorf("in a commit %v: got %v, want the ports that can be reached", committing, e)
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
		{status: 404, author: ByOther, want: true},
		{status: 301, author: ByOther, want: true},
		{status: 403, author: ByOther, want: true},
		{status: 413, author: ByOther, want: true},
		{status: 404, author: ByPlatform, want: false},
		{status: 401, author: ByOther, want: false},
		{status: 408, author: ByOther, want: false},
		{status: 429, author: ByOther, want: false},
		{status: 502, author: ByOther, want: false},
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
		"blocked before anything was sent":    {err: outbound.ErrBlocked, committing: true, want: KindOperator},
		"blocked, and known that nothing was": {err: &outbound.SendError{Err: outbound.ErrBlocked}, committing: true, want: KindOperator},
		"blocked at the second try of a call": {
			err: &outbound.SendError{Written: true, Err: outbound.ErrBlocked}, committing: true,
			want: KindUnknown,
		},
		"blocked in a call that may be repeated": {
			err: &outbound.SendError{Written: true, Err: outbound.ErrBlocked}, committing: false,
			want: KindOperator,
		},
		"lost, nothing known":           {err: http.ErrServerClosed, committing: true, want: KindUnknown},
		"lost before anything was sent": {err: &outbound.SendError{Err: http.ErrServerClosed}, committing: true, want: KindTransient},
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
