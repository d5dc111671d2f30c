package boot

import (
	"context"
	"log/slog"
	"time"

	"crier/publishing"
	"crier/publishing/channel"
	"crier/publishing/post"
	"crier/tenancy"
	tenancyservice "crier/tenancy/service"
)

// recordTimeout limits the writing of an entry of the audit log for what is already done.
const recordTimeout = 5 * time.Second

// auditor records in the audit log what publishing has done for a principal.
type auditor struct {
	accounts *tenancyservice.Accounts
	log      *slog.Logger
}

// record appends an entry. What it records is done, so an error is only logged.
func (a auditor) record(ctx context.Context, p tenancy.Principal, action tenancy.Action, subject string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := a.accounts.Record(ctx, p, action, subject); err != nil {
		a.log.ErrorContext(ctx, "an entry of the audit log is lost", "org", p.Org, "action", action, "error", err)
	}
}

// recordDisowned appends the audit entry for a channel that was disconnected by the person who had
// granted access to it.
func (a auditor) recordDisowned(ctx context.Context, d publishing.Disowned) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	guest := tenancy.Principal{Org: d.Org, Via: tenancy.ViaGuest, Name: "guest"}
	if err := a.accounts.RecordDisowned(ctx, guest, d.Connector, d.Channel); err != nil {
		a.log.ErrorContext(ctx, "audit entry and its mails lost: channel disowned", "org", d.Org,
			"action", tenancy.ActionChannelDisowned, "error", err)
	}
}

// auditedChannels records the channels that are connected and disconnected.
type auditedChannels struct {
	*channel.Channels
	auditor auditor
}

func (c auditedChannels) Disconnect(ctx context.Context, p tenancy.Principal, channel string) error {
	err := c.Channels.Disconnect(ctx, p, channel)
	if err == nil {
		c.auditor.record(ctx, p, tenancy.ActionChannelDeleted, channel)
	}
	return err
}

// Finish records who started connecting the channel: the finishing request has no session.
func (c auditedChannels) Finish(
	ctx context.Context, cmd publishing.FinishConnect,
) (publishing.ChannelConnected, error) {
	done, err := c.Channels.Finish(ctx, cmd)
	if err == nil && len(done.Candidates) == 0 {
		c.recordConnected(ctx, done)
	}
	return done, err
}

// Choose records the member.
func (c auditedChannels) Choose(
	ctx context.Context, p tenancy.Principal, cmd publishing.ChooseAccount,
) (publishing.ChannelConnected, error) {
	done, err := c.Channels.Choose(ctx, p, cmd)
	if err == nil {
		c.auditor.record(ctx, p, tenancy.ActionChannelConnected, done.Channel.Connector+" "+done.Channel.Name)
	}
	return done, err
}

// ChooseByState records who started connecting the channel.
func (c auditedChannels) ChooseByState(
	ctx context.Context, platform string, cmd publishing.ChooseAccount,
) (publishing.ChannelConnected, error) {
	done, err := c.Channels.ChooseByState(ctx, platform, cmd)
	if err == nil {
		c.recordConnected(ctx, done)
	}
	return done, err
}

// Disown records a guest, and mails the administrators of the organization.
func (c auditedChannels) Disown(ctx context.Context, token string) (publishing.Disowned, error) {
	out, err := c.Channels.Disown(ctx, token)
	if err == nil && out.Disconnected {
		c.auditor.recordDisowned(ctx, out)
	}
	return out, err
}

// recordConnected records a channel that was connected by a request without a session.
func (c auditedChannels) recordConnected(ctx context.Context, done publishing.ChannelConnected) {
	c.auditor.record(ctx, done.By, tenancy.ActionChannelConnected, done.Channel.Connector+" "+done.Channel.Name)
}

func (c auditedChannels) SetApp(
	ctx context.Context, p tenancy.Principal, cmd publishing.SetPlatformApp,
) (publishing.PlatformApp, int, error) {
	app, n, err := c.Channels.SetApp(ctx, p, cmd)
	if err == nil {
		c.auditor.record(ctx, p, tenancy.ActionAppSet, app.Family)
	}
	return app, n, err
}

func (c auditedChannels) DeleteApp(
	ctx context.Context, p tenancy.Principal, family string,
) (publishing.PlatformApp, int, error) {
	app, n, err := c.Channels.DeleteApp(ctx, p, family)
	if err == nil {
		c.auditor.record(ctx, p, tenancy.ActionAppDeleted, app.Family)
	}
	return app, n, err
}

// auditedPosts records the overrides of approvals.
type auditedPosts struct {
	*post.Posts
	auditor auditor
}

func (s auditedPosts) Create(
	ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts,
) (publishing.CreateResult, error) {
	out, err := s.Posts.Create(ctx, p, cmd)
	for _, c := range out.Created {
		s.recordOverride(ctx, p, c.Post, c.Approval)
	}
	return out, err
}

func (s auditedPosts) ChangeStatus(
	ctx context.Context, p tenancy.Principal, post string, cmd publishing.ChangeStatus,
) (publishing.StatusChanged, error) {
	out, err := s.Posts.ChangeStatus(ctx, p, post, cmd)
	if err == nil {
		s.recordOverride(ctx, p, out.Post, out.Approval)
	}
	return out, err
}

func (s auditedPosts) ChangeSettings(
	ctx context.Context, p tenancy.Principal, post string, cmd publishing.ChangeSettings,
) (publishing.SettingsChanged, error) {
	out, err := s.Posts.ChangeSettings(ctx, p, post, cmd)
	if err == nil {
		s.recordOverride(ctx, p, out.Post, out.Approval)
	}
	return out, err
}

// recordOverride names the administrator, even when a key was used.
func (s auditedPosts) recordOverride(
	ctx context.Context, p tenancy.Principal, post publishing.PostID, effect publishing.ApprovalEffect,
) {
	if effect.OverriddenBy == "" {
		return
	}
	subject := "post " + post.String() + " by " + effect.OverriddenBy
	s.auditor.record(ctx, p, tenancy.ActionApprovalOverridden, subject)
}

// auditedApprovals records requests for approval and their answers.
type auditedApprovals struct {
	*post.Approvals
	auditor auditor
}

func (s auditedApprovals) Request(
	ctx context.Context, p tenancy.Principal, post string, cmd publishing.RequestApproval,
) (publishing.Approval, error) {
	out, err := s.Approvals.Request(ctx, p, post, cmd)
	if err == nil {
		s.auditor.record(ctx, p, tenancy.ActionApprovalRequested, "post "+out.Post.String())
	}
	return out, err
}

func (s auditedApprovals) Withdraw(
	ctx context.Context, p tenancy.Principal, approval string,
) (publishing.Approval, error) {
	out, err := s.Approvals.Withdraw(ctx, p, approval)
	if err == nil {
		s.auditor.record(ctx, p, tenancy.ActionApprovalWithdrawn, "post "+out.Post.String())
	}
	return out, err
}

func (s auditedApprovals) Resolve(
	ctx context.Context, p tenancy.Principal, approval string, cmd publishing.ResolveApproval,
) (publishing.Approval, error) {
	out, err := s.Approvals.Resolve(ctx, p, approval, cmd)
	if err == nil {
		s.auditor.record(ctx, p, resolved(out), "post "+out.Post.String())
	}
	return out, err
}

// ResolveByToken records a guest, whose name is what the guest has entered.
func (s auditedApprovals) ResolveByToken(
	ctx context.Context, token string, cmd publishing.ResolveApproval,
) (publishing.Review, error) {
	out, err := s.Approvals.ResolveByToken(ctx, token, cmd)
	if err == nil {
		guest := tenancy.Principal{Org: out.Org, Via: tenancy.ViaGuest, Name: "guest"}
		if out.ReviewerName != nil {
			guest.Name += " " + *out.ReviewerName
		}
		subject := "post " + out.Post.String()
		if out.Sharer != "" {
			subject += ", with the link of " + out.Sharer
		}
		s.auditor.record(ctx, guest, resolved(out.Approval), subject)
	}
	return out, err
}

// resolved returns the action of an answer.
func resolved(a publishing.Approval) tenancy.Action {
	if a.Status == publishing.ApprovalApproved {
		return tenancy.ActionApproved
	}
	return tenancy.ActionRejected
}

// auditedQueue records pauses.
type auditedQueue struct {
	queue
	auditor auditor
}

func (q auditedQueue) Pause(ctx context.Context, p tenancy.Principal, cmd publishing.SetPause) (
	publishing.PauseResult, error) {
	out, err := q.queue.Pause(ctx, p, cmd)
	if err != nil {
		return out, err
	}
	action := tenancy.ActionUnpaused
	if cmd.Paused {
		action = tenancy.ActionPaused
	}
	q.auditor.record(ctx, p, action, string(cmd.Scope)+" "+cmd.ID)
	return out, nil
}
