package webhook

import (
	"context"
	"strings"

	"crier/platform/clock"
	webhookstore "crier/publishing/webhook/store"
)

// PerCreator is how many endpoints of one creator may be in progress at once.
const PerCreator = perCreator

// IsOverAfterDrainTime reports whether a turn that has just begun is over, and whether a turn that
// began drainTime ago is over.
func IsOverAfterDrainTime(ctx context.Context) (fresh, old bool) {
	now := clock.Boot()
	return (&run{began: now}).isOver(ctx), (&run{began: now - drainTime}).isOver(ctx)
}

// RenderLongName renders an event with an approval for a channel whose name has the given number of
// bytes.
func RenderLongName(bytes int) (string, error) {
	return render(webhookstore.WebhookSource{ChannelName: strings.Repeat("x", bytes), Content: "x", Data: []byte(`{}`)})
}
