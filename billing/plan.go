// Package billing defines an instance's plans and their limits, and assigns a plan to each
// organization.
package billing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"crier/platform/id"
	"crier/tenancy"
)

// Tier is the name of a plan.
type Tier string

// The possible tiers. A plan file may define fewer.
const (
	TierFree     Tier = "FREE"
	TierStandard Tier = "STANDARD"
	TierTeam     Tier = "TEAM"
	TierPro      Tier = "PRO"
	TierUltimate Tier = "ULTIMATE"
)

// Tiers returns all tiers, smallest first.
func Tiers() []Tier { return []Tier{TierFree, TierStandard, TierTeam, TierPro, TierUltimate} }

// Plan holds a tier's limits and prices. Each limit is a number or tenancy.Unlimited.
type Plan struct {
	Tier     Tier
	Channels int
	// Posts is the limit per billing month.
	Posts    int
	Webhooks int
	Members  int
	// MonthPrice and YearPrice are in whole US dollars.
	MonthPrice int
	YearPrice  int
}

// Catalogue holds an instance's plans. The zero Catalogue represents an instance without plans,
// which has no limits.
type Catalogue struct {
	// Plans are in the order of Tiers.
	Plans []Plan
	// Default is the tier of organizations that are not in Assigned.
	Default Tier
	// Assigned maps organizations to the tiers that the plan file assigns to them.
	Assigned map[tenancy.OrgID]Tier
}

// Limited reports whether the instance has plans.
func (c Catalogue) Limited() bool { return len(c.Plans) > 0 }

// Of returns an organization's plan. If the instance has no plans, Of returns an unlimited plan of
// the largest tier.
func (c Catalogue) Of(org tenancy.OrgID) Plan {
	tier, ok := c.Assigned[org]
	if !ok {
		tier = c.Default
	}
	for _, p := range c.Plans {
		if p.Tier == tier {
			return p
		}
	}
	return Plan{
		Tier: TierUltimate, Channels: tenancy.Unlimited, Posts: tenancy.Unlimited, Webhooks: tenancy.Unlimited,
		Members: tenancy.Unlimited,
	}
}

// LimitsAnything reports whether the plan has any limit.
func (p Plan) LimitsAnything() bool {
	return min(p.Channels, p.Posts, p.Webhooks, p.Members) < tenancy.Unlimited
}

// Limits returns the plan's limits. The Since field of the result is not set.
func (p Plan) Limits() tenancy.Limits {
	return tenancy.Limits{
		Plan: string(p.Tier), Channels: p.Channels, Posts: p.Posts, Webhooks: p.Webhooks, Members: p.Members,
	}
}

// file is the JSON content of a plan file.
type file struct {
	Default       Tier              `json:"default"`
	Plans         map[Tier]filePlan `json:"plans"`
	Organizations map[string]Tier   `json:"organizations"`
}

type filePlan struct {
	Channels   fileLimit `json:"channels"`
	Posts      fileLimit `json:"posts"`
	Webhooks   fileLimit `json:"webhooks"`
	Members    fileLimit `json:"members"`
	MonthPrice int       `json:"monthPrice"`
	YearPrice  int       `json:"yearPrice"`
}

// fileLimit is a limit in a plan file: a number, or null for no limit. Every limit must be present.
type fileLimit struct {
	written bool
	most    int
}

// UnmarshalJSON returns an error unless raw is null or a whole number from 0 to math.MaxInt32.
func (l *fileLimit) UnmarshalJSON(raw []byte) error {
	l.written, l.most = true, tenancy.Unlimited
	if string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, &l.most); err != nil || l.most < 0 || l.most > math.MaxInt32 {
		return fmt.Errorf("a limit is %s but must be a whole number from 0 to %d, or null for no limit",
			raw, math.MaxInt32)
	}
	return nil
}

// Parse parses a plan file. Its errors are meant for the operator and say where in the file the
// problem is.
func Parse(raw []byte) (Catalogue, error) {
	var f file
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return Catalogue{}, fmt.Errorf("the JSON cannot be read: %w", err)
	}
	if d.More() {
		return Catalogue{}, fmt.Errorf("there is more than one JSON value")
	}
	c := Catalogue{Default: f.Default, Assigned: map[tenancy.OrgID]Tier{}}
	for _, tier := range slices.Sorted(maps.Keys(f.Plans)) {
		if !slices.Contains(Tiers(), tier) {
			return Catalogue{}, fmt.Errorf("plans.%s is not a tier: the tiers are %s", tier, tierNames(Tiers()))
		}
	}
	for _, tier := range Tiers() {
		p, ok := f.Plans[tier]
		if !ok {
			continue
		}
		if err := p.check(tier); err != nil {
			return Catalogue{}, err
		}
		c.Plans = append(c.Plans, Plan{
			Tier: tier, Channels: p.Channels.most, Posts: p.Posts.most, Webhooks: p.Webhooks.most,
			Members: p.Members.most, MonthPrice: p.MonthPrice, YearPrice: p.YearPrice,
		})
	}
	if _, ok := f.Plans[f.Default]; !ok {
		return Catalogue{}, fmt.Errorf("default is %q but must be the name of one of the plans", f.Default)
	}
	for _, text := range slices.Sorted(maps.Keys(f.Organizations)) {
		org, ok := id.Parse[tenancy.OrgTag](text)
		if !ok {
			return Catalogue{}, fmt.Errorf("organizations.%s is not the id of an organization", text)
		}
		if _, ok := f.Plans[f.Organizations[text]]; !ok {
			return Catalogue{}, fmt.Errorf("organizations.%s is %q but must be the name of one of the plans",
				text, f.Organizations[text])
		}
		c.Assigned[org] = f.Organizations[text]
	}
	return c, nil
}

// check returns an error if a limit is missing or a price is negative.
func (p filePlan) check(tier Tier) error {
	limits := map[string]fileLimit{
		"channels": p.Channels, "posts": p.Posts, "webhooks": p.Webhooks, "members": p.Members,
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if !limits[name].written {
			return fmt.Errorf("plans.%s.%s is missing: it must be a whole number, or null for no limit", tier, name)
		}
	}
	if p.MonthPrice < 0 || p.YearPrice < 0 {
		return fmt.Errorf("plans.%s has a price below 0", tier)
	}
	return nil
}

func tierNames(tiers []Tier) string {
	names := make([]string, len(tiers))
	for i, t := range tiers {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}
