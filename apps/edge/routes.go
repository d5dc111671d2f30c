package edge

import (
	"slices"

	"crier/apps/edge/appapi"
	"crier/apps/edge/publicv1"
)

// This file is the route table. Each line has the method and the path, the id in the OpenAPI document, the credential,
// the limits, and the endpoint. The lines of missing and planned routes have no id and no endpoint: they answer 501
// behind the same guards. Everything that needs a list of routes reads this one: Fiber, the OpenAPI document, the
// labels of logs and metrics, `crier routes`, and the tests. See guards.go for the names of credentials and limits.

// routes returns all routes of the service, in no particular order.
func (s *Server) routes(public *publicv1.API, api *appapi.API) []Route {
	return slices.Concat(
		withAliases(publicRoutes(public)), serviceRoutes(s, api),
		signInRoutes(api), userRoutes(api), channelRoutes(api), postRoutes(), contentRoutes(), settingsRoutes(api),
		billingRoutes(), visitorRoutes(), oauthRoutes(),
	)
}

// publicRoutes returns the public API. It is served under /api/public/v1 too, see withAliases.
func publicRoutes(api *publicv1.API) []Route {
	return []Route{
		planned("GET /public/v1/analytics/post/{postId}", apiKey, read),
		missing("GET /public/v1/analytics/{integration}", apiKey, read),
		planned("GET /public/v1/approvals", apiKey, read),
		planned("DELETE /public/v1/approvals/{id}", apiKey, write),
		missing("GET /public/v1/connectors", apiKey, read),
		missing("GET /public/v1/connectors/{id}/analytics", apiKey, read),
		missing("POST /public/v1/connectors/{id}/authorize", apiKey, write),
		missing("GET /public/v1/customers/{customerId}/report", apiKey, read),
		planned("GET /public/v1/find-slot", apiKey, read),
		missing("GET /public/v1/find-slot/{id}", apiKey, read),
		missing("GET /public/v1/groups", apiKey, read),
		missing("GET /public/v1/integration-settings/{id}", apiKey, read),
		missing("POST /public/v1/integration-trigger/{id}", apiKey, write),
		built("GET /public/v1/integrations", "list-channels", apiKey, read, api.ListChannels()),
		built("DELETE /public/v1/integrations/{id}", "delete-channel", apiKey, write, api.DeleteChannel()),
		planned("GET /public/v1/integrations/{id}/queue-plan", apiKey, read),
		planned("PUT /public/v1/integrations/{id}/queue-plan", apiKey, write),
		built("GET /public/v1/is-connected", "is-connected", apiKey, read, api.IsConnected()),
		planned("GET /public/v1/media", apiKey, read),
		planned("DELETE /public/v1/media/{id}", apiKey, write),
		planned("GET /public/v1/notifications", apiKey, read),
		missing("GET /public/v1/overview", apiKey, read),
		built("POST /public/v1/posts", "create-posts", apiKey, post, api.CreatePosts()),
		built("GET /public/v1/posts", "list-posts", apiKey, list, api.ListPosts()),
		built("GET /api/public/v1/posts", "list-posts-alias", apiKey, list, api.ListPostsInEnvelope()),
		built("DELETE /public/v1/posts/group/{group}", "delete-group", apiKey, write, api.DeleteGroup()),
		built("GET /public/v1/posts/{id}", "get-post", apiKey, read, api.GetPost()),
		built("DELETE /public/v1/posts/{id}", "delete-post", apiKey, write, api.DeletePost()),
		missing("GET /public/v1/posts/{id}/approval", apiKey, read),
		missing("GET /public/v1/posts/{id}/missing", apiKey, read),
		missing("PUT /public/v1/posts/{id}/release-id", apiKey, write),
		missing("POST /public/v1/posts/{id}/request-approval", apiKey, write),
		planned("PUT /public/v1/posts/{id}/settings", apiKey, write),
		built("PUT /public/v1/posts/{id}/status", "change-status", apiKey, write, api.ChangeStatus()),
		missing("GET /public/v1/social/{integration}", apiKey, read),
		planned("POST /public/v1/tags", apiKey, write),
		planned("GET /public/v1/tags", apiKey, read),
		planned("PUT /public/v1/tags/{id}", apiKey, write),
		planned("DELETE /public/v1/tags/{id}", apiKey, write),
		built("POST /public/v1/upload", "upload", apiKey, upload, api.Upload()),
		missing("POST /public/v1/upload-from-url", apiKey, write),
		planned("POST /public/v1/webhooks", apiKey, write),
		planned("GET /public/v1/webhooks", apiKey, read),
		planned("PUT /public/v1/webhooks/{id}", apiKey, write),
		planned("DELETE /public/v1/webhooks/{id}", apiKey, write),
		planned("GET /public/v1/webhooks/{id}/deliveries", apiKey, read),
		planned("POST /public/v1/webhooks/{id}/deliveries/{deliveryId}/replay", apiKey, write),
		planned("POST /public/v1/webhooks/{id}/rotate-secret", apiKey, write),
		planned("POST /public/v1/webhooks/{id}/test", apiKey, write),
	}
}

func serviceRoutes(s *Server, api *appapi.API) []Route {
	return []Route{
		built("GET /", "root", none, quick, api.Root()),
		built("GET /docs", "docs", none, quick, s.getDocs()),
		built("GET /files/{key}/{file}", "file", none, download, s.getFile()),
		built("GET /health", "health", none, quick, api.GetHealth()),
		built("GET /monitor/queue/{name}", "queue", operator, quick, api.QueueStats()),
		built("GET /openapi.json", "openapi", none, quick, s.getDocument()),
		built("GET /sandbox", "sandbox", none, quick, s.getSandbox()),
		built("GET /sandbox/media/{file}", "sandbox-media", none, quick, s.getSandboxFile("media")),
		built("GET /sandbox/picture/{file}", "sandbox-picture", none, quick, s.getSandboxFile("picture")),
		built("GET /sandbox/style.css", "sandbox-style", none, quick, s.getSandboxStyle()),
	}
}

func signInRoutes(api *appapi.API) []Route {
	return []Route{
		missing("POST /auth/activate", none, quick),
		missing("GET /auth/can-register", none, quick),
		missing("POST /auth/forgot", none, quick),
		missing("POST /auth/forgot-return", none, quick),
		built("POST /auth/login", "login", signIn, login, api.Login()),
		missing("POST /auth/mfa/enroll/begin", none, quick),
		missing("POST /auth/mfa/enroll/confirm", none, quick),
		missing("POST /auth/mfa/verify", none, quick),
		missing("GET /auth/oauth/{provider}", none, quick),
		missing("POST /auth/oauth/{provider}/exists", none, quick),
		missing("GET /auth/oauth-mobile-callback", none, quick),
		missing("POST /auth/register", none, quick),
		missing("POST /auth/resend-activation", none, quick),
	}
}

func userRoutes(api *appapi.API) []Route {
	return []Route{
		missing("POST /user/api-key/rotate", session, user),
		planned("GET /user/approved-apps", session, user),
		planned("DELETE /user/approved-apps/{id}", session, user),
		planned("POST /user/change-email", session, user),
		missing("POST /user/change-org", person, own),
		missing("POST /user/change-password", session, user),
		missing("POST /user/email-notifications", session, user),
		missing("GET /user/email-notifications", session, user),
		missing("POST /user/impersonate", session, user),
		missing("GET /user/impersonate", session, user),
		missing("POST /user/join-org", session, user),
		built("POST /user/logout", "logout", person, own, api.Logout()),
		missing("POST /user/mfa/begin", session, user),
		missing("POST /user/mfa/confirm", session, user),
		missing("POST /user/mfa/disable", session, user),
		missing("GET /user/mfa/policy", session, user),
		missing("PUT /user/mfa/policy", session, user),
		planned("POST /user/mfa/recovery-codes", session, user),
		missing("GET /user/mfa/status", session, user),
		planned("POST /user/oauth-app", session, user),
		planned("GET /user/oauth-app", session, user),
		planned("PUT /user/oauth-app", session, user),
		planned("DELETE /user/oauth-app", session, user),
		planned("POST /user/oauth-app/rotate-secret", session, user),
		missing("POST /user/organizations", session, user),
		missing("GET /user/organizations", session, user),
		missing("POST /user/personal", session, user),
		missing("GET /user/personal", session, user),
		missing("GET /user/self", session, user),
		planned("GET /user/sessions", session, user),
		planned("DELETE /user/sessions", session, user),
		missing("POST /user/setup", session, user),
		missing("GET /user/subscription", session, user),
		missing("GET /user/subscription/tiers", session, user),
		missing("POST /user/t", session, user),
	}
}

func channelRoutes(api *appapi.API) []Route {
	return []Route{
		missing("GET /analytics/post/{postId}", session, user),
		missing("GET /analytics/{integration}", session, user),
		planned("POST /customers", session, user),
		planned("PUT /customers/{id}", session, user),
		planned("DELETE /customers/{id}", session, user),
		built("PUT /customers/{id}/pause", "pause-customer", session, form, api.PauseCustomer()),
		built("GET /integrations", "catalogue", none, quick, api.ListPlatforms()),
		missing("DELETE /integrations", session, user),
		missing("GET /integrations/customers", session, user),
		missing("POST /integrations/disable", session, user),
		missing("POST /integrations/enable", session, user),
		missing("POST /integrations/extension-refresh", none, quick),
		missing("POST /integrations/function", session, user),
		missing("GET /integrations/list", session, user),
		missing("POST /integrations/mentions", session, user),
		missing("GET /integrations/messaging/updates", session, user),
		missing("POST /integrations/moltbook/register", session, user),
		missing("GET /integrations/moltbook/status", session, user),
		missing("POST /integrations/partner/register", session, user),
		missing("GET /integrations/partner/status", session, user),
		missing("GET /integrations/plug/list", session, user),
		missing("PUT /integrations/plugs/{id}/activate", session, user),
		missing("POST /integrations/provider/{id}/connect", session, user),
		missing("POST /integrations/public/provider/{id}/connect", none, quick),
		built("GET /integrations/social/{integration}", "begin-connect", session, user, api.BeginConnect()),
		built("POST /integrations/social-connect/{integration}", "finish-connect", none, connect, api.FinishConnect()),
		missing("GET /integrations/telegram/updates", session, user),
		missing("GET /integrations/{identifier}/internal-plugs", session, user),
		missing("GET /integrations/{id}", session, user),
		missing("GET /integrations/{id}/assignments", session, user),
		missing("PUT /integrations/{id}/assignments", session, user),
		missing("PUT /integrations/{id}/customer-name", session, user),
		missing("PUT /integrations/{id}/group", session, user),
		missing("POST /integrations/{id}/nickname", session, user),
		built("PUT /integrations/{id}/pause", "pause-channel", session, form, api.PauseChannel()),
		missing("POST /integrations/{id}/plugs", session, user),
		missing("GET /integrations/{id}/plugs", session, user),
		missing("GET /integrations/{id}/queue-plan", session, user),
		missing("PUT /integrations/{id}/queue-plan", session, user),
		missing("POST /integrations/{id}/retry", session, user),
		missing("POST /integrations/{id}/settings", session, user),
		missing("POST /integrations/{id}/time", session, user),
	}
}

func postRoutes() []Route {
	return []Route{
		missing("POST /posts", session, user),
		missing("GET /posts", session, user),
		missing("POST /posts/check", session, user),
		planned("GET /posts/export", session, user),
		missing("GET /posts/find-slot", session, user),
		missing("GET /posts/find-slot/{id}", session, user),
		planned("GET /posts/group/{group}", session, user),
		planned("POST /posts/import", session, user),
		planned("GET /posts/list", session, user),
		planned("GET /posts/old", session, user),
		missing("POST /posts/rewrite", session, user),
		planned("POST /posts/separate-posts", session, user),
		missing("POST /posts/should-shortlink", session, user),
		missing("POST /posts/tags", session, user),
		missing("GET /posts/tags", session, user),
		missing("PUT /posts/tags/{id}", session, user),
		missing("DELETE /posts/tags/{id}", session, user),
		planned("POST /posts/valid", session, user),
		planned("DELETE /posts/{group}", session, user),
		planned("GET /posts/{id}", session, user),
		missing("POST /posts/{id}/comments", session, user),
		missing("GET /posts/{id}/comments", session, user),
		planned("DELETE /posts/{id}/comments/{commentId}", session, user),
		planned("PUT /posts/{id}/date", session, user),
		missing("GET /posts/{id}/missing", session, user),
		missing("PUT /posts/{id}/release-id", session, user),
		planned("POST /posts/{id}/share", session, user),
		planned("DELETE /posts/{id}/share", session, user),
		missing("GET /posts/{id}/statistics", session, user),
	}
}

// contentRoutes returns the routes of the application API for what belongs to posts.
func contentRoutes() []Route {
	return []Route{
		planned("GET /approvals", session, user),
		planned("DELETE /approvals/{id}", session, user),
		planned("POST /approvals/{id}/resolve", session, user),
		planned("POST /autopost", session, user),
		planned("GET /autopost", session, user),
		planned("PUT /autopost/{id}", session, user),
		planned("DELETE /autopost/{id}", session, user),
		planned("GET /media", session, user),
		planned("POST /media/information", session, user),
		planned("POST /media/save-media", session, user),
		planned("POST /media/upload-server", session, user),
		planned("POST /media/upload-simple", session, user),
		planned("DELETE /media/{id}", session, user),
		planned("GET /notifications", session, user),
		planned("GET /notifications/list", session, user),
		planned("POST /sets", session, user),
		planned("GET /sets", session, user),
		planned("PUT /sets/{id}", session, user),
		planned("DELETE /sets/{id}", session, user),
		planned("POST /signatures", session, user),
		planned("GET /signatures", session, user),
		planned("PUT /signatures/{id}", session, user),
		planned("DELETE /signatures/{id}", session, user),
		planned("POST /webhooks", session, user),
		planned("GET /webhooks", session, user),
		planned("PUT /webhooks", session, user),
		planned("POST /webhooks/send", session, user),
		planned("DELETE /webhooks/{id}", session, user),
		planned("GET /webhooks/{id}/deliveries", session, user),
		planned("POST /webhooks/{id}/deliveries/{deliveryId}/replay", session, user),
		planned("POST /webhooks/{id}/rotate-secret", session, user),
		planned("POST /webhooks/{id}/test", session, user),
	}
}

func settingsRoutes(api *appapi.API) []Route {
	return []Route{
		missing("POST /settings/api-keys", session, user),
		missing("GET /settings/api-keys", session, user),
		missing("PUT /settings/api-keys/{id}", session, user),
		missing("DELETE /settings/api-keys/{id}", session, user),
		planned("GET /settings/audit", session, user),
		missing("POST /settings/delete-account", session, user),
		planned("POST /settings/delete-organization", session, user),
		missing("POST /settings/disconnect-all-channels", session, user),
		planned("GET /settings/invitations", session, user),
		planned("DELETE /settings/invitations/{id}", session, user),
		missing("GET /settings/organization", session, user),
		missing("PUT /settings/organization", session, user),
		built("PUT /settings/pause", "pause-organization", session, form, api.PauseOrganization()),
		missing("POST /settings/post-checker", session, user),
		missing("GET /settings/post-checker", session, user),
		missing("DELETE /settings/post-checker", session, user),
		missing("GET /settings/provider-credentials", session, user),
		missing("POST /settings/provider-credentials/{provider}", session, user),
		missing("GET /settings/provider-credentials/{provider}", session, user),
		missing("DELETE /settings/provider-credentials/{provider}", session, user),
		missing("POST /settings/shortlink", session, user),
		missing("GET /settings/shortlink", session, user),
		missing("GET /settings/storage", session, user),
		missing("POST /settings/team", session, user),
		missing("GET /settings/team", session, user),
		missing("DELETE /settings/team/{id}", session, user),
		missing("PUT /settings/team/{id}/role", session, user),
	}
}

func billingRoutes() []Route {
	return []Route{
		planned("GET /billing", session, user),
		planned("POST /billing/cancel", session, user),
		planned("GET /billing/charges", session, user),
		planned("GET /billing/check/{id}", session, user),
		planned("POST /billing/embedded", session, user),
		planned("POST /billing/finish-trial", session, user),
		planned("GET /billing/is-trial-finished", session, user),
		planned("GET /billing/portal", session, user),
		planned("POST /billing/prorate", session, user),
		planned("POST /billing/subscribe", session, user),
		missing("POST /stripe", none, quick),
	}
}

// visitorRoutes returns the routes of the application API for people and services without an account.
func visitorRoutes() []Route {
	return []Route{
		missing("GET /compliance/data-deletion/status", none, quick),
		missing("POST /compliance/data-deletion/{app}", none, quick),
		missing("POST /compliance/deauthorize/{app}", none, quick),
		missing("POST /enterprise/create-user", none, quick),
		missing("POST /enterprise/delete-channel", none, quick),
		missing("POST /enterprise/url", none, quick),
		missing("GET /public/approval-review/{token}", none, quick),
		missing("POST /public/approval-review/{token}/resolve", none, quick),
		missing("GET /public/posts/shared/{shareToken}", none, quick),
		planned("POST /public/posts/shared/{shareToken}/comments", none, quick),
		missing("GET /public/posts/shared/{shareToken}/comments", none, quick),
		missing("GET /public/stream", none, quick),
		missing("POST /public/t", none, quick),
		planned("GET /s/{code}", none, quick),
	}
}

// oauthRoutes returns the routes of the OAuth server and of the MCP server.
func oauthRoutes() []Route {
	return []Route{
		missing("GET /.well-known/oauth-authorization-server", none, quick),
		planned("GET /.well-known/oauth-protected-resource/mcp", none, quick),
		planned("POST /mcp", none, quick),
		missing("POST /oauth/authorize", session, user),
		missing("GET /oauth/authorize", none, quick),
		missing("POST /oauth/introspect", none, quick),
		missing("POST /oauth/register", none, quick),
		missing("POST /oauth/revoke", none, quick),
		missing("POST /oauth/token", none, quick),
		missing("GET /oauth/userinfo", none, quick),
	}
}
