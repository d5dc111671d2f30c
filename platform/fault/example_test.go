package fault_test

import (
	"errors"
	"fmt"

	"crier/platform/fault"
)

// The client sees the kind and the message. The cause is only for the log.
func ExampleWrap() {
	cause := errors.New("connection refused")
	err := fault.Wrap(fault.Unavailable, "post.Create", "The database is down.", cause)
	fmt.Println(fault.KindOf(err), err.Message)
	fmt.Println(err)
	// Output:
	// unavailable The database is down.
	// post.Create: unavailable: The database is down.: connection refused
}
