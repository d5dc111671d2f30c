package cluster

import "github.com/asynkron/protoactor-go/actor"

// reply receives the answer to one request. It stands in for the library's future, which reads its result without the
// lock when the timeout and the answer come at the same moment.
type reply struct {
	answers chan any
}

func newReply() *reply { return &reply{answers: make(chan any, 1)} }

// SendUserMessage keeps the first answer. The library calls it, also after the request has timed out.
func (r *reply) SendUserMessage(_ *actor.PID, message any) {
	_, answer, _ := actor.UnwrapEnvelope(message)
	select {
	case r.answers <- answer:
	default:
	}
}

// SendSystemMessage does nothing: only messages of the library are system messages.
func (r *reply) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing: the request removes its reply.
func (r *reply) Stop(*actor.PID) {}
