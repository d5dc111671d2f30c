package boot

import (
	"strings"
	"testing"
)

// TestValidate_SandboxMustBeOnLoopback: an address that Validate accepts must not fail later in edge.New.
func TestValidate_SandboxMustBeOnLoopback(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"": true, "http://127.0.0.1:4613": true, "http://[::1]:4613/": true, "http://127.8.9.10:1": true,
		"https://127.0.0.1:4613": false, "http://127.0.0.1": false, "http://localhost:4613": false, "http://10.0.0.1:4613": false,
		"http://sandbox.example.com:4613": false, "https://sandbox.example.com": false, "127.0.0.1:4613": false, "::": false,
	} {
		got := ""
		if err := (Config{SandboxURL: address}).Validate(); err != nil {
			got = err.Error()
		}
		if strings.Contains(got, "SANDBOX_URL") == ok || !ok && !strings.Contains(got, "must be http with a loopback address and a port") {
			t.Errorf("%q: got %q, want it accepted: %v", address, got, ok)
		}
	}
}
