package edge_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/tests/edgetest"
)

var update = flag.Bool("update", false, "write apps/edge/openapi/openapi.json")

const committed = "openapi/openapi.json"

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	doc, err := edge.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	again, err := edge.OpenAPI()
	if err != nil || !bytes.Equal(doc, again) {
		t.Fatalf("the document differs from one call to the next (%v)", err)
	}
	if *update {
		if err := os.WriteFile(committed, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(committed)
	if err != nil || !bytes.Equal(old, doc) {
		t.Fatalf("%s is stale: run `go generate ./apps/edge/...` (or `go test ./apps/edge -run TestOpenAPI -update`) and commit it (%v)", committed, err)
	}
}

var (
	publicRow = regexp.MustCompile(`^\| (GET|POST|PUT|DELETE) \| (\S+) \|`)
	appRoute  = regexp.MustCompile("([A-Z/]+) `(/[^`]*)`")
	colon     = regexp.MustCompile(`:(\w+)`)
	paren     = regexp.MustCompile(`\([^)]*\)`)
)

// interfaceRoutes returns the routes in the tables of the committed interface page.
func interfaceRoutes(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("openapi/interface.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "### Public API")
	public, rest, _ := strings.Cut(rest, "### Application API")
	app, _, _ := strings.Cut(rest, "## Authentication")
	var out []string
	for line := range strings.Lines(public) {
		if m := publicRow.FindStringSubmatch(line); m != nil {
			out = append(out, m[1]+" /public/v1"+colon.ReplaceAllString(m[2], "{$1}"))
		}
	}
	for line := range strings.Lines(app) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range appRoute.FindAllStringSubmatch(paren.ReplaceAllString(cells[2], ""), -1) {
			path := strings.NewReplacer("{billing_provider}", "stripe", "{partner}", "partner").Replace(m[2])
			for method := range strings.SplitSeq(m[1], "/") {
				out = append(out, method+" "+path)
			}
		}
	}
	return out
}

func TestInterface_EveryRouteIsBuiltOrMissing(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, r := range edge.Routes() {
		if known[r.String()] {
			t.Errorf("%s is served twice", r)
		}
		known[r.String()] = true
	}
	all := interfaceRoutes(t)
	if len(all) < 150 {
		t.Fatalf("only %d routes were read from the interface", len(all))
	}
	for _, r := range all {
		if !known[r] {
			t.Errorf("%s is neither served nor listed as missing", r)
		}
	}
}

// readmeRoutes matches lines such as "- Public API: 26 of 26 routes work."
var readmeRoutes = regexp.MustCompile(`(?m)^- (Public|Application) API: (\d+ of \d+) routes work\b(.*)$`)

// TestReadme_ListsMissingRoutes compares the README with the routes. For both APIs it has the
// number of routes that work, and for the public API it also names those that are missing.
func TestReadme_ListsMissingRoutes(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	table := edge.Routes()
	all, missing := map[string]int{}, map[string][]string{}
	for _, r := range interfaceRoutes(t) {
		method, path, _ := strings.Cut(r, " ")
		api := "Application"
		if rest, ok := strings.CutPrefix(path, "/public/v1"); ok {
			api, path = "Public", rest
		}
		all[api]++
		if !slices.ContainsFunc(table, func(a edge.Route) bool { return a.String() == r && a.State == edge.Built }) {
			missing[api] = append(missing[api], "`"+method+" "+path+"`")
		}
	}
	lines := readmeRoutes.FindAllStringSubmatch(string(readme), -1)
	if len(lines) != 2 {
		t.Fatalf("README has %d lines of this kind, want 2: %q", len(lines), lines)
	}
	for _, line := range lines {
		api := line[1]
		if want := fmt.Sprintf("%d of %d", all[api]-len(missing[api]), all[api]); line[2] != want {
			t.Errorf("%s API: README has %s, want %s", api, line[2], want)
		}
		if api == "Application" {
			continue
		}
		got, want := regexp.MustCompile("`[^`]*`").FindAllString(line[3], -1), missing[api]
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s API: README lists\n%s\nwant\n%s", api, strings.Join(got, ", "), strings.Join(want, ", "))
		}
	}
}

func TestMissing_Answers501AfterAuthentication(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, r := range edge.Routes() {
		if r.State == edge.Built {
			continue
		}
		path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(r.Path, "x1")
		first := s.Call(t, r.Method, path, "")
		signed := s.Call(t, r.Method, path, "", "Authorization", edgetest.APIKey, "auth", edgetest.OwnerSession)
		if signed.Status != 501 || !strings.Contains(signed.Body, r.String()) {
			t.Errorf("%s with credentials: %d %s", r, signed.Status, signed.Body)
		}
		if first.Status != 401 && first.Status != 501 {
			t.Errorf("%s without credentials: %d %s", r, first.Status, first.Body)
		}
		if strings.HasPrefix(r.Path, "/public/v1") && first.Status != 401 {
			t.Errorf("%s answers %d without a key", r, first.Status)
		}
	}
}

// Every route requires the credential in the route table, and every route has valid guards.
func TestRoutes_RequireTheirCredential(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, r := range edge.Routes() {
		path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(r.Path, "x1")
		asks := slices.Contains([]edge.Credential{"api key", "agent", "session", "joined", "admin", "owner", "person", "instance", "access token"}, r.Credential)
		if a := s.Call(t, r.Method, path, ""); (a.Status == 401) != asks && r.Credential != "operator" || a.Status == 500 {
			t.Errorf("%s answers %d without a credential, which is %q", r, a.Status, r.Credential)
		}
		if a := s.Call(t, r.Method, path, "", "Authorization", edgetest.APIKey, "auth", edgetest.UserSession); a.Status == 500 {
			t.Errorf("%s has no valid guards: %s", r, a.Body)
		}
	}
}

type described struct {
	Paths map[string]map[string]struct {
		Security    []map[string]any
		RequestBody struct{ Content map[string]any }
		Responses   map[string]struct{ Headers map[string]any }
	}
}

func TestDocument_DescribesAnswers(t *testing.T) {
	t.Parallel()
	b, err := edge.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc described
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			name := method + " " + path
			// These two routes document a different 503.
			if _, internal := op.Responses["500"]; internal && path != "/health" && path != "/monitor/queue/{name}" {
				if op.Responses["503"].Headers["Retry-After"] == nil {
					t.Errorf("%s has no 503 with Retry-After", name)
				}
			}
			for status, r := range op.Responses {
				counted := len(op.Security) > 0 && status != "401"
				for _, header := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
					if (r.Headers[header] != nil) != counted {
						t.Errorf("%s %s: has %s: %v, want %v", name, status, header, !counted, counted)
					}
				}
				if status == "429" && r.Headers["Retry-After"] == nil {
					t.Errorf("%s %s has no Retry-After", name, status)
				}
			}
		}
	}
	one := doc.Paths["/public/v1/posts/{id}"]
	for method, validates := range map[string]bool{"get": true, "delete": false} {
		if _, ok := one[method].Responses["400"]; ok != validates || len(one[method].Responses) < 5 {
			t.Errorf("%s of a post: %v", method, one[method].Responses)
		}
	}
	if body := doc.Paths["/public/v1/posts"]["post"].RequestBody.Content; len(body) != 1 || body["application/json"] == nil {
		t.Errorf("POST /posts takes %v", body)
	}
	if r := doc.Paths["/integrations/social-connect/{integration}"]["post"].Responses; len(r) == 0 || r["503"].Headers == nil {
		t.Errorf("connecting answers %v", r)
	}
}
