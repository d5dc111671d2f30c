package publishing

import "crier/platform/fault"

// NoPost returns NotFound for a post that the organization does not have.
func NoPost(op string) error { return fault.New(fault.NotFound, op, "There is no such post.") }

// NoChannel returns NotFound for a channel that the organization does not have.
func NoChannel(op string) error { return fault.New(fault.NotFound, op, "There is no such channel.") }

// Disconnected returns Invalid for a channel that has been disconnected.
func Disconnected(op string) error {
	return fault.New(fault.Invalid, op, "The channel was disconnected.")
}
