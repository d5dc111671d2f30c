package edge

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	auditapi "crier/apps/edge/account/audit"
	deletionapi "crier/apps/edge/account/deletion"
	instanceapi "crier/apps/edge/account/instance"
	keyapi "crier/apps/edge/account/key"
	organizationapi "crier/apps/edge/account/organization"
	planapi "crier/apps/edge/account/plan"
	securityapi "crier/apps/edge/account/security"
	signinapi "crier/apps/edge/account/signin"
	teamapi "crier/apps/edge/account/team"
	userapi "crier/apps/edge/account/user"
	"crier/apps/edge/admission"
	analyticsapi "crier/apps/edge/api/analytics"
	approvalapi "crier/apps/edge/api/approval"
	channelapi "crier/apps/edge/api/channel"
	connectapi "crier/apps/edge/api/connect"
	mediaapi "crier/apps/edge/api/media"
	notificationapi "crier/apps/edge/api/notification"
	postapi "crier/apps/edge/api/post"
	slotapi "crier/apps/edge/api/slot"
	tagapi "crier/apps/edge/api/tag"
	webhookapi "crier/apps/edge/api/webhook"
	"crier/apps/edge/dev"
	"crier/apps/edge/docs"
	"crier/apps/edge/mcp"
	"crier/apps/edge/monitor"
	oauthapi "crier/apps/edge/oauth"
	"crier/apps/edge/record"
	"crier/apps/edge/session"
	"crier/billing"
	"crier/platform/clock"
)

// Deps holds the services and ports that a Server uses. Only Tokens, Attempts, Windows, AccountKey,
// SandboxURL and DevMail are optional.
type Deps struct {
	Posts     Posts
	Queue     Queue
	Channels  Channels
	Slots     slotapi.Slots
	Tags      tagapi.Tags
	Analytics Analytics
	Media     Media
	Webhooks  webhookapi.Webhooks
	Approvals Approvals
	// Notifications provides the notification bell's entries.
	Notifications notificationapi.Notifications
	Accounts      Accounts
	Plans         billing.Plans
	// OAuth holds the ports of the OAuth server. All of them are optional.
	OAuth   oauthapi.Ports
	Limiter Limiter
	// Attempts counts logins across all processes. If it is nil, this process counts its own
	// logins.
	Attempts admission.Attempts
	// Windows counts requests across all processes. It counts those from sessions, and those from
	// clients without a session or an API key. If Windows is nil, this process counts its own
	// requests.
	Windows admission.Windows
	// AccountKey is the HMAC key for account names in logs and in Attempts; see admission.Deps.
	AccountKey []byte
	Health     monitor.Health
	// SandboxURL is the loopback URL of the simulated platform, or empty if there is none; see
	// dev.IsSandbox.
	SandboxURL string
	// DevMail holds the emails that /dev/mail shows. It is nil on an instance that does not keep
	// emails.
	DevMail dev.Mails
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Clock   clock.Clock
	// Limits holds limits that are enforced by other packages and shown in the documentation.
	Limits docs.InstanceLimits
	// Version is the service's version, which /health and the OpenAPI document show.
	Version string
}

// endpoints holds the endpoints that the route table refers to, grouped by noun.
type endpoints struct {
	analytics    *analyticsapi.API
	approval     *approvalapi.API
	audit        *auditapi.API
	channel      *channelapi.API
	connect      *connectapi.API
	deletion     *deletionapi.API
	dev          *dev.API
	docs         *docs.API
	instance     *instanceapi.API
	key          *keyapi.API
	mcp          *mcp.API
	media        *mediaapi.API
	monitor      *monitor.API
	notification *notificationapi.API
	oauth        *oauthapi.API
	organization *organizationapi.API
	plan         *planapi.API
	post         *postapi.API
	security     *securityapi.API
	signin       *signinapi.API
	slot         *slotapi.API
	tag          *tagapi.API
	team         *teamapi.API
	user         *userapi.API
	webhook      *webhookapi.API
}

// newGuard returns the gate that limits clients without an API key, and the guard that
// authenticates sessions.
func (s *Server) newGuard() (*admission.Gate, *session.Guard) {
	gate := admission.New(s.cfg.AppLimit, admission.Deps{
		Attempts: s.deps.Attempts, Windows: s.deps.Windows, AccountKey: s.deps.AccountKey, Accounts: s.deps.Accounts,
		Clock: s.deps.Clock, Log: s.deps.Log,
	})
	return gate, session.New(session.Config{
		Origins: s.origins(), Secure: s.cfg.secure(), Limit: s.cfg.AppLimit, Timeout: s.cfg.Timeout,
	}, s.deps.Accounts, gate)
}

// origins returns the origins of BASE_URL, FRONTEND_URL and MAIN_URL. Pages from other origins
// cannot use a session.
func (s *Server) origins() []string { return append(s.cfg.dashboards(), origin(s.cfg.Base())) }

// newEndpoints returns the endpoints. It does not call any dependency.
func (s *Server) newEndpoints() endpoints {
	d, base := s.deps, record.Base(s.cfg.Base())
	cookies := session.Cookies{Secure: s.cfg.secure()}
	signIn := signinapi.New(signinapi.Deps{
		Origins: s.origins(), MobileScheme: s.cfg.MobileScheme, Accounts: d.Accounts, Gate: s.gate, Cookies: cookies,
		Log: d.Log,
	})
	return endpoints{
		analytics: analyticsapi.New(analyticsapi.Deps{Analytics: d.Analytics, Reports: d.Analytics, Clock: d.Clock}),
		approval: approvalapi.New(approvalapi.Deps{
			BaseURL: s.cfg.Base(), Approvals: d.Approvals, Reviews: d.Approvals, Reviewers: s.gate, Gate: s.gate,
			Clock: d.Clock,
		}),
		audit:   auditapi.New(auditapi.Deps{Log: d.Accounts}),
		channel: channelapi.New(channelapi.Deps{Channels: d.Channels, Tools: d.Channels, Pauses: d.Queue}),
		connect: connectapi.New(connectapi.Deps{
			Origins: s.origins(), Channels: d.Channels, Connects: d.Channels, Connectors: d.Channels, Apps: d.Channels,
			Gate: s.gate, Guard: s.session,
		}),
		deletion: deletionapi.New(deletionapi.Deps{Accounts: d.Accounts, Gate: s.gate, Cookies: cookies}),
		dev:      dev.New(dev.Deps{BaseURL: s.cfg.Base(), SandboxURL: d.SandboxURL, Mails: d.DevMail}),
		docs:     docs.NewAPI(docs.Deps{Site: sync.OnceValues(s.renderSite)}),
		instance: instanceapi.New(instanceapi.Deps{
			Accounts: d.Accounts, Plans: d.Plans, Gate: s.gate, Cookies: cookies, Log: d.Log,
		}),
		key: keyapi.New(keyapi.Deps{Accounts: d.Accounts, Gate: s.gate, Clock: d.Clock}),
		mcp: mcp.New(mcp.Deps{
			BaseURL: s.cfg.Base(), BillingURL: s.cfg.Frontend() + "/billing", LookupTime: s.cfg.Timeout,
			Origins: slices.Concat(s.origins(), s.cfg.MCPOrigins), Keys: d.Accounts, Tokens: d.OAuth.Grants,
			Posts:    d.Posts,
			Channels: d.Channels, Slots: d.Slots, Media: d.Media, Approvals: d.Approvals, Reviewers: s.gate,
			Analytics: d.Analytics, Clock: d.Clock, Log: d.Log, Version: d.Version,
		}),
		media: mediaapi.New(mediaapi.Deps{
			Base: base, UploadLimit: s.cfg.UploadLimit, StreamTimeout: s.cfg.UploadTimeout, Media: d.Media,
			Files:     d.Media,
			Transfers: s.transfers, Gate: s.gate,
		}),
		monitor: monitor.New(monitor.Deps{
			FrontendURL: s.cfg.Frontend(), Timeout: s.cfg.Timeout, Version: d.Version, MonitorToken: s.cfg.MonitorToken,
			Queue: d.Queue, Health: d.Health, Draining: s.draining.Load, Cookies: cookies, Log: d.Log,
			Tracked: func(kind string) { s.metrics.tracked.WithLabelValues(kind).Inc() },
		}),
		notification: notificationapi.New(notificationapi.Deps{Notifications: d.Notifications}),
		oauth: oauthapi.New(oauthapi.Deps{
			Ports: d.OAuth, BaseURL: s.cfg.Base(), SignIn: signIn.Steps(), Sessions: d.Accounts,
			Organizations: d.Accounts,
			Channels:      d.Channels, Gate: s.gate, Cookies: cookies, Clock: d.Clock,
		}),
		organization: organizationapi.New(organizationapi.Deps{Accounts: d.Accounts, Plans: d.Plans, Cookies: cookies}),
		plan:         planapi.New(planapi.Deps{Accounts: d.Accounts, Plans: d.Plans}),
		post:         postapi.New(postapi.Deps{Base: base, Posts: d.Posts, Releases: d.Posts, Clock: d.Clock}),
		security:     securityapi.New(securityapi.Deps{Accounts: d.Accounts, Gate: s.gate}),
		signin:       signIn,
		slot:         slotapi.New(slotapi.Deps{Slots: d.Slots}),
		tag:          tagapi.New(tagapi.Deps{Tags: d.Tags, Clock: d.Clock}),
		team:         teamapi.New(teamapi.Deps{FrontendURL: s.cfg.Frontend(), Accounts: d.Accounts, Gate: s.gate}),
		user: userapi.New(userapi.Deps{
			BaseURL: s.cfg.Base(), Accounts: d.Accounts, Plans: d.Plans, Media: d.Media, Gate: s.gate, Clock: d.Clock,
		}),
		webhook: webhookapi.New(webhookapi.Deps{Webhooks: d.Webhooks}),
	}
}
