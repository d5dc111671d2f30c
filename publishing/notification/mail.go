package notification

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"crier/platform/batch"
	"crier/platform/failpoint"
	"crier/platform/pg"
	"crier/publishing"
	notificationstore "crier/publishing/notification/store"
	"crier/tenancy"
)

const (
	// mailsPerOrg limits the work done in one round, so that organizations take turns.
	mailsPerOrg = 500
	// maxWaiting limits how many waiting events are counted.
	maxWaiting = 100_000
)

// Mail passes due reports to the mailer. It handles the organizations in this process's shards.
// more is true if there may be further reports.
func (n *Notifier) Mail(ctx context.Context) (more bool, err error) {
	waiting, oldest, err := notificationstore.IncidentBacklog(ctx, n.db, maxWaiting)
	if err != nil {
		return false, err
	}
	n.waiting.Store(waiting)
	n.oldest.Store(oldest)
	now := n.deps.Clock.Now()
	return n.mails.Page(ctx, func(ctx context.Context, after tenancy.OrgID, limit int) ([]tenancy.OrgID, error) {
		return notificationstore.MailOrgs(ctx, n.db, after, now, limit)
	}, func(ctx context.Context, org tenancy.OrgID) (bool, error) { return n.mailOrg(ctx, org, now) })
}

// mailOrg first reports an organization's due incidents together, and then the posts published on
// one day.
func (n *Notifier) mailOrg(ctx context.Context, org tenancy.OrgID, now time.Time) (full bool, err error) {
	due, err := notificationstore.IncidentMails(ctx, n.db, org, now, mailsPerOrg)
	if err != nil {
		return false, err
	}
	left, err := n.reportIncidents(ctx, org, due)
	failpoint.At(failpoint.ReportQueued, org.String())
	if done := due[:len(due)-len(left)]; len(done) > 0 {
		if err := notificationstore.MailsQueued(ctx, n.db, org, done, now); err != nil {
			return false, err
		}
	}
	if err != nil {
		return false, err
	}
	return len(due) == mailsPerOrg, n.reportPublished(ctx, org, now)
}

// reportIncidents passes incident reports to the mailer and returns the incidents that it could not
// report. If the database rejects a report, the report is logged and dropped.
func (n *Notifier) reportIncidents(
	ctx context.Context, org tenancy.OrgID, due []publishing.ListedNotification,
) (left []publishing.ListedNotification, err error) {
	return batch.Isolate(due, func(some []publishing.ListedNotification) error {
		var list []tenancy.Report
		for _, d := range some {
			list = append(list, n.incidentReports(org, d)...)
		}
		return n.deps.Mailer.QueueReports(ctx, org, list)
	}, pg.IsRefused, func(d publishing.ListedNotification, cause error) { n.logRefused(ctx, org, d.ID.String(), cause) })
}

func (n *Notifier) logRefused(ctx context.Context, org tenancy.OrgID, report string, cause error) {
	n.deps.Log.ErrorContext(
		ctx, "cannot queue the emails about an incident", "org", org, "report", report, "error", cause,
	)
}

// incidentReports returns the reports about an incident or an approval. A channel that must be
// reconnected is reported once to members who want emails about channels. After posts have failed,
// it is also reported to members who want emails only about posts. If the incident is reopened, the
// reports are sent again under new ids.
func (n *Notifier) incidentReports(org tenancy.OrgID, d publishing.ListedNotification) (out []tenancy.Report) {
	if d.Kind == publishing.NotifyApproval {
		return n.approvalReports(org, d)
	}
	r := n.incidentReport(org, d)
	if d.MailedPosts == nil {
		out = append(out, r)
	}
	if d.Kind == publishing.NotifyReconnect && d.Posts > d.EarlierPosts {
		r.ID, r.OnlyPosts = r.ID+" posts", true
		out = append(out, r)
	}
	return out
}

func (n *Notifier) incidentReport(org tenancy.OrgID, d publishing.ListedNotification) tenancy.Report {
	r := d.Report()
	r.ID, r.Org, r.Channel, r.Platform = "incident "+d.ID.String(), org, d.ChannelName, n.platform(d.Connector)
	if d.Reopened > 0 {
		r.ID += fmt.Sprintf(" again %d", d.Reopened)
		r.Posts, r.Again = r.Posts-d.EarlierPosts, true
	}
	if d.PostDate != nil {
		r.PostAt, r.Words = *d.PostDate, d.Words
	}
	return r
}

// approvalReports returns the reports about an approval. A pending request is reported to everyone
// who can answer it, except the person who made it. Once the request has been answered or has
// ended, only that outcome is reported, and only to the person to whom the notification is
// addressed. Without an addressee, there is no report.
func (n *Notifier) approvalReports(org tenancy.OrgID, d publishing.ListedNotification) []tenancy.Report {
	r := n.incidentReport(org, d)
	switch {
	case r.Approved == nil && !r.Void && d.Waits:
		r.Except = d.AskedBy
	case (r.Approved != nil || r.Void) && !d.Person.IsZero():
		r.To = d.Person
	default:
		return nil
	}
	return []tenancy.Report{r}
}

// reportPublished reports the posts published on the oldest day that is due.
func (n *Notifier) reportPublished(ctx context.Context, org tenancy.OrgID, now time.Time) error {
	channels, err := notificationstore.PublishedMails(ctx, n.db, org, now, tenancy.MaxReportChannels)
	if err != nil || len(channels) == 0 {
		return err
	}
	all := channels[0]
	r := tenancy.Report{
		ID:  "published " + org.String() + " " + all.Day.UTC().Format(time.DateOnly),
		Org: org, Kind: tenancy.ReportPublished, Posts: all.AllPosts, Since: all.Day,
		More: all.Channels - len(channels),
	}
	for _, c := range channels {
		r.Channels = append(r.Channels, tenancy.ReportChannel{
			Name: c.Name, Platform: n.platform(c.Connector), Posts: c.Posts,
		})
	}
	err = n.deps.Mailer.QueueReports(ctx, org, []tenancy.Report{r})
	if pg.IsRefused(err) {
		n.logRefused(ctx, org, r.ID, err)
		err = nil
	}
	if err != nil {
		return err
	}
	return notificationstore.PublishedQueued(ctx, n.db, org, all.ID, now)
}

// platform returns a platform's display name.
func (n *Notifier) platform(id string) string {
	c, ok := n.deps.Connectors.Get(id)
	if !ok {
		return id
	}
	return cmp.Or(c.Describe().Name, id)
}
