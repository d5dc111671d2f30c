// Package plan provides the endpoints for plans and subscriptions.
package plan

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/billing"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	Accounts Accounts
	Plans    billing.Plans
}

// Accounts looks up a request's organization.
type Accounts interface {
	// Self returns the principal's person and organization. If the person has no access to any
	// organization, the returned organization is the zero value.
	Self(ctx context.Context, p tenancy.Principal) (tenancy.Person, tenancy.OrganizationOf, error)
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d} }

// SubscriptionResponse holds the organization's subscription.
type SubscriptionResponse struct {
	Subscription *record.SubscriptionRecord `json:"subscription"`
}

type subscriptionOutput struct{ Body SubscriptionResponse }

// Subscription returns the endpoint for the organization's subscription.
func (a *API) Subscription() route.Endpoint {
	return route.JSON(route.Describe("User", "Get the organization's subscription"), a.subscription)
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
	return &subscriptionOutput{Body: SubscriptionResponse{Subscription: record.NewSubscription(current)}}, nil
}

// TierRecord is a plan that the instance offers. A null limit means no limit.
type TierRecord struct {
	Name     string `json:"name" enum:"FREE,STANDARD,TEAM,PRO,ULTIMATE"`
	Channels *int   `json:"channels" nullable:"true"`
	Posts    *int   `json:"posts" nullable:"true" doc:"Maximum number of posts per billing month, counting scheduled and published posts."`
	Webhooks *int   `json:"webhooks" nullable:"true"`
	Members  *int   `json:"members" nullable:"true"`
	Month    int    `json:"monthPrice" doc:"In US dollars."`
	Year     int    `json:"yearPrice" doc:"In US dollars."`
}

// TiersResponse lists the instance's plans.
type TiersResponse struct {
	Month []string     `json:"month" doc:"Always empty: the instance sells no plans."`
	Year  []string     `json:"year" doc:"Always empty: the instance sells no plans."`
	Tiers []TierRecord `json:"tiers" doc:"The plans, smallest first; empty on an instance without plans."`
}

type tiersOutput struct{ Body TiersResponse }

// Tiers returns the endpoint that lists the plans.
func (a *API) Tiers() route.Endpoint {
	return route.JSON(route.Describe("User", "List the instance's plans"), a.tiers)
}

func (a *API) tiers(context.Context, *struct{}) (*tiersOutput, error) {
	out := TiersResponse{Month: []string{}, Year: []string{}, Tiers: []TierRecord{}}
	for _, p := range a.deps.Plans.Tiers() {
		out.Tiers = append(out.Tiers, TierRecord{
			Name: string(p.Tier), Channels: limitOf(p.Channels), Posts: limitOf(p.Posts), Webhooks: limitOf(p.Webhooks),
			Members: limitOf(p.Members), Month: p.MonthPrice, Year: p.YearPrice,
		})
	}
	return &tiersOutput{Body: out}, nil
}

// limitOf returns a pointer to most, or nil if most is tenancy.Unlimited.
func limitOf(most int) *int {
	if most == tenancy.Unlimited {
		return nil
	}
	return &most
}
