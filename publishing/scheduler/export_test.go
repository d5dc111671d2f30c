package scheduler

import (
	"context"
	"time"

	"crier/publishing/connector"
	"crier/publishing/scheduler/dispatch"
)

// SendPanicking sends a post with a Sender that has no keyring, so that opening the credential
// panics.
func SendPanicking(s *Sender, w dispatch.Work) dispatch.Outcome {
	w.Channel.Connector = "panics"
	deps := s.deps
	deps.Keyring = nil
	deps.Connectors, _ = connector.NewRegistry(describedOnly{})
	broken := &Sender{cfg: s.cfg, deps: deps}
	return broken.Send(context.Background(), w, func(context.Context, time.Duration) error { return nil })
}

// ItemToReconcile returns the item that is passed to a connector if the outcome of the first part
// is unknown.
func ItemToReconcile(s *Sender, w dispatch.Work) connector.Item {
	return (&run{Sender: s, work: w, connector: describedOnly{}}).item(context.Background(), 0)
}

// describedOnly is a connector that only has a descriptor.
type describedOnly struct{ connector.Connector }

func (describedOnly) Describe() connector.Descriptor { return connector.Descriptor{ID: "panics"} }
