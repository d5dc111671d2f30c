package webhook

import (
	"context"

	"crier/platform/clock"
)

// IsOverAfterDrainTime returns whether a turn that has just begun is over, and whether one that began drainTime ago is.
func IsOverAfterDrainTime(ctx context.Context) (fresh, old bool) {
	now := clock.Boot()
	return (&run{began: now}).isOver(ctx), (&run{began: now - drainTime}).isOver(ctx)
}
