// Package telemetry provides logs, metrics, profiles and health checks for operating a process.
package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
)

// Config configures a process's log and private listener.
type Config struct {
	LogFormat string     `env:"LOG_FORMAT, default=auto" doc:"Log format: json, text, or auto (text on a terminal, otherwise json)."`
	LogLevel  slog.Level `env:"LOG_LEVEL, default=info" doc:"Minimum level of log entries: debug, info, warn or error."`
	// Listen is the private host:port that serves /metrics, /health, /monitor/queue and
	// /debug/pprof without authentication. If it is empty, nothing is served. Example:
	// 127.0.0.1:4899
	Listen string `env:"METRICS_LISTEN" doc:"Private host:port on which metrics, health and profiles are served without a password."`
}

// Validate returns an error that joins all faults in the configuration. LogLevel is checked
// earlier, when the environment is read.
func (c Config) Validate() error {
	var faults []error
	switch c.LogFormat {
	case "json", "text", "auto":
	default:
		faults = append(faults, errors.New("LOG_FORMAT: must be json, text or auto"))
	}
	if c.Listen != "" && !hostPort(c.Listen) {
		faults = append(faults, errors.New("METRICS_LISTEN: must be host:port, such as 127.0.0.1:4899"))
	}
	return errors.Join(faults...)
}

func hostPort(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// NewLogger returns a logger that writes to w. It returns an error unless format is json, text or
// auto.
//
// The logger adds request_id from the context. It redacts attributes whose names suggest a secret,
// tokens in query strings and after Bearer or Basic, and passwords in URLs. It truncates values to
// 8 KB before quoting them, so that clients and other servers cannot inflate the log.
func NewLogger(w io.Writer, format string, level slog.Leveler) (*slog.Logger, error) {
	if err := (Config{LogFormat: format}).Validate(); err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: scrub}
	var h slog.Handler = slog.NewJSONHandler(w, opts)
	if format == "text" || format == "auto" && terminal(w) {
		h = slog.NewTextHandler(w, opts)
	}
	return slog.New(withRequest{Handler: h}), nil
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

type requestKey struct{}

// WithRequestID returns a context with a request id, which is added to log records that use the
// context.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// RequestID returns the context's request id, or "" if it has none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// withRequest adds request_id to each record, because slog's own handlers ignore the context.
type withRequest struct{ slog.Handler }

func (h withRequest) Handle(ctx context.Context, r slog.Record) error {
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h withRequest) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withRequest{Handler: h.Handler.WithAttrs(attrs)}
}

func (h withRequest) WithGroup(name string) slog.Handler {
	return withRequest{Handler: h.Handler.WithGroup(name)}
}
