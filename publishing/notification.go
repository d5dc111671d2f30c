package publishing

import (
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

// NotificationTag is the tag of the ids of notifications (platform/id).
type NotificationTag struct{}

// NotificationID is the id of a notification.
type NotificationID = id.ID[NotificationTag]

// NotificationKind is what a notification is about. A CHECK constraint of the table has the same list.
type NotificationKind string

// The kinds. All but NotifyPublished and NotifyApproval are incidents of a channel.
const (
	// NotifyReconnect is a channel whose platform refuses the credential. Posts that fail or are missed meanwhile are
	// counted in it and are no incident of their own.
	NotifyReconnect NotificationKind = "reconnect"
	// NotifyFailed are posts that were given up.
	NotifyFailed NotificationKind = "failed"
	// NotifyMissed are posts that were too late to be published.
	NotifyMissed NotificationKind = "missed"
	// NotifyUnknown are posts that may be on the platform.
	NotifyUnknown NotificationKind = "unknown"
	// NotifyPublished are the posts of the organization whose first part is out, one notification for a day in UTC.
	NotifyPublished NotificationKind = "published"
	NotifyApproval  NotificationKind = "approval"
)

// NotificationKinds returns all kinds.
func NotificationKinds() []NotificationKind {
	return []NotificationKind{
		NotifyReconnect, NotifyFailed, NotifyMissed, NotifyUnknown, NotifyPublished, NotifyApproval,
	}
}

// ApprovalAnswer is what became of a request for approval. A CHECK constraint of the table has the same list.
type ApprovalAnswer string

// The answers. AnswerPending is the notification of the request itself.
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
	// Channel is zero for an approval, and for the published posts of several channels. Approval and Answer are set for one only.
	Channel  ChannelID       `db:"channel_id"`
	Approval ApprovalID      `db:"approval_id"`
	Answer   *ApprovalAnswer `db:"answer"`
	// Person is who sees it, zero for all members.
	Person tenancy.PersonID `db:"person_id"`
	// Post is the first post of it, zero while it has none.
	Post   PostID  `db:"post_id"`
	Code   *string `db:"code"`
	Reason *string `db:"reason"`
	// Posts is the number of posts.
	Posts     int       `db:"posts"`
	CreatedAt time.Time `db:"created_at"`
	// LastAt is the time of the last event. A transaction that commits after another one has the later time.
	LastAt time.Time `db:"last_at"`
	// ClosedAt is when the incident ended, nil while it is open.
	ClosedAt *time.Time `db:"closed_at"`
	// MailAt is when its mails are queued, nil when that is done or there are none.
	MailAt *time.Time `db:"mail_at"`
	// MailedPosts is Posts at the time when its mails were queued last, nil before that and again once it was reopened.
	MailedPosts *int `db:"mailed_posts"`
	// MailedAt is when its mails were queued last, nil before that.
	MailedAt *time.Time `db:"mailed_at"`
	// Reopened is how often it went on after people were mailed, and EarlierPosts is the number of posts of which they knew
	// when it did so last.
	Reopened     int `db:"reopened"`
	EarlierPosts int `db:"earlier_posts"`
}

// ListedNotification is a notification with what its sentence names.
type ListedNotification struct {
	Notification
	// ChannelName, Connector and Picture are empty for an approval whose post is gone. They are those of today. Picture is the
	// address of the picture of the channel; it may be empty.
	ChannelName string `db:"channel_name"`
	Connector   string `db:"connector"`
	Picture     string `db:"channel_picture"`
	// PostDate is the date of Post, nil without one or when that is gone.
	PostDate *time.Time `db:"post_date"`
	// Words are the beginning of the text of Post, "" without one. They are read for mails only.
	Words string `db:"-"`
	// AskedBy is who asked for an approval, zero for others and when that is not known. Waits is true while that has no answer.
	AskedBy tenancy.PersonID `db:"asked_by"`
	Waits   bool             `db:"waits"`
	// Content is one sentence for people, plain text.
	Content string `db:"-"`
	// IsClosed is Notification.IsOver now.
	IsClosed bool `db:"-"`
}

// NotificationPage is a page of notifications, the newest activity first.
type NotificationPage struct {
	Notifications []ListedNotification
	// Total is the number of notifications on all pages.
	Total int
}

const (
	// NotificationsPerPage is the number of notifications in a page.
	NotificationsPerPage = 100
	// MaxNotifications is how many notifications an organization keeps; older ones are deleted.
	MaxNotifications = 10_000
	// MaxNotificationPage is the number of the last page, from 0.
	MaxNotificationPage = MaxNotifications/NotificationsPerPage - 1
)

// IsDaily reports whether a notification of the kind counts the events of one day, in UTC.
func (k NotificationKind) IsDaily() bool { return k == NotifyUnknown || k == NotifyPublished }

// Report returns the notification for people, without the names of its organization and its channel.
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

// IsOver returns whether it is over at a time. An incident that ended may go on until IncidentReopening later.
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

// IncidentEventKind is what has happened to a post or a channel. A CHECK constraint of the table has the same list.
type IncidentEventKind string

// The kinds of events. EventChannelRefused and EventChannelConnected are of a channel, the others of a post.
const (
	EventPostFailed    IncidentEventKind = "failed"
	EventPostMissed    IncidentEventKind = "missed"
	EventPostUnknown   IncidentEventKind = "unknown"
	EventPostPublished IncidentEventKind = "published"
	// EventChannelRefused means that the platform has refused the credential, EventChannelConnected that the channel was
	// connected again or disconnected by a person.
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
	// IncidentMailDelay is how long after an incident has begun its mails are queued, so that they name what came with it.
	IncidentMailDelay = 30 * time.Second
	// IncidentSilence ends an incident of failed or missed posts that has no further event.
	IncidentSilence = 24 * time.Hour
	// IncidentReopening is how long after its end an incident of a channel goes on with the next event of its kind. It is
	// also the shortest time between the mails about an incident and those about its going on.
	IncidentReopening = time.Hour
)
