package cli

import (
	"strconv"
	"strings"
	"testing"
)

// config returns a complete configuration whose database does not exist.
func config(t *testing.T, more ...string) []string {
	t.Helper()
	key := strings.TrimSpace(run(t, nil, "keygen").out)
	return append(more, "DATABASE_URL=postgres://127.0.0.1:1/none", "ENCRYPTION_KEYS="+key, "CRIER_HOME="+t.TempDir(), "LOG_FORMAT=json")
}

func TestServe_RefusesUnsafeSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings []string
		fault    string // the variable that is reported, or "" for none
	}{
		"all interfaces without an address":      {settings: []string{"HOST=0.0.0.0"}, fault: "BASE_URL"},
		"all of IPv6 without an address":         {settings: []string{"HOST=::"}, fault: "BASE_URL"},
		"another machine's name":                 {settings: []string{"HOST=crier.example.com"}, fault: "BASE_URL"},
		"all interfaces with an address":         {settings: []string{"HOST=0.0.0.0", "BASE_URL=https://crier.example.com"}, fault: ""},
		"all interfaces of a container":          {settings: []string{"HOST=0.0.0.0", "BASE_URL=http://localhost:4000"}, fault: ""},
		"loopback without an address":            {settings: []string{"HOST=localhost"}, fault: ""},
		"loopback of IPv6 without an address":    {settings: []string{"HOST=::1"}, fault: ""},
		"every IPv4 address is a proxy":          {settings: []string{"TRUSTED_PROXIES=10.0.0.1,0.0.0.0/0"}, fault: "TRUSTED_PROXIES"},
		"every IPv6 address is a proxy":          {settings: []string{"TRUSTED_PROXIES=::/0"}, fault: "TRUSTED_PROXIES"},
		"every IPv4 address in the form of IPv6": {settings: []string{"TRUSTED_PROXIES=::ffff:0.0.0.0/96"}, fault: "TRUSTED_PROXIES"},
		"half of all IPv4 addresses":             {settings: []string{"TRUSTED_PROXIES=0.0.0.0/1,128.0.0.0/1"}, fault: "TRUSTED_PROXIES"},
		"half of all IPv6 addresses":             {settings: []string{"TRUSTED_PROXIES=::/1"}, fault: "TRUSTED_PROXIES"},
		"half of IPv4 in the form of IPv6":       {settings: []string{"TRUSTED_PROXIES=::ffff:0.0.0.0/97"}, fault: "TRUSTED_PROXIES"},
		"more than a provider's IPv6 addresses":  {settings: []string{"TRUSTED_PROXIES=2001::/15"}, fault: "TRUSTED_PROXIES"},
		"more than the private IPv6 addresses":   {settings: []string{"TRUSTED_PROXIES=fc00::/6"}, fault: "TRUSTED_PROXIES"},
		"the widest networks of proxies":         {settings: []string{"TRUSTED_PROXIES=10.0.0.0/8,2001::/16,fc00::/7"}, fault: ""},
		"a name instead of a proxy's address":    {settings: []string{"TRUSTED_PROXIES=proxy.internal"}, fault: "TRUSTED_PROXIES"},
		"a network of proxies":                   {settings: []string{"TRUSTED_PROXIES=10.0.0.0/8, fd00::/8"}, fault: ""},
		"a token that can be guessed":            {settings: []string{"MONITOR_TOKEN=fifteen letters"}, fault: "MONITOR_TOKEN"},
		"a token":                                {settings: []string{"MONITOR_TOKEN=sixteen letters!"}, fault: ""},
		"no address of the main page":            {settings: []string{"MAIN_URL=crier.example.com"}, fault: "MAIN_URL"},
		"no time for an upload":                  {settings: []string{"UPLOAD_MIN_RATE=0"}, fault: "UPLOAD_MIN_RATE"},
		"no connections":                         {settings: []string{"MAX_CONNECTIONS=0"}, fault: "MAX_CONNECTIONS"},
		"less than no connections of a client":   {settings: []string{"CLIENT_MAX_CONNECTIONS=-1"}, fault: "CLIENT_MAX_CONNECTIONS"},
		"no limit of a client":                   {settings: []string{"CLIENT_MAX_CONNECTIONS=0"}, fault: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, config(t, c.settings...), "serve")
			if c.fault == "" {
				if r.code != 1 || strings.Contains(r.errors, "the configuration is incomplete") {
					t.Errorf("got exit %d, %s, want only the database to be missing", r.code, r.errors)
				}
				return
			}
			_, faults, _ := strings.Cut(strings.TrimSpace(r.errors), "\n")
			if r.code != 1 || !strings.HasPrefix(faults, c.fault+": ") || strings.Contains(faults, "\n") {
				t.Errorf("got exit %d, %s, want a fault of %s alone", r.code, r.errors, c.fault)
			}
		})
	}
}

func TestServe_WarnsOfUnlikelySettings(t *testing.T) {
	t.Parallel()
	const http, host, metrics, sandbox = "BASE_URL is an http address:", "BASE_URL is an http address and HOST is not on loopback", "METRICS_LISTEN is not on loopback", "SANDBOX_URL is set"
	for settings, warning := range map[string]string{
		"BASE_URL=http://crier.example.com":  http,
		"BASE_URL=http://192.168.1.5:4000":   http,
		"BASE_URL=https://crier.example.com": "",
		"BASE_URL=http://localhost:4000":     "",
		"BASE_URL=http://[::1]:4000":         "",

		"HOST=0.0.0.0 BASE_URL=http://localhost:4000":    host,
		"HOST=0.0.0.0 BASE_URL=http://crier.example.com": http,
		"HOST=0.0.0.0 BASE_URL=https://localhost:4000":   "",

		"BASE_URL=https://crier.example.com SANDBOX_URL=http://127.0.0.1:4009": sandbox,
		"BASE_URL=https://localhost:4000 SANDBOX_URL=http://127.0.0.1:4009":    "",

		"METRICS_LISTEN=0.0.0.0:0":   metrics,
		"METRICS_LISTEN=:0":          metrics,
		"METRICS_LISTEN=127.0.0.1:0": "",
		"METRICS_LISTEN=localhost:0": "",
	} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			r := run(t, config(t, strings.Fields(settings)...), "serve")
			for _, words := range []string{http, host, metrics, sandbox} {
				if got := strings.Contains(r.errors, `"level":"WARN","msg":"`+words); got != (words == warning) {
					t.Errorf("%q: got logged %t, want %t: %s", words, got, words == warning, r.errors)
				}
			}
		})
	}
}

// limited runs the binary with a limit on its file descriptors.
func limited(t *testing.T, descriptors int, vars []string, args ...string) result {
	t.Helper()
	cmd := command(t, vars, args...)
	cmd.Args = append([]string{"sh", "-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(descriptors)}, cmd.Args...)
	cmd.Path = "/bin/sh"
	return finish(t, cmd)
}

func TestServe_RefusesLowDescriptorLimit(t *testing.T) {
	t.Parallel()
	limited(t, 1023, config(t, "LOG_LEVEL=error"), "serve").fails(t, "may open 1023 file descriptors", "at least 1024", "ulimit -n")
}

func TestServe_AcceptsFewerConnectionsThanDescriptors(t *testing.T) {
	t.Parallel()
	const warning = `"level":"WARN","msg":"MAX_CONNECTIONS is more`
	r := limited(t, 1200, config(t), "serve")
	if !strings.Contains(r.errors, warning) || !strings.Contains(r.errors, `"MAX_CONNECTIONS":16384,"accepted":344,"descriptors":1200`) {
		t.Errorf("got %s, want a warning of 344 connections", r.errors)
	}
	r = limited(t, 1200, config(t, "MAX_CONNECTIONS=344"), "serve")
	if strings.Contains(r.errors, warning) || !strings.Contains(r.errors, "crier: ") {
		t.Errorf("got %s, want no warning", r.errors)
	}
}
