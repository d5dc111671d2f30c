package publishing

import (
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

// NotificationTag distinguishes notification ids (platform/id).
type NotificationTag struct{}

// NotificationID identifies a notification.
type NotificationID = id.ID[NotificationTag]

// NotificationKind says what a notification is about. A CHECK constraint on the table lists the
// same values.
type NotificationKind string

// Notification kinds. All kinds except NotifyPublished and NotifyApproval are channel incidents.
const (
	// NotifyReconnect means that the platform rejects a channel's credential. While this incident
	// is open, failed and missed posts count toward it and do not start a new incident.
	NotifyReconnect NotificationKind = "reconnect"
	// NotifyFailed means that posts failed and will not be retried.
	NotifyFailed NotificationKind = "failed"
	// NotifyMissed means that posts became too late to be published.
	NotifyMissed NotificationKind = "missed"
	// NotifyUnknown means that posts may or may not be on the platform.
	NotifyUnknown NotificationKind = "unknown"
	// NotifyPublished counts the organization's posts whose first part has been published. There is
	// one such notification per UTC day.
	NotifyPublished NotificationKind = "published"
	NotifyApproval  NotificationKind = "approval"
)

// NotificationKinds returns all kinds.
func NotificationKinds() []NotificationKind {
	return []NotificationKind{
		NotifyReconnect, NotifyFailed, NotifyMissed, NotifyUnknown, NotifyPublished, NotifyApproval,
	}
}

// ApprovalAnswer is the outcome of an approval request. A CHECK constraint on the table lists the
// same values.
type ApprovalAnswer string

// Outcomes of an approval request. AnswerPending is for the notification that announces the
// request.
const (
	AnswerPending  ApprovalAnswer = "pending"
	AnswerApproved ApprovalAnswer = "approved"
	AnswerRejected ApprovalAnswer = "rejected"
	// AnswerVoid means that an approval ended because the post was changed or the request was
	// withdrawn.
	AnswerVoid ApprovalAnswer = "void"
)

// Notification is an entry in the notification list in the web app.
type Notification struct {
	ID   NotificationID   `db:"id"`
	Kind NotificationKind `db:"kind"`
	// Channel is zero for an approval, and for a notification about posts on several channels.
	// Approval and Answer are set only for an approval.
	Channel  ChannelID       `db:"channel_id"`
	Approval ApprovalID      `db:"approval_id"`
	Answer   *ApprovalAnswer `db:"answer"`
	// Person is the only member who can see the notification, or zero if all members can see it.
	Person tenancy.PersonID `db:"person_id"`
	// Post is the first post that the notification covers, or zero if there is none yet.
	Post   PostID  `db:"post_id"`
	Code   *string `db:"code"`
	Reason *string `db:"reason"`
	// Posts is the number of posts that the notification covers.
	Posts     int       `db:"posts"`
	CreatedAt time.Time `db:"created_at"`
	// LastAt is the time of the last event. A transaction that commits later has a later time.
	LastAt time.Time `db:"last_at"`
	// ClosedAt is when the incident ended, or nil while it is open.
	ClosedAt *time.Time `db:"closed_at"`
	// MailAt is when the emails are due to be queued. It is nil if the emails have already been
	// queued, or if there are none to queue.
	MailAt *time.Time `db:"mail_at"`
	// MailedPosts is the value that Posts had when emails were last queued. It is nil if no emails
	// have been queued since the incident began or was reopened.
	MailedPosts *int `db:"mailed_posts"`
	// MailedAt is when the emails were last queued, or nil if they never were.
	MailedAt *time.Time `db:"mailed_at"`
	// Reopened is how often the incident recurred after emails about it had been queued.
	// EarlierPosts is the value of MailedPosts before the last such recurrence.
	Reopened     int `db:"reopened"`
	EarlierPosts int `db:"earlier_posts"`
}

// ListedNotification is a notification together with the names mentioned in its text.
type ListedNotification struct {
	Notification
	// ChannelName, Connector and Picture hold the channel's current values. They are empty for an
	// approval whose post no longer exists. Picture is the URL of the channel's picture and may be
	// empty.
	ChannelName string `db:"channel_name"`
	Connector   string `db:"connector"`
	Picture     string `db:"channel_picture"`
	// PostDate is the publish date of Post. It is nil if Post is zero or no longer exists.
	PostDate *time.Time `db:"post_date"`
	// Words is the beginning of the post's text, or "" if there is no post. It is loaded only for
	// emails.
	Words string `db:"-"`
	// AskedBy is the person who requested the approval. It is zero if the requester is unknown, and
	// for other kinds of notifications. Waits is true while the request is unanswered.
	AskedBy tenancy.PersonID `db:"asked_by"`
	Waits   bool             `db:"waits"`
	// Content is the notification's text: one human-readable sentence without markup.
	Content string `db:"-"`
	// IsClosed is the result of Notification.IsOver at the current time.
	IsClosed bool `db:"-"`
}

// NotificationPage is one page of notifications, with the most recent activity first.
type NotificationPage struct {
	Notifications []ListedNotification
	// Total is the number of notifications on all pages.
	Total int
}

const (
	// NotificationsPerPage is the number of notifications on a page.
	NotificationsPerPage = 100
	// MaxNotifications is the maximum number of notifications kept per organization. Older ones are
	// deleted.
	MaxNotifications = 10_000
	// MaxNotificationPage is the number of the last page. Page numbers start at 0.
	MaxNotificationPage = MaxNotifications/NotificationsPerPage - 1
)

// IsDaily reports whether a notification of this kind covers the events of a single UTC day.
func (k NotificationKind) IsDaily() bool { return k == NotifyUnknown || k == NotifyPublished }

// Report returns the notification as a tenancy.Report. The organization and channel names are left
// empty.
func (n Notification) Report() tenancy.Report {
	r := tenancy.Report{Kind: tenancy.ReportKind(n.Kind), Posts: n.Posts, Since: n.CreatedAt}
	if n.Reason != nil {
		r.Reason = *n.Reason
	}
	r.Void = n.Answer != nil && *n.Answer == AnswerVoid
	if n.Answer != nil && *n.Answer != AnswerPending && !r.Void {
		approved := *n.Answer == AnswerApproved
		r.Approved = &approved
	}
	if !n.Post.IsZero() {
		r.Post = n.Post.String()
	}
	return r
}

// IsOver reports whether the notification is over at the given time. An incident can still be
// reopened within IncidentReopening after it ends.
func (n Notification) IsOver(at time.Time) bool {
	switch {
	case n.Kind == NotifyApproval:
		return n.Answer == nil || *n.Answer != AnswerPending
	case n.ClosedAt != nil:
		return true
	case n.Kind.IsDaily():
		return DayOf(n.CreatedAt) != DayOf(at)
	}
	return n.Kind != NotifyReconnect && at.Sub(n.LastAt) > IncidentSilence
}

// IncidentEventKind says what happened to a post or a channel. A CHECK constraint on the table
// lists the same values.
type IncidentEventKind string

// Kinds of incident events. EventChannelRefused and EventChannelConnected are about a channel; the
// others are about a post.
const (
	EventPostFailed    IncidentEventKind = "failed"
	EventPostMissed    IncidentEventKind = "missed"
	EventPostUnknown   IncidentEventKind = "unknown"
	EventPostPublished IncidentEventKind = "published"
	// EventChannelRefused means that the platform rejected the channel's credential.
	// EventChannelConnected means that the channel was reconnected, or that a user disconnected it.
	EventChannelRefused   IncidentEventKind = "refused"
	EventChannelConnected IncidentEventKind = "connected"
)

// IncidentEventKinds returns all kinds of events.
func IncidentEventKinds() []IncidentEventKind {
	return []IncidentEventKind{
		EventPostFailed, EventPostMissed, EventPostUnknown, EventPostPublished, EventChannelRefused,
		EventChannelConnected,
	}
}

const (
	// IncidentMailDelay is the delay between the start of an incident and the queuing of its
	// emails. The delay lets the emails cover the events that follow immediately.
	IncidentMailDelay = 30 * time.Second
	// IncidentSilence is how long an incident about failed or missed posts stays open after the
	// last event.
	IncidentSilence = 24 * time.Hour
	// IncidentReopening is how long after a channel incident ends it can be reopened by another
	// event of the same kind. It is also the minimum time between emails about an incident and
	// emails about its recurrence.
	IncidentReopening = time.Hour
)
