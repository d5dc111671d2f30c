package tenancy

import (
	"time"

	"crier/platform/text"
)

// ReportKind is what a mail to the members of an organization is about. Its values are the same as
// in publishing.NotificationKind.
type ReportKind string

// The kinds.
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

// Report is mailed to the members of an organization who want mails of its kind. It is stored as
// JSON with the mails. The names in it were chosen by tenants.
type Report struct {
	// ID identifies the report. A second report with the same id is not queued.
	ID   string     `json:"id"`
	Org  OrgID      `json:"org,omitzero"`
	Kind ReportKind `json:"kind"`
	// OnlyPosts turns a ReportReconnect into a report about the posts that failed, for members who
	// want no mails about channels.
	OnlyPosts bool `json:"onlyPosts,omitempty"`
	// To is the only member who gets the report, or zero for all members. Except is a member who
	// does not get it.
	To     PersonID `json:"to,omitzero"`
	Except PersonID `json:"except,omitzero"`
	// Approved is the response to an approval request, or nil while the request is pending.
	Approved *bool `json:"approved,omitempty"`
	// Void means that the approval has ended because the post was changed or the request was
	// withdrawn.
	Void bool `json:"void,omitempty"`
	// Channel, Platform and Reason describe an incident or an approval. Reason may be empty. For an
	// approval, it is a note.
	Channel  string `json:"channel,omitempty"`
	Platform string `json:"platform,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Posts is the number of posts so far. Again means that the incident had ended and has begun
	// again; Posts then counts only the posts since members were last mailed.
	Posts int       `json:"posts"`
	Again bool      `json:"again,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Post is the id of the first post, or "" while there is none. Words are the beginning of its
	// text, or "" if it has none. PostAt is its date, or zero if the post was deleted.
	Post   string    `json:"post,omitempty"`
	Words  string    `json:"words,omitempty"`
	PostAt time.Time `json:"postAt,omitzero"`
	// Channels are the channels of a ReportPublished that have the most posts, at most
	// MaxReportChannels. More is the number of other channels.
	Channels []ReportChannel `json:"channels,omitempty"`
	More     int             `json:"more,omitempty"`
}

const (
	// MaxListedReports is how many reports a mail lists. It only gives the number of the others.
	MaxListedReports = 20
	// MaxReportMails is how many mails about problems a person gets within ReportWindow. It applies
	// separately to mails about published posts and approvals. Reports beyond the limit are listed
	// in the next mail.
	MaxReportMails = 10
	ReportWindow   = time.Hour
)

// MaxReportChannels is how many channels a mail lists.
const MaxReportChannels = 20

// ReportChannel is a channel and the number of its posts.
type ReportChannel struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	Posts    int    `json:"posts"`
}

// MailTopic is a kind of mail that a person can turn off. It contains no comma and no space.
type MailTopic string

// The topics.
const (
	TopicTeam    MailTopic = "team"
	TopicFailure MailTopic = "failure"
	TopicChannel MailTopic = "channel"
	TopicSuccess MailTopic = "success"
	// TopicApproval covers pending approval requests and their results.
	TopicApproval MailTopic = "approval"
)

// Topic returns the topic of the report's mails.
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

// What returns a phrase that says what the report is about, for the bell and for mails. The
// parameter on is the name of the channel.
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

// IsFor reports whether a member with these settings should get the report, at the time it is
// queued. No two reports of one incident are for the same settings.
func (r Report) IsFor(member PersonID, n Notifications) bool {
	if !r.To.IsZero() && r.To != member || r.Except == member {
		return false
	}
	if r.OnlyPosts {
		return n.Failure && !n.Mails(TopicChannel)
	}
	return n.Mails(r.Topic())
}

// For returns the report as a person with these settings gets it, at the time it is sent. ok is
// false if the person no longer wants it. A report about a channel that must be reconnected becomes
// a report about its posts if the person wants mails only about posts.
func (r Report) For(n Notifications) (out Report, ok bool) {
	if r.Kind == ReportReconnect && r.Posts > 0 && !n.Mails(TopicChannel) {
		r.OnlyPosts = true
	}
	return r, n.Mails(r.Topic())
}

// About describes the mails of a topic for people. It returns "" for an unknown topic.
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

// Mails reports whether the person wants mails of a topic.
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

// WithoutMails returns the settings with the mails of a topic turned off. The bell is unchanged. ok
// is false for an unknown topic.
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
