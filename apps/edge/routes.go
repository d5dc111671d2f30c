package edge

import "slices"

// This file is the route table. Each line has the method and the path, the id in the OpenAPI document, the credential,
// the limits, and the endpoint. The lines of missing and planned routes have no id and no endpoint: they answer 501
// behind the same guards. Everything that needs a list of routes reads this one: Fiber, the OpenAPI document, the
// labels of logs and metrics, `crier routes`, and the tests. See guards.go for the names of credentials and limits, and
// permissions.go for who may use the routes of each credential.

// routes returns all routes of the service, in no particular order.
func (s *Server) routes(e endpoints) []Route {
	return slices.Concat(
		withAliases(publicRoutes(e)), serviceRoutes(s, e),
		signInRoutes(e), userRoutes(e), channelRoutes(e), postRoutes(e), contentRoutes(s, e), settingsRoutes(e),
		billingRoutes(), visitorRoutes(s, e), oauthRoutes(),
	)
}

// publicRoutes returns the public API. It is served under /api/public/v1 too, see withAliases.
func publicRoutes(e endpoints) []Route {
	return []Route{
		built("GET /public/v1/analytics/post/{postId}", "get-post-analytics", apiKey, statistics, e.analytics.PostAnalytics()),
		built("GET /public/v1/analytics/{integration}", "get-analytics", apiKey, statistics, e.analytics.ChannelAnalytics()),
		built("GET /public/v1/approvals", "list-approvals", apiKey, read, e.approval.ListApprovals()),
		built("DELETE /public/v1/approvals/{id}", "delete-approval", apiKey, write, e.approval.DeleteApproval()),
		built("GET /public/v1/connectors", "list-connectors", apiKey, read, e.connect.ListConnectors()),
		built("GET /public/v1/connectors/{id}/analytics", "get-figures", apiKey, statistics, e.analytics.Figures()),
		built("POST /public/v1/connectors/{id}/authorize", "authorize-connector", apiKey, write, e.connect.Authorize()),
		built("GET /public/v1/customers/{customerId}/report", "get-customer-report", apiKey, list, e.analytics.CustomerReport()),
		built("GET /public/v1/find-slot", "find-any-slot", apiKey, read, e.slot.FindAnySlot()),
		built("GET /public/v1/find-slot/{id}", "find-slot", apiKey, read, e.slot.FindSlot()),
		built("GET /public/v1/groups", "list-groups", apiKey, read, e.channel.ListGroups()),
		built("GET /public/v1/integration-settings/{id}", "get-channel-settings", apiKey, read, e.channel.ChannelSettings()),
		built("POST /public/v1/integration-trigger/{id}", "trigger-tool", apiKey, write, e.channel.Trigger()),
		built("GET /public/v1/integrations", "list-channels", apiKey, read, e.channel.ListChannels()),
		built("DELETE /public/v1/integrations/{id}", "delete-channel", apiKey, write, e.channel.DeleteChannel()),
		built("GET /public/v1/integrations/{id}/queue-plan", "get-queue-plan", apiKey, read, e.slot.QueuePlan()),
		built("PUT /public/v1/integrations/{id}/queue-plan", "set-queue-plan", apiKey, write, e.slot.SetQueuePlan()),
		built("GET /public/v1/is-connected", "is-connected", apiKey, read, e.channel.IsConnected()),
		built("GET /public/v1/media", "list-media", apiKey, read, e.media.ListMedia()),
		built("DELETE /public/v1/media/{id}", "delete-media", apiKey, write, e.media.DeleteMedium()),
		built("GET /public/v1/notifications", "list-notifications", apiKey, read, e.notification.ListNotifications()),
		built("GET /public/v1/overview", "get-overview", apiKey, list, e.analytics.Overview()),
		built("POST /public/v1/posts", "create-posts", apiKey, post, e.post.CreatePosts()),
		built("GET /public/v1/posts", "list-posts", apiKey, list, e.post.ListPosts()),
		built("GET /api/public/v1/posts", "list-posts-alias", apiKey, list, e.post.ListPostsInEnvelope()),
		built("DELETE /public/v1/posts/group/{group}", "delete-group", apiKey, write, e.post.DeleteGroup()),
		built("GET /public/v1/posts/{id}", "get-post", apiKey, read, e.post.GetPost()),
		built("DELETE /public/v1/posts/{id}", "delete-post", apiKey, write, e.post.DeletePost()),
		built("GET /public/v1/posts/{id}/approval", "get-approval", apiKey, read, e.approval.GetApproval()),
		built("GET /public/v1/posts/{id}/missing", "get-missing", apiKey, read, e.post.Missing()),
		built("PUT /public/v1/posts/{id}/release-id", "set-release", apiKey, write, e.post.SetRelease()),
		built("POST /public/v1/posts/{id}/request-approval", "request-approval", apiKey, write, e.approval.RequestApproval()),
		built("PUT /public/v1/posts/{id}/settings", "change-post-settings", apiKey, write, e.post.ChangeSettings()),
		built("POST /public/v1/posts/check", "check-posts", apiKey, post, e.post.CheckPosts()),
		built("PUT /public/v1/posts/{id}/status", "change-status", apiKey, write, e.post.ChangeStatus()),
		built("GET /public/v1/social/{integration}", "get-social-url", apiKey, read, e.connect.SocialURL()),
		built("POST /public/v1/tags", "create-tag", apiKey, write, e.tag.CreateTag()),
		built("GET /public/v1/tags", "list-tags", apiKey, read, e.tag.ListTags()),
		built("PUT /public/v1/tags/{id}", "update-tag", apiKey, write, e.tag.UpdateTag()),
		built("DELETE /public/v1/tags/{id}", "delete-tag", apiKey, write, e.tag.DeleteTag()),
		built("POST /public/v1/upload", "upload", apiKey, upload, e.media.Upload()),
		built("POST /public/v1/upload-from-url", "upload-from-url", apiKey, fetch, e.media.UploadFromURL()),
		built("POST /public/v1/webhooks", "create-webhook", apiKey, write, e.webhook.CreateWebhook()),
		built("GET /public/v1/webhooks", "list-webhooks", apiKey, read, e.webhook.ListWebhooks()),
		built("PUT /public/v1/webhooks/{id}", "update-webhook", apiKey, write, e.webhook.UpdateWebhook()),
		built("DELETE /public/v1/webhooks/{id}", "delete-webhook", apiKey, write, e.webhook.DeleteWebhook()),
		built("GET /public/v1/webhooks/{id}/deliveries", "list-deliveries", apiKey, list, e.webhook.ListDeliveries()),
		built("POST /public/v1/webhooks/{id}/deliveries/{deliveryId}/replay", "replay-delivery", apiKey, write, e.webhook.ReplayDelivery()),
		built("POST /public/v1/webhooks/{id}/rotate-secret", "rotate-webhook-secret", apiKey, write, e.webhook.RotateWebhookSecret()),
		built("POST /public/v1/webhooks/{id}/test", "test-webhook", apiKey, write, e.webhook.TestWebhook()),
	}
}

func serviceRoutes(s *Server, e endpoints) []Route {
	return []Route{
		built("GET /", "root", none, quick, e.monitor.Root()),
		built("GET /dev/mail", "dev-mails", none, quick, s.getDevMails()),
		built("GET /dev/mail/{id}", "dev-mail", none, quick, s.getDevMail()),
		built("GET /docs", "docs", none, quick, s.getDocs()),
		built("GET /docs/{page}", "docs-page", none, quick, s.getDocsPage()),
		built("GET /docs/console/{file}", "docs-console-file", none, quick, s.getConsoleFile()),
		built("GET /files/{key}/{file}", "file", none, download, s.getFile()),
		built("GET /health", "health", none, quick, e.monitor.GetHealth()),
		built("GET /monitor/queue/{name}", "queue", operator, quick, e.monitor.QueueStats()),
		built("GET /openapi.json", "openapi", none, quick, s.getDocument()),
		built("GET /public/v1/openapi.json", "public-openapi", none, quick, s.getPublicDocument()),
		built("GET /originals/{id}", "get-original", apiKey, original, s.getOriginal()),
		built("GET /sandbox", "sandbox", none, quick, s.getSandbox()),
		built("GET /sandbox/media/{file}", "sandbox-media", none, quick, s.getSandboxFile("media")),
		built("GET /sandbox/picture/{file}", "sandbox-picture", none, quick, s.getSandboxFile("picture")),
		built("GET /sandbox/style.css", "sandbox-style", none, quick, s.getSandboxStyle()),
	}
}

func signInRoutes(e endpoints) []Route {
	return []Route{
		built("POST /auth/activate", "activate", signIn, login, e.signin.Activate()),
		built("GET /auth/can-register", "can-register", none, quick, e.signin.CanRegister()),
		built("POST /auth/confirm-email", "confirm-email", signIn, login, e.signin.ConfirmAddress()),
		built("POST /auth/forgot", "forgot-password", signIn, login, e.signin.Forgot()),
		built("POST /auth/forgot-return", "reset-password", signIn, login, e.signin.ForgotReturn()),
		built("POST /auth/login", "login", signIn, login, e.signin.Login()),
		built("POST /auth/mfa/enroll/begin", "begin-mfa-enrollment", signIn, login, e.signin.BeginEnrollment()),
		built("POST /auth/mfa/enroll/confirm", "confirm-mfa-enrollment", signIn, login, e.signin.ConfirmEnrollment()),
		built("POST /auth/mfa/verify", "verify-mfa", signIn, login, e.signin.VerifyMFA()),
		personal(built("GET /auth/oauth/{provider}", "begin-sign-in", visitor, quick, e.signin.BeginSignIn())),
		personal(built("POST /auth/oauth/{provider}/exists", "finish-sign-in", visitor, register, e.signin.FinishSignIn())),
		built("GET /auth/oauth-mobile-callback", "app-callback", none, quick, e.signin.AppCallback()),
		built("POST /auth/register", "register", signIn, register, e.signin.Register()),
		built("POST /auth/resend-activation", "resend-activation", signIn, login, e.signin.ResendActivation()),
		built("POST /auth/restore", "restore-account", signIn, login, e.signin.Restore()),
		built("GET /auth/unsubscribe", "unsubscribe-page", none, quick, e.user.UnsubscribePage()),
		built("POST /auth/unsubscribe", "unsubscribe", none, quick, e.user.Unsubscribe()),
	}
}

func userRoutes(e endpoints) []Route {
	return []Route{
		personal(built("POST /user/api-key/rotate", "rotate-key", admin, form, e.key.RotateKey())),
		planned("GET /user/approved-apps", member, user),
		planned("DELETE /user/approved-apps/{id}", member, user),
		personal(built("POST /user/change-email", "change-email", person, own, e.security.ChangeEmail())),
		built("POST /user/change-org", "choose-organization", person, own, e.organization.ChooseOrganization()),
		personal(built("POST /user/change-password", "change-password", person, own, e.security.ChangePassword())),
		built("POST /user/email-notifications", "set-notifications", person, own, e.user.SetNotifications()),
		built("GET /user/email-notifications", "get-notifications", person, own, e.user.Notifications()),
		built("GET /user/identities", "list-identities", person, own, e.security.Identities()),
		personal(built("DELETE /user/identities/{id}", "unlink-identity", person, own, e.security.UnlinkIdentity())),
		built("POST /user/impersonate", "impersonate", instance, own, e.instance.Impersonate()),
		built("GET /user/impersonate", "search-memberships", instance, own, e.instance.Impersonable()),
		personal(built("POST /user/join-org", "join-organization", person, own, e.organization.JoinOrganization())),
		built("POST /user/logout", "logout", person, own, e.signin.Logout()),
		personal(built("POST /user/mfa/begin", "begin-mfa", person, own, e.security.BeginMFA())),
		personal(built("POST /user/mfa/confirm", "confirm-mfa", person, own, e.security.ConfirmMFA())),
		personal(built("POST /user/mfa/disable", "disable-mfa", person, own, e.security.DisableMFA())),
		built("GET /user/mfa/policy", "get-mfa-policy", member, user, e.security.MFAPolicy()),
		personal(built("PUT /user/mfa/policy", "set-mfa-policy", admin, form, e.security.SetMFAPolicy())),
		personal(built("POST /user/mfa/recovery-codes", "new-recovery-codes", person, own, e.security.ReplaceRecoveryCodes())),
		built("GET /user/mfa/status", "get-mfa-status", person, own, e.security.MFAStatus()),
		planned("POST /user/oauth-app", member, user),
		planned("GET /user/oauth-app", member, user),
		planned("PUT /user/oauth-app", member, user),
		planned("DELETE /user/oauth-app", member, user),
		planned("POST /user/oauth-app/rotate-secret", member, user),
		personal(built("POST /user/organizations", "create-organization", person, own, e.organization.CreateOrganization())),
		built("GET /user/organizations", "list-organizations", person, own, e.organization.Organizations()),
		personal(built("POST /user/personal", "set-profile", person, own, e.user.SetProfile())),
		built("GET /user/personal", "get-profile", person, own, e.user.Profile()),
		built("GET /user/self", "get-self", person, own, e.user.Self()),
		personal(built("POST /user/restore-organization", "restore-organization", person, own, e.deletion.RestoreOrganization())),
		personal(built("GET /user/sessions", "list-sessions", person, own, e.security.ListSessions())),
		personal(built("DELETE /user/sessions", "end-sessions", person, own, e.security.EndSessions())),
		built("POST /user/setup", "setup", person, own, e.user.Setup()),
		built("GET /user/subscription", "get-subscription", admin, user, e.plan.Subscription()),
		built("GET /user/subscription/tiers", "list-tiers", member, user, e.plan.Tiers()),
		built("POST /user/t", "track-in-session", member, form, e.monitor.Track()),
	}
}

func channelRoutes(e endpoints) []Route {
	return []Route{
		built("GET /analytics/post/{postId}", "get-post-analytics-app", member, statistics, tagged("Analytics", e.analytics.PostAnalytics())),
		built("GET /analytics/{integration}", "get-analytics-app", member, statistics, e.analytics.ChannelAnalyticsInSession()),
		built("GET /connect/{integration}", "connect-callback", none, quick, e.connect.ConnectCallback()),
		built("POST /connect/{integration}", "connect-choice", none, quick, e.connect.ConnectAnswer()),
		planned("POST /customers", member, user),
		planned("PUT /customers/{id}", member, user),
		planned("DELETE /customers/{id}", member, user),
		built("PUT /customers/{id}/pause", "pause-customer", member, form, e.channel.PauseCustomer()),
		built("GET /integrations", "catalogue", none, quick, e.connect.ListPlatforms()),
		missing("DELETE /integrations", member, user),
		missing("GET /integrations/customers", member, user),
		missing("POST /integrations/disable", member, user),
		missing("POST /integrations/enable", member, user),
		missing("POST /integrations/extension-refresh", none, quick),
		built("POST /integrations/function", "call-function", member, form, e.channel.Function()),
		missing("GET /integrations/list", member, user),
		missing("POST /integrations/mentions", member, user),
		missing("GET /integrations/messaging/updates", member, user),
		missing("POST /integrations/moltbook/register", member, user),
		missing("GET /integrations/moltbook/status", member, user),
		missing("POST /integrations/partner/register", member, user),
		missing("GET /integrations/partner/status", member, user),
		missing("GET /integrations/plug/list", member, user),
		missing("PUT /integrations/plugs/{id}/activate", member, user),
		built("POST /integrations/provider/{id}/connect", "choose-account", member, form, e.connect.Choose()),
		built("POST /integrations/public/provider/{id}/connect", "choose-account-by-state", none, connect, e.connect.ChooseByState()),
		changing(built("GET /integrations/social/{integration}", "begin-connect", member, user, e.connect.BeginConnect())),
		built("POST /integrations/social-connect/{integration}", "finish-connect", none, connect, e.connect.FinishConnect()),
		missing("GET /integrations/telegram/updates", member, user),
		missing("GET /integrations/{identifier}/internal-plugs", member, user),
		missing("GET /integrations/{id}", member, user),
		missing("GET /integrations/{id}/assignments", member, user),
		missing("PUT /integrations/{id}/assignments", admin, user),
		missing("PUT /integrations/{id}/customer-name", member, user),
		missing("PUT /integrations/{id}/group", member, user),
		missing("POST /integrations/{id}/nickname", member, user),
		built("PUT /integrations/{id}/pause", "pause-channel", member, form, e.channel.PauseChannel()),
		missing("POST /integrations/{id}/plugs", member, user),
		missing("GET /integrations/{id}/plugs", member, user),
		built("GET /integrations/{id}/queue-plan", "get-queue-plan-in-session", member, user, tagged("Channels", e.slot.QueuePlan())),
		built("PUT /integrations/{id}/queue-plan", "set-queue-plan-in-session", member, form, tagged("Channels", e.slot.SetQueuePlan())),
		missing("POST /integrations/{id}/retry", member, user),
		missing("POST /integrations/{id}/settings", member, user),
		built("POST /integrations/{id}/time", "set-times", member, form, tagged("Channels", e.slot.SetTimes())),
	}
}

func postRoutes(e endpoints) []Route {
	return []Route{
		missing("POST /posts", member, user),
		missing("GET /posts", member, user),
		built("POST /posts/check", "check-posts-session", member, form, tagged("Posts", e.post.CheckPosts())),
		planned("GET /posts/export", member, user),
		built("GET /posts/find-slot", "find-any-slot-in-session", member, user, tagged("Posts", e.slot.FindAnySlot())),
		built("GET /posts/find-slot/{id}", "find-slot-in-session", member, user, tagged("Posts", e.slot.FindSlot())),
		planned("GET /posts/group/{group}", member, user),
		planned("POST /posts/import", member, user),
		planned("GET /posts/list", member, user),
		planned("GET /posts/old", member, user),
		missing("POST /posts/rewrite", member, user),
		planned("POST /posts/separate-posts", member, user),
		missing("POST /posts/should-shortlink", member, user),
		built("POST /posts/tags", "create-tag-session", member, form, tagged("Posts", e.tag.CreateTag())),
		built("GET /posts/tags", "list-tags-session", member, user, tagged("Posts", e.tag.ListTags())),
		built("PUT /posts/tags/{id}", "update-tag-session", member, form, tagged("Posts", e.tag.UpdateTag())),
		built("DELETE /posts/tags/{id}", "delete-tag-session", member, form, tagged("Posts", e.tag.DeleteTag())),
		planned("POST /posts/valid", member, user),
		planned("DELETE /posts/{group}", member, user),
		planned("GET /posts/{id}", member, user),
		missing("POST /posts/{id}/comments", member, user),
		missing("GET /posts/{id}/comments", member, user),
		planned("DELETE /posts/{id}/comments/{commentId}", member, user),
		planned("PUT /posts/{id}/date", member, user),
		built("GET /posts/{id}/missing", "get-missing-app", member, user, e.post.Missing()),
		built("PUT /posts/{id}/release-id", "set-release-app", member, form, e.post.SetRelease()),
		planned("POST /posts/{id}/share", member, user),
		planned("DELETE /posts/{id}/share", member, user),
		missing("GET /posts/{id}/statistics", member, user),
	}
}

// contentRoutes returns the routes of the application API for what belongs to posts. What the public API offers too is
// served by its endpoints.
func contentRoutes(s *Server, e endpoints) []Route {
	return []Route{
		built("GET /approvals", "list-approvals-app", member, user, e.approval.ListApprovals()),
		built("DELETE /approvals/{id}", "delete-approval-app", member, user, e.approval.DeleteApproval()),
		personal(built("POST /approvals/{id}/resolve", "resolve-approval", member, form, e.approval.ResolveApproval())),
		planned("POST /autopost", member, user),
		planned("GET /autopost", member, user),
		planned("PUT /autopost/{id}", member, user),
		planned("DELETE /autopost/{id}", member, user),
		built("GET /media", "list-own-media", member, user, e.media.ListMedia()),
		built("POST /media/information", "describe-media", member, form, e.media.DescribeMedium()),
		built("GET /media/{id}/original", "get-own-original", member, original, s.getOriginal()),
		planned("POST /media/save-media", member, user),
		planned("POST /media/upload-server", member, user),
		planned("POST /media/upload-simple", member, user),
		built("DELETE /media/{id}", "delete-own-media", member, user, e.media.DeleteMedium()),
		built("GET /notifications", "count-notifications", member, user, e.notification.UnreadNotifications()),
		built("GET /notifications/list", "read-notifications", member, user, e.notification.ReadNotifications()),
		planned("POST /sets", member, user),
		planned("GET /sets", member, user),
		planned("PUT /sets/{id}", member, user),
		planned("DELETE /sets/{id}", member, user),
		planned("POST /signatures", member, user),
		planned("GET /signatures", member, user),
		planned("PUT /signatures/{id}", member, user),
		planned("DELETE /signatures/{id}", member, user),
		personal(built("POST /webhooks", "create-webhook-app", admin, form, e.webhook.CreateWebhook())),
		built("GET /webhooks", "list-webhooks-app", member, user, e.webhook.ListWebhooks()),
		personal(built("PUT /webhooks", "update-webhook-app", admin, form, e.webhook.UpdateWebhookByBody())),
		built("POST /webhooks/send", "try-webhook-app", admin, form, e.webhook.TryWebhookURL()),
		built("DELETE /webhooks/{id}", "delete-webhook-app", admin, user, e.webhook.DeleteWebhook()),
		built("GET /webhooks/{id}/deliveries", "list-deliveries-app", member, user, e.webhook.ListDeliveries()),
		built("POST /webhooks/{id}/deliveries/{deliveryId}/replay", "replay-delivery-app", member, form, e.webhook.ReplayDelivery()),
		personal(built("POST /webhooks/{id}/rotate-secret", "rotate-webhook-secret-app", admin, form, e.webhook.RotateWebhookSecret())),
		built("POST /webhooks/{id}/test", "test-webhook-app", member, form, e.webhook.TestWebhook()),
	}
}

func settingsRoutes(e endpoints) []Route {
	return []Route{
		personal(built("POST /settings/api-keys", "create-key", admin, form, e.key.CreateKey())),
		built("GET /settings/api-keys", "list-keys", admin, user, e.key.Keys()),
		built("PUT /settings/api-keys/{id}", "rename-key", admin, form, e.key.RenameKey()),
		built("DELETE /settings/api-keys/{id}", "delete-key", admin, user, e.key.DeleteKey()),
		built("GET /settings/audit", "read-audit-log", member, user, e.audit.Audit()),
		built("POST /settings/delete-account", "delete-account", person, own, e.deletion.DeleteAccount()),
		personal(built("POST /settings/delete-organization", "delete-org", owner, form, e.deletion.DeleteOrganization())),
		missing("POST /settings/disconnect-all-channels", owner, user),
		built("GET /settings/invitations", "list-invitations", admin, user, e.team.Invitations()),
		built("DELETE /settings/invitations/{id}", "revoke-invitation", admin, user, e.team.RevokeInvitation()),
		built("GET /settings/organization", "get-organization", member, user, e.organization.Organization()),
		built("PUT /settings/organization", "update-organization", admin, form, e.organization.UpdateOrganization()),
		built("PUT /settings/pause", "pause-organization", admin, form, e.channel.PauseOrganization()),
		missing("POST /settings/post-checker", admin, user),
		missing("GET /settings/post-checker", member, user),
		missing("DELETE /settings/post-checker", admin, user),
		built("GET /settings/provider-credentials", "list-provider-credentials", admin, user, e.connect.ListProviderCredentials()),
		personal(built("POST /settings/provider-credentials/{provider}", "set-provider-credentials", admin, form, e.connect.SetProviderCredentials())),
		built("GET /settings/provider-credentials/{provider}", "get-provider-credentials", admin, user, e.connect.ProviderCredentials()),
		personal(built("DELETE /settings/provider-credentials/{provider}", "delete-provider-credentials", admin, user, e.connect.DeleteProviderCredentials())),
		missing("POST /settings/shortlink", admin, user),
		missing("GET /settings/shortlink", member, user),
		missing("GET /settings/storage", admin, user),
		personal(built("POST /settings/team", "invite", admin, form, e.team.Invite())),
		built("GET /settings/team", "list-team", admin, user, e.team.Team()),
		built("DELETE /settings/team/{id}", "remove-member", joined, user, e.team.RemoveMember()),
		personal(built("PUT /settings/team/{id}/role", "set-role", admin, form, e.team.SetRole())),
	}
}

func billingRoutes() []Route {
	return []Route{
		planned("GET /billing", member, user),
		planned("POST /billing/cancel", member, user),
		planned("GET /billing/charges", member, user),
		planned("GET /billing/check/{id}", member, user),
		planned("POST /billing/embedded", member, user),
		planned("POST /billing/finish-trial", member, user),
		planned("GET /billing/is-trial-finished", member, user),
		planned("GET /billing/portal", member, user),
		planned("POST /billing/prorate", member, user),
		planned("POST /billing/subscribe", member, user),
		missing("POST /stripe", none, quick),
	}
}

// visitorRoutes returns the routes of the application API for people and services without an account.
func visitorRoutes(s *Server, e endpoints) []Route {
	return []Route{
		missing("GET /compliance/data-deletion/status", none, quick),
		missing("POST /compliance/data-deletion/{app}", none, quick),
		missing("POST /compliance/deauthorize/{app}", none, quick),
		built("POST /enterprise/create-user", "create-enterprise-user", none, register, e.instance.CreateEnterpriseUser()),
		missing("POST /enterprise/delete-channel", none, quick),
		missing("POST /enterprise/url", none, quick),
		built("GET /public/approval-review/{token}", "get-review", none, quick, e.approval.Review()),
		built("POST /public/approval-review/{token}/resolve", "resolve-review", none, connect, e.approval.ResolveReview()),
		missing("GET /public/posts/shared/{shareToken}", none, quick),
		planned("POST /public/posts/shared/{shareToken}/comments", none, quick),
		missing("GET /public/posts/shared/{shareToken}/comments", none, quick),
		built("GET /public/stream", "stream", visitor, download, s.getStream()),
		built("POST /public/t", "track", none, beacon, e.monitor.Track()),
		built("GET /review/{token}", "review-page", none, quick, e.approval.ReviewPage()),
		built("POST /review/{token}", "answer-review-page", none, page, e.approval.AnswerReviewPage()),
		planned("GET /s/{code}", none, quick),
	}
}

// oauthRoutes returns the routes of the OAuth server and of the MCP server.
func oauthRoutes() []Route {
	return []Route{
		missing("GET /.well-known/oauth-authorization-server", none, quick),
		planned("GET /.well-known/oauth-protected-resource/mcp", none, quick),
		planned("POST /mcp", none, quick),
		missing("POST /oauth/authorize", member, user),
		missing("GET /oauth/authorize", none, quick),
		missing("POST /oauth/introspect", none, quick),
		missing("POST /oauth/register", none, quick),
		missing("POST /oauth/revoke", none, quick),
		missing("POST /oauth/token", none, quick),
		missing("GET /oauth/userinfo", none, quick),
	}
}
