package boot

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"crier/platform/env"
	"crier/platform/secret"
)

// TestLoad_NamesVariableOutOfBounds loads one wrong value at a time of each setting with bounds;
// the only fault must name the setting.
func TestLoad_NamesVariableOutOfBounds(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		// Too small, too large and, last, of another type.
		"LEASE_TTL": {"1ms", "1h", "10"}, "HEARTBEAT_INTERVAL": {"0s", "6s", "often"}, "ROLES": {"chef"},
		"API_LIMIT": {"0", "2147483648", "1m"}, "ORG_MAX_IN_FLIGHT": {"0", "100001", "x"}, "ACTOR_TIMEOUT": {"0s", "2m", "1"},
		"MAX_IN_FLIGHT": {"0", "100001", "1.5"}, "SWEEP_INTERVAL": {"10ms", "2h", "5"}, "DRAIN_TIMEOUT": {"0s", "2h", "x"},
		"PLATFORM_RATES": {"bluesky=0/1m", "bluesky"}, "PLATFORM_TIMEOUT": {"10ms", "2h", "60"}, "SETTLE_DELAY": {"-1s", "25h", "x"},
		"MAX_LATENESS": {"0s", "8761h", "1d"}, "CATCH_UP_INTERVAL": {"-1s", "25h", "x"}, "RETRY_WINDOW": {"-1s", "721h", "x"},
		"RECONCILE_WINDOW": {"0s", "721h", "x"}, "PREPARE_TIMEOUT": {"0s", "721h", "x"}, "FOLLOWER_TIMEOUT": {"0s", "721h", "x"},
		"IDEMPOTENCY_KEY_RETENTION": {"1h", "87601h", "x"}, "EVENT_RETENTION": {"-1h", "87601h", "x"}, "DELETED_POST_RETENTION": {"23h", "87601h", "x"},
		"SESSION_RETENTION": {"-1s", "87601h", "x"}, "MAX_IMAGE_BYTES": {"0", "1099511627777", "10MB"}, "MAX_VIDEO_BYTES": {"-1", "1099511627777", "x"},
		"ORG_MAX_STORAGE_BYTES": {"-1", "1125899906842625", "x"}, "ORG_MAX_CHANNELS": {"0", "10001", "x"}, "PAUSE_MAX_AGE": {"-1s", "8761h", "x"},
		"PORT": {"-1", "65536", "x"}, "BODY_LIMIT": {"0", "1099511627777", "x"}, "POST_BODY_LIMIT": {"0", "1099511627777", "x"},
		"UPLOAD_BODY_LIMIT": {"0", "1099511627777", "x"}, "REQUEST_TIMEOUT": {"0s", "25h", "30"}, "UPLOAD_TIMEOUT": {"0s", "169h", "x"},
		"UPLOAD_MIN_RATE": {"0", "1099511627777", "x"}, "MAX_CONNECTIONS": {"0", "1000001", "x"}, "CLIENT_MAX_CONNECTIONS": {"-1", "1000001", "x"},
		"APP_LIMIT": {"0", "2147483648", "x"}, "MONITOR_TOKEN": {"short"}, "BASE_URL": {"ftp://x"}, "FRONTEND_URL": {"x"}, "MAIN_URL": {"x"},
		"TRUSTED_PROXIES": {"x"}, "DRAIN_DELAY": {"-1s", "11m", "x"}, "STOP_TIMEOUT": {"0s", "2h", "x"}, "PRUNE_INTERVAL": {"1ms", "169h", "x"},
		"DATABASE_MAX_CONNS": {"3", "10001", "x"}, "POOLER": {"session"}, "ROLE_PREFIX": {"A B"}, "REDIS_URL": {"localhost:6379", "redis://x:y@host:0"},
		"OUTBOUND_ALLOW": {"localhost"}, "LOG_LEVEL": {"loud"}, "LOG_FORMAT": {"xml"}, "METRICS_LISTEN": {"4899"}, "CLUSTER_LISTEN": {"x"},
		"CLUSTER_ADVERTISE": {"x:1"}, "ENCRYPTION_KEYS": {"short"}, "FILES": {"ftp"},
		"ORGANIZATIONS_PER_DAY": {"-1", "1001", "x"}, "ORGANIZATIONS_PER_PERSON": {"-1", "1001", "x"}, "DEFAULT_PLAN_ORGANIZATIONS": {"-1", "1001", "x"},
		"REGISTRATION": {"closed"}, "DELETE_GRACE": {"-1s", "8761h", "7d"}, "ENTERPRISE_SECRET": {"too short"},
		"ORG_MAX_WEBHOOKS": {"0", "10001", "x"}, "WEBHOOK_RETENTION": {"1h", "87601h", "x"}, "ANALYTICS_RETENTION": {"1h", "87601h", "x"},
		"NOTIFICATION_RETENTION": {"1h", "87601h", "x"},
		"GITHUB_URL":             {"x"}, "MOBILE_APP_SCHEME": {"https://x", "javascript:x"},
	} {
		for _, value := range values {
			got := "no error"
			if err := loadWith(t, name, value); err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, name+": ") || strings.Contains(got, "\n") {
				t.Errorf("%s=%s: got %q, want one fault of %s", name, value, got, name)
			}
		}
	}
	if err := loadWith(t, "PORT", "4000"); err != nil {
		t.Errorf("defaults: got %v, want no error", err)
	}
}

// TestDocs_NameExistingVariables finds names in the documents that were renamed only in the
// code.
func TestDocs_NameExistingVariables(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"TEST_DATABASE_URL": true} // used by tests
	for _, v := range env.Names(&Config{}) {
		known[v.Name] = true
	}
	variable := regexp.MustCompile("`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`")
	checked := 0
	for _, pattern := range []string{"*.md", "*/README.md", "docs/*/*.md"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range variable.FindAllStringSubmatch(string(text), -1) {
				checked++
				if !known[match[1]] {
					t.Errorf("%s: got the variable %s, want one of the configuration", file, match[1])
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d variables are checked, want at least 50", checked)
	}
}

// loadWith loads a valid configuration with one variable set to value.
func loadWith(t *testing.T, name, value string) error {
	t.Helper()
	key, err := secret.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{
		"DATABASE_URL": "postgres://someone@127.0.0.1:1/none", "ENCRYPTION_KEYS": key,
	}
	settings[name] = value
	lookup := func(name string) (string, bool) { v, ok := settings[name]; return v, ok }
	return env.Load(t.Context(), lookup, &Config{})
}

// TestValidate_SandboxMustBeOnLoopback: an address that Validate accepts must not fail later, in
// edge.New.
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
