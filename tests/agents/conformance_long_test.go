//go:build long

package agents

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"testing"
	"time"

	"crier/tests/npm"
	"crier/tests/suite"
)

//go:embed conformance
var conformanceScripts embed.FS

// conformanceFolder has the conformance tests and a Node.js that is new enough for them.
var conformanceFolder = suite.Once(func(t testing.TB) npm.Folder {
	files, err := fs.Sub(conformanceScripts, "conformance")
	if err != nil {
		t.Fatal(err)
	}
	f := npm.Install(t, files, installTime)
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	f.Node = filepath.Join(f.Dir, "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	return f
})

// conformanceCheck is the result of one check.
type conformanceCheck struct{ ID, Status, ErrorMessage string }

// expectedFailures are the checks that this service fails, and why. A check in this table that
// passes fails the test.
var expectedFailures = map[string]map[string]string{
	"server-stateless": {
		"sep-2575-server-rejects-undeclared-capability":          "it calls the tool test_missing_capability of a reference server",
		"sep-2575-missing-capability-http-400":                   "it calls the tool test_missing_capability of a reference server",
		"sep-2575-http-server-no-independent-requests-on-stream": "it calls the tool test_streaming_elicitation of a reference server",
		"sep-2575-server-no-log-without-loglevel":                "it calls the tool test_logging_tool of a reference server",
	},
	"caching": {
		"sep-2549-prompts-list-caching-hints":             "there are no prompts",
		"sep-2549-resources-list-caching-hints":           "there are no resources",
		"sep-2549-resources-templates-list-caching-hints": "there are no resources",
	},
}

// scenarios maps the server scenarios that apply to revisions of the protocol. Scenarios with a
// handshake run at the last revision that has one, the others at the newest.
var scenarios = map[string]string{
	"server-initialize": oldRevision, "ping": oldRevision, "tools-list": newRevision, "server-stateless": newRevision,
	"http-header-validation": newRevision, "caching": newRevision, "dns-rebinding-protection": newRevision,
}

func TestConformance_Server(t *testing.T) {
	t.Parallel()
	conformanceFolder(t) // before a service that a failure would leave running
	s := common(t)
	p := s.owner(t)
	p.connect(t)
	address := s.withToken(t, p.grant(t, s.native(t), nil).Access)
	for scenario, revision := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			out := t.TempDir()
			runConformance(t, nil, "server", "--url", address+"/mcp", "--scenario", scenario, "--spec-version", revision, "-o", out)
			judge(t, scenario, out)
		})
	}
	t.Run("dns-rebinding-protection at "+oldRevision, func(t *testing.T) {
		out := t.TempDir()
		runConformance(t, nil, "server", "--url", address+"/mcp", "--scenario", "dns-rebinding-protection", "--spec-version", oldRevision, "-o", out)
		judge(t, "dns-rebinding-protection", out)
	})
}

var authorizeURL = regexp.MustCompile(`^http\S+/oauth/authorize\?\S+$`)

func TestConformance_Authorization(t *testing.T) {
	t.Parallel()
	conformanceFolder(t)
	s := common(t)
	p := s.owner(t)
	port := freePort(t)
	redirect := "http://127.0.0.1:" + port + "/callback"
	a := s.register(t, metadata(unique("Conformance "), redirect))
	out := t.TempDir()
	var browser sync.WaitGroup
	runConformance(t, func(line string) {
		if authorizeURL.MatchString(line) {
			browser.Go(func() { p.inChromium(t, line, redirect, false, false) })
		}
	}, "authorization", "--url", s.base, "--client-id", a.id, "-p", port, "--resource", s.base+"/mcp", "-o", out)
	browser.Wait()
	judge(t, "authorization", out)
}

// runConformance runs the conformance tests. said gets each line of the output; it may be nil. How
// the program exits does not matter, because judge reads the results.
func runConformance(t *testing.T, said func(line string), args ...string) {
	t.Helper()
	f := conformanceFolder(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.Node, append([]string{"node_modules/@modelcontextprotocol/conformance/dist/index.js"}, args...)...)
	cmd.Dir, cmd.WaitDelay = f.Dir, 5*time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if said != nil {
			said(lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Logf("the conformance tests ended with %v", err)
	}
}

// judge compares the results in a folder with expectedFailures.
func judge(t *testing.T, scenario, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no results in %s: %v", scenario, dir, err)
	}
	failed := map[string]string{}
	passed := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []conformanceCheck
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			switch c.Status {
			case "FAILURE", "WARNING":
				failed[c.ID] = c.Status + ": " + c.ErrorMessage
			case "SUCCESS":
				passed++
			}
		}
	}
	for id, message := range failed {
		if reason, known := expectedFailures[scenario][id]; known {
			t.Logf("%s fails as expected, because %s", id, reason)
		} else {
			t.Errorf("%s: got %s, want a success", id, message)
		}
	}
	for id := range expectedFailures[scenario] {
		if failed[id] == "" {
			t.Errorf("%s passes: remove it from the expected failures", id)
		}
	}
	if passed == 0 {
		t.Errorf("%s: no check has passed", scenario)
	}
}

// withToken returns the address of a proxy that adds the token to requests. It passes Host and
// Origin on.
func (s *service) withToken(t *testing.T, token string) string {
	t.Helper()
	to, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}, Transport: &http.Transport{}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}
