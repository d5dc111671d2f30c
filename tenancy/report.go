package tenancy

import (
	"time"

	"crier/platform/text"
)

// ReportKind says what an email to an organization's members is about. The values are the same as
// those of publishing.NotificationKind.
type ReportKind string

// The kinds of report.
const (
	ReportReconnect ReportKind = "reconnect"
	ReportFailed    ReportKind = "failed"
	ReportMissed    ReportKind = "missed"
	ReportUnknown   ReportKind = "unknown"
	ReportPublished ReportKind = "published"
	ReportApproval  ReportKind = "approval"
)

// ReportKinds returns all kinds.
func ReportKinds() []ReportKind {
	return []ReportKind{ReportReconnect, ReportFailed, ReportMissed, ReportUnknown, ReportPublished, ReportApproval}
}

// Report is the content of an email to the members of an organization who want emails of this kind.
// It is stored as JSON with the queued emails. The names in a Report were chosen by tenants.
type Report struct {
	// ID identifies the report. A second report with the same id is not queued.
	ID   string     `json:"id"`
	Org  OrgID      `json:"org,omitzero"`
	Kind ReportKind `json:"kind"`
	// OnlyPosts limits a ReportReconnect to the posts that failed. It is set for members who do not
	// want emails about channels.
	OnlyPosts bool `json:"onlyPosts,omitempty"`
	// To is the only member who receives the report, or zero if all members do. Except is a member
	// who does not receive the report.
	To     PersonID `json:"to,omitzero"`
	Except PersonID `json:"except,omitzero"`
	// Approved is the response to an approval request, or nil while the request is pending.
	Approved *bool `json:"approved,omitempty"`
	// Void means that the approval has ended because the post was changed or the request was
	// withdrawn.
	Void bool `json:"void,omitempty"`
	// Channel, Platform and Reason describe an incident or an approval. Reason may be empty. For an
	// approval, Reason is a note.
	Channel  string `json:"channel,omitempty"`
	Platform string `json:"platform,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Posts is the number of affected posts so far. Again means that the incident ended and then
	// recurred. In that case, Posts counts only the posts since members were last emailed.
	Posts int       `json:"posts"`
	Again bool      `json:"again,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Post is the id of the first post, or "" if there is none yet. Words is the beginning of that
	// post's text, or "" if the post has no text. PostAt is the post's date, or zero if the post
	// was deleted.
	Post   string    `json:"post,omitempty"`
	Words  string    `json:"words,omitempty"`
	PostAt time.Time `json:"postAt,omitzero"`
	// Channels is set only for a ReportPublished. It lists the channels with the most posts, up to
	// MaxReportChannels. More is the number of channels that are not listed.
	Channels []ReportChannel `json:"channels,omitempty"`
	More     int             `json:"more,omitempty"`
}

const (
	// MaxListedReports is the maximum number of reports that an email lists. If there are more
	// reports, the email says only how many more there are.
	MaxListedReports = 20
	// MaxReportMails is the maximum number of emails about problems that a person receives within
	// ReportWindow. Emails about published posts and approvals have a separate limit of the same
	// size. Reports that exceed a limit are listed in the next email.
	MaxReportMails = 10
	ReportWindow   = time.Hour
)

// MaxReportChannels is the maximum number of channels that an email lists.
const MaxReportChannels = 20

// ReportChannel is a channel and the number of its posts.
type ReportChannel struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	Posts    int    `json:"posts"`
}

// MailTopic is a kind of email that a person can turn off. It must not contain a comma or a space.
type MailTopic string

// The email topics.
const (
	TopicTeam    MailTopic = "team"
	TopicFailure MailTopic = "failure"
	TopicChannel MailTopic = "channel"
	TopicSuccess MailTopic = "success"
	// TopicApproval covers pending approval requests and their results.
	TopicApproval MailTopic = "approval"
)

// Topic returns the topic of emails about the report.
func (r Report) Topic() MailTopic {
	switch {
	case r.Kind == ReportReconnect && !r.OnlyPosts:
		return TopicChannel
	case r.Kind == ReportPublished:
		return TopicSuccess
	case r.Kind == ReportApproval:
		return TopicApproval
	}
	return TopicFailure
}

// What returns a phrase that describes the report, for the list of notifications and for emails.
// The parameter on is the channel's name.
func (r Report) What(on string) string {
	posts := text.Count(r.Posts, "post")
	switch {
	case r.Kind == ReportReconnect && !r.OnlyPosts && r.Posts == 0:
		return on + " must be reconnected"
	case r.Kind == ReportReconnect && !r.OnlyPosts:
		return on + " must be reconnected, and " + posts + " could not be published in the meantime"
	case r.Kind == ReportMissed:
		return posts + " on " + on + " could not be published in time"
	case r.Kind == ReportUnknown:
		return posts + " on " + on + " may or may not have been published"
	case r.Kind == ReportPublished:
		return "Published " + posts + " on " + on
	case r.Kind == ReportApproval && r.Void:
		return "The approval of the post for " + on + " no longer applies"
	case r.Kind == ReportApproval && r.Approved == nil:
		return "A post for " + on + " is waiting for approval"
	case r.Kind == ReportApproval && *r.Approved:
		return "The post for " + on + " was approved"
	case r.Kind == ReportApproval:
		return "The post for " + on + " was rejected"
	}
	return posts + " on " + on + " failed"
}

// IsFor reports whether a member with the given settings should receive the report. It is called
// when the report is queued. If there are several reports about the same incident, IsFor returns
// true for at most one of them.
func (r Report) IsFor(member PersonID, n Notifications) bool {
	if !r.To.IsZero() && r.To != member || r.Except == member {
		return false
	}
	if r.OnlyPosts {
		return n.Failure && !n.Mails(TopicChannel)
	}
	return n.Mails(r.Topic())
}

// For returns the report as a person with the given settings should receive it. It is called when
// the report is sent. ok is false if the person no longer wants the report. For a person who wants
// emails about posts but not about channels, a ReportReconnect is limited to its failed posts.
func (r Report) For(n Notifications) (out Report, ok bool) {
	if r.Kind == ReportReconnect && r.Posts > 0 && !n.Mails(TopicChannel) {
		r.OnlyPosts = true
	}
	return r, n.Mails(r.Topic())
}

// About returns a human-readable description of a topic, or "" if the topic is unknown. Example:
// failed posts
func (t MailTopic) About() string {
	switch t {
	case TopicTeam:
		return "your organizations"
	case TopicFailure:
		return "failed posts"
	case TopicChannel:
		return "channels that must be reconnected"
	case TopicSuccess:
		return "published posts"
	case TopicApproval:
		return "approvals"
	}
	return ""
}

// Mails reports whether the person wants emails about a topic.
func (n Notifications) Mails(topic MailTopic) bool {
	switch topic {
	case TopicTeam:
		return n.Team == DeliveryMail
	case TopicFailure:
		return n.Failure
	case TopicChannel:
		return n.Channel == DeliveryMail
	case TopicSuccess:
		return n.Success
	case TopicApproval:
		return n.Approval == DeliveryMail
	}
	return false
}

// WithoutMails returns the settings with emails about a topic turned off. Notifications in the
// dashboard are not affected. ok is false if the topic is unknown.
func (n Notifications) WithoutMails(topic MailTopic) (out Notifications, ok bool) {
	switch topic {
	case TopicTeam:
		n.Team = bellAtMost(n.Team)
	case TopicFailure:
		n.Failure = false
	case TopicChannel:
		n.Channel = bellAtMost(n.Channel)
	case TopicSuccess:
		n.Success = false
	case TopicApproval:
		n.Approval = bellAtMost(n.Approval)
	default:
		return n, false
	}
	return n, true
}

func bellAtMost(d Delivery) Delivery {
	if d == DeliveryMail {
		return DeliveryBell
	}
	return d
}
