package recurrence_test

import (
	"fmt"
	"time"

	"crier/publishing/recurrence"
)

// A post that is repeated every week at 9:00 in Berlin stays at 9:00 when the clocks change.
func ExampleRule() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	first := time.Date(2026, time.October, 19, 7, 0, 0, 0, time.UTC)
	rule := recurrence.Rule{Anchor: recurrence.WallClock(first, berlin), Zone: berlin, Days: 7, Count: 3}
	for n := 0; rule.Has(n); n++ {
		fmt.Println(rule.At(n).Format(time.RFC3339), "is", rule.At(n).In(berlin).Format(time.RFC3339))
	}
	// Output:
	// 2026-10-19T07:00:00Z is 2026-10-19T09:00:00+02:00
	// 2026-10-26T08:00:00Z is 2026-10-26T09:00:00+01:00
	// 2026-11-02T08:00:00Z is 2026-11-02T09:00:00+01:00
}
