package user

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// EmailNotifications holds a person's notification settings.
type EmailNotifications struct {
	record.EmailSwitches
	Events NotificationEvents `json:"events"`
}

// NotificationEvents holds the delivery settings for the kinds of notifications that EmailSwitches
// does not cover.
type NotificationEvents struct {
	Approval string `json:"approval" enum:"mail,bell,off" doc:"Approval requests that you can answer, and answers to your own requests."`
	Comment  string `json:"comment" enum:"mail,bell,off" doc:"Has no effect yet: there are no notifications about comments."`
	Channel  string `json:"channel" enum:"mail,bell,off" doc:"Channels that must be reconnected."`
	Billing  string `json:"billing" enum:"mail,bell,off" doc:"Has no effect yet: there are no notifications about billing."`
	Team     string `json:"team" enum:"mail,bell,off" doc:"Changes to your own memberships, such as a new role."`
}

func newEmailNotifications(n tenancy.Notifications) EmailNotifications {
	return EmailNotifications{EmailSwitches: record.NewEmailSwitches(n), Events: NotificationEvents{
		Approval: string(n.Approval), Comment: string(n.Comment), Channel: string(n.Channel),
		Billing: string(n.Billing), Team: string(n.Team),
	}}
}

type notificationsOutput struct{ Body EmailNotifications }

// Notifications returns the endpoint for the person's notification settings.
func (a *API) Notifications() route.Endpoint {
	return route.JSON(route.Describe("User", "Get your notification settings"), a.notifications)
}

func (a *API) notifications(ctx context.Context, _ *struct{}) (*notificationsOutput, error) {
	n, err := a.deps.Accounts.Notifications(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	return &notificationsOutput{Body: newEmailNotifications(n)}, nil
}

// EmailNotificationsDto is the body of POST /user/email-notifications. Events that the body omits
// keep their settings.
type EmailNotificationsDto struct {
	record.EmailSwitches
	Events *NotificationEventsDto `json:"events,omitempty"`
}

// NotificationEventsDto holds the delivery settings that a request changes.
type NotificationEventsDto struct {
	Approval *string `json:"approval,omitempty" enum:"mail,bell,off"`
	Comment  *string `json:"comment,omitempty" enum:"mail,bell,off" doc:"Has no effect yet: there are no notifications about comments."`
	Channel  *string `json:"channel,omitempty" enum:"mail,bell,off"`
	Billing  *string `json:"billing,omitempty" enum:"mail,bell,off" doc:"Has no effect yet: there are no notifications about billing."`
	Team     *string `json:"team,omitempty" enum:"mail,bell,off"`
}

type setNotificationsInput struct{ Body EmailNotificationsDto }

// SetNotifications returns the endpoint that changes the person's notification settings.
func (a *API) SetNotifications() route.Endpoint {
	return route.JSON(route.Created("User", "Change your notification settings", 400, 413), a.setNotifications)
}

func (a *API) setNotifications(ctx context.Context, in *setNotificationsInput) (*notificationsOutput, error) {
	p := request.Principal(ctx)
	n, err := a.deps.Accounts.Notifications(ctx, p)
	if err != nil {
		return nil, err
	}
	n.Success, n.Failure, n.Digest = in.Body.Success, in.Body.Failure, in.Body.Streak
	in.Body.Events.apply(&n)
	if err := a.deps.Accounts.SetNotifications(ctx, p, n); err != nil {
		return nil, err
	}
	return &notificationsOutput{Body: newEmailNotifications(n)}, nil
}

// apply copies the settings in the request to n.
func (e *NotificationEventsDto) apply(n *tenancy.Notifications) {
	if e == nil {
		return
	}
	set := func(to *tenancy.Delivery, value *string) {
		if value != nil {
			*to = tenancy.Delivery(*value)
		}
	}
	set(&n.Approval, e.Approval)
	set(&n.Comment, e.Comment)
	set(&n.Channel, e.Channel)
	set(&n.Billing, e.Billing)
	set(&n.Team, e.Team)
}
