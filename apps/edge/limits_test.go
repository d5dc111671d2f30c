package edge_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/edgetest"
)

func TestCreate_LimitsParallelWritesOfOrganization(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	s.Release = make(chan struct{})
	var all sync.WaitGroup
	answers := make(chan edgetest.Answer, 5)
	for range 5 {
		all.Go(func() { answers <- s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody) })
	}
	first := <-answers // the request that got no slot; the others wait for release
	if first.Status != 429 || first.Header.Get("Retry-After") != "1" {
		t.Errorf("the fifth request: got %d, Retry-After %q, want 429 and 1", first.Status, first.Header.Get("Retry-After"))
	}
	close(s.Release)
	all.Wait()
	for range 4 {
		if a := <-answers; a.Status != 201 {
			t.Errorf("got %d, want 201: %s", a.Status, a.Body)
		}
	}
	if a := s.CallAPI(t, "POST", "/public/v1/posts", edgetest.PostBody); a.Status != 201 {
		t.Errorf("afterwards: got %d, want 201", a.Status)
	}
}

func TestSession_LimitsParallelRequestsOfOrganization(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	s.Release = make(chan struct{})
	release := sync.OnceFunc(func() { close(s.Release) })
	t.Cleanup(release)
	pause := func() edgetest.Answer {
		return s.Call(t, "PUT", "/integrations/c1/pause", `{"paused":true}`, "auth", edgetest.UserSession, "Content-Type", "application/json")
	}
	answers := make(chan edgetest.Answer, 5)
	for range cap(answers) {
		go func() { answers <- pause() }()
	}
	select {
	case first := <-answers: // the request that got no slot; the others wait for release
		if first.Status != 429 || first.Header.Get("Retry-After") != "1" {
			t.Errorf("the fifth request: got %d, Retry-After %q, want 429 and 1", first.Status, first.Header.Get("Retry-After"))
		}
	case <-time.After(9 * time.Second): // shorter than the timeout of call
		t.Fatal("five requests are in progress, want at most four")
	}
	// This request belongs to no organization.
	edgetest.Want(t, s.Call(t, "POST", "/user/logout", "", "auth", edgetest.UserSession), 201)
	release()
	for range cap(answers) - 1 {
		edgetest.Want(t, <-answers, 200)
	}
	edgetest.Want(t, pause(), 200)
}

// waitingAnalytics fakes the metrics of a platform that does not respond until release is closed.
type waitingAnalytics struct {
	edgetest.Analytics
	release, waiting chan struct{}
}

func (a waitingAnalytics) Channel(
	ctx context.Context, p tenancy.Principal, q publishing.GetAnalytics,
) (publishing.Analytics, error) {
	a.waiting <- struct{}{}
	<-a.release
	return a.Analytics.Channel(ctx, p, q)
}

// Requests that wait for a platform's server do not take slots from other requests, such as a
// pause.
func TestStatistics_WaitingDelaysNothingElse(t *testing.T) {
	t.Parallel()
	const requests = 20
	waiting := waitingAnalytics{release: make(chan struct{}), waiting: make(chan struct{}, requests)}
	s := edgetest.New(t, nil, func(d *edge.Deps) {
		waiting.Analytics = d.Analytics.(edgetest.Analytics)
		d.Analytics = waiting
	})
	release := sync.OnceFunc(func() { close(waiting.release) })
	t.Cleanup(release)
	answers := make(chan edgetest.Answer, requests)
	for i := range requests {
		go func() {
			if i%2 == 0 {
				answers <- s.Call(t, "GET", "/public/v1/analytics/channel", "", "Authorization", edgetest.APIKey)
			} else {
				answers <- s.Call(t, "GET", "/analytics/channel", "", "auth", edgetest.UserSession)
			}
		}()
	}
	for range requests {
		select {
		case <-waiting.waiting:
		case a := <-answers:
			t.Fatalf("got %d, want that it waits: %s", a.Status, a.Body)
		}
	}
	edgetest.Want(t, s.Call(t, "GET", "/public/v1/integrations", "", "Authorization", edgetest.APIKey), 200)
	edgetest.Want(t, s.Call(t, "PUT", "/integrations/c1/pause", `{"paused":true}`, "auth", edgetest.UserSession, "Content-Type", "application/json"), 200)
	release()
	for range requests {
		edgetest.Want(t, <-answers, 200)
	}
}

// TestList_KeepsPlaceUntilSent: a response keeps its slot until it is written, because it stays in
// memory that long.
func TestList_KeepsPlaceUntilSent(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	// More than the buffers of a connection hold.
	s.Thread.Root.Parts[0].Content.Text = strings.Repeat("x", 11<<20)
	request := "GET /public/v1/posts?page=0 HTTP/1.1\r\nHost: x\r\nAuthorization: " + edgetest.APIKey + "\r\n\r\n"
	var stalled []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		first := make([]byte, 1)
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, first); err != nil {
			t.Fatal(err)
		}
		stalled = append(stalled, c)
	}
	if a := s.CallAPI(t, "GET", "/public/v1/posts?page=0", ""); a.Status != 429 || a.Header.Get("Retry-After") != "1" {
		t.Errorf("a third list beside two that are not read: got %d, want 429", a.Status)
	}
	for _, c := range stalled {
		_ = c.Close()
	}
	if a := s.CallAPI(t, "GET", "/public/v1/posts?page=0", ""); a.Status != 200 {
		t.Errorf("after they have ended: got %d, want 200", a.Status)
	}
	if a := s.CallAPI(t, "HEAD", "/public/v1/posts?page=0", ""); a.Status != 200 {
		t.Errorf("HEAD: got %d, want 200", a.Status)
	}
}
