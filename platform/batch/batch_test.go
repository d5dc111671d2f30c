package batch_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"crier/platform/batch"
)

var (
	errBad  = errors.New("one item is bad")
	errAway = errors.New("the database is away")
)

func TestIsolate_DoesAllButTheBadItems(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := make([]int, rapid.IntRange(0, 200).Draw(t, "items"))
		for i := range items {
			items[i] = i
		}
		bad := rapid.MapOf(rapid.IntRange(0, 199), rapid.Just(true)).Draw(t, "bad")
		awayAfter := rapid.IntRange(1, 400).Draw(t, "calls until the database is away")
		calls := 0
		var done, alone []int
		left, err := batch.Isolate(items, func(some []int) error {
			if calls++; calls > awayAfter {
				return errAway
			}
			if slices.ContainsFunc(some, func(i int) bool { return bad[i] }) {
				return errBad
			}
			done = append(done, some...)
			return nil
		}, func(err error) bool { return errors.Is(err, errBad) }, func(i int, err error) {
			if !bad[i] || !errors.Is(err, errBad) {
				t.Fatalf("item %d is alone with %v", i, err)
			}
			alone = append(alone, i)
		})
		if (err != nil) != (len(left) > 0) || err != nil && !errors.Is(err, errAway) {
			t.Fatalf("error %v with %d items left", err, len(left))
		}
		if all := slices.Sorted(slices.Values(slices.Concat(done, alone, left))); !slices.Equal(all, items) {
			t.Fatalf("done, alone and left are %v, not every item once", all)
		}
		if slices.ContainsFunc(done, func(i int) bool { return bad[i] }) {
			t.Fatalf("a bad item counts as done: %v", done)
		}
	})
}
