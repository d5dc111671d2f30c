package cluster

import (
	"context"
	"log/slog"
)

// levelShiftHandler logs protoactor's records one level lower: the library reports a lost peer as an error, but a
// process that leaves the cluster is expected.
type levelShiftHandler struct{ slog.Handler }

// lowered returns the level below l; slog's levels are four apart.
func lowered(l slog.Level) slog.Level { return l - 4 }

// Enabled returns true when the wrapped handler takes the lowered level.
func (h levelShiftHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.Handler.Enabled(ctx, lowered(l))
}

// Handle passes the record on at the lowered level.
func (h levelShiftHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lowered(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a levelShiftHandler with the attributes.
func (h levelShiftHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelShiftHandler{Handler: h.Handler.WithAttrs(attrs)}
}

// WithGroup returns a levelShiftHandler with the group.
func (h levelShiftHandler) WithGroup(name string) slog.Handler {
	return levelShiftHandler{Handler: h.Handler.WithGroup(name)}
}
