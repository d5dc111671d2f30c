package edge_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// list returns a JSON array of equal elements with about so many bytes.
func list(element string, bytes int) string {
	n := max(1, bytes/(len(element)+1))
	return "[" + strings.Repeat(element+",", n-1) + element + "]"
}

func TestFault_CountsBeyondFifty(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.api(t, "POST", "/public/v1/posts", `{"type":"draft","date":"2030-01-01","posts":`+list("1", 150)+`}`)
	got := decode[struct {
		Message []string
		More    int
	}](t, a)
	if len(got.Message) != fault.MaxListed || got.More == 0 {
		t.Errorf("got %d faults and %d more, want %d and some: %s", len(got.Message), got.More, fault.MaxListed, a.body)
	}
	var channels []fault.Item
	for range 60 {
		channels = append(channels, fault.Item{ID: "c", Message: "It is wrong."})
	}
	s.err = &fault.Error{Kind: fault.Invalid, Items: channels}
	listed := decode[struct {
		Errors []json.RawMessage
		More   int
	}](t, s.api(t, "POST", "/public/v1/posts", goodPost))
	if len(listed.Errors) != fault.MaxListed || listed.More != 10 {
		t.Errorf("got %d faults of channels and %d more, want %d and 10", len(listed.Errors), listed.More, fault.MaxListed)
	}
}

func TestCreate_LimitsParallelWritesOfOrganization(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.release = make(chan struct{})
	var all sync.WaitGroup
	answers := make(chan answer, 5)
	for range 5 {
		all.Go(func() { answers <- s.api(t, "POST", "/public/v1/posts", goodPost) })
	}
	first := <-answers // the one that got no place; the others wait for release
	if first.status != 429 || first.header.Get("Retry-After") != "1" {
		t.Errorf("the fifth request: got %d, Retry-After %q, want 429 and 1", first.status, first.header.Get("Retry-After"))
	}
	close(s.release)
	all.Wait()
	for range 4 {
		if a := <-answers; a.status != 201 {
			t.Errorf("got %d, want 201: %s", a.status, a.body)
		}
	}
	if a := s.api(t, "POST", "/public/v1/posts", goodPost); a.status != 201 {
		t.Errorf("afterwards: got %d, want 201", a.status)
	}
}

func TestSession_LimitsParallelRequestsOfOrganization(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.release = make(chan struct{})
	release := sync.OnceFunc(func() { close(s.release) })
	t.Cleanup(release)
	pause := func() answer {
		return s.call(t, "PUT", "/integrations/c1/pause", `{"paused":true}`, "auth", goodSession, "Content-Type", "application/json")
	}
	answers := make(chan answer, 5)
	for range cap(answers) {
		go func() { answers <- pause() }()
	}
	select {
	case first := <-answers: // the one that got no place; the others wait for release
		if first.status != 429 || first.header.Get("Retry-After") != "1" {
			t.Errorf("the fifth request: got %d, Retry-After %q, want 429 and 1", first.status, first.header.Get("Retry-After"))
		}
	case <-time.After(9 * time.Second): // less than call waits for
		t.Fatal("five requests are in progress, want at most four")
	}
	want(t, s.call(t, "POST", "/user/logout", "", "auth", goodSession), 201) // belongs to no organization
	release()
	for range cap(answers) - 1 {
		want(t, <-answers, 200)
	}
	want(t, pause(), 200)
}

// waitingAnalytics are statistics of a platform that does not answer until release is closed.
type waitingAnalytics struct {
	analytics
	release, waiting chan struct{}
}

func (a waitingAnalytics) Channel(
	ctx context.Context, p tenancy.Principal, q publishing.GetAnalytics,
) (publishing.Analytics, error) {
	a.waiting <- struct{}{}
	<-a.release
	return a.analytics.Channel(ctx, p, q)
}

// Requests that wait for the server of a platform leave the places of all other requests free, the pause among them.
func TestStatistics_ThatWaitDelayNothingElse(t *testing.T) {
	t.Parallel()
	const requests = 20
	waiting := waitingAnalytics{release: make(chan struct{}), waiting: make(chan struct{}, requests)}
	s := start(t, nil, func(d *edge.Deps) {
		waiting.analytics = d.Analytics.(analytics)
		d.Analytics = waiting
	})
	release := sync.OnceFunc(func() { close(waiting.release) })
	t.Cleanup(release)
	answers := make(chan answer, requests)
	for i := range requests {
		go func() {
			if i%2 == 0 {
				answers <- s.call(t, "GET", "/public/v1/analytics/channel", "", "Authorization", goodKey)
			} else {
				answers <- s.call(t, "GET", "/analytics/channel", "", "auth", goodSession)
			}
		}()
	}
	for range requests {
		select {
		case <-waiting.waiting:
		case a := <-answers:
			t.Fatalf("got %d, want that it waits: %s", a.status, a.body)
		}
	}
	want(t, s.call(t, "GET", "/public/v1/integrations", "", "Authorization", goodKey), 200)
	want(t, s.call(t, "PUT", "/integrations/c1/pause", `{"paused":true}`, "auth", goodSession, "Content-Type", "application/json"), 200)
	release()
	for range requests {
		want(t, <-answers, 200)
	}
}

// TestOrgBusy_Is429WithRetryAfter is about the share of database connections that an organization has over all
// processes.
func TestOrgBusy_Is429WithRetryAfter(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.err = pg.Fault("fake", pg.ErrOrgBusy)
	a := s.api(t, "POST", "/public/v1/posts", goodPost)
	want(t, a, 429, "Your organization has too many requests in progress; try again in a second.", `"retryAfter":1`)
	if got := a.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After is %q, want 1", got)
	}
	if log := s.log.String(); !strings.Contains(log, "level=INFO msg=request") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log has no request at INFO, or an error: %s", log)
	}
}

// TestList_KeepsPlaceUntilSent: an answer keeps its place until it is written, because it is in memory until then.
func TestList_KeepsPlaceUntilSent(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.thread.Root.Parts[0].Content.Text = strings.Repeat("x", 11<<20) // more than the buffers of a connection
	request := "GET /public/v1/posts?page=0 HTTP/1.1\r\nHost: x\r\nAuthorization: " + goodKey + "\r\n\r\n"
	var stalled []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
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
	if a := s.api(t, "GET", "/public/v1/posts?page=0", ""); a.status != 429 || a.header.Get("Retry-After") != "1" {
		t.Errorf("a third list beside two that are not read: got %d, want 429", a.status)
	}
	for _, c := range stalled {
		_ = c.Close()
	}
	if a := s.api(t, "GET", "/public/v1/posts?page=0", ""); a.status != 200 {
		t.Errorf("after they have ended: got %d, want 200", a.status)
	}
	if a := s.api(t, "HEAD", "/public/v1/posts?page=0", ""); a.status != 200 {
		t.Errorf("HEAD: got %d, want 200", a.status)
	}
}

func TestRecord_NamesContentType(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, c := range map[string]struct {
		stored      publishing.Content
		query, want string
	}{
		"text":         {stored: publishing.Content{Text: "<b> & \\"}, query: "", want: `"content":"<b> & \\","contentType":"text"`},
		"HTML":         {stored: publishing.Content{Text: "<p>a</p>", HTML: true}, query: "", want: `"content":"<p>a</p>","contentType":"html"`},
		"text as HTML": {stored: publishing.Content{Text: "<img onerror=x>\nb"}, query: "?format=html", want: `"content":"<p>&lt;img onerror=x&gt;</p><p>b</p>","contentType":"html"`},
		"HTML as text": {stored: publishing.Content{Text: "<p>a</p><p>b &amp; c</p>", HTML: true}, query: "?format=text", want: `"content":"a\nb & c","contentType":"text"`},
	} {
		s.thread.Root.Parts[0].Content = c.stored
		for _, path := range []string{"/public/v1/posts/" + s.thread.Root.ID.String() + c.query, "/public/v1/posts" + c.query + map[bool]string{true: "?", false: "&"}[c.query == ""] + "page=0"} {
			body := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(s.api(t, "GET", path, "").body)
			if !strings.Contains(body, c.want) {
				t.Errorf("%s: %s\nhas no %s", name, body, c.want)
			}
		}
	}
	want(t, s.api(t, "GET", "/public/v1/posts?page=0&format=xml", ""), 400, "format must be one of")
	want(t, s.api(t, "GET", "/public/v1/posts/x?format=xml", ""), 400, "format must be one of")
}

func TestSettingsKeepTheirDigits(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const settings = `{"channel":1234567890123456789,"ratio":1.10}`
	s.thread.Root.Settings = []byte(settings)
	want(t, s.api(t, "GET", "/public/v1/posts/"+s.thread.Root.ID.String(), ""), 200, settings)
	s.api(t, "POST", "/public/v1/posts", `{"type":"draft","date":"2030-01-01","posts":[{"integration":{"id":"c"},"value":[{"content":"x"}],"settings":`+settings+`}]}`)
	if got := string(s.creates[0].Entries[0].Settings); got != settings {
		t.Errorf("stored %s", got)
	}
}
