// Package publicv1 is the public API. It converts requests to commands and queries of package publishing, and their
// results to the JSON of the contract.
package publicv1

import (
	"context"
	"io"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// Posts are the use cases of posts. Ids are as the client sent them: one that does not parse is NotFound.
type Posts interface {
	// Create creates or updates posts. It returns Invalid with the wrong fields or with one entry for each wrong
	// channel, and Conflict while another request with the same idempotency key is running. The result of a key is kept
	// with the posts, so that a repeated request returns it also after a crash.
	Create(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error)
	// List returns the threads of a range of dates, or of a page. A range that is too large is Invalid.
	List(ctx context.Context, p tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error)
	// Get returns one post with its timeline.
	Get(ctx context.Context, p tenancy.Principal, id string) (publishing.PostDetail, error)
	// Delete deletes a post with its group. Of a repeated post it skips one occurrence.
	Delete(ctx context.Context, p tenancy.Principal, id string) error
	// DeleteGroup deletes a group of posts, and ends a repeated post.
	DeleteGroup(ctx context.Context, p tenancy.Principal, group string) error
	// ChangeStatus makes a post a draft or schedules it, and returns its new state.
	ChangeStatus(
		ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeStatus,
	) (publishing.State, error)
}

// Channels are the use cases of connected channels.
type Channels interface {
	// List returns the channels of the organization, or of one of its customers if customer is not empty.
	List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error)
	// Disconnect removes a channel and its scheduled posts.
	Disconnect(ctx context.Context, p tenancy.Principal, channel string) error
}

// Media are the use cases of uploads.
type Media interface {
	// Upload stores the file that it reads from r and detects its type by its content. Of a refused file it keeps
	// nothing. The filename may be any text.
	Upload(ctx context.Context, p tenancy.Principal, filename string, r io.Reader) (publishing.Medium, error)
}

// Config are the settings of the instance that the public API uses.
type Config struct {
	// BaseURL is the address of the service, without a slash at the end.
	BaseURL string
	// UploadLimit is the limit of a whole upload request, in bytes.
	UploadLimit int64
}

// Deps are the services that an API uses. All are required.
type Deps struct {
	Posts    Posts
	Channels Channels
	Media    Media
}

// Tables are views of one route table that differ in how bodies are read and limited. The handlers of each authenticate
// the request and count it.
type Tables struct {
	// JSON is for routes with ordinary bodies or none.
	JSON *route.Table
	// Create is for POST /posts.
	Create *route.Table
	// List is for GET /posts.
	List *route.Table
	// Stream is for routes whose handler reads the body itself.
	Stream *route.Table
}

// API is the public API. It can be mounted more than once and is safe for concurrent use.
type API struct {
	cfg  Config
	deps Deps
}

// New returns an API that Mount adds to a route table.
func New(cfg Config, deps Deps) *API { return &API{cfg: cfg, deps: deps} }

// Mount adds every route under prefix. An enveloped mount answers the list of posts as {"posts": […]}; there is no
// other difference.
func (a *API) Mount(t Tables, prefix string, enveloped bool) {
	m := mount{API: a, t: t, prefix: prefix, enveloped: enveloped}
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

// added returns the routes that are not in the interface and are not built.
func added() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/analytics/post/:postId"}, {Method: "PUT", Path: "/posts/:id/settings"},
		{Method: "GET", Path: "/find-slot"}, {Method: "GET", Path: "/notifications"},
		{Method: "GET", Path: "/webhooks"}, {Method: "POST", Path: "/webhooks"},
		{Method: "PUT", Path: "/webhooks/:id"}, {Method: "DELETE", Path: "/webhooks/:id"},
		{Method: "GET", Path: "/webhooks/:id/deliveries"}, {Method: "POST", Path: "/webhooks/:id/test"},
		{Method: "POST", Path: "/webhooks/:id/rotate-secret"},
		{Method: "POST", Path: "/webhooks/:id/deliveries/:deliveryId/replay"},
		{Method: "GET", Path: "/media"}, {Method: "DELETE", Path: "/media/:id"},
		{Method: "GET", Path: "/tags"}, {Method: "POST", Path: "/tags"},
		{Method: "PUT", Path: "/tags/:id"}, {Method: "DELETE", Path: "/tags/:id"},
		{Method: "GET", Path: "/integrations/:id/queue-plan"}, {Method: "PUT", Path: "/integrations/:id/queue-plan"},
		{Method: "GET", Path: "/approvals"}, {Method: "DELETE", Path: "/approvals/:id"},
	}
}

// missing returns the routes of the interface that are not built.
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
