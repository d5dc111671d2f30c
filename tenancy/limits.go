package tenancy

import (
	"fmt"
	"math"
	"time"

	"crier/platform/fault"
)

// Unlimited is a limit that is never reached.
const Unlimited = math.MaxInt

// Limits holds the limits of an organization's plan. Each limit is a number or Unlimited.
type Limits struct {
	// Plan is the plan's name. Example: FREE
	Plan string
	// Channels limits connected channels, including disabled ones.
	Channels int
	// Posts limits the number of posts per billing month; see Month.
	Posts int
	// Webhooks limits webhooks, including disabled ones.
	Webhooks int
	// Members limits the number of members. When an invitation is created, open invitations count
	// as members.
	Members int
	// Since is when the first billing month began.
	Since time.Time
}

// NoLimits returns the limits of an instance without plans.
func NoLimits() Limits {
	return Limits{Channels: Unlimited, Posts: Unlimited, Webhooks: Unlimited, Members: Unlimited}
}

// Month returns the billing month that contains the given time. from is the first instant of that
// month, and to is the first instant of the next month. Billing months begin at 0:00 UTC on the
// same day of the month as Since. In a month that does not have this day, they begin on its last
// day.
func (l Limits) Month(at time.Time) (from, to time.Time) {
	at = at.UTC()
	day := l.Since.UTC().Day()
	year, month, _ := at.Date()
	from = monthFrom(year, month, day)
	if at.Before(from) {
		return monthFrom(year, month-1, day), from
	}
	return from, monthFrom(year, month+1, day)
}

// monthFrom returns 0:00 UTC on the given day of a month. If the month is shorter, it returns 0:00
// UTC on the last day of the month. month may be 0 or 13.
func monthFrom(year int, month time.Month, day int) time.Time {
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return time.Date(year, month, min(day, last), 0, 0, 0, 0, time.UTC)
}

// LimitName is the name of a limit in responses and messages.
type LimitName string

// The names of the limits.
const (
	LimitChannels LimitName = "channels"
	LimitPosts    LimitName = "posts"
	LimitWebhooks LimitName = "webhooks"
	LimitMembers  LimitName = "members"
	// LimitOrganizations limits how many organizations on the default plan one person can create.
	LimitOrganizations LimitName = "organizations"
)

// OverLimit returns the Quota fault for an organization that has reached a limit of its plan.
// current is the number of items that the organization has, and allowed is the number that the plan
// allows. advice begins a sentence that OverLimit completes with "or choose a larger plan."
// Example: Delete one first,
func (l Limits) OverLimit(op string, name LimitName, current, allowed int, advice string) error {
	what := string(name)
	if name == LimitPosts {
		what = "scheduled or published posts in a billing month"
	}
	return &fault.Error{
		Kind: fault.Quota, Op: op,
		Message: fmt.Sprintf("Your plan %s allows %d %s, and your organization has %d. %s or choose a larger plan.",
			l.Plan, allowed, what, current, advice),
		Limit: &fault.Limit{Name: string(name), Current: current, Allowed: allowed},
	}
}
