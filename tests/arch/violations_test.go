package arch

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source is a synthetic file. If it is not a Go file, only its name is used.
type source struct{ path, body string }

func (s source) tree(t *testing.T) tree {
	t.Helper()
	first, _, inside := strings.Cut(s.path, "/")
	if inside {
		first += "/"
	}
	made := tree{top: []string{first}}
	if !strings.HasSuffix(s.path, ".go") {
		return made
	}
	if err := made.add(s.path, s.body); err != nil {
		t.Fatal(err)
	}
	return made
}

// importing returns a file that breaks no rule except through these imports.
func importing(name string, imports ...string) source {
	pkg := filepath.Base(filepath.Dir(name))
	body := "// Package " + pkg + " is synthetic.\npackage " + pkg + "\n\n"
	for _, i := range imports {
		if !strings.Contains(i, `"`) {
			i = `"` + i + `"`
		}
		body += "import " + i + "\n"
	}
	return source{path: name, body: body}
}

func calling(name, imported, call string) source {
	s := importing(name)
	if imported != "" {
		s = importing(name, imported)
	}
	s.body += "\nvar _ = func() { " + call + " }\n"
	return s
}

// forbiddenImports returns, by rule, files that break a rule about imports.
func forbiddenImports() map[string][]source {
	return map[string][]source{
		"import plan": {
			importing("platform/pg/pool.go", "crier/tenancy"),
			importing("platform/pg/pool.go", "crier/platform/env"),
			importing("platform/fault/fault.go", "crier/platform/clock"),
			importing("tenancy/user.go", "crier/publishing"),
			importing("tenancy/user.go", "crier/tenancy/key"),
			importing("tenancy/user.go", "net/http"),
			importing("publishing/post.go", "crier/platform/pg"),
			importing("publishing/post.go", "os"),
			importing("publishing/post/post.go", "crier/actors/org"),
			importing("publishing/connector/bluesky/post.go", "crier/platform/id"),
			importing("publishing/connector/bluesky/post.go", "crier/platform/pg"),
			importing("publishing/connector/bluesky/post.go", "crier/publishing/post"),
			importing("publishing/connector/bluesky/post.go", "crier/tenancy"),
			importing("actors/org/actor.go", "crier/apps/worker"),
			importing("actors/fairqueue/queue.go", "crier/publishing/connector"),
			importing("platform/ratelimit/window.go", "crier/platform/pg"),
			importing("apps/edge/routes.go", "crier/actors/cluster"),
			importing("apps/edge/api/post/post.go", "crier/apps/worker"),
			importing("apps/worker/worker.go", "crier/apps/edge"),
			importing("apps/sim/sandbox/serve.go", "crier/publishing"),
			importing("apps/crier/main.go", "crier/platform/env"),
			importing("apps/boot/app.go", "crier/tests/dbtest"),
			importing("analytics/view.go", "strings"),
		},
		"restricted packages": {
			importing("actors/org/actor.go", "crier/actors/cluster/store"),
			importing("apps/worker/worker.go", "crier/publishing/connector/all"),
			importing("apps/boot/app.go", "crier/publishing/connector/conformance"),
			importing("apps/edge/edge.go", "testing"),
			importing("apps/sim/sandbox/serve.go", "net/http/httptest"),
		},
		"nouns": {
			importing("apps/boot/app.go", `poststore "crier/publishing/post/store"`),
			importing("tests/call/call.go", `poststore "crier/publishing/post/store"`),
			importing("publishing/file/media.go", `poststore "crier/publishing/post/store"`),
			importing("publishing/file/media.go", "crier/publishing/post"),
			importing("publishing/tag/tag.go", "crier/publishing/post"),
			importing("tenancy/key/key.go", "crier/tenancy/member"),
			importing("tenancy/signin/oidc.go", `keystore "crier/tenancy/key/store"`),
			importing("apps/worker/worker.go", "crier/publishing/post"),
			importing("apps/edge/edge.go", "crier/publishing/scheduler"),
		},
		"vendors": {
			importing("publishing/post/post.go", "github.com/jackc/pgx/v5"),
			importing("apps/worker/worker.go", "github.com/gofiber/fiber/v2"),
			importing("apps/edge/edge.go", "github.com/asynkron/protoactor-go/actor"),
			importing("platform/pg/pool.go", "github.com/redis/go-redis/v9"),
			importing("platform/redis/redis.go", "github.com/alicebob/miniredis/v2"),
			importing("apps/boot/app.go", "github.com/sethvargo/go-envconfig"),
			importing("publishing/post/hook.go", "github.com/riverqueue/river"),
			importing("tests/e2e/rig.go", "github.com/ory/dockertest/v3"),
			importing("platform/id/id.go", "example.com/unlisted/module"),
		},
	}
}

// forbiddenCode returns, by rule, files that break another rule.
func forbiddenCode() map[string][]source {
	return map[string][]source{
		"forbidden calls": {
			calling("publishing/connector/x/post.go", "net/http", "http.Get(``)"),
			calling("publishing/connector/x/post.go", "net/http", "_ = http.DefaultClient"),
			calling("publishing/connector/x/post.go", "net/http", "_ = http.Client{}"),
			calling("apps/sim/x/serve.go", "net/http", "http.Post(``, ``, nil)"),
			calling("apps/sim/x/serve.go", `web "net/http"`, "web.Head(``)"),
			calling("publishing/post/post.go", "time", "_ = time.Now()"),
			calling("publishing/post/post.go", "time", "var now = time.Now; _ = now"),
			calling("actors/org/actor.go", "time", "_ = time.Since(start)"),
			calling("platform/pg/pool.go", "os", "_ = os.Getenv(``)"),
			calling("tests/dbtest/server.go", "os", "_, _ = os.LookupEnv(``)"),
			calling("platform/pg/pool.go", "fmt", "fmt.Println()"),
			calling("platform/pg/pool.go", "fmt", "fmt.Printf(``)"),
			calling("platform/pg/pool.go", "", "println()"),
			calling("apps/edge/edge.go", "", "panic(nil)"),
			{path: "apps/edge/edge.go", body: "// Package edge is synthetic.\npackage edge\n\nfunc init() {}\n"},
			calling("tests/pds/pds.go", "github.com/coder/websocket", "websocket.Dial(nil, ``, nil)"),
		},
		"aliases": {
			importing("apps/boot/app.go", "crier/billing/service"),
			importing("publishing/post/create.go", "crier/publishing/post/store"),
			importing("apps/boot/app_test.go", `store "crier/tenancy/key/store"`),
		},
		"dot imports":   {importing("apps/boot/app.go", `. "crier/platform/fault"`), importing("apps/boot/app_test.go", `. "strings"`)},
		"package names": {{path: "platform/pg/x.go", body: "package postgres\n"}},
		"package comments": {
			{path: "tenancy/user.go", body: "package tenancy\n"},
			{path: "tenancy/user.go", body: "// Users of organizations.\npackage tenancy\n"},
			{path: "apps/crier/main.go", body: "package main\n"},
		},
		"top level":    {{path: "util/x.md", body: "x"}, {path: "notes.txt", body: "x"}},
		"no Go in ops": {importing("ops/deploy/x.go")},
		"sizes": {
			{path: "tenancy/key/key.go", body: "package key\n" + strings.Repeat("\n", mostLines)},
			{path: "tenancy/key/key.go", body: "package key\n" + strings.Repeat("func (k *Keys[T]) _() {}\n", mostMethods+1)},
		},
		"nouns of the edge": {importing("apps/edge/api/tag/tag.go", `postapi "crier/apps/edge/api/post"`), importing("apps/edge/account/key/key.go", `tagapi "crier/apps/edge/api/tag"`)},
	}
}

func TestRules_ReportViolations(t *testing.T) {
	t.Parallel()
	violations := forbiddenImports()
	maps.Copy(violations, forbiddenCode())
	for name, sources := range violations {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for _, s := range sources {
				if len(rules[name](s.tree(t))) == 0 {
					t.Errorf("the rule reports nothing for %s:\n%s", s.path, s.body)
				}
			}
		})
	}
	violations["cycles"] = nil // TestCycleRule covers it
	if missing := difference(rules, violations); len(missing) > 0 {
		t.Errorf("no test shows that these rules can fail: %v", missing)
	}
}

func difference(all map[string]func(tree) []violation, shown map[string][]source) (missing []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, ok := shown[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

func TestRules_AcceptAllowedFiles(t *testing.T) {
	t.Parallel()
	for _, s := range []source{
		importing("apps/boot/app.go", "crier/apps/edge", "crier/actors/cluster", "crier/publishing/connector/all", "crier/publishing/post"),
		importing("apps/edge/api/post/post.go", "crier/apps/edge/request", "crier/publishing", "crier/publishing/connector", "crier/actors/org", "net/http", "github.com/gofiber/fiber/v2"),
		importing("apps/worker/worker.go", "crier/actors/fairqueue", "crier/publishing/scheduler", "golang.org/x/time/rate"),
		importing("actors/fairqueue/queue.go", "crier/tenancy", "time"),
		importing("actors/cluster/member.go", "crier/actors/cluster/store", "os"),
		importing("publishing/post/post.go", `poststore "crier/publishing/post/store"`, "crier/publishing/connector", "crier/tenancy", "net/http"),
		importing("publishing/post/store/post.go", "github.com/jackc/pgx/v5", "crier/platform/pg"),
		importing("platform/pg/pool.go", "crier/platform/pg/local", "crier/platform/fault", "github.com/jackc/pgx/v5/pgxpool"),
		importing("platform/pg/local/local.go", "crier/platform/pg"),
		importing("publishing/connector/x/post.go", "crier/publishing", "crier/platform/outbound", "net/http"),
		importing("tests/dbtest/x.go", "crier/apps/boot", "testing"),
		importing("platform/pg/pool_test.go", "crier/tests/dbtest", "net/http/httptest", "github.com/coder/websocket"),
		calling("platform/pg/pool_test.go", "time", "_ = time.Now()"),
		calling("platform/clock/clock.go", "time", "_ = time.Now()"),
		calling("platform/outbound/client.go", "net/http", "_ = http.Client{}"),
		calling("apps/sim/x/serve.go", "net/http", "_ = http.Server{}; _, _ = http.NewRequest(``, ``, nil)"),
		calling("apps/boot/command.go", "fmt", "fmt.Println()"),
		{path: ".editorconfig", body: "root = true"},
	} {
		violations, _ := check(s.tree(t), nil)
		for rule, found := range violations {
			t.Errorf("the rule %s reports %s, want nothing", rule, found[0].message)
		}
	}
}

func TestCycleRule_ReportsCycle(t *testing.T) {
	t.Parallel()
	line := []source{importing("apps/edge/a.go", "crier/publishing"), importing("publishing/b.go", "crier/tenancy"), importing("tenancy/c.go", "crier/platform/id")}
	var made tree
	for _, s := range line {
		if err := made.add(s.path, s.body); err != nil {
			t.Fatal(err)
		}
	}
	if violations := cycleRule(made); violations != nil {
		t.Fatalf("got %v for a chain, want nothing", violations)
	}
	if err := made.add("platform/jobs/d.go", importing("platform/jobs/d.go", "crier/publishing/post").body); err != nil {
		t.Fatal(err)
	}
	if violations := cycleRule(made); len(violations) != 1 || !strings.Contains(violations[0].message, "tenancy") {
		t.Errorf("got %v, want one cycle through tenancy", violations)
	}
}

// TestSizeRule_ReportsFiles: the package has one file more than allowed.
func TestSizeRule_ReportsFiles(t *testing.T) {
	t.Parallel()
	var made tree
	for i := range mostFiles {
		s := importing("tenancy/key/f" + strings.Repeat("x", i) + ".go")
		if err := made.add(s.path, s.body); err != nil {
			t.Fatal(err)
		}
	}
	if found := sizeRule(made); len(found) != 0 {
		t.Fatalf("got %v for %d files, want nothing", found, mostFiles)
	}
	if err := made.add("tenancy/key/one.go", importing("tenancy/key/one.go").body); err != nil {
		t.Fatal(err)
	}
	if found := sizeRule(made); len(found) != 1 || found[0].what != "files" {
		t.Errorf("got %v for a file more, want one violation", found)
	}
}

func TestException_CoversOneViolationInOneFolder(t *testing.T) {
	t.Parallel()
	s := calling("platform/pg/pool.go", "time", "_ = time.Now()")
	for name, c := range map[string]struct {
		exception exception
		excused   bool
	}{
		"this-call-here":    {exception: exception{dir: "platform/pg", what: "time.Now", why: "a reason"}, excused: true},
		"another-call-here": {exception: exception{dir: "platform/pg", what: "time.Since", why: "a reason"}, excused: false},
		"this-call-there":   {exception: exception{dir: "platform/blob", what: "time.Now", why: "a reason"}, excused: false},
		"not-the-parent":    {exception: exception{dir: "platform", what: "time.Now", why: "a reason"}, excused: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			violations, stale := check(s.tree(t), []exception{c.exception})
			if excused := len(violations) == 0; excused != c.excused || len(stale) == 0 != c.excused {
				t.Errorf("got excused %v and stale exceptions %v, want excused %v", excused, stale, c.excused)
			}
		})
	}
}

func TestLoad_ReadsAllBuildTagsAndSkipsIgnored(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, body := range map[string]string{
		"a/a.go":               "//go:build plan9\n\npackage a\n",
		"a/testdata/b.go":      "not Go",
		"node_modules/c.go":    "package c\n",
		"a/node_modules/c.go":  "package c\n",
		".git/config":          "x",
		"crier":                "\x7fELF",
		".github/workflow.yml": "x",
	} {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.files) != 1 || got.files[0].path != "a/a.go" {
		t.Errorf("got files %v, want a/a.go", got.files)
	}
	if want := []string{".github/", "a/"}; !slices.Equal(got.top, want) {
		t.Errorf("got entries %v, want %v", got.top, want)
	}
}
