package contract

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestClients sends what existing clients send, and reads from the responses what they read.
func TestClients(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"the command line posts, lists and deletes":   testCommandLine,
		"the n8n node posts with empty strings":       testN8N,
		"the WordPress plugin publishes an image":     testWordPress,
		"a bridge polls the envelope until it is out": testBridge,
		"a client updates by the id of the post":      testUpdateByID,
		"the .NET client reads each route":            testDotNet,
		"uploads with names of no type are sniffed":   testUploadNames,
		"what is not offered is a JSON 404":           testNotOffered,
		"every route answers JSON with its prefixes":  testEveryAnswerIsJSON,
		"ids fit the pattern of clients":              testIDs,
		"drafts need a date":                          testDraftWithoutDate,
		"a failed post has no error at the top":       testFailedPostHasNoError,
		"an unknown post and a bad key":               testUnknownAndBadKey,
	})
}

// wantJSON ends the test unless the response has a JSON body.
func (a answer) wantJSON(t *testing.T) answer {
	t.Helper()
	if kind := a.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") || !json.Valid([]byte(a.Body)) {
		t.Fatalf("the answer is %v with the type %q, want JSON", a, kind)
	}
	return a
}

// testCommandLine sends a Content-Type with every request, a random id beside the path of a file,
// no settings, and shortLink.
func testCommandLine(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	const kind = "application/json"
	ask := func(method, path string, body any) answer {
		t.Helper()
		return o.do(t, method, path, body, "Content-Type", kind).wantJSON(t)
	}
	file := o.stored(t, "picture.png", png(t))
	at := tomorrow().UTC().Format(time.RFC3339)
	made := read[[]created](t, ask(http.MethodPost, "/posts", m{
		"type": "schedule", "date": at, "shortLink": true, "tags": []any{}, "creationMethod": "CLI",
		"posts": []m{{
			"integration": m{"id": c.id},
			"value": []m{
				{"content": "from the command line", "image": []m{{"id": "x8f2k1", "path": file.Path}}, "delay": 5},
				{"content": "its comment", "image": []m{}, "delay": 5},
			},
		}},
	}).want(t, http.StatusCreated))
	if len(made) != 1 || made[0].PostID == "" || made[0].Integration != c.id {
		t.Fatalf("the post is answered with %+v, want its id and the channel", made)
	}
	full := o.post(t, made[0].PostID)
	if full.CreationMethod != "CLI" || len(full.Media) != 1 || full.Media[0].ID != file.ID {
		t.Errorf("got the method %q and the media %+v, want CLI and %s", full.CreationMethod, full.Media, file.ID)
	}
	query := "?startDate=" + url.QueryEscape(time.Now().AddDate(0, 0, -30).UTC().Format(time.RFC3339)) +
		"&endDate=" + url.QueryEscape(time.Now().AddDate(0, 0, 30).UTC().Format(time.RFC3339)) + "&customer="
	if list := read[[]record](t, ask(http.MethodGet, "/posts"+query, nil).want(t, http.StatusOK)); len(list) != 1 {
		t.Errorf("the list has %d posts, want 1", len(list))
	}
	if list := read[[]channelRecord](t, ask(http.MethodGet, "/integrations", nil).want(t, http.StatusOK)); len(list) != 1 {
		t.Errorf("the list has %d channels, want 1", len(list))
	}
	ask(http.MethodGet, "/integration-settings/"+c.id, nil).want(t, http.StatusOK)
	if got := ask(http.MethodGet, "/posts/"+made[0].PostID+"/missing", nil).want(t, http.StatusOK); strings.TrimSpace(got.Body) != "[]" {
		t.Errorf("the missing content is %v, want []", got)
	}
	ask(http.MethodPut, "/posts/"+made[0].PostID+"/status", m{"status": "draft"}).want(t, http.StatusOK)
	ask(http.MethodPut, "/posts/"+made[0].PostID+"/settings", m{"settings": m{"title": "Kept", "privacy": "public"}}).want(t, http.StatusOK)
	ask(http.MethodPut, "/posts/"+made[0].PostID+"/settings", m{"settings": m{"privacy": "private", "title2": nil}}).want(t, http.StatusOK)
	if got := o.post(t, made[0].PostID).Settings; got["title"] != "Kept" || got["privacy"] != "private" {
		t.Errorf("the settings are %v, want the title kept and another privacy", got)
	}
	ask(http.MethodPut, "/posts/"+made[0].PostID+"/release-id", m{"releaseId": "123"})
	ask(http.MethodPost, "/integration-trigger/"+c.id, m{"methodName": "none", "data": m{}}).refusal(t, http.StatusNotFound)
	gone := ask(http.MethodDelete, "/posts/"+made[0].PostID, nil).want(t, http.StatusOK)
	members(t, gone.raw(), "id")
}

// testN8N sends "" for missing values, like the node.
func testN8N(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	connected := o.get(t, "/is-connected").wantJSON(t).want(t, http.StatusOK)
	if got := string(members(t, connected.raw(), "connected")["connected"]); got != "true" {
		t.Errorf("connected is %s, want true", got)
	}
	file := read[medium](t, o.upload(t, "undefined", png(t)).want(t, http.StatusCreated))
	post := o.create(t, m{
		"type": "schedule", "date": tomorrow().UTC().Format(time.RFC3339), "shortLink": false, "tags": []any{},
		"posts": []m{{
			"integration": m{"id": c.id}, "group": "", "settings": m{},
			"value": []m{{"id": "", "content": "from n8n", "image": []m{{"id": file.ID, "path": file.Path}}}},
		}},
	})
	alias := o
	alias.prefix = "/api/public/v1"
	listed := read[struct{ Posts []record }](t, alias.get(t, "/posts?"+month()).wantJSON(t).want(t, http.StatusOK))
	if len(listed.Posts) != 1 || listed.Posts[0].ID != post {
		t.Errorf("the envelope has %+v, want the post", listed.Posts)
	}
	o.deletes(t, "/posts/", post)
}

// month returns the query for the 30 days around now.
func month() string {
	format := func(days int) string {
		return url.QueryEscape(time.Now().AddDate(0, 0, days).UTC().Format(time.RFC3339))
	}
	return "startDate=" + format(-15) + "&endDate=" + format(15)
}

// testWordPress checks what the plugin counts as failures: a 2xx object with a top-level error, and
// anything that is not JSON.
func testWordPress(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	ok := func(a answer, status int) answer {
		t.Helper()
		a.wantJSON(t).want(t, status)
		if strings.HasPrefix(strings.TrimSpace(a.Body), "{") {
			if _, has := decode[map[string]json.RawMessage](t, a.raw())["error"]; has {
				t.Errorf("the answer has the member error at the top: %v", a)
			}
		}
		return a
	}
	type listed struct{ ID, Identifier, Name string }
	list := read[[]listed](t, ok(o.get(t, "/integrations"), http.StatusOK))
	if len(list) != 1 || list[0].ID != c.id || list[0].Identifier != "sandbox" || list[0].Name == "" {
		t.Fatalf("the channels are %+v, want id, identifier and name", list)
	}
	refused := o.do(t, http.MethodPost, "/upload-from-url", m{"url": "http://127.0.0.1/a.png"}).wantJSON(t)
	if body := decode[map[string]any](t, refused.raw()); refused.Status != 400 || body["message"] == nil {
		t.Errorf("a refused upload is answered with %v, want 400 with a message", refused)
	}
	made := read[[]created](t, ok(o.do(t, http.MethodPost, "/posts", now(c.id, part("from WordPress"))), http.StatusCreated))
	o.reaches(t, made[0].PostID, "PUBLISHED")
	ok(o.get(t, "/posts/"+made[0].PostID), http.StatusOK)
}

// testBridge polls a post in the envelope for its state and its release.
func testBridge(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	post := o.create(t, now(c.id, part("polled")))
	o.reaches(t, post, "PUBLISHED")
	alias := o
	alias.prefix = "/api/public/v1"
	type polled struct {
		ID, State, PublishDate, ReleaseURL, ReleaseID string
		Error                                         *string
		Integration                                   struct{ ID, ProviderIdentifier string }
	}
	list := read[struct{ Posts []polled }](t, alias.get(t, "/posts?"+month()).want(t, http.StatusOK))
	if len(list.Posts) != 1 {
		t.Fatalf("the envelope is %+v, want one post", list)
	}
	p := list.Posts[0]
	if p.ID != post || p.State != "PUBLISHED" || p.PublishDate == "" || p.ReleaseURL == "" || p.ReleaseID == "" ||
		p.Error != nil || p.Integration.ID != c.id || p.Integration.ProviderIdentifier != "sandbox" {
		t.Errorf("the post in the envelope is %+v, want its state, release and channel", p)
	}
}

// testUpdateByID changes a post by its id in value[0].id, and sends tags as strings.
func testUpdateByID(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	body := later(c.id, part("before"))
	body["tags"] = []string{"campaign"}
	body["posts"].([]m)[0]["group"] = "1764115200000" // chosen by the client
	post := o.create(t, body)
	body = later(c.id, m{"id": post, "content": "after", "image": []any{}})
	body["tags"] = []string{"campaign"}
	body["posts"].([]m)[0]["group"] = "post" // sent by its client
	if again := o.create(t, body); again != post {
		t.Errorf("the update is answered with %s, want %s", again, post)
	}
	if got := o.post(t, post).contents(); got != "after" {
		t.Errorf("the post has the content %q, want after", got)
	}
	o.wantCount(t, 1)
}

// testDotNet checks that dates end in Z, so that the client does not read them in the zone of its
// machine.
func testDotNet(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	slot := read[struct{ Date string }](t, o.get(t, "/find-slot/"+c.id).wantJSON(t).want(t, http.StatusOK))
	if at, err := time.Parse("2006-01-02T15:04:05.000Z", slot.Date); err != nil || !at.After(time.Now()) {
		t.Errorf("the slot is %q, %v, want a time to come that ends in Z", slot.Date, err)
	}
	post := o.create(t, later(c.id, part("for .NET")))
	status := o.changeStatus(t, post, m{"status": "draft"}).wantJSON(t).want(t, http.StatusOK)
	if got := read[named](t, status); got.ID != post || got.State != "DRAFT" {
		t.Errorf("the status is answered with %+v, want the post as DRAFT", got)
	}
	o.deletes(t, "/posts/", post)
	group := o.post(t, o.create(t, later(c.id, part("a group")))).Group
	o.do(t, http.MethodDelete, "/posts/group/"+group, nil).wantJSON(t).want(t, http.StatusOK)
	o.deletes(t, "/integrations/", c.id)
}

// testUploadNames uploads pictures with names and types that clients send without looking at the
// file.
func testUploadNames(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	for _, name := range []string{"png", "undefined", "blob", "image", "a.PNG"} {
		for _, kind := range []string{"image/jpeg", "application/octet-stream", "image/png"} {
			file := read[medium](t, o.uploadAs(t, "file", name, kind, png(t)).wantJSON(t).want(t, http.StatusCreated))
			if file.ID == "" || file.Path == "" || file.Path != file.URL || !strings.HasSuffix(file.Path, ".png") {
				t.Errorf("%s as %s: got %+v, want a picture with id, path and url", name, kind, file)
			}
		}
	}
}

func testNotOffered(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	for _, prefix := range []string{"/public/v1", "/api/public/v1"} {
		o.prefix = prefix
		for _, call := range []struct {
			method, path string
			body         any
		}{
			{http.MethodPost, "/generate-video", m{"type": "image-text-slides", "output": "vertical", "customParams": m{}}},
			{http.MethodPost, "/video/function", m{"identifier": "image-text-slides", "functionName": "loadVoices", "params": m{}}},
			{http.MethodGet, "/no-such-route", nil},
		} {
			o.do(t, call.method, call.path, call.body).wantJSON(t).refusal(t, http.StatusNotFound)
			visitor := o
			visitor.key = ""
			visitor.do(t, call.method, call.path, call.body).wantJSON(t).refusal(t, http.StatusNotFound)
		}
	}
}

// testEveryAnswerIsJSON calls the routes that clients call, with a key and without one. They also
// respond with JSON about things that do not exist.
func testEveryAnswerIsJSON(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	for _, prefix := range []string{"/public/v1", "/api/public/v1"} {
		o.prefix = prefix
		visitor := o
		visitor.key = ""
		for _, path := range []string{
			"/integrations", "/groups", "/connectors", "/is-connected", "/posts?page=0", "/posts/none", "/posts/none/missing",
			"/find-slot/none", "/integration-settings/none", "/social/none", "/analytics/none?date=7",
			"/analytics/post/none?date=7", "/notifications?page=0", "/webhooks", "/media", "/tags",
		} {
			if a := o.get(t, path).wantJSON(t); a.Status == http.StatusInternalServerError {
				t.Errorf("GET %s is answered with %v", path, a)
			}
			visitor.get(t, path).wantJSON(t).refusal(t, http.StatusUnauthorized)
		}
	}
}

var clientID255 = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)

func testIDs(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	post := o.create(t, later(c.id, part("ids")))
	file := o.stored(t, "a.png", png(t))
	for what, id := range map[string]string{
		"channel": c.id, "post": post, "group": o.post(t, post).Group, "medium": file.ID,
		"part": o.post(t, post).values()[0].ID,
	} {
		if !clientID255.MatchString(id) {
			t.Errorf("the id of a %s is %q, want %s", what, id, clientID255)
		}
	}
}

func testDraftWithoutDate(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	body := request("draft", tomorrow(), entry(c.id, part("a draft")))
	delete(body, "date")
	o.do(t, http.MethodPost, "/posts", body).wantJSON(t).refusal(t, http.StatusBadRequest)
}

func testFailedPostHasNoError(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	picture := o.stored(t, "a.png", png(t))
	r.fault(t, c, "processing", nil, m{"polls": 1, "then": "failed"})
	post := o.create(t, now(c.id, part("rejected", picture)))
	o.reaches(t, post, "ERROR")
	if _, has := decode[map[string]json.RawMessage](t, o.get(t, "/posts/"+post).raw())["error"]; has {
		t.Error("the record of a failed post has the member error at the top, which clients take for a failed request")
	}
	for _, one := range o.list(t, month()) {
		if one.ID == post && (one.Error == "" || one.State != "ERROR") {
			t.Errorf("the list has %+v, want the state ERROR with its error", one)
		}
	}
}

func testUnknownAndBadKey(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	o.changeStatus(t, "none", m{"status": "draft"}).wantJSON(t).refusal(t, http.StatusNotFound)
	o.do(t, http.MethodDelete, "/posts/none", nil).wantJSON(t).refusal(t, http.StatusNotFound)
	good := o.key
	for _, key := range []string{"", "wrong", "Bearer " + good} {
		o.key = key
		o.get(t, "/integrations").wantJSON(t).refusal(t, http.StatusUnauthorized)
	}
}

// TestClients_RateHeaders checks the headers of the rate limit. A client that finds no reset would
// never call again after the window is used up.
func TestClients_RateHeaders(t *testing.T) {
	t.Parallel()
	o := start(t, map[string]string{"API_LIMIT": "3"}).organization(t)
	for n := range 5 {
		a := o.get(t, "/is-connected").wantJSON(t)
		reset, err := strconv.ParseInt(a.Header.Get("X-RateLimit-Reset"), 10, 64)
		if ahead := time.Until(time.Unix(reset, 0)); err != nil || ahead > time.Minute+time.Second || ahead < -time.Minute {
			t.Errorf("request %d: X-RateLimit-Reset is %q, want Unix seconds within a minute", n, a.Header.Get("X-RateLimit-Reset"))
		}
		if a.Header.Get("X-RateLimit-Limit") != "3" || a.Header.Get("X-RateLimit-Remaining") == "" {
			t.Errorf("request %d: the headers are %v, want the limit and what remains", n, a.Header)
		}
		if n < 3 {
			a.want(t, http.StatusOK)
			continue
		}
		a.refusal(t, http.StatusTooManyRequests)
		if body := decode[struct{ RetryAfter int }](t, a.raw()); body.RetryAfter < 1 || a.Header.Get("Retry-After") == "" {
			t.Errorf("request %d: the refusal is %v, want retryAfter and the header", n, a)
		}
	}
}
