package edge_test

import (
	"testing"

	"crier/apps/edge"
	"crier/platform/env"
)

func TestConfig_MobileScheme(t *testing.T) {
	t.Parallel()
	for scheme, valid := range map[string]bool{
		"": true, "crier://": true, "crier://callback": true, "com.example.app://sign-in/done": true,
		"http://evil.test": false, "https://evil.test": false, "javascript://alert": false, "data://x": false, "JavaScript://x": false,
		"crier:": false, "crier://x?y": false, "crier://x#y": false, "crier://a b": false, "crier://a\n": false, "file://x": false,
	} {
		vars := map[string]string{"MOBILE_APP_SCHEME": scheme}
		var cfg edge.Config
		err := env.Load(t.Context(), func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, &cfg)
		if (err == nil) != valid {
			t.Errorf("%q: got the error %v, want it valid: %v", scheme, err, valid)
		}
	}
}

func TestConfig_MCPOrigins(t *testing.T) {
	t.Parallel()
	for origins, valid := range map[string]bool{
		"": true, "https://agent.example": true, "https://agent.example,http://localhost:6274": true,
		"agent.example": false, "https://agent.example/": false, "https://agent.example/path": false, "*": false,
		"https://Agent.example": false, "https://agent.example:443": false, "https://agent.example,null": false,
	} {
		vars := map[string]string{"MCP_ORIGINS": origins}
		var cfg edge.Config
		err := env.Load(t.Context(), func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, &cfg)
		if (err == nil) != valid {
			t.Errorf("%q: got the error %v, want it valid: %v", origins, err, valid)
		}
	}
}
