package limit_test

import (
	"context"
	"fmt"

	"crier/platform/limit"
)

// Each organization may have one call at a time, and one more that waits.
func ExampleNewBounded() {
	calls := limit.NewBounded[string](1, 1)
	leave, err := calls.Enter(context.Background(), "acme")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, ok := calls.TryEnter("acme"); !ok {
		fmt.Println("acme has no free place")
	}
	if leaveOther, ok := calls.TryEnter("umbrella"); ok {
		fmt.Println("umbrella has one")
		leaveOther()
	}
	leave()
	if _, ok := calls.TryEnter("acme"); ok {
		fmt.Println("acme has one again")
	}
	// Output:
	// acme has no free place
	// umbrella has one
	// acme has one again
}
