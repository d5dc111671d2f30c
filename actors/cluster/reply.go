package cluster

import "github.com/asynkron/protoactor-go/actor"

// reply receives the response to one request. It replaces the library's future, which reads its
// result without the lock if the timeout and the response coincide.
type reply struct {
	answers chan any
}

func newReply() *reply { return &reply{answers: make(chan any, 1)} }

// SendUserMessage keeps the first response and drops any other. The library may call it after the
// request has timed out.
func (r *reply) SendUserMessage(_ *actor.PID, message any) {
	_, answer, _ := actor.UnwrapEnvelope(message)
	select {
	case r.answers <- answer:
	default:
	}
}

// SendSystemMessage does nothing: system messages are internal to the library.
func (r *reply) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing: the request removes its reply.
func (r *reply) Stop(*actor.PID) {}
