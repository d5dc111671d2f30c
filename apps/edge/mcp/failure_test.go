package mcp

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"crier/platform/fault"
)

// TestFailureOf_EndedCallIsNamed: a use case that is stopped fails in its own way, but the model
// learns that the time limit was reached.
func TestFailureOf_EndedCallIsNamed(t *testing.T) {
	t.Parallel()
	a := New(Deps{BaseURL: "http://localhost", Log: slog.New(slog.DiscardHandler)})
	c := &call{tool: a.byName[toolGetPost]}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"a context's error": ended.Err(), "a database's error": errors.New("canceled"),
		"a fault": fault.New(fault.Unavailable, "x", "Try again."), "a slow check": fault.New(fault.TooLarge, "x", "Send fewer."),
	} {
		got := a.failureOf(ended, c, err)
		if got.Code != "unavailable" || !strings.Contains(got.Message, "50 seconds") {
			t.Errorf("%s: got %+v, want a failure that says that the time is over", name, got)
		}
	}
	if got := a.failureOf(ended, c, fault.New(fault.NotFound, "x", "None.")); got.Code != "not_found" {
		t.Errorf("got %+v, want the fault that was found in time", got)
	}
}

// TestArgumentOf_NamesOfCommands maps the fields of commands to the arguments of tools.
func TestArgumentOf_NamesOfCommands(t *testing.T) {
	t.Parallel()
	a := New(Deps{BaseURL: "http://localhost"})
	for _, c := range []struct{ tool, field, want string }{
		{toolCreatePost, "entries", "socialPost"},
		{toolCreatePost, "entries.1.parts.0.content", "socialPost.1.postsAndComments.0.content"},
		{toolCreatePost, "entries.0.channel", "socialPost.0.integrationId"},
		{"service_update_post_settings", "entries.0.parts.2.media", "postsAndComments.2.attachments"},
		{"service_update_post_settings", "entries.0.settings", "settings"},
		{"service_change_post_status", "to", "status"},
		{"service_get_channel_analytics", "date", "days"},
		{"service_trigger_channel_tool", "data.topic", "dataSchema.topic"},
	} {
		if got := a.byName[c.tool].argumentOf(c.field); got != c.want {
			t.Errorf("%s: %s is the argument %s, want %s", c.tool, c.field, got, c.want)
		}
	}
}
