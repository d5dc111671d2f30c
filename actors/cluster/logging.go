package cluster

import (
	"context"
	"log/slog"
)

// levelShiftHandler lowers the level of protoactor's log records by one. The library reports a lost
// peer as an error, but it is normal for a process to leave the cluster.
type levelShiftHandler struct{ slog.Handler }

// lowered returns the level below l; slog's levels are four apart.
func lowered(l slog.Level) slog.Level { return l - 4 }

func (h levelShiftHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.Handler.Enabled(ctx, lowered(l))
}

func (h levelShiftHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lowered(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h levelShiftHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelShiftHandler{Handler: h.Handler.WithAttrs(attrs)}
}

func (h levelShiftHandler) WithGroup(name string) slog.Handler {
	return levelShiftHandler{Handler: h.Handler.WithGroup(name)}
}
