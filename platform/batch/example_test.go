package batch_test

import (
	"errors"
	"fmt"
	"slices"

	"crier/platform/batch"
)

// One of four rows makes the statement fail. The other three are stored.
func ExampleIsolate() {
	errBadRow := errors.New("bad row")
	store := func(rows []string) error {
		if slices.Contains(rows, "c") {
			return errBadRow
		}
		fmt.Println("stored", rows)
		return nil
	}
	left, err := batch.Isolate([]string{"a", "b", "c", "d"}, store,
		func(err error) bool { return errors.Is(err, errBadRow) },
		func(row string, err error) { fmt.Printf("left out %s: %v\n", row, err) })
	fmt.Println(left, err)
	// Output:
	// stored [a b]
	// left out c: bad row
	// stored [d]
	// [] <nil>
}
