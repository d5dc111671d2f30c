package contract

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"crier/tenancy"
)

// hook is a webhook in a response.
type hook struct {
	ID, Name, URL, Secret string
	Events                []string
	Integrations          []struct{ Integration struct{ ID, Name string } }
	SecretSet, Disabled   bool
	DisabledReason        *string
	PreviousSecretUntil   string
	PreviousSecretsUntil  []string
}

// delivery is a delivery in a response.
type delivery struct {
	ID, Event, State, Body string
	PostID                 *string
	Attempts               int
	Log                    []struct {
		Status *int
		Answer string
	}
}

// inbox is a receiver of webhooks.
type inbox struct {
	mu   sync.Mutex
	got  []http.Header
	body []string
}

func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got, i.body = append(i.got, r.Header.Clone()), append(i.body, string(body))
	if strings.HasPrefix(r.URL.Path, "/talks/") {
		_, _ = io.WriteString(w, "words of the endpoint") // an error means that the receiver left
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	box := &inbox{}
	server := httptest.NewServer(box)
	t.Cleanup(server.Close)
	r := start(t, map[string]string{"OUTBOUND_ALLOW": strings.TrimPrefix(server.URL, "http://"), "ORG_MAX_WEBHOOKS": "3"})
	subjects(t, r, map[string]subject{
		"a webhook lives with a key":     func(t *testing.T, r *rig) { testWebhookLife(t, r, server.URL, box) },
		"a webhook lives with a session": func(t *testing.T, r *rig) { testWebhookSession(t, r, server.URL) },
		"a USER sees no tokens":          func(t *testing.T, r *rig) { testWebhookForUser(t, r, server.URL) },
		"every secret keeps its end":     testWebhookRotation,
		"bad requests are refused":       testBadWebhooks,
		"the limit is refused":           testWebhookLimit,
	})
}

func testWebhookLife(t *testing.T, r *rig, url string, box *inbox) {
	t.Parallel()
	o := r.organization(t)
	c, other := o.channel(t, "A"), o.channel(t, "A")
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 24)))
	made := read[hook](t, o.do(t, http.MethodPost, "/webhooks", m{
		"name": " Mine ", "url": url + "/" + c.id, "integrations": []m{{"id": c.id}}, "events": []string{"post.published"}, "secret": secret,
	}).want(t, http.StatusCreated))
	if made.ID == "" || made.Secret != secret {
		t.Fatalf("got the new webhook %+v, want its id and its secret", made)
	}
	list := o.do(t, http.MethodGet, "/webhooks", nil).want(t, http.StatusOK)
	if strings.Contains(list.Body, "whsec_") || strings.Contains(list.Body, strings.TrimPrefix(secret, "whsec_")) {
		t.Error("the list shows the secret")
	}
	got := read[[]hook](t, list)
	if len(got) != 1 || got[0].Name != "Mine" || !got[0].SecretSet || got[0].Disabled || got[0].Integrations[0].Integration.ID != c.id {
		t.Fatalf("got the list %+v", got)
	}
	o.reaches(t, o.create(t, now(other.id, part("of another channel"))), "PUBLISHED")
	post := o.create(t, now(c.id, part("of the channel")))
	o.reaches(t, post, "PUBLISHED")
	path := "/webhooks/" + made.ID
	var log []delivery
	eventually(t, "the delivery", func() bool {
		log = read[[]delivery](t, o.do(t, http.MethodGet, path+"/deliveries", nil).want(t, http.StatusOK))
		return len(log) == 1 && log[0].State == "delivered"
	}, func() any { return log })
	if d := log[0]; d.Event != "post.published" || *d.PostID != post || d.Attempts != 1 || *d.Log[0].Status != 204 || !strings.Contains(d.Body, "of the channel") {
		t.Errorf("got the delivery %+v", d)
	}

	o.do(t, http.MethodPost, path+"/deliveries/"+log[0].ID+"/replay", nil).want(t, http.StatusCreated)
	tested := read[hook](t, o.do(t, http.MethodPost, path+"/test", nil).want(t, http.StatusCreated))
	eventually(t, "the replay and the test", func() bool {
		log = read[[]delivery](t, o.do(t, http.MethodGet, path+"/deliveries?limit=2", nil).want(t, http.StatusOK))
		return len(log) == 2 && log[0].ID == tested.ID && log[0].State == "delivered" && log[1].Attempts == 2
	}, func() any { return log })
	older := read[[]delivery](t, o.do(t, http.MethodGet, path+"/deliveries?before="+tested.ID, nil).want(t, http.StatusOK))
	if len(older) != 1 || older[0].ID != log[1].ID {
		t.Errorf("got %d deliveries before the test, want the first one", len(older))
	}
	box.mu.Lock()
	calls := 0
	for i, h := range box.got {
		if id := h.Get("webhook-id"); id == log[1].ID || id == tested.ID {
			calls++
			if h.Get("X-Service-Signature") == "" || h.Get("webhook-signature") == "" || box.body[i] == "" {
				t.Errorf("got the call %v without a signature or a body", h)
			}
		}
	}
	box.mu.Unlock()
	if calls != 3 {
		t.Errorf("the receiver got %d calls, want 3", calls)
	}

	rotated := read[hook](t, o.do(t, http.MethodPost, path+"/rotate-secret", nil).want(t, http.StatusCreated))
	if !strings.HasPrefix(rotated.Secret, "whsec_") || rotated.Secret == secret {
		t.Errorf("got the rotated secret %q", rotated.Secret)
	}
	o.do(t, http.MethodPut, path, m{"disabled": true, "name": "Off"}).want(t, http.StatusOK)
	got = read[[]hook](t, o.do(t, http.MethodGet, "/webhooks", nil).want(t, http.StatusOK))
	if got[0].Name != "Off" || !got[0].Disabled || *got[0].DisabledReason != "person" || len(got[0].Events) != 1 {
		t.Errorf("got the changed webhook %+v", got[0])
	}
	o.do(t, http.MethodDelete, path, nil).want(t, http.StatusOK)
	o.do(t, http.MethodGet, path+"/deliveries", nil).refusal(t, http.StatusNotFound)
}

func testWebhookSession(t *testing.T, r *rig, url string) {
	t.Parallel()
	o := r.organization(t)
	ask := o.dashboard(t)
	made := read[hook](t, ask(http.MethodPost, "/webhooks", m{"name": "Mine", "url": url, "integrations": []m{}}).want(t, http.StatusCreated))
	if !strings.HasPrefix(made.Secret, "whsec_") {
		t.Errorf("got the secret %q, want one", made.Secret)
	}
	ask(http.MethodPut, "/webhooks", m{"id": made.ID, "name": "Renamed", "url": url, "integrations": []m{}}).want(t, http.StatusOK)
	if got := read[[]hook](t, ask(http.MethodGet, "/webhooks", nil).want(t, http.StatusOK)); got[0].Name != "Renamed" {
		t.Errorf("got the name %q", got[0].Name)
	}
	sent := ask(http.MethodPost, "/webhooks/send?url="+url, m{"any": "thing"}).want(t, http.StatusCreated)
	if tried := read[struct {
		Send   bool
		Status *int
	}](t, sent); !tried.Send || *tried.Status != 204 {
		t.Errorf("got %s, want that it was sent", sent.Body)
	}
	sent = ask(http.MethodPost, "/webhooks/send?url=https://127.0.0.1:1/", m{}).want(t, http.StatusCreated)
	if tried := read[struct {
		Send    bool
		Problem *string
	}](t, sent); tried.Send || tried.Problem == nil || !strings.Contains(*tried.Problem, "not public") {
		t.Errorf("got %s, want that it was refused", sent.Body)
	}
	ask(http.MethodDelete, "/webhooks/"+made.ID, nil).want(t, http.StatusOK)
}

// testWebhookForUser checks that members who may not change webhooks see neither the path and the
// query of a URL, which may hold a token, nor a response, which can hold anything.
func testWebhookForUser(t *testing.T, r *rig, url string) {
	t.Parallel()
	o := r.organization(t)
	whole := url + "/talks/token-of-the-path?key=token-of-the-query"
	made := read[hook](t, o.do(t, http.MethodPost, "/webhooks", m{"name": "Mine", "url": whole}).want(t, http.StatusCreated))
	path := "/webhooks/" + made.ID + "/deliveries"
	o.do(t, http.MethodPost, "/webhooks/"+made.ID+"/test", nil).want(t, http.StatusCreated)
	eventually(t, "the test", func() bool {
		log := read[[]delivery](t, o.do(t, http.MethodGet, path, nil).want(t, http.StatusOK))
		return len(log) == 1 && log[0].State == "delivered"
	}, func() any { return o.do(t, http.MethodGet, path, nil) })
	key := func(method, path string, body any, _ ...string) answer { return o.do(t, method, path, body) }
	for name, who := range map[string]struct {
		ask         signedIn
		url, answer string
	}{
		"a key":   {ask: key, url: whole, answer: "words of the endpoint"},
		"owner":   {ask: o.dashboard(t), url: whole, answer: "words of the endpoint"},
		"admin":   {ask: o.colleague(t, tenancy.RoleAdmin), url: whole, answer: "words of the endpoint"},
		"a USER":  {ask: o.colleague(t, tenancy.RoleUser), url: url},
		"another": {ask: o.colleague(t, tenancy.RoleUser), url: url},
	} {
		if got := read[[]hook](t, who.ask(http.MethodGet, "/webhooks", nil).want(t, http.StatusOK)); got[0].URL != who.url {
			t.Errorf("%s: got the URL %s, want %s", name, got[0].URL, who.url)
		}
		log := read[[]delivery](t, who.ask(http.MethodGet, path, nil).want(t, http.StatusOK))
		if got := log[0].Log[0]; got.Answer != who.answer || *got.Status != http.StatusOK || log[0].Body == "" {
			t.Errorf("%s: got the delivery %+v, want its body, its status and the answer %q", name, log[0], who.answer)
		}
	}
	ask := o.colleague(t, tenancy.RoleUser)
	for _, path := range []string{"/webhooks", path, "/notifications"} {
		if a := ask(http.MethodGet, path, nil).want(t, http.StatusOK); strings.Contains(a.Body, "token-of-") {
			t.Errorf("%s shows a USER a token: %s", path, a.Body)
		}
	}
}

// testWebhookRotation checks that every response shows when each earlier secret ends, and that no
// secret ends earlier than shown.
func testWebhookRotation(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	made := read[hook](t, o.do(t, http.MethodPost, "/webhooks", m{"name": "x", "url": "https://example.com/"}).want(t, http.StatusCreated))
	path := "/webhooks/" + made.ID
	listed := func() []string {
		t.Helper()
		return read[[]hook](t, o.get(t, "/webhooks").want(t, http.StatusOK))[0].PreviousSecretsUntil
	}
	if got := listed(); len(got) != 0 {
		t.Errorf("got the ends %v of a new webhook, want none", got)
	}
	var ends []string
	grows := func(got hook) {
		t.Helper()
		n := len(ends)
		if len(got.PreviousSecretsUntil) != n+1 || !slices.Equal(got.PreviousSecretsUntil[:n], ends) {
			t.Fatalf("got the ends %v, want %v and one more", got.PreviousSecretsUntil, ends)
		}
		ends = got.PreviousSecretsUntil
		if got := listed(); !slices.Equal(got, ends) {
			t.Errorf("got the ends %v in the list, want %v", got, ends)
		}
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 24)))
	for range 2 {
		got := read[hook](t, o.do(t, http.MethodPost, path+"/rotate-secret", nil).want(t, http.StatusCreated))
		grows(got)
		if got.PreviousSecretUntil != ends[len(ends)-1] {
			t.Errorf("got previousSecretUntil %s, want the last of %v", got.PreviousSecretUntil, ends)
		}
	}
	grows(read[hook](t, o.do(t, http.MethodPut, path, m{"secret": secret}).want(t, http.StatusOK)))
	for _, a := range []answer{
		o.do(t, http.MethodPost, path+"/rotate-secret", nil),
		o.do(t, http.MethodPost, path+"/rotate-secret", m{"secret": strings.Replace(secret, "a", "b", 1)}),
		o.do(t, http.MethodPut, path, m{"secret": strings.Replace(secret, "a", "b", 1), "name": "not stored"}),
	} {
		if text := a.refusal(t, http.StatusConflict); !strings.Contains(text, ends[0]) {
			t.Errorf("got %q, want a sentence that names %s", text, ends[0])
		}
	}
	again := read[hook](t, o.do(t, http.MethodPost, path+"/rotate-secret", m{"secret": secret}).want(t, http.StatusCreated))
	other := read[hook](t, o.do(t, http.MethodPut, path, m{"name": "y"}).want(t, http.StatusOK))
	if again.Secret != secret || !slices.Equal(again.PreviousSecretsUntil, ends) || !slices.Equal(other.PreviousSecretsUntil, ends) {
		t.Errorf("got %+v for the same secret and %+v for another change, want %v", again, other, ends)
	}
}

func testBadWebhooks(t *testing.T, r *rig) {
	t.Parallel()
	o, other := r.organization(t), r.organization(t)
	theirs := other.channel(t, "A")
	good := func(change m) m {
		body := m{"name": "x", "url": "https://example.com/", "disabled": true}
		for name, v := range change {
			if v == nil {
				delete(body, name)
				continue
			}
			body[name] = v
		}
		return body
	}
	for member, values := range map[string][]any{
		"name": {nil, "", " ", strings.Repeat("x", 129), 1, "a\u202eb"},
		"url": {nil, "", "example.com", "http://example.com", "https://", "ftp://example.com", "https://u:p@example.com", "https://example.com/#x",
			"https://exa mple.com", "https://" + strings.Repeat("x", 2100) + ".com"},
		"integrations": {[]m{{"id": theirs.id}}, []m{{"id": "x"}}, "x", []string{"x"}},
		"events":       {[]string{"post.created"}, []string{"webhook.test"}, "post.published", []int{1}},
		"secret":       {"short", "whsec_", "whsec_!", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23)), "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65))},
		"disabled":     {"yes"},
	} {
		for _, v := range values {
			a := o.do(t, http.MethodPost, "/webhooks", good(m{member: v}))
			a.refusal(t, http.StatusBadRequest)
			if strings.Contains(a.Body, "whsec_!") {
				t.Errorf("%s %v: the answer repeats the secret: %s", member, v, a.Body)
			}
		}
	}
	for _, body := range []any{"", "[]", "{", nil} {
		o.do(t, http.MethodPost, "/webhooks", body).refusal(t, http.StatusBadRequest)
	}
	mine := read[hook](t, o.do(t, http.MethodPost, "/webhooks", good(m{})).want(t, http.StatusCreated))
	foreign := read[hook](t, other.do(t, http.MethodPost, "/webhooks", good(m{})).want(t, http.StatusCreated))
	for _, id := range []string{"x", foreign.ID, "018f0000-0000-7000-8000-000000000000"} {
		path := "/webhooks/" + id
		o.do(t, http.MethodPut, path, m{"name": "y"}).refusal(t, http.StatusNotFound)
		o.do(t, http.MethodDelete, path, nil).refusal(t, http.StatusNotFound)
		o.do(t, http.MethodGet, path+"/deliveries", nil).refusal(t, http.StatusNotFound)
		o.do(t, http.MethodPost, path+"/test", nil).refusal(t, http.StatusNotFound)
		o.do(t, http.MethodPost, path+"/rotate-secret", nil).refusal(t, http.StatusNotFound)
		o.do(t, http.MethodPost, path+"/deliveries/x/replay", nil).refusal(t, http.StatusNotFound)
		o.do(t, http.MethodPost, "/webhooks/"+mine.ID+"/deliveries/"+id+"/replay", nil).refusal(t, http.StatusNotFound)
	}
	path := "/webhooks/" + mine.ID
	o.do(t, http.MethodPost, path+"/rotate-secret", m{"secret": "short"}).refusal(t, http.StatusBadRequest)
	o.do(t, http.MethodGet, path+"/deliveries?before=x", nil).refusal(t, http.StatusBadRequest)
	for _, limit := range []string{"0", "51", "x", "-1"} {
		o.do(t, http.MethodGet, path+"/deliveries?limit="+limit, nil).refusal(t, http.StatusBadRequest)
	}
	ask := o.dashboard(t)
	ask(http.MethodPut, "/webhooks", m{"name": "y"}).refusal(t, http.StatusBadRequest)
	ask(http.MethodPut, "/webhooks", m{"id": foreign.ID, "name": "y"}).refusal(t, http.StatusNotFound)
	for _, url := range []string{"", "x", "http://example.com"} {
		ask(http.MethodPost, "/webhooks/send?url="+url, m{}).refusal(t, http.StatusBadRequest)
	}
	ask(http.MethodPost, "/webhooks/send?url=https://127.0.0.1/", "[]").refusal(t, http.StatusBadRequest)
	ask(http.MethodPost, "/webhooks/send?url=https://127.0.0.1/", m{"x": strings.Repeat("x", 20_001)}).refusal(t, http.StatusBadRequest)
}

func testWebhookLimit(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	body := m{"name": "x", "url": "https://example.com/", "disabled": true}
	for range 3 {
		o.do(t, http.MethodPost, "/webhooks", body).want(t, http.StatusCreated)
	}
	o.do(t, http.MethodPost, "/webhooks", body).refusal(t, http.StatusConflict)
}

// TestWebhook_AcceptsPastedValues checks that hidden characters around a URL or a secret are
// ignored.
func TestWebhook_AcceptsPastedValues(t *testing.T) {
	t.Parallel()
	o := common(t).organization(t)
	const secret = "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
	body := m{"name": "pasted", "url": "\u200bhttps://example.com/hook\u00a0\n", "secret": "\u202a" + secret + "\u202c "}
	made := o.do(t, http.MethodPost, "/webhooks", body).want(t, http.StatusCreated)
	if !strings.Contains(made.Body, `"secret":"`+secret+`"`) {
		t.Errorf("got %s, want the secret without hidden characters", made.Body)
	}
	if list := o.do(t, http.MethodGet, "/webhooks", nil).want(t, http.StatusOK); !strings.Contains(list.Body, `"url":"https://example.com/hook"`) {
		t.Errorf("got %s, want the URL without hidden characters", list.Body)
	}
}
