// Package appapi is the application API: the routes of the dashboard and of other clients with a session.
package appapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/publicv1"
	"crier/platform/clock"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Channels are the use cases of connecting channels.
type Channels interface {
	// Catalogue returns the descriptors of all connectors of this instance.
	Catalogue() []connector.Descriptor
	// Begin starts to connect a channel. It returns the value that the contract calls url, which is the state itself
	// for a platform that is connected by credentials. It returns Invalid for an unknown platform, and for a channel to
	// reconnect that does not exist.
	Begin(ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect) (string, error)
	// Finish connects the channel that Begin has started. The state names the principal. It returns Invalid for a
	// state, a form or a credential that is not accepted, Quota and Conflict at the limits of channels, and RateLimited while too
	// many channels are being connected or when the platform limits requests. After a refusal the state can be used
	// again, a few times.
	Finish(ctx context.Context, cmd publishing.FinishConnect) (publishing.ChannelConnected, error)
}

// Connects are the use cases of connects by OAuth whose account is to be chosen.
type Connects interface {
	// Choose chooses the account for a member. It returns NotFound for an id that names nothing, Invalid for a channel
	// that is connected and for an account that is not offered, and Upstream when the platform fails. After an error the
	// choice can be made again.
	Choose(
		ctx context.Context, p tenancy.Principal, cmd publishing.ChooseAccount,
	) (publishing.ChannelConnected, error)
	// ChooseByState is Choose for a caller who has the state. platform is checked unless it is empty.
	ChooseByState(
		ctx context.Context, platform string, cmd publishing.ChooseAccount,
	) (publishing.ChannelConnected, error)
	// Started returns a connect that was started and not finished. It returns Invalid if there is
	// none.
	Started(ctx context.Context, platform, state string) (publishing.ConnectRequest, error)
	// HoldCode returns a token that holds a platform's code until the person consents. ReleaseCode
	// returns the code for Finish, or Invalid if the token is wrong or too old.
	HoldCode(cmd publishing.FinishConnect) (string, error)
	ReleaseCode(platform, token string) (publishing.FinishConnect, error)
	// Disown disconnects a channel at the request of the person who granted access to its account.
	// It may be repeated. It returns Invalid for a wrong token and Gone for an expired one.
	Disown(ctx context.Context, token string) (publishing.Disowned, error)
}

// Apps are the use cases of an organization's applications at platforms. A family that does not exist is NotFound.
type Apps interface {
	Apps(ctx context.Context, p tenancy.Principal) ([]publishing.PlatformApp, error)
	App(ctx context.Context, p tenancy.Principal, family string) (publishing.PlatformApp, error)
	// SetApp and DeleteApp return the number of channels that were connected with what they replace or delete.
	SetApp(
		ctx context.Context, p tenancy.Principal, cmd publishing.SetPlatformApp,
	) (publishing.PlatformApp, int, error)
	DeleteApp(ctx context.Context, p tenancy.Principal, family string) (publishing.PlatformApp, int, error)
}

// Queue are the use cases of the publishing queue.
type Queue interface {
	// Pause pauses or resumes publishing. When it returns, no call to a platform that is paused can begin. It returns
	// NotFound when the organization has no such channel or customer, and Forbidden when the person may not pause the
	// organization.
	Pause(ctx context.Context, p tenancy.Principal, cmd publishing.SetPause) (publishing.PauseResult, error)
	// QueueStats returns the statistics of a queue over all organizations, and NotFound when no queue has that name.
	QueueStats(ctx context.Context, queue string) (publishing.QueueStats, error)
}

// Health checks what the service depends on.
type Health interface {
	// Check returns "ok" or a short description of the failure for each dependency, and whether the service is healthy.
	Check(ctx context.Context) (answers map[string]string, healthy bool)
}

// Config are the settings of the instance that the application API uses.
type Config struct {
	// Origins are the origins of BASE_URL, FRONTEND_URL and MAIN_URL: pages of others cannot use a session.
	Origins []string
	// Secure restricts cookies to https.
	Secure bool
	// BaseURL is the address of the service, without a slash at the end.
	BaseURL string
	// FrontendURL is the address of the dashboard, without a slash at the end.
	FrontendURL string
	// MobileScheme is the address of an app, such as crier://callback. If it is empty, there is no app.
	MobileScheme string
	// AppLimit is the limit of requests a minute of one session.
	AppLimit int
	// Timeout limits the authentication of a request, and requests of the private listener.
	Timeout time.Duration
	Version string
	// MonitorToken is the token of /monitor on the public listener. If it is empty, all requests are refused there.
	MonitorToken secret.Text
}

// Media are the use cases of uploaded files.
type Media interface {
	// Own returns a file of the organization, and NotFound when it has no such file.
	Own(ctx context.Context, p tenancy.Principal, medium string) (publishing.Medium, error)
}

// Deps are the services and ports that an API uses. Only Attempts, Windows and AccountKey are optional.
type Deps struct {
	// Attempts counts log-ins of all processes together. With nil this process counts its own.
	Attempts Attempts
	// Windows counts requests of all processes together. With nil this process counts its own.
	Windows Windows
	// AccountKey is the HMAC key of the names of accounts in logs, and of accounts, browsers and sessions in Attempts
	// and Windows. It must be the same in all processes. If it is empty, a random key is used.
	AccountKey []byte

	Channels Channels
	Connects Connects
	Apps     Apps
	Tools    publicv1.Tools
	Queue    Queue
	Accounts Accounts
	Plans    Plans
	Media    Media
	Reviews  Reviews
	Health   Health
	// Draining returns whether the server is about to stop.
	Draining func() bool
	// Tracked counts an event of one of the TrackedKinds.
	Tracked func(kind string)
	Clock   clock.Clock
	Log     *slog.Logger
}

// API is the application API. Its methods that return a route.Endpoint are for the route table; Session, Member,
// Visitor, CheckSignInOrigin and JSONOnly run before them. They take the client of a request from the record of package
// request. It is safe for concurrent use.
type API struct {
	cfg     Config
	deps    Deps
	windows *windows
	buckets buckets
	logins  *logins

	accountKey []byte
}

// New returns an API. Without deps.AccountKey it makes a random key, so that the account names in logs differ between
// processes.
func New(cfg Config, deps Deps) *API {
	key := deps.AccountKey
	if len(key) == 0 {
		key = []byte(rand.Text())
	}
	return &API{
		cfg: cfg, deps: deps, accountKey: key,
		windows: &windows{shared: deps.Windows, clock: deps.Clock, log: deps.Log},
		buckets: newBuckets(cfg.AppLimit, deps.Clock),
		logins:  newLogins(deps.Attempts, deps.Clock, deps.Log),
	}
}

// describe returns the description of an endpoint that can refuse a request with the statuses of errors, or with 500.
func describe(tag, summary string, errors ...int) huma.Operation {
	return huma.Operation{Summary: summary, Tags: []string{tag}, Errors: append(errors, http.StatusInternalServerError)}
}
