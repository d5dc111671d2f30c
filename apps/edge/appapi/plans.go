package appapi

import (
	"context"

	"crier/apps/edge/publicv1"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/billing"
	"crier/tenancy"
)

// Plans are the use cases of plans.
type Plans interface {
	// Of returns the plan of an organization, and its subscription, nil without one.
	Of(ctx context.Context, o tenancy.Organization) (billing.Plan, *billing.Subscription, error)
	// Tiers returns the plans of the instance, the smallest first; none on an instance without plans.
	Tiers() []billing.Plan
}

// SubscriptionRecord is the subscription of an organization. It is null for one with the plan FREE, and on an instance
// without plans.
type SubscriptionRecord struct {
	_             struct{} `nullable:"true"`
	ID            string   `json:"id"`
	Organization  string   `json:"organizationId"`
	Tier          string   `json:"subscriptionTier" enum:"STANDARD,TEAM,PRO,ULTIMATE"`
	Identifier    string   `json:"identifier" doc:"plan-file: the operator of the instance has chosen the plan."`
	CancelAt      *string  `json:"cancelAt" nullable:"true" format:"date-time"`
	Period        string   `json:"period" enum:"MONTHLY,YEARLY"`
	TotalChannels int      `json:"totalChannels" doc:"Channels that the plan allows."`
	IsLifetime    bool     `json:"isLifetime" doc:"It has no end and is not paid."`
	CreatedAt     string   `json:"createdAt" format:"date-time"`
	UpdatedAt     string   `json:"updatedAt" format:"date-time"`
}

// channelsUnlimited is the number of channels that clients see for a plan without a limit.
const channelsUnlimited = 10_000

func totalChannels(p billing.Plan) int { return min(p.Channels, channelsUnlimited) }

func newSubscription(s *billing.Subscription) *SubscriptionRecord {
	if s == nil {
		return nil
	}
	since := publicv1.FormatTime(s.CreatedAt)
	return &SubscriptionRecord{
		ID: s.Org.String(), Organization: s.Org.String(), Tier: string(s.Plan.Tier), Identifier: "plan-file",
		Period: "MONTHLY", TotalChannels: totalChannels(s.Plan), IsLifetime: true, CreatedAt: since, UpdatedAt: since,
	}
}

// SubscriptionAnswer is the subscription of the organization.
type SubscriptionAnswer struct {
	Subscription *SubscriptionRecord `json:"subscription"`
}

type subscriptionOutput struct{ Body SubscriptionAnswer }

// Subscription returns the endpoint of the organization's subscription.
func (a *API) Subscription() route.Endpoint {
	return route.JSON(describe(tagUser, "Get the subscription of the organization"), a.subscription)
}

func (a *API) subscription(ctx context.Context, _ *struct{}) (*subscriptionOutput, error) {
	_, org, err := a.deps.Accounts.Self(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	_, current, err := a.deps.Plans.Of(ctx, org.Organization)
	if err != nil {
		return nil, err
	}
	return &subscriptionOutput{Body: SubscriptionAnswer{Subscription: newSubscription(current)}}, nil
}

// TierRecord is a plan of the instance. A limit that is null does not exist.
type TierRecord struct {
	Name     string `json:"name" enum:"FREE,STANDARD,TEAM,PRO,ULTIMATE"`
	Channels *int   `json:"channels" nullable:"true"`
	Posts    *int   `json:"posts" nullable:"true" doc:"Scheduled and published posts of a billing month."`
	Webhooks *int   `json:"webhooks" nullable:"true"`
	Members  *int   `json:"members" nullable:"true"`
	Month    int    `json:"monthPrice" doc:"US dollars."`
	Year     int    `json:"yearPrice" doc:"US dollars."`
}

// TiersAnswer lists the plans of the instance.
type TiersAnswer struct {
	Month []string     `json:"month" doc:"Always empty: the instance sells no plans."`
	Year  []string     `json:"year" doc:"Always empty: the instance sells no plans."`
	Tiers []TierRecord `json:"tiers" doc:"The smallest first; empty on an instance without plans."`
}

type tiersOutput struct{ Body TiersAnswer }

// Tiers returns the endpoint that lists the plans.
func (a *API) Tiers() route.Endpoint {
	return route.JSON(describe(tagUser, "List the plans of the instance"), a.tiers)
}

func (a *API) tiers(context.Context, *struct{}) (*tiersOutput, error) {
	out := TiersAnswer{Month: []string{}, Year: []string{}, Tiers: []TierRecord{}}
	for _, p := range a.deps.Plans.Tiers() {
		out.Tiers = append(out.Tiers, TierRecord{
			Name: string(p.Tier), Channels: limitOf(p.Channels), Posts: limitOf(p.Posts), Webhooks: limitOf(p.Webhooks),
			Members: limitOf(p.Members), Month: p.MonthPrice, Year: p.YearPrice,
		})
	}
	return &tiersOutput{Body: out}, nil
}

// limitOf returns a limit, nil for none.
func limitOf(most int) *int {
	if most == tenancy.Unlimited {
		return nil
	}
	return &most
}
