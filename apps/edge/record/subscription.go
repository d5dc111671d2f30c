package record

import (
	"crier/billing"
)

// SubscriptionRecord is an organization's subscription. It is null for the FREE plan and on an
// instance without plans.
type SubscriptionRecord struct {
	_             struct{} `nullable:"true"`
	ID            string   `json:"id"`
	Organization  string   `json:"organizationId"`
	Tier          string   `json:"subscriptionTier" enum:"STANDARD,TEAM,PRO,ULTIMATE"`
	Identifier    string   `json:"identifier" doc:"plan-file means that the operator chose the plan."`
	CancelAt      *string  `json:"cancelAt" nullable:"true" format:"date-time"`
	Period        string   `json:"period" enum:"MONTHLY,YEARLY"`
	TotalChannels int      `json:"totalChannels" doc:"Number of channels that the plan allows."`
	IsLifetime    bool     `json:"isLifetime" doc:"Whether the plan is free of charge and never expires."`
	CreatedAt     string   `json:"createdAt" format:"date-time"`
	UpdatedAt     string   `json:"updatedAt" format:"date-time"`
}

// channelsUnlimited is the number of channels shown to clients if the plan has no limit.
const channelsUnlimited = 10_000

// TotalChannels returns the number of channels that a plan allows, as shown to clients.
func TotalChannels(p billing.Plan) int { return min(p.Channels, channelsUnlimited) }

// NewSubscription returns the record of a subscription, or nil if s is nil.
func NewSubscription(s *billing.Subscription) *SubscriptionRecord {
	if s == nil {
		return nil
	}
	since := FormatTime(s.CreatedAt)
	return &SubscriptionRecord{
		ID: s.Org.String(), Organization: s.Org.String(), Tier: string(s.Plan.Tier), Identifier: "plan-file",
		Period: "MONTHLY", TotalChannels: TotalChannels(s.Plan), IsLifetime: true, CreatedAt: since, UpdatedAt: since,
	}
}
