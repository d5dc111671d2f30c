package docs_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/apps/edge/docs/console"
)

func TestDocs_AreServed(t *testing.T) {
	t.Parallel()
	a := get(t, "/openapi.json")
	want(t, a, 200, `"openapi": "3.1`, `"$ref": "#/components/schemas/CreateRequest"`, `"$ref": "#/components/schemas/Fault"`)
	page := get(t, "/docs")
	want(t, page, 200, "/public/v1/posts/{id}/status", "Idempotency-Key", "posts", "Not built yet", "postId", "shortLink")
	policy := page.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q, want nothing but one style", policy)
	}
	for _, bad := range []string{"<script", "ZgotmplZ"} {
		if strings.Contains(page.body, bad) {
			t.Errorf("the page has %s, want no script and every value shown", bad)
		}
	}
}

func TestDocs_PublicAPIHasSeparatePage(t *testing.T) {
	t.Parallel()
	public, application := get(t, "/docs").body, get(t, "/docs/application").body
	for _, article := range []string{`<article id="create-posts">`, `<span id="create-posts-alias">`, `<li id="login">`} {
		if !strings.Contains(public, article) {
			t.Errorf("/docs has no %s", article)
		}
	}
	if strings.Contains(public, `<article id="login">`) || !strings.Contains(application, `<article id="login">`) {
		t.Error("the log-in is described on /docs, want it on /docs/application only")
	}
	for page, text := range map[string]string{"/docs": public, "/docs/application": application} {
		if strings.Contains(text, "<code>/api/public/v1/posts") {
			t.Errorf("%s lists routes of the alias mount", page)
		}
	}
	for _, part := range []string{`<a href="#login"><b>POST</b>`, "Requires: cookie or session."} {
		if !strings.Contains(application, part) {
			t.Errorf("/docs/application has no %s", part)
		}
	}
	if strings.Contains(application, `<article id="create-posts">`) {
		t.Error("/docs/application describes the public API")
	}
}

func TestDocs_PagesShowTheirTables(t *testing.T) {
	t.Parallel()
	for page, words := range map[string][]string{
		"/docs/errors": {
			`id="code-outcome_unknown"`, `id="status-429"`, `id="status-503"`, "With Retry-After, the conflict is temporary",
			"Without Retry-After, never repeat the request unchanged", "You have reached a limit of your plan.",
			`&#34;retryAfter&#34;: 12`, "docs#create-posts",
		},
		"/docs/limits": {
			"10 MiB", "30 seconds", "24 hours", "POST /posts and POST /posts/check.", "A key is kept for ", "100,000",
			"20,000 bytes", "<b>18</b>", "<b>24 MiB</b>", "<b>8 MiB</b>", "<b>11,000</b> per webhook",
			"<b>30 days</b> after its event",
		},
		"/docs/webhooks": {
			"webhook.test", "&#34;errorCode&#34;: &#34;rejected&#34;", "Webhook-Signature: v1,", "post.failed",
			"hmac.compare_digest", "hash_equals", "timingSafeEqual", "hmac.Equal",
		},
		"/docs/idempotency":    {"Idempotent-Replayed", "A key is kept for "},
		"/docs/authentication": {"crier_", `docs/errors#status-401`},
		"/docs/quick-start":    {"urllib.request", "create-posts"},
		"/docs/agents":         {"claude mcp add", "/mcp</code>", "Drafts only.", "oauth/apps"},
		"/llms.txt":            {"# Crier", "/mcp)", "/docs/idempotency)", "/docs)\n", "/public/v1/openapi.json"},
	} {
		want(t, get(t, page), 200, words...)
	}
	want(t, get(t, "/docs/nothing"), 404, "no such page")
	want(t, get(t, "/docs/console/nothing.js"), 404, "no such file")
}

// TestDocs_AreCompressedAndCached: a client that accepts gzip gets the compressed bytes, any other
// client gets the same text uncompressed, and a client that already has the page gets no body.
func TestDocs_AreCompressedAndCached(t *testing.T) {
	t.Parallel()
	library := "/docs/console/elements-" + console.Version + ".js"
	for path, caching := range map[string]string{
		"/docs": "no-cache", "/openapi.json": "no-cache", "/public/v1/openapi.json": "no-cache", library: "public, max-age=31536000, immutable",
	} {
		plain := get(t, path, "Accept-Encoding", "identity")
		packed := get(t, path, "Accept-Encoding", "gzip")
		if packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) > len(plain.body)/3 || plain.header.Get("Content-Encoding") != "" {
			t.Fatalf("%s: got %d bytes (%s), compressed %d (%s)", path, len(plain.body), plain.header.Get("Content-Encoding"), len(packed.body), packed.header.Get("Content-Encoding"))
		}
		r, err := gzip.NewReader(strings.NewReader(packed.body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || string(text) != plain.body {
			t.Errorf("%s: both forms differ (%v)", path, err)
		}
		if got := plain.header.Get("Cache-Control"); got != caching {
			t.Errorf("%s: Cache-Control is %q, want %q", path, got, caching)
		}
		if a := get(t, path, "If-None-Match", plain.header.Get("ETag")); a.status != 304 || a.body != "" {
			t.Errorf("%s: with its tag answered %d with %d bytes, want 304 without a body", path, a.status, len(a.body))
		}
	}
}

func TestConsole_HasStrictPolicy(t *testing.T) {
	t.Parallel()
	page := get(t, "/docs/console")
	want(t, page, 200, `tryItCredentialsPolicy="omit"`, "<noscript><p", `id="failed" role="alert"`, "elements-"+console.Version+".js")
	policy := page.header.Get("Content-Security-Policy")
	const starts = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	if !strings.HasPrefix(policy, starts) || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the policy is %q, want one that begins with %q, names no host and nothing unsafe", policy, starts)
	}
	want(t, get(t, "/docs/console/openapi.json"), 404)
}

// TestPublicDocument_HasPublicAPIOnly: the document has each operation once, in the sections of the
// reference, with the API key as the only credential and with the address of the service.
func TestPublicDocument_HasPublicAPIOnly(t *testing.T) {
	t.Parallel()
	a := get(t, "/public/v1/openapi.json")
	want(t, a, 200, `"/public/v1/posts"`, `"Detail"`, "/api/public/v1, for clients that use this prefix")
	for _, other := range []string{`"/auth/login"`, `"/api/public/v1/posts"`, `"/public/v1/openapi.json"`, `"cookie"`} {
		if strings.Contains(a.body, other) {
			t.Errorf("it has %s", other)
		}
	}
	doc := decode[struct {
		Servers []struct{ URL string }
		Tags    []struct{ Name string }
		Paths   map[string]map[string]struct{ Tags []string }
	}](t, a.body)
	if len(doc.Servers) != 1 || doc.Servers[0].URL != "http://crier.test" {
		t.Errorf("got the servers %v, want http://crier.test", doc.Servers)
	}
	sections := map[string]bool{}
	for _, tag := range doc.Tags {
		sections[tag.Name] = true
		want(t, get(t, "/docs"), 200, ">"+tag.Name+"</h2>")
	}
	if len(doc.Tags) != 12 {
		t.Errorf("got %d tags, want the 12 sections of the reference: %v", len(doc.Tags), doc.Tags)
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if len(op.Tags) != 1 || !sections[op.Tags[0]] {
				t.Errorf("%s %s has the tags %v, want one of %v", method, path, op.Tags, doc.Tags)
			}
		}
	}
}

// inSchemas lists what a reader must find of a schema: the values of enumerations and the members
// of objects.
type inSchemas struct{ values, members map[string]bool }

// describe adds the contents of a decoded schema and of the schemas that it refers to. seen holds
// the names of schemas already added.
func (d inSchemas) describe(v any, all map[string]any, seen map[string]bool) {
	switch value := v.(type) {
	case map[string]any:
		ref, _ := value["$ref"].(string)
		if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); ok && !seen[name] {
			seen[name] = true
			d.describe(all[name], all, seen)
		}
		if enum, ok := value["enum"].([]any); ok {
			for _, one := range enum {
				if one != nil {
					d.values[fmt.Sprint(one)] = true
				}
			}
		}
		properties, _ := value["properties"].(map[string]any)
		for name, member := range properties {
			null := ""
			if types, ok := member.(map[string]any)["type"].([]any); ok && types[1] == "null" {
				null = fmt.Sprint(types[0])
			}
			d.members[name+" "+null] = true
			d.describe(member, all, seen)
		}
		for _, key := range []string{"items", "oneOf", "anyOf", "additionalProperties", "schema", "content", "application/json"} {
			d.describe(value[key], all, seen)
		}
	case []any:
		for _, one := range value {
			d.describe(one, all, seen)
		}
	}
}

// TestDocs_ReferenceShowsWholeSchemas: each operation of the public API shows every value of its
// enumerations, the response headers, and every member of its bodies, including the members of each
// form of a union and which members may be null.
func TestDocs_ReferenceShowsWholeSchemas(t *testing.T) {
	t.Parallel()
	page := get(t, "/docs").body
	var doc struct {
		Paths map[string]map[string]struct {
			ID          string `json:"operationId"`
			Parameters  []any
			RequestBody any
			Responses   map[string]struct {
				Headers map[string]any
				Content any
			}
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(get(t, "/public/v1/openapi.json").body), &doc); err != nil {
		t.Fatal(err)
	}
	for _, methods := range doc.Paths {
		for _, op := range methods {
			_, article, _ := strings.Cut(page, `<article id="`+op.ID+`">`)
			article, _, _ = strings.Cut(article, "</article>")
			has := func(format string, args ...any) {
				if text := fmt.Sprintf(format, args...); !strings.Contains(article, text) {
					t.Errorf("%s has no %s", op.ID, text)
				}
			}
			d := inSchemas{values: map[string]bool{}, members: map[string]bool{}}
			d.describe(op.Parameters, doc.Components.Schemas, map[string]bool{})
			d.describe(op.RequestBody, doc.Components.Schemas, map[string]bool{})
			for status, answer := range op.Responses {
				if status >= "300" {
					continue
				}
				d.describe(answer.Content, doc.Components.Schemas, map[string]bool{})
				for name := range answer.Headers {
					has("<code>%s</code>", name)
				}
			}
			for value := range d.values {
				has("<code>%s</code>", html.EscapeString(value))
			}
			for member := range d.members {
				name, null, _ := strings.Cut(member, " ")
				has("%s</code> <small>", name)
				if null != "" {
					has("%s</code> <small>%s", name, null)
					has(" or null")
				}
			}
		}
	}
}

// TestDocs_LimitsHaveDurationsInWords: configured limits are shown in words, one per row, and both
// pages state the same lifetime of a key.
func TestDocs_LimitsHaveDurationsInWords(t *testing.T) {
	t.Parallel()
	limits, keys := get(t, "/docs/limits").body, get(t, "/docs/idempotency").body
	if raw := regexp.MustCompile(`\b\d+[hms](\d+[ms])*\b`).FindString(limits); raw != "" {
		t.Errorf("the page of limits has the duration %s, want words", raw)
	}
	life := regexp.MustCompile(`A key is kept for [^.<]*\.`)
	if a, b := life.FindString(limits), life.FindString(keys); a == "" || a != b {
		t.Errorf("the limits say %q and the page of idempotency %q, want one sentence", a, b)
	}
	for _, note := range regexp.MustCompile(`<dd><b>[^<]*</b>[^<]*</dd>`).FindAllString(limits, -1) {
		if figures := regexp.MustCompile(`\d[\d,]*`).FindAllString(note, -1); len(figures) > 1 && !strings.Contains(note, "429") && !strings.Contains(note, "A key") {
			t.Errorf("got %s, want one figure a row", note)
		}
	}
}

// described holds the parts of an OpenAPI document that tests read.
type described struct{ Info struct{ Version string } }

func TestDocument_HasVersionOfHealth(t *testing.T) {
	t.Parallel()
	served := get(t, "/openapi.json")
	version := decode[struct{ Version string }](t, get(t, "/health").body).Version
	doc := decode[described](t, served.body)
	if version == "" || doc.Info.Version != version {
		t.Errorf("the document is of %q, the service of %q", doc.Info.Version, version)
	}
	want(t, get(t, "/docs"), 200, "API "+version)
	b, err := edge.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	kept := decode[described](t, string(b))
	if strings.Replace(served.body, `"version": "`+version+`"`, `"version": "`+kept.Info.Version+`"`, 1) != string(b) {
		t.Error("the served document differs from the committed one in more than its version")
	}
}
