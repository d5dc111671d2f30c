package publishing_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"crier/publishing"
)

// march returns a day in March 2027.
func march(n int) time.Time { return time.Date(2027, time.March, n, 0, 0, 0, 0, time.UTC) }

// known returns the figures of one metric for complete days in March.
func known(level bool, byDay map[int]float64) (out []publishing.DaySamples) {
	for n, v := range byDay {
		f := publishing.DaySamples{Day: march(n), Whole: true}
		if level {
			f.Levels = map[string]float64{"x": v}
		} else {
			f.Counts = map[string]float64{"x": v}
		}
		out = append(out, f)
	}
	return out
}

func TestMetrics_ChangeComparesWithThePreviousWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level bool
		days  map[int]float64
		want  float64
	}{
		// The window is March 8 to 10, and the one before it March 5 to 7.
		"a count that grows": {days: map[int]float64{5: 1, 6: 2, 7: 3, 8: 2, 9: 3, 10: 4}, want: 50}, // 9 against 6
		"a count that falls": {days: map[int]float64{5: 3, 6: 3, 7: 3, 8: 1, 9: 1, 10: 1}, want: -66.67},
		// The 10th is not known yet, so the 3 of the 8th and 9th are compared with the 4 of the 5th
		// and 6th.
		"a day of the window is unknown":        {days: map[int]float64{5: 2, 6: 2, 7: 9, 8: 1, 9: 2}, want: -25},
		"a day of the window before is unknown": {days: map[int]float64{5: 1, 7: 3, 8: 2, 9: 3, 10: 4}},
		"the window before is unknown":          {days: map[int]float64{8: 2, 9: 3, 10: 4}},
		"from 0 to more":                        {days: map[int]float64{5: 0, 6: 0, 7: 0, 8: 0, 9: 0, 10: 7}, want: 100},
		"from 0 to 0":                           {days: map[int]float64{5: 0, 6: 0, 7: 0, 8: 0, 9: 0, 10: 0}},
		"a level that grows":                    {level: true, days: map[int]float64{7: 500, 8: 1000, 9: 1, 10: 1100}, want: 10},
		"a level of which the ends are unknown": {level: true, days: map[int]float64{7: 500, 9: 80, 11: 9}},
		"a negative level":                      {level: true, days: map[int]float64{8: -10, 10: -5}, want: 50},
		"from nearly nothing": {
			level: true, days: map[int]float64{8: math.SmallestNonzeroFloat64, 10: 1e15}, want: 1e9,
		},
	} {
		got := publishing.Metrics(known(c.level, c.days), march(8), march(10))
		if len(got) != 1 || got[0].Change != c.want {
			t.Errorf("%s: got %+v, want one metric with the change %v", name, got, c.want)
		}
	}
}

// A day that was incomplete when it was read would make a short window look like a decline.
func TestMetrics_ChangeLeavesOutIncompleteDays(t *testing.T) {
	t.Parallel()
	figures := append(known(false, map[int]float64{5: 10, 6: 10, 7: 10, 8: 10, 9: 10}),
		publishing.DaySamples{Day: march(10), Counts: map[string]float64{"x": 3}})
	if got := publishing.Metrics(figures, march(8), march(10))[0]; got.Change != 0 || len(got.Points) != 3 {
		t.Errorf("got %+v, want no change and the three days", got)
	}
	if got := publishing.Metrics(figures, march(10), march(10))[0]; got.Change != 0 {
		t.Errorf("of that day alone: got %+v, want no change", got)
	}
}

func TestMetrics_HaveTheKnownDaysInOrder(t *testing.T) {
	t.Parallel()
	figures := append(known(false, map[int]float64{7: 1, 10: 4, 8: 2, 11: 9}), publishing.DaySamples{
		Day: march(9), Levels: map[string]float64{"a level": 3}, Counts: map[string]float64{"Z": 0},
	})
	point := func(n int, v float64) publishing.MetricPoint { return publishing.MetricPoint{Day: march(n), Value: v} }
	want := []publishing.Metric{
		{Label: "Z", Points: []publishing.MetricPoint{point(9, 0)}},
		{Label: "a level", Points: []publishing.MetricPoint{point(9, 3)}},
		{Label: "x", Points: []publishing.MetricPoint{point(8, 2), point(10, 4)}},
	}
	if got := publishing.Metrics(figures, march(8), march(10)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if none := publishing.Metrics(figures, march(20), march(27)); len(none) != 0 {
		t.Errorf("of a window of which nothing is known: got %+v, want none", none)
	}
}

func TestLatest_ReturnsTheLastKnownDay(t *testing.T) {
	t.Parallel()
	figures := append(known(true, map[int]float64{3: 1, 5: 2, 8: 3}), publishing.DaySamples{Day: march(6)})
	for asked, want := range map[int]int{8: 8, 7: 5, 6: 5, 5: 5, 4: 3, 20: 8} {
		if got, ok := publishing.Latest(figures, march(asked)); !ok || !got.Day.Equal(march(want)) {
			t.Errorf("on the %dth: got %v, %v, want the %dth", asked, got.Day, ok, want)
		}
	}
	if got, ok := publishing.Latest(figures, march(2)); ok {
		t.Errorf("before the first known day: got %v, want none", got)
	}
}
