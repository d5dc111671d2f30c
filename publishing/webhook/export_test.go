package webhook

import (
	"context"
	"strings"

	"crier/platform/clock"
	webhookstore "crier/publishing/webhook/store"
)

// PerCreator is how many endpoints of one creator may be under way.
const PerCreator = perCreator

// IsOverAfterDrainTime returns whether a turn that has just begun is over, and whether one that began drainTime ago is.
func IsOverAfterDrainTime(ctx context.Context) (fresh, old bool) {
	now := clock.Boot()
	return (&run{began: now}).isOver(ctx), (&run{began: now - drainTime}).isOver(ctx)
}

// RenderLongName renders an event of a channel whose name has so many bytes, with an approval.
func RenderLongName(bytes int) (string, error) {
	return render(webhookstore.WebhookSource{ChannelName: strings.Repeat("x", bytes), Content: "x", Data: []byte(`{}`)})
}
