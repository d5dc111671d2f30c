package publishing

import (
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

// NotificationTag distinguishes the ids of notifications (platform/id).
type NotificationTag struct{}

// NotificationID is the id of a notification.
type NotificationID = id.ID[NotificationTag]

// NotificationKind is what a notification is about. A CHECK constraint of the table has the same
// list.
type NotificationKind string

// The kinds. All except NotifyPublished and NotifyApproval are incidents of a channel.
const (
	// NotifyReconnect means that the platform refuses the credential of a channel. Posts that fail
	// or are missed in the meantime count toward this incident and do not start one of their own.
	NotifyReconnect NotificationKind = "reconnect"
	// NotifyFailed means that posts were given up.
	NotifyFailed NotificationKind = "failed"
	// NotifyMissed means that posts were too late to be published.
	NotifyMissed NotificationKind = "missed"
	// NotifyUnknown means that posts may or may not be on the platform.
	NotifyUnknown NotificationKind = "unknown"
	// NotifyPublished counts the posts of the organization whose first part is published. There is
	// one notification per UTC day.
	NotifyPublished NotificationKind = "published"
	NotifyApproval  NotificationKind = "approval"
)

// NotificationKinds returns all kinds.
func NotificationKinds() []NotificationKind {
	return []NotificationKind{
		NotifyReconnect, NotifyFailed, NotifyMissed, NotifyUnknown, NotifyPublished, NotifyApproval,
	}
}

// ApprovalAnswer is the outcome of a request for approval. A CHECK constraint of the table has the
// same list.
type ApprovalAnswer string

// The answers. AnswerPending marks the notification of the request itself.
const (
	AnswerPending  ApprovalAnswer = "pending"
	AnswerApproved ApprovalAnswer = "approved"
	AnswerRejected ApprovalAnswer = "rejected"
	// AnswerVoid means that an approval ended because the post was changed or the request was
	// withdrawn.
	AnswerVoid ApprovalAnswer = "void"
)

// Notification is an entry of the bell.
type Notification struct {
	ID   NotificationID   `db:"id"`
	Kind NotificationKind `db:"kind"`
	// Channel is zero for an approval, and for published posts of several channels. Approval and
	// Answer are set only for an approval.
	Channel  ChannelID       `db:"channel_id"`
	Approval ApprovalID      `db:"approval_id"`
	Answer   *ApprovalAnswer `db:"answer"`
	// Person is the only member who sees it, zero for all members.
	Person tenancy.PersonID `db:"person_id"`
	// Post is its first post, zero while it has none.
	Post   PostID  `db:"post_id"`
	Code   *string `db:"code"`
	Reason *string `db:"reason"`
	// Posts is the number of posts.
	Posts     int       `db:"posts"`
	CreatedAt time.Time `db:"created_at"`
	// LastAt is the time of the last event. A transaction that commits after another one has the
	// later time.
	LastAt time.Time `db:"last_at"`
	// ClosedAt is when the incident ended, nil while it is open.
	ClosedAt *time.Time `db:"closed_at"`
	// MailAt is when its mails are to be queued, nil if they have been queued or there are none.
	MailAt *time.Time `db:"mail_at"`
	// MailedPosts is what Posts was when its mails were last queued. It is nil before the first
	// time, and again after a reopening.
	MailedPosts *int `db:"mailed_posts"`
	// MailedAt is when its mails were last queued, nil before the first time.
	MailedAt *time.Time `db:"mailed_at"`
	// Reopened is how often the incident recurred after people were mailed about it. EarlierPosts
	// is the number of posts that these people knew of at the last recurrence.
	Reopened     int `db:"reopened"`
	EarlierPosts int `db:"earlier_posts"`
}

// ListedNotification is a notification with the names that its sentence mentions.
type ListedNotification struct {
	Notification
	// ChannelName, Connector and Picture are current values. They are empty for an approval whose
	// post is gone. Picture is the address of the channel's picture; it may be empty.
	ChannelName string `db:"channel_name"`
	Connector   string `db:"connector"`
	Picture     string `db:"channel_picture"`
	// PostDate is the date of Post, nil if there is no post or it is gone.
	PostDate *time.Time `db:"post_date"`
	// Words is the beginning of the text of Post, "" without a post. It is read only for mails.
	Words string `db:"-"`
	// AskedBy is who requested an approval, zero for other kinds and if that is unknown. Waits is
	// true while the approval has no answer.
	AskedBy tenancy.PersonID `db:"asked_by"`
	Waits   bool             `db:"waits"`
	// Content is one sentence of plain text for people.
	Content string `db:"-"`
	// IsClosed is the result of Notification.IsOver for the current time.
	IsClosed bool `db:"-"`
}

// NotificationPage is one page of notifications, most recent activity first.
type NotificationPage struct {
	Notifications []ListedNotification
	// Total is the number of notifications on all pages.
	Total int
}

const (
	// NotificationsPerPage is the number of notifications on a page.
	NotificationsPerPage = 100
	// MaxNotifications is how many notifications an organization keeps; older ones are deleted.
	MaxNotifications = 10_000
	// MaxNotificationPage is the number of the last page, from 0.
	MaxNotificationPage = MaxNotifications/NotificationsPerPage - 1
)

// IsDaily reports whether notifications of this kind count the events of one UTC day.
func (k NotificationKind) IsDaily() bool { return k == NotifyUnknown || k == NotifyPublished }

// Report returns the notification as a report to people, without the names of the organization and
// the channel.
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

// IsOver reports whether the notification is over at the given time. An incident that has ended may
// be reopened until IncidentReopening after its end.
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

// IncidentEventKind is what happened to a post or a channel. A CHECK constraint of the table has
// the same list.
type IncidentEventKind string

// The kinds of events. EventChannelRefused and EventChannelConnected concern a channel, the others
// a post.
const (
	EventPostFailed    IncidentEventKind = "failed"
	EventPostMissed    IncidentEventKind = "missed"
	EventPostUnknown   IncidentEventKind = "unknown"
	EventPostPublished IncidentEventKind = "published"
	// EventChannelRefused means that the platform refused the credential. EventChannelConnected
	// means that the channel was reconnected, or that a person disconnected it.
	EventChannelRefused   IncidentEventKind = "refused"
	EventChannelConnected IncidentEventKind = "connected"
)

// IncidentEventKinds returns all kinds of events.
func IncidentEventKinds() []IncidentEventKind {
	return []IncidentEventKind{
		EventPostFailed, EventPostMissed, EventPostUnknown, EventPostPublished, EventChannelRefused, EventChannelConnected,
	}
}

const (
	// IncidentMailDelay is how long after the start of an incident its mails are queued, so that
	// they include the events that follow immediately.
	IncidentMailDelay = 30 * time.Second
	// IncidentSilence is the time without a further event after which an incident of failed or
	// missed posts ends.
	IncidentSilence = 24 * time.Hour
	// IncidentReopening is how long after its end an incident of a channel is reopened by the next
	// event of its kind. It is also the shortest time between the mails about an incident and those
	// about its recurrence.
	IncidentReopening = time.Hour
)
