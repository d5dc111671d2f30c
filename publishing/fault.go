package publishing

import "crier/platform/fault"

// NoPost returns a NotFound fault for a post that does not exist in the organization.
func NoPost(op string) error { return fault.New(fault.NotFound, op, "There is no such post.") }

// NoChannel returns a NotFound fault for a channel that does not exist in the organization.
func NoChannel(op string) error { return fault.New(fault.NotFound, op, "There is no such channel.") }

// Disconnected returns an Invalid fault for a channel that has been disconnected.
func Disconnected(op string) error {
	return fault.New(fault.Invalid, op, "The channel was disconnected.")
}
