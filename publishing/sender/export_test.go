package sender

import (
	"context"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
)

// Panicking sends a post on a Publisher that has no keyring, so that opening the channel's access panics.
func Panicking(s *Sender, w publishing.Work) publishing.Outcome {
	w.Channel.Connector = "panics"
	deps := s.deps
	deps.Keyring = nil
	deps.Connectors, _ = connector.NewRegistry(onlyFound{})
	broken := &Sender{cfg: s.cfg, deps: deps}
	return broken.Send(context.Background(), w, func(context.Context, time.Duration) error { return nil })
}

// Asked returns what a connector is asked for when the outcome of a post's first part is unknown.
func Asked(s *Sender, w publishing.Work) connector.Item {
	return (&run{Sender: s, w: w, c: onlyFound{}}).item(context.Background(), 0)
}

// onlyFound is a connector that is only found.
type onlyFound struct{ connector.Connector }

func (onlyFound) Describe() connector.Descriptor { return connector.Descriptor{ID: "panics"} }
