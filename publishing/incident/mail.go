package incident

import (
	"cmp"
	"context"
	"time"

	"crier/platform/failpoint"
	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

const (
	// mailsPerOrg bounds one round; organizations take turns.
	mailsPerOrg = 50
	// maxWaiting bounds the count of the events that wait.
	maxWaiting = 100_000
)

// Mail gives the reports that are due to the mailer, for organizations of the shards of this process. more is true when
// there may be further ones.
func (n *Notifier) Mail(ctx context.Context) (more bool, err error) {
	waiting, oldest, err := n.store.IncidentBacklog(ctx, maxWaiting)
	if err != nil {
		return false, err
	}
	n.waiting.Store(waiting)
	n.oldest.Store(oldest)
	now := n.deps.Clock.Now()
	return n.visit(ctx, &n.afterMails, func(ctx context.Context, after tenancy.OrgID) ([]tenancy.OrgID, error) {
		return n.store.MailOrgs(ctx, after, now, orgsPerRound)
	}, func(ctx context.Context, org tenancy.OrgID) (bool, error) { return n.mailOrg(ctx, org, now) })
}

// mailOrg reports the incidents of an organization that are due, and one day of published posts.
func (n *Notifier) mailOrg(ctx context.Context, org tenancy.OrgID, now time.Time) (full bool, err error) {
	due, err := n.store.IncidentMails(ctx, org, now, mailsPerOrg)
	if err != nil {
		return false, err
	}
	var done []publishing.ListedNotification
	for _, d := range due {
		if err = n.reportIncident(ctx, org, d); err != nil {
			break
		}
		done = append(done, d)
	}
	failpoint.At(failpoint.ReportQueued, org.String())
	if len(done) > 0 {
		if err := n.store.MailsQueued(ctx, org, done); err != nil {
			return false, err
		}
	}
	if err != nil {
		return false, err
	}
	return len(due) == mailsPerOrg, n.reportPublished(ctx, org, now)
}

// reportIncident gives the reports of an incident to the mailer. A channel that must be connected again has one for those
// who want mails about channels, once, and one for the others who want mails about posts, as soon as posts have failed.
func (n *Notifier) reportIncident(ctx context.Context, org tenancy.OrgID, d publishing.ListedNotification) error {
	r := n.incidentReport(org, d)
	if d.MailedPosts == nil {
		if err := n.report(ctx, r); err != nil {
			return err
		}
	}
	if d.Kind != publishing.NotifyReconnect || d.Posts == 0 {
		return nil
	}
	r.ID, r.OnlyPosts = r.ID+" posts", true
	return n.report(ctx, r)
}

// report gives a report to the mailer. One that the database refuses is logged and dropped.
func (n *Notifier) report(ctx context.Context, r tenancy.Report) error {
	err := n.deps.Mailer.QueueReport(ctx, r)
	if !pg.IsRefused(err) {
		return err
	}
	n.deps.Log.ErrorContext(ctx, "the mails of an incident cannot be queued", "org", r.Org, "report", r.ID, "error", err)
	return nil
}

func (n *Notifier) incidentReport(org tenancy.OrgID, d publishing.ListedNotification) tenancy.Report {
	r := tenancy.Report{
		ID: "incident " + d.ID.String(), Org: org, Kind: tenancy.ReportKind(d.Kind), Channel: d.ChannelName,
		Platform: n.platform(d.Connector), Posts: d.Posts, Since: d.CreatedAt,
	}
	if d.Reason != nil {
		r.Reason = *d.Reason
	}
	return r
}

// reportPublished reports the published posts of the oldest day that is due.
func (n *Notifier) reportPublished(ctx context.Context, org tenancy.OrgID, now time.Time) error {
	channels, err := n.store.PublishedMails(ctx, org, now, tenancy.MaxReportChannels)
	if err != nil || len(channels) == 0 {
		return err
	}
	all := channels[0]
	r := tenancy.Report{
		ID:  "published " + org.String() + " " + all.Day.UTC().Format(time.DateOnly),
		Org: org, Kind: tenancy.ReportPublished, Posts: all.AllPosts, Since: all.Day, More: all.Channels - len(channels),
	}
	for _, c := range channels {
		r.Channels = append(r.Channels, tenancy.ReportChannel{
			Name: c.Name, Platform: n.platform(c.Connector), Posts: c.Posts,
		})
	}
	if err := n.report(ctx, r); err != nil {
		return err
	}
	return n.store.PublishedQueued(ctx, org, all.ID)
}

// platform returns the name of a platform for people.
func (n *Notifier) platform(id string) string {
	c, ok := n.deps.Connectors.Get(id)
	if !ok {
		return id
	}
	return cmp.Or(c.Describe().Name, id)
}
