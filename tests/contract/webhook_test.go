package contract

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// hook is a webhook in an answer.
type hook struct {
	ID, Name, URL, Secret string
	Events                []string
	Integrations          []struct{ Integration struct{ ID, Name string } }
	SecretSet, Disabled   bool
	DisabledReason        *string
}

// delivery is a delivery in an answer.
type delivery struct {
	ID, Event, State, Body string
	PostID                 *string
	Attempts               int
	Log                    []struct{ Status *int }
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
	}](t, sent); tried.Send || tried.Problem == nil || !strings.Contains(*tried.Problem, "not a public one") {
		t.Errorf("got %s, want that it was refused", sent.Body)
	}
	ask(http.MethodDelete, "/webhooks/"+made.ID, nil).want(t, http.StatusOK)
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
