package cluster

import (
	"context"
	"log/slog"
)

// lower is the library's log a step down: what is an error to it, such as a peer that is gone, is everyday life here.
type lower struct{ slog.Handler }

func down(l slog.Level) slog.Level { return l - 4 }

// Enabled asks for the lowered level.
func (h lower) Enabled(ctx context.Context, l slog.Level) bool {
	return h.Handler.Enabled(ctx, down(l))
}

// Handle writes at the lowered level.
func (h lower) Handle(ctx context.Context, r slog.Record) error {
	r.Level = down(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps lowering.
func (h lower) WithAttrs(attrs []slog.Attr) slog.Handler { return lower{h.Handler.WithAttrs(attrs)} }

// WithGroup keeps lowering.
func (h lower) WithGroup(name string) slog.Handler { return lower{h.Handler.WithGroup(name)} }
