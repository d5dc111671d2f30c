// Package notification provides the endpoints for people's notifications.
package notification

import (
	"context"
	"time"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// Deps holds an API's dependencies.
type Deps struct {
	Notifications Notifications
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// Notifications lists the notifications in the bell menu, counts the unread ones and marks them as
// read.
type Notifications interface {
	// List returns a page of notifications. Pages are numbered from 0. List returns Invalid if the
	// page number is out of range.
	List(ctx context.Context, p tenancy.Principal, page int) (publishing.NotificationPage, error)
	// Unread returns the number of notifications that the person has not read.
	Unread(ctx context.Context, p tenancy.Principal) (int, error)
	// Read returns a page of notifications and marks them as read. It also returns the time up to
	// which the person had already read all notifications. Pages are numbered from 0. Read returns
	// Invalid if the page number is out of range.
	Read(ctx context.Context, p tenancy.Principal, page int) ([]publishing.ListedNotification, time.Time, error)
}

// NotificationRecord is one notification in the bell menu.
type NotificationRecord struct {
	ID      string `json:"id" doc:"Id of the notification."`
	Content string `json:"content" doc:"One sentence in plain text. Channels and platforms appear under their current names."`
	// Link is always null, because the dashboard does not yet have a page for a post or a channel.
	Link *string `json:"link" nullable:"true" doc:"URL of the page on which the person can act; null if there is none."`
	// CreatedAt is when the incident began.
	CreatedAt     string            `json:"createdAt" format:"date-time" doc:"When the incident began."`
	UpdatedAt     string            `json:"updatedAt" format:"date-time" doc:"When the notification was last updated."`
	Kind          string            `json:"kind" enum:"reconnect,failed,missed,unknown,published,approval" doc:"Kind of notification. reconnect: the channel must be reconnected. unknown: the posts may have been published."`
	Count         int               `json:"count" doc:"Number of posts so far. While a channel must be reconnected, its failed and missed posts count toward the reconnect notification."`
	Closed        bool              `json:"closed" doc:"Whether the incident is over. If it recurs within an hour, the same notification is reopened."`
	IntegrationID *string           `json:"integrationId" nullable:"true" doc:"Channel id; null for an approval, and for posts published on several channels."`
	Picture       *string           `json:"picture" nullable:"true" doc:"URL of the channel's picture; null if the channel has none, and for posts published on several channels."`
	PostID        *string           `json:"postId" nullable:"true" doc:"Id of the first affected post; null if there is none."`
	ErrorCode     *record.ErrorCode `json:"errorCode" doc:"Error code of the first affected post; null if there is none."`
}

func notificationRecord(n publishing.ListedNotification) NotificationRecord {
	out := NotificationRecord{
		ID: n.ID.String(), Content: n.Content, CreatedAt: record.FormatTime(n.CreatedAt),
		UpdatedAt: record.FormatTime(n.LastAt),
		Kind:      string(n.Kind), Count: n.Posts, Closed: n.IsClosed, ErrorCode: (*record.ErrorCode)(n.Code),
	}
	if !n.Channel.IsZero() {
		channel := n.Channel.String()
		out.IntegrationID = &channel
	}
	if n.Picture != "" {
		out.Picture = &n.Picture
	}
	if !n.Post.IsZero() {
		post := n.Post.String()
		out.PostID = &post
	}
	return out
}

func notificationRecords(list []publishing.ListedNotification) []NotificationRecord {
	out := make([]NotificationRecord, len(list))
	for i, n := range list {
		out[i] = notificationRecord(n)
	}
	return out
}

type listNotificationsInput struct {
	Page route.OptionalInt `query:"page" doc:"Page number, 0 to 99 (default 0)."`
}

// number returns the page number, or Invalid if it is out of range.
func (in listNotificationsInput) number(op string) (int, error) {
	page, wrong := in.Page.Between("page", 0, publishing.MaxNotificationPage, 0)
	if len(wrong) > 0 {
		return 0, &fault.Error{Kind: fault.Invalid, Op: op, Message: "The page is not valid.", Fields: wrong}
	}
	return page, nil
}

// NotificationPage is a page of notifications.
type NotificationPage struct {
	Notifications []NotificationRecord `json:"notifications" doc:"The notifications on the page, newest first."`
	Total         int                  `json:"total" doc:"Number of notifications on all pages."`
	Page          int                  `json:"page" doc:"Page number, starting at 0."`
	Limit         int                  `json:"limit" doc:"Notifications per page, always 100."`
	HasMore       bool                 `json:"hasMore" doc:"Whether there is another page."`
}

type notificationPageOutput struct{ Body NotificationPage }

// ListNotifications returns the endpoint that lists the organization's notifications.
func (a *API) ListNotifications() route.Endpoint {
	d := route.Describe("Notifications", "List notifications, newest activity first, 100 per page", 400)
	d.Description = "A notification covers one incident: posts that fail on a channel until it publishes again; a " +
		"channel that must be reconnected, with the posts that fail in the meantime; or all posts published in one " +
		"UTC day. The newest 10,000 notifications of an organization are kept. Activity between two calls moves " +
		"notifications to the first page."
	d.SkipValidateParams = true // see route.OptionalInt
	return route.JSON(d, a.listNotifications)
}

func (a *API) listNotifications(ctx context.Context, in *listNotificationsInput) (*notificationPageOutput, error) {
	page, err := in.number("notification.listNotifications")
	if err != nil {
		return nil, err
	}
	list, err := a.deps.Notifications.List(ctx, request.Principal(ctx), page)
	if err != nil {
		return nil, err
	}
	return &notificationPageOutput{Body: NotificationPage{
		Notifications: notificationRecords(list.Notifications), Total: list.Total, Page: page,
		Limit:   publishing.NotificationsPerPage,
		HasMore: (page+1)*publishing.NotificationsPerPage < list.Total && page < publishing.MaxNotificationPage,
	}}, nil
}

// UnreadCount is the number of unread notifications.
type UnreadCount struct {
	Total int `json:"total"`
}

type unreadOutput struct{ Body UnreadCount }

// UnreadNotifications returns the endpoint that counts the signed-in person's unread notifications.
func (a *API) UnreadNotifications() route.Endpoint {
	d := route.Describe("Notifications", "Count your unread notifications")
	d.Description = "The count covers the organization's notifications since you last read them, except the kinds " +
		"that you have turned off."
	return route.JSON(d, a.unreadNotifications)
}

func (a *API) unreadNotifications(ctx context.Context, _ *struct{}) (*unreadOutput, error) {
	n, err := a.deps.Notifications.Unread(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	return &unreadOutput{Body: UnreadCount{Total: n}}, nil
}

// ReadList is a page of a person's notifications.
type ReadList struct {
	LastRead      string               `json:"lastReadNotifications" format:"date-time" doc:"The time up to which you had read all notifications before this call."`
	Notifications []NotificationRecord `json:"notifications"`
}

type readListOutput struct{ Body ReadList }

// ReadNotifications returns the endpoint that lists notifications and marks them as read.
func (a *API) ReadNotifications() route.Endpoint {
	d := route.Describe("Notifications", "Read your notifications", 400)
	d.Description = "Returns the organization's newest 100 notifications, or another page, and **marks the returned " +
		"notifications as read** for you in this organization. A notification that is updated becomes unread again. " +
		"An instance administrator who impersonates you marks nothing as read."
	d.SkipValidateParams = true // see route.OptionalInt
	return route.JSON(d, a.readNotifications)
}

func (a *API) readNotifications(ctx context.Context, in *listNotificationsInput) (*readListOutput, error) {
	page, err := in.number("notification.readNotifications")
	if err != nil {
		return nil, err
	}
	list, before, err := a.deps.Notifications.Read(ctx, request.Principal(ctx), page)
	if err != nil {
		return nil, err
	}
	return &readListOutput{Body: ReadList{
		LastRead: record.FormatTime(before), Notifications: notificationRecords(list),
	}}, nil
}
