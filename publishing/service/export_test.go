package service

import (
	"context"
	"time"

	"crier/publishing/connector"
)

// Panicking sends a post on a Publisher that has no keyring, which panics.
func Panicking(s *Publisher, w Work) Outcome {
	w.Channel.Connector = "panics"
	deps := s.deps
	deps.Connectors, _ = connector.NewRegistry(onlyFound{})
	broken := &Publisher{core: newCore(s.cfg, deps)}
	return broken.Send(context.Background(), w, func(context.Context, time.Duration) error { return nil })
}

// onlyFound is a connector that is only found.
type onlyFound struct{ connector.Connector }

func (onlyFound) Describe() connector.Descriptor { return connector.Descriptor{ID: "panics"} }
