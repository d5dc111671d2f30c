package cluster

import "github.com/asynkron/protoactor-go/actor"

// reply receives the response to one request. It is used instead of the library's future, which has
// a data race: if the response arrives just as the request times out, the future reads its result
// without holding the lock.
type reply struct {
	answers chan any
}

func newReply() *reply { return &reply{answers: make(chan any, 1)} }

// SendUserMessage keeps the first response and drops all others. The library may call it even after
// the request has timed out.
func (r *reply) SendUserMessage(_ *actor.PID, message any) {
	_, answer, _ := actor.UnwrapEnvelope(message)
	select {
	case r.answers <- answer:
	default:
	}
}

// SendSystemMessage does nothing: system messages are internal to the library.
func (r *reply) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing, because each request removes its own reply.
func (r *reply) Stop(*actor.PID) {}
