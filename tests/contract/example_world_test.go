package contract

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// exampleDate is the date for which the examples schedule posts.
const exampleDate = "2040-03-01T09:30:00Z"

// exampleDay is a past day in the examples.
const exampleDay = "2026-11-25"

// exampleID returns an id that the examples in the documentation use.
func exampleID(suffix string) string { return "0193b2c4-7d10-7a31-9c55-2f0e6b1a4d" + suffix }

// exampleWorld is an organization that has everything the examples in the documentation name.
type exampleWorld struct {
	org
	// real maps the ids and addresses in the examples to the organization's.
	real map[string]string
}

// startExamples runs a service whose webhooks may call the receiver, and returns the receiver's
// address.
func startExamples(t *testing.T) (*rig, string) {
	t.Helper()
	receiver := httptest.NewServer(&inbox{})
	t.Cleanup(receiver.Close)
	r := startOAuthWith(t, map[string]string{"OUTBOUND_ALLOW": strings.TrimPrefix(receiver.URL, "http://")})
	return r, receiver.URL
}

// exampleWorld creates an organization for one run of all examples.
func (r *rig) exampleWorld(t *testing.T, receiver string) exampleWorld {
	t.Helper()
	w := exampleWorld{org: r.organization(t), real: map[string]string{}}
	w.channels(t)
	w.library(t, receiver)
	w.posts(t)
	w.webhook(t, receiver)
	return w
}

func (w exampleWorld) channels(t *testing.T) {
	t.Helper()
	w.real[exampleID("01")] = w.channel(t, "A").id
	w.real[exampleID("11")] = w.channel(t, "A").id
	w.tenant(t, `insert into customer (org_id, id, name) values ($1, gen_random_uuid(), 'Acme')`, w.who.Org.String())
	w.tenant(t, `update channel set customer_id = (select id from customer where org_id = $1) where id = $2`, w.who.Org.String(), w.real[exampleID("01")])
	w.real[exampleID("03")] = read[[]named](t, w.get(t, "/groups").want(t, http.StatusOK))[0].ID
}

// library creates tags and files.
func (w exampleWorld) library(t *testing.T, receiver string) {
	t.Helper()
	for id, name := range map[string]string{"0c": "Launch", "12": "Winter"} {
		made := w.do(t, http.MethodPost, "/tags", m{"name": name, "color": "#8250df"}).want(t, http.StatusCreated)
		w.real[exampleID(id)] = read[named](t, made).ID
	}
	cat := w.stored(t, "cat.png", png(t))
	w.real[exampleID("0d")], w.real["https://example.com/cat.png"] = cat.ID, cat.URL
	w.real[exampleID("0e")] = w.stored(t, "cat-asleep.jpg", jpg(t)).ID
	w.real["https://example.com/hooks/crier"] = receiver
}

func (w exampleWorld) posts(t *testing.T) {
	t.Helper()
	user := fmt.Sprintf("ivy-%d", w.names.Add(1))
	page := w.connectPage(t, user, user+".news")
	w.real[exampleID("02")] = page.id
	own, cat := w.real[exampleID("01")], medium{ID: w.real[exampleID("0d")]}
	scheduled := func(content string) string {
		body := later(own, part(content, m{"id": cat.ID, "alt": "A cat on a keyboard"}))
		body["date"], body["tags"] = exampleDate, []m{{"value": "launch", "label": "Launch"}}
		return w.create(t, body)
	}
	draft := func() string {
		return w.create(t, request("draft", tomorrow(), entry(page.id, part("We ship today."))))
	}
	w.real[exampleID("04")], w.real[exampleID("0b")] = scheduled("We ship today."), scheduled("A second post.")
	w.real[exampleID("0a")] = w.post(t, scheduled("A third post.")).Group
	w.real[exampleID("06")], w.real[exampleID("07")] = draft(), draft()
	asked := w.do(t, http.MethodPost, "/posts/"+w.real[exampleID("07")]+"/request-approval", m{"note": "Please read this."})
	w.real[exampleID("08")] = read[named](t, asked.want(t, http.StatusCreated)).ID
	w.published(t, page.id)
	w.fault(t, page, "lose_id", m{}, nil)
	w.real[exampleID("09")] = w.create(t, now(page.id, part("Lost")))
	w.reaches(t, w.real[exampleID("09")], "PUBLISHED")
}

// published publishes a post on a page and waits for its notification and for the one about the
// request for approval. It maps the examples' day to yesterday.
func (w exampleWorld) published(t *testing.T, page string) {
	t.Helper()
	w.real[exampleID("13")] = w.create(t, now(page, part("Out now.")))
	w.reaches(t, w.real[exampleID("13")], "PUBLISHED")
	w.real[exampleDay] = daysAgo(1)
	var list struct{ Notifications []m }
	eventually(t, "both notifications", func() bool {
		list = read[struct{ Notifications []m }](t, w.get(t, "/notifications").want(t, http.StatusOK))
		return len(list.Notifications) == 2
	}, func() any { return list })
}

// webhook creates a webhook with one successful delivery.
func (w exampleWorld) webhook(t *testing.T, receiver string) {
	t.Helper()
	made := w.do(t, http.MethodPost, "/webhooks", m{
		"name": "Our server", "url": receiver, "events": []string{"post.published", "post.failed"}, "integrations": []m{{"id": w.real[exampleID("01")]}},
	})
	w.real[exampleID("0f")] = read[named](t, made.want(t, http.StatusCreated)).ID
	path := "/webhooks/" + w.real[exampleID("0f")]
	w.real[exampleID("10")] = read[named](t, w.do(t, http.MethodPost, path+"/test", nil).want(t, http.StatusCreated)).ID
	var log []delivery
	eventually(t, "the delivery", func() bool {
		log = read[[]delivery](t, w.get(t, path+"/deliveries").want(t, http.StatusOK))
		return len(log) == 1 && log[0].State == "delivered"
	}, func() any { return log })
}

// replace returns text with the examples' ids and addresses replaced by the organization's.
func (w exampleWorld) replace(text string) string {
	var pairs []string
	for example, actual := range w.real {
		pairs = append(pairs, example, actual)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// restore is the reverse of replace.
func (w exampleWorld) restore(text string) string {
	var pairs []string
	for example, actual := range w.real {
		pairs = append(pairs, actual, example)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
