// Package publicv1 is the public API: it turns requests into commands and queries of publishing, and their results into records of the contract.
package publicv1

import (
	"context"
	"io"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// Posts is what the public API asks of publishing about posts. Ids come as the client sent them: one that does not parse
// is NotFound.
type Posts interface {
	// Create answers 400 with fields, or with one entry per bad channel, 409 while the same key is running.
	Create(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error)
	List(ctx context.Context, p tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error)
	Get(ctx context.Context, p tenancy.Principal, id string) (publishing.PostDetail, error)
	Delete(ctx context.Context, p tenancy.Principal, id string) error
	DeleteGroup(ctx context.Context, p tenancy.Principal, group string) error
	ChangeStatus(ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeStatus) (publishing.State, error)
}

// Channels lists the channels of the organization.
type Channels interface {
	List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error)
	Disconnect(ctx context.Context, p tenancy.Principal, channel string) error
}

// Media stores uploads.
type Media interface {
	// Upload reads r to its end or to the first fault; it sniffs the content and keeps nothing of a refused file.
	// filename may be anything.
	Upload(ctx context.Context, p tenancy.Principal, filename string, r io.Reader) (publishing.Medium, error)
}

// Config is what the records need to know of the instance.
type Config struct {
	BaseURL     string // without a slash at the end
	UploadLimit int64  // bytes of a whole upload request
}

// Deps are the ports.
type Deps struct {
	Posts    Posts
	Channels Channels
	Media    Media
}

// Tables are views of one table, by how much body a route takes. All of them authenticate and admit.
type Tables struct {
	JSON   *route.Table // ordinary bodies
	Create *route.Table // POST /posts
	List   *route.Table // GET /posts
	Stream *route.Table // bodies that the handler reads itself
}

// API is the public API; it can be mounted more than once.
type API struct {
	cfg  Config
	deps Deps
}

// New makes the API.
func New(cfg Config, deps Deps) *API { return &API{cfg, deps} }

// Mount adds every route under prefix. An enveloped mount answers the list of posts as {"posts": […]}, and differs in nothing else.
func (a *API) Mount(t Tables, prefix string, enveloped bool) {
	m := mount{a, t, prefix, enveloped}
	m.create()
	m.list()
	m.get()
	m.remove()
	m.removeGroup()
	m.changeStatus()
	m.channels()
	m.disconnect()
	m.connected()
	m.upload()
	for _, r := range missing() {
		t.JSON.Missing(r.Method, prefix+r.Path)
	}
	for _, r := range added() {
		t.JSON.Added(r.Method, prefix+r.Path)
	}
}

type mount struct {
	*API
	t         Tables
	prefix    string
	enveloped bool
}

func (m mount) operation(id, method, path, summary string, errors ...int) huma.Operation {
	tag := "Public API"
	if m.enveloped {
		id, tag = id+"-alias", "Public API (alias mount)"
	}
	return huma.Operation{
		OperationID: id, Method: method, Path: m.prefix + path, Summary: summary, Tags: []string{tag},
		Errors: append([]int{401, 429, 500}, errors...), Security: []map[string][]string{{"key": {}}},
	}
}

// added lists the routes beyond the interface that wait to be built.
func added() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/analytics/post/:postId"}, {Method: "PUT", Path: "/posts/:id/settings"}, {Method: "GET", Path: "/find-slot"}, {Method: "GET", Path: "/notifications"},
		{Method: "GET", Path: "/webhooks"}, {Method: "POST", Path: "/webhooks"}, {Method: "PUT", Path: "/webhooks/:id"}, {Method: "DELETE", Path: "/webhooks/:id"},
		{Method: "GET", Path: "/webhooks/:id/deliveries"}, {Method: "POST", Path: "/webhooks/:id/test"}, {Method: "POST", Path: "/webhooks/:id/rotate-secret"},
		{Method: "POST", Path: "/webhooks/:id/deliveries/:deliveryId/replay"},
		{Method: "GET", Path: "/media"}, {Method: "DELETE", Path: "/media/:id"},
		{Method: "GET", Path: "/tags"}, {Method: "POST", Path: "/tags"}, {Method: "PUT", Path: "/tags/:id"}, {Method: "DELETE", Path: "/tags/:id"},
		{Method: "GET", Path: "/integrations/:id/queue-plan"}, {Method: "PUT", Path: "/integrations/:id/queue-plan"},
		{Method: "GET", Path: "/approvals"}, {Method: "DELETE", Path: "/approvals/:id"},
	}
}

// missing lists the routes of the interface that wait to be built.
func missing() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/posts/:id/missing"}, {Method: "PUT", Path: "/posts/:id/release-id"},
		{Method: "POST", Path: "/posts/:id/request-approval"}, {Method: "GET", Path: "/posts/:id/approval"},
		{Method: "GET", Path: "/find-slot/:id"}, {Method: "POST", Path: "/upload-from-url"},
		{Method: "GET", Path: "/groups"}, {Method: "GET", Path: "/social/:integration"},
		{Method: "GET", Path: "/analytics/:integration"},
		{Method: "GET", Path: "/connectors"}, {Method: "POST", Path: "/connectors/:id/authorize"},
		{Method: "GET", Path: "/connectors/:id/analytics"}, {Method: "GET", Path: "/overview"},
		{Method: "GET", Path: "/customers/:customerId/report"}, {Method: "GET", Path: "/integration-settings/:id"},
		{Method: "POST", Path: "/integration-trigger/:id"},
	}
}
