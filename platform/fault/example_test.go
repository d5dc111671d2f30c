package fault_test

import (
	"errors"
	"fmt"

	"crier/platform/fault"
)

// The client sees the kind and the message. The cause is only for the log.
func ExampleWrap() {
	cause := errors.New("dial tcp 10.0.0.7:5432: connection refused")
	err := fault.Wrap(fault.Unavailable, "post.Create", "The database does not respond.", cause)
	fmt.Println(fault.KindOf(err), err.Message)
	fmt.Println(err)
	// Output: unavailable The database does not respond. post.Create: unavailable: The database
	// does not respond.: dial tcp 10.0.0.7:5432: connection refused
}
