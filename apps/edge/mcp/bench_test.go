package mcp_test

import (
	"testing"

	"crier/tests/edgetest"
)

// BenchmarkCall compares a call of a tool with the same request to the public API.
func BenchmarkCall(b *testing.B) {
	s := edgetest.New(b, nil)
	headers := []string{"Content-Type", "application/json", "Authorization"}
	for name, c := range map[string]struct{ method, path, body, credential string }{
		"tool": {"POST", "/mcp", request("tools/call", `{"name":"service_list_channels","arguments":{}}`), "Bearer " + edgetest.APIKey},
		"REST": {"GET", "/public/v1/integrations", "", edgetest.APIKey},
		"list": {"POST", "/mcp", request("tools/list", `{}`), "Bearer " + edgetest.APIKey},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if a := s.Call(b, c.method, c.path, c.body, append(headers, c.credential)...); a.Status != 200 {
					b.Fatal(a)
				}
			}
		})
	}
}
