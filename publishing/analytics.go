package publishing

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// The limits of analytics.
const (
	// MaxAnalyticsDays is the longest window that can be requested.
	MaxAnalyticsDays = 366
	// AnalyticsHistory is the number of past days to read from a platform if nothing is stored yet.
	// It covers a three-month window and the three months before it.
	AnalyticsHistory = 180
)

const (
	day = 24 * time.Hour
	// maxChange is the largest change reported, in percent. Without this limit, a change from
	// almost zero could be infinite.
	maxChange = 1e9
)

// GetAnalytics requests a channel's statistics for a window of UTC days.
type GetAnalytics struct {
	// Channel is a channel id as sent by the client.
	Channel string
	// Days is the length of the window, from 1 to MaxAnalyticsDays. Today is its last day.
	Days int
	// Refresh requests a new read of values that are more than a minute old. Otherwise, values are
	// read again only if they are more than an hour old.
	Refresh bool
}

// GetPostAnalytics requests a post's statistics. Days and Refresh mean the same as in GetAnalytics.
type GetPostAnalytics struct {
	Post    string
	Days    int
	Refresh bool
}

// GetSamples requests a channel's values for one day.
type GetSamples struct {
	Channel string
	// Day is midnight in UTC, or zero if the client specified no day.
	Day time.Time
}

// Analytics holds the statistics of a channel or a post.
type Analytics struct {
	// Metrics are sorted by label.
	Metrics []Metric
	// AsOf is when the platform was last read, or zero if it has never been read. If the platform
	// does not respond, AsOf can be more than an hour in the past.
	AsOf time.Time
}

// PostAnalytics holds the statistics of a post.
type PostAnalytics struct {
	Analytics
	// Missing is true if the platform published the post without returning an id. See
	// ReleaseMissing.
	Missing bool
}

// Metric is a single statistic with its values over time.
type Metric struct {
	// Label is a human-readable name, unique among the metrics of a channel or a post.
	Label string
	// Points holds the days of the window that have a known value, earliest first.
	Points []MetricPoint
	// Change is in percent. See Metrics for how it is calculated.
	Change float64
}

// MetricPoint is the value of one day.
type MetricPoint struct {
	// Day is midnight in UTC.
	Day   time.Time
	Value float64
}

// DaySamples holds the known values of one day, keyed by label.
type DaySamples struct {
	// Day is midnight in UTC.
	Day time.Time
	// Counts holds the number of events on that day, such as impressions.
	Counts map[string]float64
	// Levels holds values as of the end of that day, such as the number of followers.
	Levels map[string]float64
	// Whole is true if the day was already over when its values were last read.
	Whole bool
}

// Metrics returns the statistics for the days from first to last, inclusive. Both arguments must be
// midnight in UTC. The figures must include all known values for these days and for the preceding
// period of equal length.
//
// For a count, the change compares the window's known whole days with the same days of the previous
// window. It is 0 if a value for any of those earlier days is unknown. For a level, the change
// compares the last known day of the window with the first.
//
// An increase from 0 is reported as 100 percent, and a decrease from 0 as -100 percent. Changes are
// rounded to two decimal places.
func Metrics(figures []DaySamples, first, last time.Time) []Metric {
	counts, levels, whole := map[string]values{}, map[string]values{}, map[time.Time]bool{}
	for _, f := range figures {
		whole[f.Day] = f.Whole
		collectValues(counts, f.Day, f.Counts)
		collectValues(levels, f.Day, f.Levels)
	}
	var out []Metric
	for label, v := range counts {
		if points := v.points(first, last); len(points) > 0 {
			out = append(out, Metric{Label: label, Points: points, Change: v.changeOfCount(points, last.Sub(first)+day, whole)})
		}
	}
	for label, v := range levels {
		if _, counted := counts[label]; counted {
			continue
		}
		if points := v.points(first, last); len(points) > 0 {
			change := percent(points[0].Value, points[len(points)-1].Value)
			out = append(out, Metric{Label: label, Points: points, Change: change})
		}
	}
	slices.SortFunc(out, func(a, b Metric) int { return strings.Compare(a.Label, b.Label) })
	return out
}

// values holds the values of one metric, keyed by day.
type values map[time.Time]float64

func collectValues(all map[string]values, at time.Time, known map[string]float64) {
	for label, v := range known {
		if all[label] == nil {
			all[label] = values{}
		}
		all[label][at] = v
	}
}

// points returns the known values for the days from first to last.
func (v values) points(first, last time.Time) []MetricPoint {
	var out []MetricPoint
	for at := first; !at.After(last); at = at.Add(day) {
		if value, ok := v[at]; ok {
			out = append(out, MetricPoint{Day: at, Value: value})
		}
	}
	return out
}

// changeOfCount compares two sums and returns the change in percent. One sum covers the whole days
// in points. The other covers the same days shifted back by earlier. changeOfCount returns 0 if the
// value for any shifted day is unknown.
func (v values) changeOfCount(points []MetricPoint, earlier time.Duration, whole map[time.Time]bool) float64 {
	var before, now float64
	for _, p := range points {
		if !whole[p.Day] {
			continue
		}
		value, ok := v[p.Day.Add(-earlier)]
		if !ok {
			return 0
		}
		before, now = before+value, now+p.Value
	}
	return percent(before, now)
}

// percent returns the percentage change from one value to another.
func percent(from, to float64) float64 {
	change := (to - from) / math.Abs(from) * 100
	switch {
	case to == from:
		return 0
	case from == 0:
		change = math.Copysign(100, to)
	}
	return math.Round(min(max(change, -maxChange), maxChange)*100) / 100
}

// Latest returns the values for the given day or, if none are known, for the most recent earlier
// day with known values. It returns false if there is no such day.
func Latest(figures []DaySamples, at time.Time) (DaySamples, bool) {
	var out DaySamples
	for _, f := range figures {
		if !f.Day.After(at) && f.Day.After(out.Day) && len(f.Counts)+len(f.Levels) > 0 {
			out = f
		}
	}
	return out, !out.Day.IsZero()
}

// Values returns all values of the day, keyed by label.
func (f DaySamples) Values() map[string]float64 {
	out := maps.Clone(f.Levels)
	if out == nil {
		out = map[string]float64{}
	}
	maps.Copy(out, f.Counts)
	return out
}

// DayOf returns the start of the UTC day that contains the given time.
func DayOf(at time.Time) time.Time { return at.UTC().Truncate(day) }
