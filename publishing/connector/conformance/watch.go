package conformance

import (
	"context"

	"crier/publishing/connector"
)

type watched struct {
	connector.Connector
	r *rig
}

// Prepare runs one step and checks it. The step may make at most one call that changes the
// platform, and none through HTTP.Commit. Its Wait must be valid, and its Handle must not contain a
// secret.
func (w watched) Prepare(ctx context.Context, s *connector.Session, item connector.Item) (connector.Step, error) {
	before := w.r.line.counted()
	step, err := w.Connector.Prepare(ctx, s, item)
	if n := w.r.line.counted().since(before); n.commits > 0 || n.writes > 1 {
		w.r.t.Errorf("one Prepare made %d calls by HTTP.Commit and %d that change something, want none and at most one",
			n.commits, n.writes)
	}
	if err != nil {
		w.r.judgeError("Prepare", err)
		return step, err
	}
	if step.Ready && step.Wait != 0 || step.Wait < 0 {
		w.r.t.Errorf("a Step has Ready %v and Wait %v, want no Wait when Ready, and never a negative one",
			step.Ready, step.Wait)
	}
	w.r.noSecret("the Handle", string(step.Handle))
	return step, nil
}

type counted struct {
	connector.Connector
	steps int
}

func (c *counted) Prepare(ctx context.Context, s *connector.Session, item connector.Item) (connector.Step, error) {
	c.steps++
	return c.Connector.Prepare(ctx, s, item)
}
