package tenancy

import (
	"fmt"
	"math"
	"time"

	"crier/platform/fault"
)

// Unlimited is a limit that is never reached.
const Unlimited = math.MaxInt

// Limits are what the plan of an organization allows. Each limit is a number or Unlimited.
type Limits struct {
	// Plan is the name of the plan.
	Plan string
	// Channels counts connected channels, including disabled ones.
	Channels int
	// Posts counts the posts of one billing month; see Month.
	Posts int
	// Webhooks counts all webhooks, including disabled ones.
	Webhooks int
	// Members counts the members. When an invitation is created, open invitations count too.
	Members int
	// Since is when the first billing month began.
	Since time.Time
}

// NoLimits returns the limits of an instance without plans.
func NoLimits() Limits {
	return Limits{Channels: Unlimited, Posts: Unlimited, Webhooks: Unlimited, Members: Unlimited}
}

// Month returns the billing month that contains an instant: from is the first instant of the month,
// and to is the first instant of the next one. Months begin at 0:00 UTC on Since's day of the
// month, or on the last day of a month that is too short.
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

// monthFrom returns 0:00 UTC on a day of a month, or on its last day. The month may be 0 or 13.
func monthFrom(year int, month time.Month, day int) time.Time {
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return time.Date(year, month, min(day, last), 0, 0, 0, 0, time.UTC)
}

// LimitName is the name of a limit in responses and messages.
type LimitName string

// The limits.
const (
	LimitChannels LimitName = "channels"
	LimitPosts    LimitName = "posts"
	LimitWebhooks LimitName = "webhooks"
	LimitMembers  LimitName = "members"
	// LimitOrganizations is the number of organizations with the default plan that one person may
	// create.
	LimitOrganizations LimitName = "organizations"
)

// OverLimit returns the Quota fault of an organization that has current items of a kind and may
// have allowed. The text advice begins the sentence that ends with "or choose a larger plan."
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
