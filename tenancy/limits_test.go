package tenancy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"crier/tenancy"
)

func TestLimits_MonthBeginsOnTheDay(t *testing.T) {
	t.Parallel()
	parse := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for name, c := range map[string]struct{ since, at, from, to string }{
		"before the day":          {"2026-01-15T13:00:00Z", "2026-03-14T23:59:59Z", "2026-02-15T00:00:00Z", "2026-03-15T00:00:00Z"},
		"on the day":              {"2026-01-15T13:00:00Z", "2026-03-15T00:00:00Z", "2026-03-15T00:00:00Z", "2026-04-15T00:00:00Z"},
		"a short month":           {"2026-01-31T13:00:00Z", "2026-02-28T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"},
		"after a short month":     {"2026-01-31T13:00:00Z", "2026-03-30T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"},
		"a leap year":             {"2024-01-30T13:00:00Z", "2024-02-29T12:00:00Z", "2024-02-29T00:00:00Z", "2024-03-30T00:00:00Z"},
		"over the turn of a year": {"2026-05-20T13:00:00Z", "2027-01-02T00:00:00Z", "2026-12-20T00:00:00Z", "2027-01-20T00:00:00Z"},
		"the day is that in UTC":  {"2026-01-16T01:00:00+05:00", "2026-03-15T04:00:00+05:00", "2026-02-15T00:00:00Z", "2026-03-15T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := tenancy.Limits{Since: parse(c.since)}.Month(parse(c.at))
			if from != parse(c.from) || to != parse(c.to) {
				t.Errorf("got %s to %s, want %s to %s", from, to, c.from, c.to)
			}
		})
	}
}

// TestLimits_MonthsFollowEachOther checks that every instant is in exactly one month and that
// months are 28 to 31 days long.
func TestLimits_MonthsFollowEachOther(t *testing.T) {
	t.Parallel()
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 20_000 {
		l := tenancy.Limits{Since: start.Add(time.Duration(rand.Int64N(int64(10 * 365 * 24 * time.Hour))))}
		at := start.Add(time.Duration(rand.Int64N(int64(20 * 365 * 24 * time.Hour))))
		from, to := l.Month(at)
		next, _ := l.Month(to)
		before, end := l.Month(from.Add(-1))
		days := int(to.Sub(from).Hours() / 24)
		if at.Before(from) || !at.Before(to) || next != to || end != from || !before.Before(from) || days < 28 || days > 31 {
			t.Fatalf("since %s, at %s: the month is %s to %s (%d days), the next begins %s, that before is %s to %s",
				l.Since, at, from, to, days, next, before, end)
		}
	}
}
