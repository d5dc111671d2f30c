package mcp_test

import (
	"context"
	"testing"

	"crier/apps/edge"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/edgetest"
)

// slowDeps lists posts and fetches files until release is closed. Each call that begins sends to
// begun.
type slowDeps struct{ begun, release chan struct{} }

func (d slowDeps) wait(ctx context.Context) {
	d.begun <- struct{}{}
	select {
	case <-d.release:
	case <-ctx.Done():
	}
}

type slowPosts struct {
	edge.Posts
	slowDeps
}

func (p slowPosts) List(ctx context.Context, _ tenancy.Principal, _ publishing.ListPosts) (publishing.ThreadPage, error) {
	p.wait(ctx)
	return publishing.ThreadPage{}, nil
}

type slowMedia struct {
	edge.Media
	slowDeps
}

func (m slowMedia) UploadFromURL(ctx context.Context, _ tenancy.Principal, _ string) (publishing.Medium, error) {
	m.wait(ctx)
	return edgetest.Picture, nil
}

func TestLimits_ThirdListOrFetchIsRefused(t *testing.T) {
	t.Parallel()
	const dates = `{"startDate":"2026-01-02T00:00:00Z","endDate":"2026-01-03T00:00:00Z"}`
	const address = `{"url":"https://example.com/cat.png"}`
	for name, c := range map[string]struct{ tool, args, third, thirdArgs string }{
		"lists":           {"service_list_posts", dates, "service_list_posts", dates},
		"list and report": {"service_list_posts", dates, "service_get_overview", `{}`},
		"fetches":         {"service_upload_from_url", address, "service_upload_from_url", address},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := slowDeps{begun: make(chan struct{}, 3), release: make(chan struct{})}
			s := serve(t, nil, func(d *edge.Deps) {
				d.Posts, d.Media = slowPosts{Posts: d.Posts, slowDeps: slow}, slowMedia{Media: d.Media, slowDeps: slow}
			})
			done := make(chan result, 2)
			for range 2 {
				go func() { done <- s.use(t, c.tool, c.args) }()
			}
			<-slow.begun
			<-slow.begun
			s.use(t, c.third, c.thirdArgs).wantFailure(t, "rate_limited", "", "try again", `"retryAfter":1`)
			s.use(t, "service_find_slot", `{"integrationId":"c1"}`).want(t)
			close(slow.release)
			(<-done).want(t)
			(<-done).want(t)
			s.use(t, c.third, c.thirdArgs).want(t)
		})
	}
}
