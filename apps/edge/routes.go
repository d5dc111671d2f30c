package edge

import "slices"

// This file is the route table. A line contains an endpoint and the endpoint's id in the OpenAPI
// document. For each audience that may call the endpoint, the line also contains a credential, the
// method and path, and the limits. Missing and planned routes have no id and no endpoint. They
// respond with 501 behind the same guards.
//
// Everything that needs a list of routes uses this table: Fiber, the OpenAPI document, the labels
// in logs and metrics, `crier routes`, and the tests. The credentials are defined in credentials.go
// and the limits in guards.go.

// routes returns all routes, in no particular order.
func (s *Server) routes(e endpoints) []Route {
	var out []Route
	for _, l := range slices.Concat(
		postRoutes(e), tagRoutes(e), slotRoutes(e), channelRoutes(e),
		connectRoutes(e), mediaRoutes(e), approvalRoutes(e), webhookRoutes(e),
		analyticsRoutes(e), notificationRoutes(e), signInRoutes(e), userRoutes(e),
		securityRoutes(e), organizationRoutes(e), teamRoutes(e), keyRoutes(e),
		auditRoutes(e), deletionRoutes(e), planRoutes(e), instanceRoutes(e),
		oauthRoutes(e), s.mcpRoutes(e), monitorRoutes(e), pageRoutes(e), otherRoutes(),
	) {
		out = append(out, l.routes()...)
	}
	return withAliases(out)
}

// postRoutes returns the routes for posts.
func postRoutes(e endpoints) []line {
	return []line{
		built("create-posts", e.post.CreatePosts(), apiKey.at("POST /public/v1/posts", post)),
		built("list-posts", e.post.ListPosts(), apiKey.at("GET /public/v1/posts", list)),
		built("list-posts-alias", e.post.ListPostsInEnvelope(), apiKey.at("GET /api/public/v1/posts", list)),
		built("delete-group", e.post.DeleteGroup(), apiKey.at("DELETE /public/v1/posts/group/{group}", write)),
		built("get-post", e.post.GetPost(), apiKey.at("GET /public/v1/posts/{id}", read)),
		built("delete-post", e.post.DeletePost(), apiKey.at("DELETE /public/v1/posts/{id}", write)),
		built("get-missing", e.post.Missing(),
			apiKey.at("GET /public/v1/posts/{id}/missing", read), member.at("GET /posts/{id}/missing", user)),
		built("set-release", e.post.SetRelease(),
			apiKey.at("PUT /public/v1/posts/{id}/release-id", write), member.at("PUT /posts/{id}/release-id", form)),
		built("change-post-settings", e.post.ChangeSettings(), apiKey.at("PUT /public/v1/posts/{id}/settings", write)),
		built("check-posts", e.post.CheckPosts(),
			apiKey.at("POST /public/v1/posts/check", post), member.at("POST /posts/check", form)),
		built("change-status", e.post.ChangeStatus(), apiKey.at("PUT /public/v1/posts/{id}/status", write)),
		missing(member.at("POST /posts", user)),
		missing(member.at("GET /posts", user)),
		planned(member.at("GET /posts/export", user)),
		planned(member.at("GET /posts/group/{group}", user)),
		planned(member.at("POST /posts/import", user)),
		planned(member.at("GET /posts/list", user)),
		planned(member.at("GET /posts/old", user)),
		missing(member.at("POST /posts/rewrite", user)),
		planned(member.at("POST /posts/separate-posts", user)),
		missing(member.at("POST /posts/should-shortlink", user)),
		planned(member.at("POST /posts/valid", user)),
		planned(member.at("DELETE /posts/{group}", user)),
		planned(member.at("GET /posts/{id}", user)),
		missing(member.at("POST /posts/{id}/comments", user)),
		missing(member.at("GET /posts/{id}/comments", user)),
		planned(member.at("DELETE /posts/{id}/comments/{commentId}", user)),
		planned(member.at("PUT /posts/{id}/date", user)),
		planned(member.at("POST /posts/{id}/share", user)),
		planned(member.at("DELETE /posts/{id}/share", user)),
		missing(member.at("GET /posts/{id}/statistics", user)),
		missing(none.at("GET /public/posts/shared/{shareToken}", quick)),
		planned(none.at("POST /public/posts/shared/{shareToken}/comments", quick)),
		missing(none.at("GET /public/posts/shared/{shareToken}/comments", quick)),
	}
}

// tagRoutes returns the routes for tags.
func tagRoutes(e endpoints) []line {
	return []line{
		built("create-tag", e.tag.CreateTag(),
			apiKey.at("POST /public/v1/tags", write), member.at("POST /posts/tags", form)),
		built("list-tags", e.tag.ListTags(), apiKey.at("GET /public/v1/tags", read), member.at("GET /posts/tags", user)),
		built("update-tag", e.tag.UpdateTag(),
			apiKey.at("PUT /public/v1/tags/{id}", write), member.at("PUT /posts/tags/{id}", form)),
		built("delete-tag", e.tag.DeleteTag(),
			apiKey.at("DELETE /public/v1/tags/{id}", write), member.at("DELETE /posts/tags/{id}", form)),
	}
}

// slotRoutes returns the routes for posting times.
func slotRoutes(e endpoints) []line {
	return []line{
		built("find-any-slot", e.slot.FindAnySlot(),
			apiKey.at("GET /public/v1/find-slot", read), member.at("GET /posts/find-slot", user)),
		built("find-slot", e.slot.FindSlot(),
			apiKey.at("GET /public/v1/find-slot/{id}", read), member.at("GET /posts/find-slot/{id}", user)),
		built("get-queue-plan", e.slot.QueuePlan(),
			apiKey.at("GET /public/v1/integrations/{id}/queue-plan", read),
			member.at("GET /integrations/{id}/queue-plan", user)),
		built("set-queue-plan", e.slot.SetQueuePlan(),
			apiKey.at("PUT /public/v1/integrations/{id}/queue-plan", write),
			member.at("PUT /integrations/{id}/queue-plan", form)),
		built("set-times", e.slot.SetTimes(), member.at("POST /integrations/{id}/time", form)),
	}
}

// channelRoutes returns the routes for connected channels and customers.
func channelRoutes(e endpoints) []line {
	return []line{
		built("list-groups", e.channel.ListGroups(), apiKey.at("GET /public/v1/groups", read)),
		built("get-channel-settings", e.channel.ChannelSettings(),
			apiKey.at("GET /public/v1/integration-settings/{id}", read)),
		built("trigger-tool", e.channel.Trigger(), apiKey.at("POST /public/v1/integration-trigger/{id}", write)),
		built("list-channels", e.channel.ListChannels(), apiKey.at("GET /public/v1/integrations", read)),
		built("delete-channel", e.channel.DeleteChannel(),
			apiKey.at("DELETE /public/v1/integrations/{id}", write).keyOnly()),
		built("is-connected", e.channel.IsConnected(), apiKey.at("GET /public/v1/is-connected", read)),
		planned(member.at("POST /customers", user)),
		planned(member.at("PUT /customers/{id}", user)),
		planned(member.at("DELETE /customers/{id}", user)),
		built("pause-customer", e.channel.PauseCustomer(), member.at("PUT /customers/{id}/pause", form)),
		missing(member.at("DELETE /integrations", user)),
		missing(member.at("GET /integrations/customers", user)),
		missing(member.at("POST /integrations/disable", user)),
		missing(member.at("POST /integrations/enable", user)),
		built("call-function", e.channel.Function(), member.at("POST /integrations/function", form)),
		missing(member.at("GET /integrations/list", user)),
		missing(member.at("POST /integrations/mentions", user)),
		missing(member.at("GET /integrations/plug/list", user)),
		missing(member.at("PUT /integrations/plugs/{id}/activate", user)),
		missing(member.at("GET /integrations/{identifier}/internal-plugs", user)),
		missing(member.at("GET /integrations/{id}", user)),
		missing(member.at("GET /integrations/{id}/assignments", user)),
		missing(admin.at("PUT /integrations/{id}/assignments", user)),
		missing(member.at("PUT /integrations/{id}/customer-name", user)),
		missing(member.at("PUT /integrations/{id}/group", user)),
		missing(member.at("POST /integrations/{id}/nickname", user)),
		built("pause-channel", e.channel.PauseChannel(), member.at("PUT /integrations/{id}/pause", form)),
		missing(member.at("POST /integrations/{id}/plugs", user)),
		missing(member.at("GET /integrations/{id}/plugs", user)),
		missing(member.at("POST /integrations/{id}/retry", user)),
		missing(member.at("POST /integrations/{id}/settings", user)),
		missing(owner.at("POST /settings/disconnect-all-channels", user)),
		built("pause-organization", e.channel.PauseOrganization(), admin.at("PUT /settings/pause", form)),
	}
}

// connectRoutes returns the routes that connect channels.
func connectRoutes(e endpoints) []line {
	return []line{
		built("list-connectors", e.connect.ListConnectors(), apiKey.at("GET /public/v1/connectors", read)),
		built("authorize-connector", e.connect.Authorize(),
			apiKey.at("POST /public/v1/connectors/{id}/authorize", write).keyOnly()),
		built("get-social-url", e.connect.SocialURL(), apiKey.at("GET /public/v1/social/{integration}", read).keyOnly()),
		built("connect-callback", e.connect.ConnectCallback(), none.at("GET /connect/{integration}", quick)),
		built("connect-choice", e.connect.ConnectAnswer(), none.at("POST /connect/{integration}", quick)),
		built("catalogue", e.connect.ListPlatforms(), none.at("GET /integrations", quick)),
		missing(none.at("POST /integrations/extension-refresh", quick)),
		missing(member.at("GET /integrations/messaging/updates", user)),
		missing(member.at("POST /integrations/moltbook/register", user)),
		missing(member.at("GET /integrations/moltbook/status", user)),
		missing(member.at("POST /integrations/partner/register", user)),
		missing(member.at("GET /integrations/partner/status", user)),
		built("choose-account", e.connect.Choose(), member.at("POST /integrations/provider/{id}/connect", form)),
		built("choose-account-by-state", e.connect.ChooseByState(),
			none.at("POST /integrations/public/provider/{id}/connect", connect)),
		built("begin-connect", e.connect.BeginConnect(),
			member.at("GET /integrations/social/{integration}", user).starts()),
		built("finish-connect", e.connect.FinishConnect(),
			none.at("POST /integrations/social-connect/{integration}", connect)),
		missing(member.at("GET /integrations/telegram/updates", user)),
		built("list-provider-credentials", e.connect.ListProviderCredentials(),
			admin.at("GET /settings/provider-credentials", user)),
		built("set-provider-credentials", e.connect.SetProviderCredentials(),
			admin.at("POST /settings/provider-credentials/{provider}", form).personal()),
		built("get-provider-credentials", e.connect.ProviderCredentials(),
			admin.at("GET /settings/provider-credentials/{provider}", user)),
		built("delete-provider-credentials", e.connect.DeleteProviderCredentials(),
			admin.at("DELETE /settings/provider-credentials/{provider}", user).personal()),
	}
}

// mediaRoutes returns the routes for files.
func mediaRoutes(e endpoints) []line {
	return []line{
		built("list-media", e.media.ListMedia(), apiKey.at("GET /public/v1/media", read), member.at("GET /media", user)),
		built("delete-media", e.media.DeleteMedium(),
			apiKey.at("DELETE /public/v1/media/{id}", write), member.at("DELETE /media/{id}", user)),
		built("upload", e.media.Upload(), apiKey.at("POST /public/v1/upload", upload)),
		built("upload-to-address", e.media.UploadTo(), address.at("POST /upload/{token}", upload)),
		built("put-to-address", e.media.PutTo(), address.at("PUT /upload/{token}", upload)),
		built("upload-from-url", e.media.UploadFromURL(), apiKey.at("POST /public/v1/upload-from-url", fetch)),
		built("file", e.media.File(), none.at("GET /files/{key}/{file}", download)),
		built("get-original", e.media.Original(),
			apiKey.at("GET /originals/{id}", original), member.at("GET /media/{id}/original", original)),
		built("describe-media", e.media.DescribeMedium(), member.at("POST /media/information", form)),
		planned(member.at("POST /media/save-media", user)),
		planned(member.at("POST /media/upload-server", user)),
		planned(member.at("POST /media/upload-simple", user)),
		missing(admin.at("GET /settings/storage", user)),
		built("stream", e.media.Stream(), optionalSession.at("GET /public/stream", download)),
	}
}

// approvalRoutes returns the routes for approvals.
func approvalRoutes(e endpoints) []line {
	return []line{
		built("list-approvals", e.approval.ListApprovals(),
			apiKey.at("GET /public/v1/approvals", read), member.at("GET /approvals", user)),
		built("delete-approval", e.approval.DeleteApproval(),
			apiKey.at("DELETE /public/v1/approvals/{id}", write), member.at("DELETE /approvals/{id}", user)),
		built("get-approval", e.approval.GetApproval(), apiKey.at("GET /public/v1/posts/{id}/approval", read)),
		built("request-approval", e.approval.RequestApproval(),
			apiKey.at("POST /public/v1/posts/{id}/request-approval", write)),
		built("resolve-approval", e.approval.ResolveApproval(),
			member.at("POST /approvals/{id}/resolve", form).personal()),
		built("get-review", e.approval.Review(), none.at("GET /public/approval-review/{token}", quick)),
		built("resolve-review", e.approval.ResolveReview(),
			none.at("POST /public/approval-review/{token}/resolve", connect)),
		built("review-page", e.approval.ReviewPage(), none.at("GET /review/{token}", quick)),
		built("answer-review-page", e.approval.AnswerReviewPage(), none.at("POST /review/{token}", page)),
	}
}

// webhookRoutes returns the routes for webhooks.
func webhookRoutes(e endpoints) []line {
	return []line{
		built("create-webhook", e.webhook.CreateWebhook(),
			apiKey.at("POST /public/v1/webhooks", write).keyOnly(), admin.at("POST /webhooks", form).personal()),
		built("list-webhooks", e.webhook.ListWebhooks(),
			apiKey.at("GET /public/v1/webhooks", read).keyOnly(), member.at("GET /webhooks", user)),
		built("update-webhook", e.webhook.UpdateWebhook(), apiKey.at("PUT /public/v1/webhooks/{id}", write).keyOnly()),
		built("delete-webhook", e.webhook.DeleteWebhook(),
			apiKey.at("DELETE /public/v1/webhooks/{id}", write).keyOnly(), admin.at("DELETE /webhooks/{id}", user)),
		built("list-deliveries", e.webhook.ListDeliveries(),
			apiKey.at("GET /public/v1/webhooks/{id}/deliveries", list).keyOnly(),
			member.at("GET /webhooks/{id}/deliveries", user)),
		built("replay-delivery", e.webhook.ReplayDelivery(),
			apiKey.at("POST /public/v1/webhooks/{id}/deliveries/{deliveryId}/replay", write).keyOnly(),
			member.at("POST /webhooks/{id}/deliveries/{deliveryId}/replay", form)),
		built("rotate-webhook-secret", e.webhook.RotateWebhookSecret(),
			apiKey.at("POST /public/v1/webhooks/{id}/rotate-secret", write).keyOnly(),
			admin.at("POST /webhooks/{id}/rotate-secret", form).personal()),
		built("test-webhook", e.webhook.TestWebhook(),
			apiKey.at("POST /public/v1/webhooks/{id}/test", write).keyOnly(),
			member.at("POST /webhooks/{id}/test", form)),
		built("update-webhook-app", e.webhook.UpdateWebhookByBody(), admin.at("PUT /webhooks", form).personal()),
		built("try-webhook-app", e.webhook.TryWebhookURL(), admin.at("POST /webhooks/send", form)),
	}
}

// analyticsRoutes returns the routes for statistics and reports.
func analyticsRoutes(e endpoints) []line {
	return []line{
		built("get-post-analytics", e.analytics.PostAnalytics(),
			apiKey.at("GET /public/v1/analytics/post/{postId}", statistics),
			member.at("GET /analytics/post/{postId}", statistics)),
		built("get-analytics", e.analytics.ChannelAnalytics(),
			apiKey.at("GET /public/v1/analytics/{integration}", statistics)),
		built("get-figures", e.analytics.Figures(), apiKey.at("GET /public/v1/connectors/{id}/analytics", statistics)),
		built("get-customer-report", e.analytics.CustomerReport(),
			apiKey.at("GET /public/v1/customers/{customerId}/report", list)),
		built("get-overview", e.analytics.Overview(), apiKey.at("GET /public/v1/overview", list)),
		built("get-analytics-app", e.analytics.ChannelAnalyticsInSession(),
			member.at("GET /analytics/{integration}", statistics)),
	}
}

// notificationRoutes returns the routes for notifications.
func notificationRoutes(e endpoints) []line {
	return []line{
		built("list-notifications", e.notification.ListNotifications(), apiKey.at("GET /public/v1/notifications", read)),
		built("count-notifications", e.notification.UnreadNotifications(), member.at("GET /notifications", user)),
		built("read-notifications", e.notification.ReadNotifications(), member.at("GET /notifications/list", user)),
	}
}

// signInRoutes returns the routes for signing up, in and out.
func signInRoutes(e endpoints) []line {
	return []line{
		built("activate", e.signin.Activate(), signIn.at("POST /auth/activate", login)),
		built("can-register", e.signin.CanRegister(), none.at("GET /auth/can-register", quick)),
		built("confirm-email", e.signin.ConfirmAddress(), signIn.at("POST /auth/confirm-email", login)),
		built("forgot-password", e.signin.Forgot(), signIn.at("POST /auth/forgot", login)),
		built("reset-password", e.signin.ForgotReturn(), signIn.at("POST /auth/forgot-return", login)),
		built("login", e.signin.Login(), signIn.at("POST /auth/login", login)),
		built("begin-mfa-enrollment", e.signin.BeginEnrollment(), signIn.at("POST /auth/mfa/enroll/begin", login)),
		built("confirm-mfa-enrollment", e.signin.ConfirmEnrollment(), signIn.at("POST /auth/mfa/enroll/confirm", login)),
		built("verify-mfa", e.signin.VerifyMFA(), signIn.at("POST /auth/mfa/verify", login)),
		built("begin-sign-in", e.signin.BeginSignIn(), optionalSession.at("GET /auth/oauth/{provider}", quick).personal()),
		built("finish-sign-in", e.signin.FinishSignIn(),
			optionalSession.at("POST /auth/oauth/{provider}/exists", register).personal()),
		built("app-callback", e.signin.AppCallback(), none.at("GET /auth/oauth-mobile-callback", quick)),
		built("register", e.signin.Register(), signIn.at("POST /auth/register", register)),
		built("resend-activation", e.signin.ResendActivation(), signIn.at("POST /auth/resend-activation", login)),
		built("restore-account", e.signin.Restore(), signIn.at("POST /auth/restore", login)),
		built("logout", e.signin.Logout(), person.at("POST /user/logout", own)),
	}
}

// userRoutes returns the routes for a person's own data.
func userRoutes(e endpoints) []line {
	return []line{
		built("unsubscribe-page", e.user.UnsubscribePage(), none.at("GET /auth/unsubscribe", quick)),
		built("unsubscribe", e.user.Unsubscribe(), none.at("POST /auth/unsubscribe", quick)),
		built("set-notifications", e.user.SetNotifications(), person.at("POST /user/email-notifications", own)),
		built("get-notifications", e.user.Notifications(), person.at("GET /user/email-notifications", own)),
		built("set-profile", e.user.SetProfile(), person.at("POST /user/personal", own).personal()),
		built("get-profile", e.user.Profile(), person.at("GET /user/personal", own)),
		built("get-self", e.user.Self(), person.at("GET /user/self", own)),
		built("setup", e.user.Setup(), person.at("POST /user/setup", own)),
	}
}

// securityRoutes returns the routes for a person's password, second factors, sessions and
// identities.
func securityRoutes(e endpoints) []line {
	return []line{
		built("change-email", e.security.ChangeEmail(), person.at("POST /user/change-email", own).personal()),
		built("change-password", e.security.ChangePassword(), person.at("POST /user/change-password", own).personal()),
		built("list-identities", e.security.Identities(), person.at("GET /user/identities", own)),
		built("unlink-identity", e.security.UnlinkIdentity(), person.at("DELETE /user/identities/{id}", own).personal()),
		built("begin-mfa", e.security.BeginMFA(), person.at("POST /user/mfa/begin", own).personal()),
		built("confirm-mfa", e.security.ConfirmMFA(), person.at("POST /user/mfa/confirm", own).personal()),
		built("disable-mfa", e.security.DisableMFA(), person.at("POST /user/mfa/disable", own).personal()),
		built("get-mfa-policy", e.security.MFAPolicy(), member.at("GET /user/mfa/policy", user)),
		built("set-mfa-policy", e.security.SetMFAPolicy(), admin.at("PUT /user/mfa/policy", form).personal()),
		built("new-recovery-codes", e.security.ReplaceRecoveryCodes(),
			person.at("POST /user/mfa/recovery-codes", own).personal()),
		built("get-mfa-status", e.security.MFAStatus(), person.at("GET /user/mfa/status", own)),
		built("list-sessions", e.security.ListSessions(), person.at("GET /user/sessions", own).personal()),
		built("end-sessions", e.security.EndSessions(), person.at("DELETE /user/sessions", own).personal()),
	}
}

// organizationRoutes returns the routes for organizations and their settings.
func organizationRoutes(e endpoints) []line {
	return []line{
		built("choose-organization", e.organization.ChooseOrganization(), person.at("POST /user/change-org", own)),
		built("join-organization", e.organization.JoinOrganization(), person.at("POST /user/join-org", own).personal()),
		built("create-organization", e.organization.CreateOrganization(),
			person.at("POST /user/organizations", own).personal()),
		built("list-organizations", e.organization.Organizations(), person.at("GET /user/organizations", own)),
		built("get-organization", e.organization.Organization(), member.at("GET /settings/organization", user)),
		built("update-organization", e.organization.UpdateOrganization(), admin.at("PUT /settings/organization", form)),
		missing(admin.at("POST /settings/post-checker", user)),
		missing(member.at("GET /settings/post-checker", user)),
		missing(admin.at("DELETE /settings/post-checker", user)),
		missing(admin.at("POST /settings/shortlink", user)),
		missing(member.at("GET /settings/shortlink", user)),
	}
}

// teamRoutes returns the routes for members and invitations.
func teamRoutes(e endpoints) []line {
	return []line{
		built("list-invitations", e.team.Invitations(), admin.at("GET /settings/invitations", user)),
		built("revoke-invitation", e.team.RevokeInvitation(), admin.at("DELETE /settings/invitations/{id}", user)),
		built("invite", e.team.Invite(), admin.at("POST /settings/team", form).personal()),
		built("list-team", e.team.Team(), admin.at("GET /settings/team", user)),
		built("remove-member", e.team.RemoveMember(), memberWithoutMFA.at("DELETE /settings/team/{id}", user)),
		built("set-role", e.team.SetRole(), admin.at("PUT /settings/team/{id}/role", form).personal()),
	}
}

// keyRoutes returns the routes for API keys.
func keyRoutes(e endpoints) []line {
	return []line{
		built("rotate-key", e.key.RotateKey(), admin.at("POST /user/api-key/rotate", form).personal()),
		built("create-key", e.key.CreateKey(), admin.at("POST /settings/api-keys", form).personal()),
		built("list-keys", e.key.Keys(), admin.at("GET /settings/api-keys", user)),
		built("rename-key", e.key.RenameKey(), admin.at("PUT /settings/api-keys/{id}", form)),
		built("delete-key", e.key.DeleteKey(), admin.at("DELETE /settings/api-keys/{id}", user)),
	}
}

// auditRoutes returns the route for the audit log.
func auditRoutes(e endpoints) []line {
	return []line{
		built("read-audit-log", e.audit.Audit(), member.at("GET /settings/audit", user)),
	}
}

// deletionRoutes returns the routes that delete and restore accounts and organizations.
func deletionRoutes(e endpoints) []line {
	return []line{
		built("restore-organization", e.deletion.RestoreOrganization(),
			person.at("POST /user/restore-organization", own).personal()),
		built("delete-account", e.deletion.DeleteAccount(), person.at("POST /settings/delete-account", own)),
		built("delete-org", e.deletion.DeleteOrganization(),
			owner.at("POST /settings/delete-organization", form).personal()),
	}
}

// planRoutes returns the routes for plans and payments.
func planRoutes(e endpoints) []line {
	return []line{
		built("get-subscription", e.plan.Subscription(), admin.at("GET /user/subscription", user)),
		built("list-tiers", e.plan.Tiers(), member.at("GET /user/subscription/tiers", user)),
		planned(member.at("GET /billing", user)),
		planned(member.at("POST /billing/cancel", user)),
		planned(member.at("GET /billing/charges", user)),
		planned(member.at("GET /billing/check/{id}", user)),
		planned(member.at("POST /billing/embedded", user)),
		planned(member.at("POST /billing/finish-trial", user)),
		planned(member.at("GET /billing/is-trial-finished", user)),
		planned(member.at("GET /billing/portal", user)),
		planned(member.at("POST /billing/prorate", user)),
		planned(member.at("POST /billing/subscribe", user)),
		missing(none.at("POST /stripe", quick)),
	}
}

// instanceRoutes returns the routes for the people who run the instance.
func instanceRoutes(e endpoints) []line {
	return []line{
		built("impersonate", e.instance.Impersonate(), instance.at("POST /user/impersonate", own)),
		built("search-memberships", e.instance.Impersonable(), instance.at("GET /user/impersonate", own)),
		built("create-enterprise-user", e.instance.CreateEnterpriseUser(),
			none.at("POST /enterprise/create-user", register)),
		missing(none.at("POST /enterprise/delete-channel", quick)),
		missing(none.at("POST /enterprise/url", quick)),
	}
}

// mcpRoutes returns the routes for the MCP server. The route with an API key in its path exists
// only with MCP_KEY_IN_PATH.
func (s *Server) mcpRoutes(e endpoints) []line {
	out := []line{
		built("mcp", e.mcp.Post(), agent.at("POST /mcp", call)),
		built("mcp-stream", e.mcp.Refuse("Not supported: the MCP server opens no streams"), agent.at("GET /mcp", call)),
		built("mcp-session", e.mcp.Refuse("Not supported: the MCP server has no sessions"), agent.at("DELETE /mcp", call)),
	}
	if s.cfg.MCPKeyInPath {
		out = append(out, built("mcp-with-key", e.mcp.Post(), agent.at("POST /mcp/{apiKey}", call)))
	}
	return out
}

// oauthRoutes returns the routes for the OAuth server.
func oauthRoutes(e endpoints) []line {
	return []line{
		built("list-approved-apps", e.oauth.ListOwn(), member.at("GET /user/approved-apps", user)),
		built("revoke-approved-app", e.oauth.RevokeOwn(), member.at("DELETE /user/approved-apps/{id}", user)),
		built("list-agents", e.oauth.ListAll(), admin.at("GET /settings/agents", user)),
		built("revoke-agent", e.oauth.RevokeAny(), admin.at("DELETE /settings/agents/{id}", user)),
		built("create-oauth-app", e.oauth.CreateApp(), admin.at("POST /user/oauth-app", form).personal()),
		built("get-oauth-app", e.oauth.App(), admin.at("GET /user/oauth-app", user)),
		built("update-oauth-app", e.oauth.UpdateApp(), admin.at("PUT /user/oauth-app", form).personal()),
		built("delete-oauth-app", e.oauth.DeleteApp(), admin.at("DELETE /user/oauth-app", user)),
		built("rotate-oauth-app-secret", e.oauth.RotateAppSecret(),
			admin.at("POST /user/oauth-app/rotate-secret", form).personal()),
		built("oauth-server", e.oauth.ServerMetadata(), none.at("GET /.well-known/oauth-authorization-server", quick)),
		built("oauth-server-of-mcp", e.oauth.ServerMetadata(),
			none.at("GET /.well-known/oauth-authorization-server/mcp", quick)),
		built("oauth-resource", e.oauth.ResourceMetadata(), none.at("GET /.well-known/oauth-protected-resource", quick)),
		built("oauth-resource-mcp", e.oauth.ResourceMetadata(),
			none.at("GET /.well-known/oauth-protected-resource/mcp", quick)),
		built("oauth-authorize", e.oauth.Authorize(), optionalSession.at("GET /oauth/authorize", quick)),
		built("oauth-answer", e.oauth.AnswerAuthorize(), optionalSession.at("POST /oauth/authorize", consent).personal()),
		built("oauth-sign-in", e.oauth.SignIn(), signIn.at("POST /oauth/sign-in/{page}", page)),
		built("oauth-begin-provider", e.oauth.BeginProvider(),
			signIn.at("GET /oauth/sign-in/{page}/{provider}", quick)),
		built("oauth-provider-callback", e.oauth.ProviderCallback(), none.at("GET /oauth/callback", quick)),
		built("oauth-introspect", e.oauth.Introspect(), none.at("POST /oauth/introspect", client)),
		built("oauth-register", e.oauth.Register(), none.at("POST /oauth/register", metadata)),
		built("oauth-revoke", e.oauth.Revoke(), none.at("POST /oauth/revoke", client)),
		built("oauth-token", e.oauth.Token(), none.at("POST /oauth/token", client)),
		built("oauth-userinfo", e.oauth.UserInfo(), accessToken.at("GET /oauth/userinfo", quick)),
		built("apps-page", e.oauth.AppsPage(), optionalSession.at("GET /oauth/apps", quick)),
		built("revoke-on-apps-page", e.oauth.RevokeOnPage(), optionalSession.at("POST /oauth/apps", page).personal()),
		built("device-code", e.oauth.DeviceCode(), none.at("POST /device/code", client)),
		built("device-token", e.oauth.DeviceToken(), none.at("POST /device/token", client)),
		built("device-page", e.oauth.DevicePage(), optionalSession.at("GET /device", quick)),
		built("answer-device-page", e.oauth.AnswerDevicePage(), optionalSession.at("POST /device", page).personal()),
	}
}

// monitorRoutes returns the routes for operators and load balancers, and for counting events.
func monitorRoutes(e endpoints) []line {
	return []line{
		built("root", e.monitor.Root(), none.at("GET /", quick)),
		built("health", e.monitor.GetHealth(), none.at("GET /health", quick)),
		built("queue", e.monitor.QueueStats(), operator.at("GET /monitor/queue/{name}", quick)),
		built("track", e.monitor.Track(), none.at("POST /public/t", beacon), member.at("POST /user/t", form)),
	}
}

// pageRoutes returns the routes for the documentation, the sandbox, and the emails of crier dev.
func pageRoutes(e endpoints) []line {
	return []line{
		built("dev-mails", e.dev.ListMails(), none.at("GET /dev/mail", quick)),
		built("dev-mail", e.dev.Mail(), none.at("GET /dev/mail/{id}", quick)),
		built("docs", e.docs.GetReference(), none.at("GET /docs", quick)),
		built("docs-page", e.docs.GetPage(), none.at("GET /docs/{page}", quick)),
		built("docs-console-file", e.docs.GetConsoleFile(), none.at("GET /docs/console/{file}", quick)),
		built("docs-manual-page", e.docs.GetManualPage(), none.at("GET /docs/{chapter}/{page}", quick)),
		built("llms", e.docs.GetLLMs(), none.at("GET /llms.txt", quick)),
		built("openapi", e.docs.GetDocument(), none.at("GET /openapi.json", quick)),
		built("public-openapi", e.docs.GetPublicDocument(), none.at("GET /public/v1/openapi.json", quick)),
		built("sandbox", e.dev.Sandbox(), none.at("GET /sandbox", quick)),
		built("sandbox-media", e.dev.SandboxFile("media"), none.at("GET /sandbox/media/{file}", quick)),
		built("sandbox-picture", e.dev.SandboxFile("picture"), none.at("GET /sandbox/picture/{file}", quick)),
		built("sandbox-style", e.dev.SandboxStyle(), none.at("GET /sandbox/style.css", quick)),
	}
}

// otherRoutes returns the routes for features that do not exist yet.
func otherRoutes() []line {
	return []line{
		planned(member.at("POST /autopost", user)),
		planned(member.at("GET /autopost", user)),
		planned(member.at("PUT /autopost/{id}", user)),
		planned(member.at("DELETE /autopost/{id}", user)),
		planned(member.at("POST /sets", user)),
		planned(member.at("GET /sets", user)),
		planned(member.at("PUT /sets/{id}", user)),
		planned(member.at("DELETE /sets/{id}", user)),
		planned(member.at("POST /signatures", user)),
		planned(member.at("GET /signatures", user)),
		planned(member.at("PUT /signatures/{id}", user)),
		planned(member.at("DELETE /signatures/{id}", user)),
		missing(none.at("GET /compliance/data-deletion/status", quick)),
		missing(none.at("POST /compliance/data-deletion/{app}", quick)),
		missing(none.at("POST /compliance/deauthorize/{app}", quick)),
		planned(none.at("GET /s/{code}", quick)),
	}
}
