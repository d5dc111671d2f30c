package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"crier/platform/clock"
	"crier/publishing/connector"
)

const (
	maxHandle = 8 << 10 // bytes
	maxSteps  = 2000
	maxWait   = 20 * time.Millisecond // upper limit for Step.Wait, because test platforms are fast
)

// Publish publishes one item as the engine does: it calls Prepare until the Step is Ready, then
// calls Commit once. The Handle is stored as JSON between steps. Publish returns the error from
// Prepare or Commit.
func Publish(
	ctx context.Context, c connector.Connector, s *connector.Session, item connector.Item,
) (connector.Ref, error) {
	item, err := Prepare(ctx, c, s, item)
	if err != nil {
		return connector.Ref{}, err
	}
	item.Committing = s.Clock.Now()
	return c.Commit(ctx, s, item)
}

// Prepare calls the connector's Prepare until the Step is Ready, and returns the item with its
// Handle. If a call fails, the item has the Handle from the last successful step.
func Prepare(
	ctx context.Context, c connector.Connector, s *connector.Session, item connector.Item,
) (connector.Item, error) {
	for range maxSteps {
		step, err := c.Prepare(ctx, s, item)
		if err != nil {
			return item, err
		}
		item.Handle, err = store(step.Handle)
		if err != nil || step.Ready {
			return item, err
		}
		if err := clock.Sleep(ctx, min(step.Wait, maxWait)); err != nil {
			return item, err
		}
	}
	return item, fmt.Errorf("not ready after %d steps", maxSteps)
}

// store returns a Handle as a jsonb column would return it: without extra spaces, and with the
// members reordered. It returns an error if the Handle has more than maxHandle bytes or is not
// JSON.
func store(handle json.RawMessage) (json.RawMessage, error) {
	if len(handle) == 0 {
		return nil, nil
	}
	if len(handle) > maxHandle {
		return nil, fmt.Errorf("a handle of %d bytes, want at most %d", len(handle), maxHandle)
	}
	dec := json.NewDecoder(bytes.NewReader(handle))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, errors.Join(errors.New("the handle is not JSON"), err)
	}
	return json.Marshal(v)
}
