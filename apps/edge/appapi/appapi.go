// Package appapi is the application API: what the dashboard and other clients with a session ask of the service.
package appapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/route"
	"crier/platform/clock"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Channels is what the application API asks of publishing about channels.
type Channels interface {
	// Catalogue is every connector of this instance.
	Catalogue() []connector.Descriptor
	// Begin returns what the contract calls url: for a credential platform the bare state.
	Begin(ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect) (string, error)
	Finish(ctx context.Context, cmd publishing.FinishConnect) (publishing.ChannelConnected, error)
}

// Queue is what the application API asks of publishing about the queue.
type Queue interface {
	// Pause keeps posts back or lets them go on; when it returns, no call that it keeps back begins any more.
	Pause(ctx context.Context, p tenancy.Principal, cmd publishing.SetPause) (publishing.PauseResult, error)
	// Figures are those of all organizations; NotFound when there is no queue of that name.
	Figures(ctx context.Context, queue string) (publishing.Figures, error)
}

// Accounts is what the application API asks of tenancy.
type Accounts interface {
	// Session finds whose session token this is, in the chosen organization (organization id or "" = the first enabled
	// membership).
	Session(ctx context.Context, token, organization string) (tenancy.Principal, error)
	// Login returns a fresh session token; a wrong pair is Invalid, and takes as long as a right one. Log-ins of one site
	// hardly delay those of another; RateLimited when too many are being made.
	Login(ctx context.Context, site, email, password string) (token string, err error)
	Logout(ctx context.Context, token string) error
}

// Health tells what the service depends on: "ok" or a short word for each, and whether all is well.
type Health interface {
	Check(ctx context.Context) (answers map[string]string, healthy bool)
}

// Config is what the application API needs to know of the instance.
type Config struct {
	Origins  []string // of BASE_URL, FRONTEND_URL and MAIN_URL
	Secure   bool     // cookies only travel over https
	AppLimit int      // requests a minute of one session
	Timeout  time.Duration
	Version  string

	// MonitorToken opens /monitor on the public listener; empty = nobody may.
	MonitorToken secret.Text
}

// Deps are the ports. Client returns under what the requests of one client are counted: its address, or its /64 network;
// Site what network of a subscriber a client is in: its address, or its /48 network; Draining whether the server is about
// to stop.
type Deps struct {
	// Attempts are those of all processes; nil when there is one.
	Attempts Attempts
	// AccountKey is that of the names of accounts in logs and in Attempts, the same in all processes; empty = a random one.
	AccountKey []byte

	Channels Channels
	Queue    Queue
	Accounts Accounts
	Health   Health
	Draining func() bool
	Client   func(*fiber.Ctx) string
	Site     func(*fiber.Ctx) string
	Clock    clock.Clock
	Log      *slog.Logger
}

// API is the application API.
type API struct {
	cfg      Config
	deps     Deps
	sessions *throttle // requests of a session
	logins   *logins

	accountKey []byte
}

// New makes the API.
func New(cfg Config, deps Deps) *API {
	key := deps.AccountKey
	if len(key) == 0 {
		key = []byte(rand.Text())
	}
	return &API{
		cfg: cfg, deps: deps, accountKey: key,
		sessions: newThrottle(cfg.AppLimit, sessionWindow, deps.Clock),
		logins:   newLogins(deps.Attempts, deps.Clock, deps.Log),
	}
}

// Bodies are the handlers that read a body and set a deadline, by whose it is. They run after whatever can refuse without a
// body.
type Bodies struct {
	None    []fiber.Handler // for routes that read no body
	Known   []fiber.Handler // of a person with a session
	Limited fiber.Handler   // follows Known where the request is for an organization: a number of them at once
	Login   []fiber.Handler // of a stranger who logs in
	Connect []fiber.Handler // of a stranger who finishes connecting a channel
}

// Mount adds every route. Those that are not built and need no session answer before they read a body.
func (a *API) Mount(all *route.Table, bodies Bodies) {
	known := func(handlers ...fiber.Handler) *route.Table { return all.With(append(handlers, bodies.Known...)...) }
	// person is for the routes that leave an organization behind, whatever organization the request names.
	t, user, person := all.With(bodies.None...), known(a.session, a.member).With(bodies.Limited), known(a.session)
	a.mountRoot(t)
	a.mountAuth(all.With(a.signInGuard, jsonOnly).With(bodies.Login...), person)
	a.mountChannels(t, user, all.With(jsonOnly).With(bodies.Connect...))
	a.mountQueue(t, user)
	for _, r := range missingOpen() {
		t.Missing(r.Method, r.Path)
	}
	for _, r := range missingUser() {
		user.Missing(r.Method, r.Path)
	}
	person.Missing("POST", "/user/change-org")
	for _, r := range addedOpen() {
		t.Added(r.Method, r.Path)
	}
	for _, r := range addedUser() {
		user.Added(r.Method, r.Path)
	}
}

func operation(id, method, path, tag, summary string, errors ...int) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{tag}, Errors: append(errors, 500)}
}

// signedIn marks an operation that needs a session.
func signedIn(op huma.Operation) huma.Operation {
	op.Errors = append(op.Errors, 401, 403, 429)
	op.Security = []map[string][]string{{"cookie": {}}, {"session": {}}}
	return op
}
