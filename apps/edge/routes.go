package edge

import (
	"slices"

	"crier/apps/edge/appapi"
	"crier/apps/edge/publicv1"
)

// This file is the route table. Each line has the method and the path, the id in the OpenAPI document, the credential,
// the limits, and the endpoint. The lines of missing and planned routes have no id and no endpoint: they answer 501
// behind the same guards. Everything that needs a list of routes reads this one: Fiber, the OpenAPI document, the
// labels of logs and metrics, `crier routes`, and the tests. See guards.go for the names of credentials and limits, and
// permissions.go for who may use the routes of each credential.

// routes returns all routes of the service, in no particular order.
func (s *Server) routes(public *publicv1.API, api *appapi.API) []Route {
	return slices.Concat(
		withAliases(publicRoutes(public)), serviceRoutes(s, api),
		signInRoutes(api), userRoutes(api), channelRoutes(public, api), postRoutes(public), contentRoutes(s, public), settingsRoutes(api),
		billingRoutes(), visitorRoutes(s, api), oauthRoutes(),
	)
}

// publicRoutes returns the public API. It is served under /api/public/v1 too, see withAliases.
func publicRoutes(api *publicv1.API) []Route {
	return []Route{
		built("GET /public/v1/analytics/post/{postId}", "get-post-analytics", apiKey, statistics, api.PostAnalytics()),
		built("GET /public/v1/analytics/{integration}", "get-analytics", apiKey, statistics, api.ChannelAnalytics()),
		built("GET /public/v1/approvals", "list-approvals", apiKey, read, api.ListApprovals()),
		built("DELETE /public/v1/approvals/{id}", "delete-approval", apiKey, write, api.DeleteApproval()),
		built("GET /public/v1/connectors", "list-connectors", apiKey, read, api.ListConnectors()),
		built("GET /public/v1/connectors/{id}/analytics", "get-figures", apiKey, statistics, api.Figures()),
		built("POST /public/v1/connectors/{id}/authorize", "authorize-connector", apiKey, write, api.Authorize()),
		built("GET /public/v1/customers/{customerId}/report", "get-customer-report", apiKey, list, api.CustomerReport()),
		built("GET /public/v1/find-slot", "find-any-slot", apiKey, read, api.FindAnySlot()),
		built("GET /public/v1/find-slot/{id}", "find-slot", apiKey, read, api.FindSlot()),
		built("GET /public/v1/groups", "list-groups", apiKey, read, api.ListGroups()),
		built("GET /public/v1/integration-settings/{id}", "get-channel-settings", apiKey, read, api.ChannelSettings()),
		built("POST /public/v1/integration-trigger/{id}", "trigger-tool", apiKey, write, api.Trigger()),
		built("GET /public/v1/integrations", "list-channels", apiKey, read, api.ListChannels()),
		built("DELETE /public/v1/integrations/{id}", "delete-channel", apiKey, write, api.DeleteChannel()),
		built("GET /public/v1/integrations/{id}/queue-plan", "get-queue-plan", apiKey, read, api.QueuePlan()),
		built("PUT /public/v1/integrations/{id}/queue-plan", "set-queue-plan", apiKey, write, api.SetQueuePlan()),
		built("GET /public/v1/is-connected", "is-connected", apiKey, read, api.IsConnected()),
		built("GET /public/v1/media", "list-media", apiKey, read, api.ListMedia()),
		built("DELETE /public/v1/media/{id}", "delete-media", apiKey, write, api.DeleteMedium()),
		built("GET /public/v1/notifications", "list-notifications", apiKey, read, api.ListNotifications()),
		built("GET /public/v1/overview", "get-overview", apiKey, list, api.Overview()),
		built("POST /public/v1/posts", "create-posts", apiKey, post, api.CreatePosts()),
		built("GET /public/v1/posts", "list-posts", apiKey, list, api.ListPosts()),
		built("GET /api/public/v1/posts", "list-posts-alias", apiKey, list, api.ListPostsInEnvelope()),
		built("DELETE /public/v1/posts/group/{group}", "delete-group", apiKey, write, api.DeleteGroup()),
		built("GET /public/v1/posts/{id}", "get-post", apiKey, read, api.GetPost()),
		built("DELETE /public/v1/posts/{id}", "delete-post", apiKey, write, api.DeletePost()),
		built("GET /public/v1/posts/{id}/approval", "get-approval", apiKey, read, api.GetApproval()),
		built("GET /public/v1/posts/{id}/missing", "get-missing", apiKey, read, api.Missing()),
		built("PUT /public/v1/posts/{id}/release-id", "set-release", apiKey, write, api.SetRelease()),
		built("POST /public/v1/posts/{id}/request-approval", "request-approval", apiKey, write, api.RequestApproval()),
		built("PUT /public/v1/posts/{id}/settings", "change-post-settings", apiKey, write, api.ChangeSettings()),
		built("POST /public/v1/posts/check", "check-posts", apiKey, post, api.CheckPosts()),
		built("PUT /public/v1/posts/{id}/status", "change-status", apiKey, write, api.ChangeStatus()),
		built("GET /public/v1/social/{integration}", "get-social-url", apiKey, read, api.SocialURL()),
		built("POST /public/v1/tags", "create-tag", apiKey, write, api.CreateTag()),
		built("GET /public/v1/tags", "list-tags", apiKey, read, api.ListTags()),
		built("PUT /public/v1/tags/{id}", "update-tag", apiKey, write, api.UpdateTag()),
		built("DELETE /public/v1/tags/{id}", "delete-tag", apiKey, write, api.DeleteTag()),
		built("POST /public/v1/upload", "upload", apiKey, upload, api.Upload()),
		built("POST /public/v1/upload-from-url", "upload-from-url", apiKey, fetch, api.UploadFromURL()),
		built("POST /public/v1/webhooks", "create-webhook", apiKey, write, api.CreateWebhook()),
		built("GET /public/v1/webhooks", "list-webhooks", apiKey, read, api.ListWebhooks()),
		built("PUT /public/v1/webhooks/{id}", "update-webhook", apiKey, write, api.UpdateWebhook()),
		built("DELETE /public/v1/webhooks/{id}", "delete-webhook", apiKey, write, api.DeleteWebhook()),
		built("GET /public/v1/webhooks/{id}/deliveries", "list-deliveries", apiKey, list, api.ListDeliveries()),
		built("POST /public/v1/webhooks/{id}/deliveries/{deliveryId}/replay", "replay-delivery", apiKey, write, api.ReplayDelivery()),
		built("POST /public/v1/webhooks/{id}/rotate-secret", "rotate-webhook-secret", apiKey, write, api.RotateWebhookSecret()),
		built("POST /public/v1/webhooks/{id}/test", "test-webhook", apiKey, write, api.TestWebhook()),
	}
}

func serviceRoutes(s *Server, api *appapi.API) []Route {
	return []Route{
		built("GET /", "root", none, quick, api.Root()),
		built("GET /dev/mail", "dev-mails", none, quick, s.getDevMails()),
		built("GET /dev/mail/{id}", "dev-mail", none, quick, s.getDevMail()),
		built("GET /docs", "docs", none, quick, s.getDocs()),
		built("GET /docs/{page}", "docs-page", none, quick, s.getDocsPage()),
		built("GET /docs/console/{file}", "docs-console-file", none, quick, s.getConsoleFile()),
		built("GET /files/{key}/{file}", "file", none, download, s.getFile()),
		built("GET /health", "health", none, quick, api.GetHealth()),
		built("GET /monitor/queue/{name}", "queue", operator, quick, api.QueueStats()),
		built("GET /openapi.json", "openapi", none, quick, s.getDocument()),
		built("GET /public/v1/openapi.json", "public-openapi", none, quick, s.getPublicDocument()),
		built("GET /originals/{id}", "get-original", apiKey, original, s.getOriginal()),
		built("GET /sandbox", "sandbox", none, quick, s.getSandbox()),
		built("GET /sandbox/media/{file}", "sandbox-media", none, quick, s.getSandboxFile("media")),
		built("GET /sandbox/picture/{file}", "sandbox-picture", none, quick, s.getSandboxFile("picture")),
		built("GET /sandbox/style.css", "sandbox-style", none, quick, s.getSandboxStyle()),
	}
}

func signInRoutes(api *appapi.API) []Route {
	return []Route{
		built("POST /auth/activate", "activate", signIn, login, api.Activate()),
		built("GET /auth/can-register", "can-register", none, quick, api.CanRegister()),
		built("POST /auth/confirm-email", "confirm-email", signIn, login, api.ConfirmAddress()),
		built("POST /auth/forgot", "forgot-password", signIn, login, api.Forgot()),
		built("POST /auth/forgot-return", "reset-password", signIn, login, api.ForgotReturn()),
		built("POST /auth/login", "login", signIn, login, api.Login()),
		built("POST /auth/mfa/enroll/begin", "begin-mfa-enrollment", signIn, login, api.BeginEnrollment()),
		built("POST /auth/mfa/enroll/confirm", "confirm-mfa-enrollment", signIn, login, api.ConfirmEnrollment()),
		built("POST /auth/mfa/verify", "verify-mfa", signIn, login, api.VerifyMFA()),
		personal(built("GET /auth/oauth/{provider}", "begin-sign-in", visitor, quick, api.BeginSignIn())),
		personal(built("POST /auth/oauth/{provider}/exists", "finish-sign-in", visitor, register, api.FinishSignIn())),
		built("GET /auth/oauth-mobile-callback", "app-callback", none, quick, api.AppCallback()),
		built("POST /auth/register", "register", signIn, register, api.Register()),
		built("POST /auth/resend-activation", "resend-activation", signIn, login, api.ResendActivation()),
		built("POST /auth/restore", "restore-account", signIn, login, api.Restore()),
		built("GET /auth/unsubscribe", "unsubscribe-page", none, quick, api.UnsubscribePage()),
		built("POST /auth/unsubscribe", "unsubscribe", none, quick, api.Unsubscribe()),
	}
}

func userRoutes(api *appapi.API) []Route {
	return []Route{
		personal(built("POST /user/api-key/rotate", "rotate-key", admin, form, api.RotateKey())),
		planned("GET /user/approved-apps", session, user),
		planned("DELETE /user/approved-apps/{id}", session, user),
		personal(built("POST /user/change-email", "change-email", person, own, api.ChangeEmail())),
		built("POST /user/change-org", "choose-organization", person, own, api.ChooseOrganization()),
		personal(built("POST /user/change-password", "change-password", person, own, api.ChangePassword())),
		built("POST /user/email-notifications", "set-notifications", person, own, api.SetNotifications()),
		built("GET /user/email-notifications", "get-notifications", person, own, api.Notifications()),
		built("GET /user/identities", "list-identities", person, own, api.Identities()),
		personal(built("DELETE /user/identities/{id}", "unlink-identity", person, own, api.UnlinkIdentity())),
		built("POST /user/impersonate", "impersonate", instance, own, api.Impersonate()),
		built("GET /user/impersonate", "search-memberships", instance, own, api.Impersonable()),
		personal(built("POST /user/join-org", "join-organization", person, own, api.JoinOrganization())),
		built("POST /user/logout", "logout", person, own, api.Logout()),
		personal(built("POST /user/mfa/begin", "begin-mfa", person, own, api.BeginMFA())),
		personal(built("POST /user/mfa/confirm", "confirm-mfa", person, own, api.ConfirmMFA())),
		personal(built("POST /user/mfa/disable", "disable-mfa", person, own, api.DisableMFA())),
		built("GET /user/mfa/policy", "get-mfa-policy", session, user, api.MFAPolicy()),
		personal(built("PUT /user/mfa/policy", "set-mfa-policy", admin, form, api.SetMFAPolicy())),
		personal(built("POST /user/mfa/recovery-codes", "new-recovery-codes", person, own, api.ReplaceRecoveryCodes())),
		built("GET /user/mfa/status", "get-mfa-status", person, own, api.MFAStatus()),
		planned("POST /user/oauth-app", session, user),
		planned("GET /user/oauth-app", session, user),
		planned("PUT /user/oauth-app", session, user),
		planned("DELETE /user/oauth-app", session, user),
		planned("POST /user/oauth-app/rotate-secret", session, user),
		personal(built("POST /user/organizations", "create-organization", person, own, api.CreateOrganization())),
		built("GET /user/organizations", "list-organizations", person, own, api.Organizations()),
		personal(built("POST /user/personal", "set-profile", person, own, api.SetProfile())),
		built("GET /user/personal", "get-profile", person, own, api.Profile()),
		built("GET /user/self", "get-self", person, own, api.Self()),
		personal(built("POST /user/restore-organization", "restore-organization", person, own, api.RestoreOrganization())),
		personal(built("GET /user/sessions", "list-sessions", person, own, api.ListSessions())),
		personal(built("DELETE /user/sessions", "end-sessions", person, own, api.EndSessions())),
		built("POST /user/setup", "setup", person, own, api.Setup()),
		built("GET /user/subscription", "get-subscription", admin, user, api.Subscription()),
		built("GET /user/subscription/tiers", "list-tiers", session, user, api.Tiers()),
		built("POST /user/t", "track-in-session", session, form, api.Track()),
	}
}

func channelRoutes(public *publicv1.API, api *appapi.API) []Route {
	return []Route{
		built("GET /analytics/post/{postId}", "get-post-analytics-app", session, statistics, tagged("Analytics", public.PostAnalytics())),
		built("GET /analytics/{integration}", "get-analytics-app", session, statistics, public.ChannelAnalyticsInSession()),
		built("GET /connect/{integration}", "connect-callback", none, quick, api.ConnectCallback()),
		built("POST /connect/{integration}", "connect-choice", none, quick, api.ConnectAnswer()),
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
		built("POST /integrations/function", "call-function", session, form, api.Function()),
		missing("GET /integrations/list", session, user),
		missing("POST /integrations/mentions", session, user),
		missing("GET /integrations/messaging/updates", session, user),
		missing("POST /integrations/moltbook/register", session, user),
		missing("GET /integrations/moltbook/status", session, user),
		missing("POST /integrations/partner/register", session, user),
		missing("GET /integrations/partner/status", session, user),
		missing("GET /integrations/plug/list", session, user),
		missing("PUT /integrations/plugs/{id}/activate", session, user),
		built("POST /integrations/provider/{id}/connect", "choose-account", session, form, api.Choose()),
		built("POST /integrations/public/provider/{id}/connect", "choose-account-by-state", none, connect, api.ChooseByState()),
		changing(built("GET /integrations/social/{integration}", "begin-connect", session, user, api.BeginConnect())),
		built("POST /integrations/social-connect/{integration}", "finish-connect", none, connect, api.FinishConnect()),
		missing("GET /integrations/telegram/updates", session, user),
		missing("GET /integrations/{identifier}/internal-plugs", session, user),
		missing("GET /integrations/{id}", session, user),
		missing("GET /integrations/{id}/assignments", session, user),
		missing("PUT /integrations/{id}/assignments", admin, user),
		missing("PUT /integrations/{id}/customer-name", session, user),
		missing("PUT /integrations/{id}/group", session, user),
		missing("POST /integrations/{id}/nickname", session, user),
		built("PUT /integrations/{id}/pause", "pause-channel", session, form, api.PauseChannel()),
		missing("POST /integrations/{id}/plugs", session, user),
		missing("GET /integrations/{id}/plugs", session, user),
		built("GET /integrations/{id}/queue-plan", "get-queue-plan-in-session", session, user, tagged("Channels", public.QueuePlan())),
		built("PUT /integrations/{id}/queue-plan", "set-queue-plan-in-session", session, form, tagged("Channels", public.SetQueuePlan())),
		missing("POST /integrations/{id}/retry", session, user),
		missing("POST /integrations/{id}/settings", session, user),
		built("POST /integrations/{id}/time", "set-times", session, form, tagged("Channels", public.SetTimes())),
	}
}

func postRoutes(public *publicv1.API) []Route {
	return []Route{
		missing("POST /posts", session, user),
		missing("GET /posts", session, user),
		built("POST /posts/check", "check-posts-session", session, form, tagged("Posts", public.CheckPosts())),
		planned("GET /posts/export", session, user),
		built("GET /posts/find-slot", "find-any-slot-in-session", session, user, tagged("Posts", public.FindAnySlot())),
		built("GET /posts/find-slot/{id}", "find-slot-in-session", session, user, tagged("Posts", public.FindSlot())),
		planned("GET /posts/group/{group}", session, user),
		planned("POST /posts/import", session, user),
		planned("GET /posts/list", session, user),
		planned("GET /posts/old", session, user),
		missing("POST /posts/rewrite", session, user),
		planned("POST /posts/separate-posts", session, user),
		missing("POST /posts/should-shortlink", session, user),
		built("POST /posts/tags", "create-tag-session", session, form, tagged("Posts", public.CreateTag())),
		built("GET /posts/tags", "list-tags-session", session, user, tagged("Posts", public.ListTags())),
		built("PUT /posts/tags/{id}", "update-tag-session", session, form, tagged("Posts", public.UpdateTag())),
		built("DELETE /posts/tags/{id}", "delete-tag-session", session, form, tagged("Posts", public.DeleteTag())),
		planned("POST /posts/valid", session, user),
		planned("DELETE /posts/{group}", session, user),
		planned("GET /posts/{id}", session, user),
		missing("POST /posts/{id}/comments", session, user),
		missing("GET /posts/{id}/comments", session, user),
		planned("DELETE /posts/{id}/comments/{commentId}", session, user),
		planned("PUT /posts/{id}/date", session, user),
		built("GET /posts/{id}/missing", "get-missing-app", session, user, public.Missing()),
		built("PUT /posts/{id}/release-id", "set-release-app", session, form, public.SetRelease()),
		planned("POST /posts/{id}/share", session, user),
		planned("DELETE /posts/{id}/share", session, user),
		missing("GET /posts/{id}/statistics", session, user),
	}
}

// contentRoutes returns the routes of the application API for what belongs to posts. What the public API offers too is
// served by its endpoints.
func contentRoutes(s *Server, public *publicv1.API) []Route {
	return []Route{
		built("GET /approvals", "list-approvals-app", session, user, public.ListApprovals()),
		built("DELETE /approvals/{id}", "delete-approval-app", session, user, public.DeleteApproval()),
		personal(built("POST /approvals/{id}/resolve", "resolve-approval", session, form, public.ResolveApproval())),
		planned("POST /autopost", session, user),
		planned("GET /autopost", session, user),
		planned("PUT /autopost/{id}", session, user),
		planned("DELETE /autopost/{id}", session, user),
		built("GET /media", "list-own-media", session, user, public.ListMedia()),
		built("POST /media/information", "describe-media", session, form, public.DescribeMedium()),
		built("GET /media/{id}/original", "get-own-original", session, original, s.getOriginal()),
		planned("POST /media/save-media", session, user),
		planned("POST /media/upload-server", session, user),
		planned("POST /media/upload-simple", session, user),
		built("DELETE /media/{id}", "delete-own-media", session, user, public.DeleteMedium()),
		built("GET /notifications", "count-notifications", session, user, public.UnreadNotifications()),
		built("GET /notifications/list", "read-notifications", session, user, public.ReadNotifications()),
		planned("POST /sets", session, user),
		planned("GET /sets", session, user),
		planned("PUT /sets/{id}", session, user),
		planned("DELETE /sets/{id}", session, user),
		planned("POST /signatures", session, user),
		planned("GET /signatures", session, user),
		planned("PUT /signatures/{id}", session, user),
		planned("DELETE /signatures/{id}", session, user),
		personal(built("POST /webhooks", "create-webhook-app", admin, form, public.CreateWebhook())),
		built("GET /webhooks", "list-webhooks-app", session, user, public.ListWebhooks()),
		personal(built("PUT /webhooks", "update-webhook-app", admin, form, public.UpdateWebhookByBody())),
		built("POST /webhooks/send", "try-webhook-app", admin, form, public.TryWebhookURL()),
		built("DELETE /webhooks/{id}", "delete-webhook-app", admin, user, public.DeleteWebhook()),
		built("GET /webhooks/{id}/deliveries", "list-deliveries-app", session, user, public.ListDeliveries()),
		built("POST /webhooks/{id}/deliveries/{deliveryId}/replay", "replay-delivery-app", session, form, public.ReplayDelivery()),
		personal(built("POST /webhooks/{id}/rotate-secret", "rotate-webhook-secret-app", admin, form, public.RotateWebhookSecret())),
		built("POST /webhooks/{id}/test", "test-webhook-app", session, form, public.TestWebhook()),
	}
}

func settingsRoutes(api *appapi.API) []Route {
	return []Route{
		personal(built("POST /settings/api-keys", "create-key", admin, form, api.CreateKey())),
		built("GET /settings/api-keys", "list-keys", admin, user, api.Keys()),
		built("PUT /settings/api-keys/{id}", "rename-key", admin, form, api.RenameKey()),
		built("DELETE /settings/api-keys/{id}", "delete-key", admin, user, api.DeleteKey()),
		built("GET /settings/audit", "read-audit-log", session, user, api.Audit()),
		built("POST /settings/delete-account", "delete-account", person, own, api.DeleteAccount()),
		personal(built("POST /settings/delete-organization", "delete-org", owner, form, api.DeleteOrganization())),
		missing("POST /settings/disconnect-all-channels", owner, user),
		built("GET /settings/invitations", "list-invitations", admin, user, api.Invitations()),
		built("DELETE /settings/invitations/{id}", "revoke-invitation", admin, user, api.RevokeInvitation()),
		built("GET /settings/organization", "get-organization", session, user, api.Organization()),
		built("PUT /settings/organization", "update-organization", admin, form, api.UpdateOrganization()),
		built("PUT /settings/pause", "pause-organization", admin, form, api.PauseOrganization()),
		missing("POST /settings/post-checker", admin, user),
		missing("GET /settings/post-checker", session, user),
		missing("DELETE /settings/post-checker", admin, user),
		built("GET /settings/provider-credentials", "list-provider-credentials", admin, user, api.ListProviderCredentials()),
		personal(built("POST /settings/provider-credentials/{provider}", "set-provider-credentials", admin, form, api.SetProviderCredentials())),
		built("GET /settings/provider-credentials/{provider}", "get-provider-credentials", admin, user, api.ProviderCredentials()),
		personal(built("DELETE /settings/provider-credentials/{provider}", "delete-provider-credentials", admin, user, api.DeleteProviderCredentials())),
		missing("POST /settings/shortlink", admin, user),
		missing("GET /settings/shortlink", session, user),
		missing("GET /settings/storage", admin, user),
		personal(built("POST /settings/team", "invite", admin, form, api.Invite())),
		built("GET /settings/team", "list-team", admin, user, api.Team()),
		built("DELETE /settings/team/{id}", "remove-member", joined, user, api.RemoveMember()),
		personal(built("PUT /settings/team/{id}/role", "set-role", admin, form, api.SetRole())),
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
func visitorRoutes(s *Server, api *appapi.API) []Route {
	return []Route{
		missing("GET /compliance/data-deletion/status", none, quick),
		missing("POST /compliance/data-deletion/{app}", none, quick),
		missing("POST /compliance/deauthorize/{app}", none, quick),
		built("POST /enterprise/create-user", "create-enterprise-user", none, register, api.CreateEnterpriseUser()),
		missing("POST /enterprise/delete-channel", none, quick),
		missing("POST /enterprise/url", none, quick),
		built("GET /public/approval-review/{token}", "get-review", none, quick, api.Review()),
		built("POST /public/approval-review/{token}/resolve", "resolve-review", none, connect, api.ResolveReview()),
		missing("GET /public/posts/shared/{shareToken}", none, quick),
		planned("POST /public/posts/shared/{shareToken}/comments", none, quick),
		missing("GET /public/posts/shared/{shareToken}/comments", none, quick),
		built("GET /public/stream", "stream", visitor, download, s.getStream()),
		built("POST /public/t", "track", none, beacon, api.Track()),
		built("GET /review/{token}", "review-page", none, quick, api.ReviewPage()),
		built("POST /review/{token}", "answer-review-page", none, page, api.AnswerReviewPage()),
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
