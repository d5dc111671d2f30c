package main

import (
	"slices"
	"testing"
	"time"
)

func TestSlowerShare_CountsPairs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b []time.Duration
		want float64
	}{
		"equal lists":     {a: []time.Duration{1, 2, 3}, b: []time.Duration{1, 2, 3}, want: .5},
		"always slower":   {a: []time.Duration{4, 5}, b: []time.Duration{1, 2, 3}, want: 1},
		"never slower":    {a: []time.Duration{1, 2}, b: []time.Duration{3}, want: 0},
		"all of one time": {a: []time.Duration{2, 2}, b: []time.Duration{2, 2, 2}, want: .5},
		"some":            {a: []time.Duration{1, 4}, b: []time.Duration{2, 3}, want: .5},
		"three of four":   {a: []time.Duration{2, 4}, b: []time.Duration{1, 3}, want: .75},
	} {
		if got := slowerShare(c.a, c.b); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestAlternate_ForwardAndBackward(t *testing.T) {
	t.Parallel()
	var order []string
	made := func(name string) side {
		return side{name: name, used: func() (cost, error) { return cost{}, nil }, call: func(i int) error {
			if i == 0 { // one call per turn
				order = append(order, name)
			}
			return nil
		}}
	}
	got, err := alternate(1, 20*time.Millisecond, 2, made("a"), made("b"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "a", "b", "b", "a", "a", "b", "b", "a"}; !slices.Equal(order, want) {
		t.Errorf("got the turns %v, want one of each to warm up and then %v", order, want[2:])
	}
	for i, x := range got {
		if len(x.rates) != 2 || len(x.took) == 0 || !slices.IsSorted(x.took) || x.span < 8*time.Millisecond {
			t.Errorf("side %d: got %d rounds and %d calls in %v, want 2 rounds in 10 ms",
				i, len(x.rates), len(x.took), x.span)
		}
	}
}
