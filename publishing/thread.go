package publishing

import (
	"fmt"
	"strconv"

	"crier/platform/text"
)

// PartialPublishMessage returns the error message for a thread that failed midway. The message
// lists the parts that were published, so that nobody publishes them again by hand.
//
// failed is the position of the part that was not published, and reason explains why. Positions
// count from 0, but the message counts from 1. If no part was published, the message is just
// reason.
func PartialPublishMessage(published []int, failed int, reason string) string {
	if len(published) == 0 {
		return reason
	}
	numbers := make([]string, len(published))
	for i, position := range published {
		numbers[i] = strconv.Itoa(position + 1)
	}
	subject := "Part " + numbers[0] + " is"
	if len(numbers) > 1 {
		subject = "Parts " + text.List(numbers) + " are"
	}
	return fmt.Sprintf("%s published. Part %d: %s", subject, failed+1, reason)
}
