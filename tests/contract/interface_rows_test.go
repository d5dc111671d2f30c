package contract

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// refusedWith returns malformed values that are all refused with the same status.
func refusedWith(status int, values ...any) (out []malformed) {
	for _, v := range values {
		out = append(out, malformed{value: v, status: status})
	}
	return out
}

const (
	notThere = "0191d1c5-0000-7000-8000-000000000000" // a valid id that nothing has
	tooLong  = 3000
)

// pathID returns an id in the path as an input. An unknown or invalid id is refused with 404.
func pathID(name string) rowInput {
	return rowInput{name: "path " + name, wrong: refusedWith(404, notThere, "no-id", "1", "%", strings.Repeat("x", tooLong))}
}

var reportDays = refusedWith(400, 0, -1, 366, "x", "1.5", "1e1")

// reportShape checks the shape of both reports.
func reportShape(t *testing.T, a answer) {
	v := members(t, a.raw(), "days", "from", "to", "customer?", "posts", "channels", "byPlatform", "byDay", "recentErrors")
	members(t, v["posts"], "total", "draft", "scheduled", "published", "failed")
	members(t, v["channels"], "total", "active", "disabled", "refreshNeeded")
	for _, p := range elements(t, v["byPlatform"]) {
		members(t, p, "identifier", "channels", "scheduled", "published", "failed")
	}
	for _, d := range elements(t, v["byDay"]) {
		members(t, d, "date", "scheduled", "published", "failed")
	}
	if c, ok := v["customer"]; ok {
		members(t, c, "id", "name")
	}
}

// daysAgo returns the UTC date n days ago.
func daysAgo(n int) string { return time.Now().UTC().AddDate(0, 0, -n).Format(time.DateOnly) }

// withPage returns a function that adds the id of a page of the sandbox to more. It connects the
// page only once, because one address may not connect often.
func withPage(name string, more inputs) func(t *testing.T, o org) inputs {
	var id string
	return func(t *testing.T, o org) inputs {
		if id == "" {
			id = o.connectPage(t, "anna", "anna.shop").id
		}
		return more.with(name, id)
	}
}

// metricsShape checks the shape of the statistics of a sandbox channel.
func metricsShape(t *testing.T, a answer) {
	all := elements(t, a.raw())
	for _, m := range all {
		for _, p := range elements(t, members(t, m, "label", "data", "percentageChange")["data"]) {
			members(t, p, "total", "date")
		}
	}
	if len(all) != 3 {
		t.Errorf("got %d statistics, want the three of the sandbox: %s", len(all), a.Body)
	}
}

// figuresShape checks the shape of a day's figures of a sandbox channel.
func figuresShape(t *testing.T, a answer) {
	members(t, a.raw(), "date", "followers", "impressions", "likes")
}

// withPost returns a function that adds the id of a new post to more, as part of the path.
func withPost(kind string, more inputs) func(t *testing.T, o org) inputs {
	return func(t *testing.T, o org) inputs {
		body := later(o.channel(t, "A").id, part("Words of a post"))
		body["type"] = kind
		return more.with("path id", o.create(t, body))
	}
}

// withChannel returns a function that adds the id of a new channel to more, as part of the path.
func withChannel(more inputs) func(t *testing.T, o org) inputs {
	return func(t *testing.T, o org) inputs { return more.with("path id", o.channel(t, "A").id) }
}

func plain(in inputs) func(*testing.T, org) inputs {
	return func(*testing.T, org) inputs { return in }
}

// object returns a check that the response is an object with these members.
func object(names ...string) func(*testing.T, answer) {
	return func(t *testing.T, a answer) { members(t, a.raw(), names...) }
}

// listOf returns a check that the response is a list of objects with these members.
func listOf(names ...string) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		for _, e := range elements(t, a.raw()) {
			members(t, e, names...)
		}
	}
}

var mediumNames = []string{"id", "url", "path", "name", "originalName?", "thumbnail", "alt", "type?"}

// interfaceRows returns the built routes in the table.
func interfaceRows() map[string]row {
	days := refusedWith(400, "tomorrow", "2040-02-30", "1e9")
	return map[string]row{
		"POST /posts": {
			good: func(t *testing.T, o org) inputs {
				c := o.channel(t, "A")
				return inputs{
					"type": "draft", "date": "2040-01-01T00:00:00Z", "shortLink": false, "tags": []any{}, "inter": 2, "creationMethod": "CLI", "order": "",
					"posts":                  []any{m{"integration": m{"id": c.id}, "value": []any{m{"content": "Words", "image": []any{}, "id": "", "delay": 0}}, "group": "", "settings": m{}}},
					"header Idempotency-Key": c.id,
				}
			},
			status: 201, shape: listOf("postId", "integration"),
			inputs: []rowInput{
				{name: "type", absent: 400, wrong: refusedWith(400, "tomorrow", 1, nil, m{})},
				{name: "date", absent: 400, wrong: append(days, refusedWith(400, 1, nil, "")...)},
				{name: "posts", absent: 400, wrong: refusedWith(400, nil, []any{}, "x", []any{nil}, []any{m{}}, []any{m{"integration": m{"id": notThere}, "value": []any{m{"content": "x"}}}})},
				{name: "shortLink", wrong: refusedWith(400, "maybe", 7)},
				{name: "tags", wrong: refusedWith(400, "x", 1, []any{1})},
				{name: "inter", wrong: refusedWith(400, -1, "x", 0.5)},
				{name: "creationMethod"}, {name: "order"},
				{name: "header Idempotency-Key", wrong: refusedWith(400, strings.Repeat("k", 256))},
			},
		},
		"GET /posts": {
			good:   plain(inputs{"query startDate": "2039-12-01", "query endDate": "2040-02-01T00:00:00Z", "query customer": notThere}),
			status: 200, shape: func(t *testing.T, a answer) {
				for _, item := range elements(t, a.raw()) {
					itemShape(t, item)
				}
			},
			inputs: []rowInput{
				{name: "query startDate", absent: 400, wrong: days}, {name: "query endDate", absent: 400, wrong: days},
				{name: "query customer", wrong: refusedWith(0, "", notThere)},
			},
		},
		"GET /posts/:id":         {good: withPost("schedule", nil), status: 200, shape: fullShape, inputs: []rowInput{pathID("id")}},
		"DELETE /posts/:id":      {good: withPost("schedule", nil), status: 200, shape: object("id"), inputs: []rowInput{pathID("id")}},
		"GET /posts/:id/missing": {good: withPost("schedule", nil), status: 200, shape: listOf("id", "url"), inputs: []rowInput{pathID("id")}},
		"DELETE /posts/group/:group": {
			good: func(t *testing.T, o org) inputs {
				in := withPost("schedule", nil)(t, o)
				return inputs{"path group": o.post(t, in["path id"].(string)).Group}
			},
			status: 200, shape: object("id"), inputs: []rowInput{pathID("group")},
		},
		"PUT /posts/:id/status": {
			good: withPost("draft", inputs{"status": "schedule", "republish": false}), status: 200, shape: object("id", "state"),
			inputs: []rowInput{
				pathID("id"), {name: "status", absent: 400, wrong: refusedWith(400, "now", "", nil, 1, "SCHEDULE")}, {name: "republish", wrong: refusedWith(400, "maybe", 7)},
			},
		},
		"PUT /posts/:id/release-id": {
			good: withPost("draft", inputs{"releaseId": "1234"}), status: 200, shape: object("id", "releaseId"),
			inputs: []rowInput{pathID("id"), {name: "releaseId", absent: 400, wrong: refusedWith(400, "", nil, 7, m{})}},
		},
		"POST /posts/:id/request-approval": {
			good:   withPost("draft", inputs{"note": "Please read this.", "reviewerEmail": "reviewer@crier.test", "autoSchedule": false}),
			status: 201, shape: approvalShape,
			inputs: []rowInput{
				pathID("id"), {name: "note", wrong: refusedWith(400, 7, strings.Repeat("x", 2001))},
				{name: "reviewerEmail", wrong: refusedWith(400, "nobody", 7, "a@b\r\nBcc: c@d.test")}, {name: "autoSchedule", wrong: refusedWith(400, "maybe", 7)},
			},
		},
		"GET /posts/:id/approval": {
			good: withPost("draft", nil), status: 200, shape: object("status"), inputs: []rowInput{pathID("id")},
		},
		"GET /find-slot/:id": {good: withChannel(nil), status: 200, shape: object("date"), inputs: []rowInput{pathID("id")}},
		"POST /upload": {
			good:   func(t *testing.T, _ org) inputs { return inputs{"file file": png(t)} },
			status: 201, shape: object(mediumNames...),
			inputs: []rowInput{{name: "file file", absent: 400, wrong: refusedWith(400, []byte{}, []byte("no picture"), []byte("<svg/>"))}},
		},
		"POST /upload-from-url": {
			good:   func(t *testing.T, o org) inputs { return inputs{"url": o.stored(t, "picture.png", png(t)).URL} },
			status: 201, shape: object(mediumNames...),
			inputs: []rowInput{{name: "url", absent: 400, wrong: refusedWith(400, "", nil, 7, "picture", "ftp://example.com/x", "http://127.0.0.1/x", "http://user:word@example.com/", "http://example.com:8080/x")}},
		},
		"GET /integrations": {
			good:   func(t *testing.T, o org) inputs { o.channel(t, "A"); return inputs{"query group": ""} },
			status: 200, shape: func(t *testing.T, a answer) {
				for _, c := range elements(t, a.raw()) {
					channelShape(t, c)
				}
			},
			inputs: []rowInput{{name: "query group", wrong: refusedWith(0, notThere)}},
		},
		"GET /overview": {
			good: func(t *testing.T, o org) inputs { o.channel(t, "A"); return inputs{"query days": 7} }, status: 200, shape: reportShape,
			inputs: []rowInput{{name: "query days", wrong: reportDays}},
		},
		"GET /customers/:customerId/report": {
			good: func(t *testing.T, o org) inputs {
				o.tenant(t, `insert into customer (org_id, id, name) values ($1, $2, 'Acme') on conflict do nothing`, o.who.Org.String(), notThere)
				return inputs{"query days": "30", "path customerId": notThere}
			},
			status: 200, shape: reportShape,
			inputs: []rowInput{
				{name: "query days", wrong: reportDays},
				{name: "path customerId", wrong: refusedWith(404, "0191d1c5-0000-7000-8000-000000000001", "no-id", "%")},
			},
		},
		"GET /analytics/:integration": {
			good:   withPage("path integration", inputs{"query date": 7}),
			status: 200, shape: metricsShape,
			inputs: []rowInput{
				pathID("integration"),
				{name: "query date", wrong: append(refusedWith(400, 0, -1, 367, "week", "2027-02-30", "3000-01-01", "7.5"), malformed{value: daysAgo(9), status: http.StatusOK})},
			},
		},
		"GET /connectors/:id/analytics": {
			good:   withPage("path id", inputs{"query date": daysAgo(1)}),
			status: 200, shape: figuresShape,
			inputs: []rowInput{
				pathID("id"), {name: "query date", absent: 400, wrong: refusedWith(400, "", 7, "3000-01-01", "2026-11-31", "today")},
			},
		},
		"GET /groups": {good: plain(nil), status: 200, shape: listOf("id", "name")},
		"GET /social/:integration": {
			good: func(t *testing.T, o org) inputs {
				return inputs{"path integration": "sandbox-oauth", "query refresh": ""}
			},
			status: 200, shape: object("url"),
			inputs: []rowInput{
				{name: "path integration", wrong: refusedWith(400, "nowhere", "sandbox", "x")},
				{name: "query refresh", wrong: refusedWith(400, notThere, "no-id")},
			},
		},
		"DELETE /integrations/:id": {good: withChannel(nil), status: 200, shape: object("id"), inputs: []rowInput{pathID("id")}},
		"GET /connectors":          {good: plain(nil), status: 200, shape: connectorShape},
		"POST /connectors/:id/authorize": {
			good:   plain(inputs{"path id": "sandbox-oauth", "force": true}),
			status: 201, shape: object("url"),
			inputs: []rowInput{
				{name: "path id", wrong: append(refusedWith(404, "nowhere", "x"), malformed{value: "sandbox", status: http.StatusBadRequest})},
				{name: "force", wrong: refusedWith(400, "maybe", 7)}, {name: "refresh", wrong: refusedWith(400, notThere, 7)},
			},
		},
		"GET /is-connected":             {good: plain(nil), status: 200, shape: object("connected")},
		"GET /integration-settings/:id": {good: withChannel(nil), status: 200, shape: settingsShape, inputs: []rowInput{pathID("id")}},
		"POST /integration-trigger/:id": {
			good: func(t *testing.T, o org) inputs {
				return inputs{"path id": o.connectPage(t, "anna", "anna.shop").id, "methodName": "topics", "data": m{"query": "c"}}
			},
			status: 201, shape: object("output"),
			inputs: []rowInput{
				pathID("id"), {name: "methodName", absent: 400, wrong: append(refusedWith(404, "post", "Describe"), refusedWith(400, "", nil, 7)...)},
				{name: "data", wrong: refusedWith(400, "x", 7)},
			},
		},
	}
}

func approvalShape(t *testing.T, a answer) {
	t.Helper()
	members(t, a.raw(), "id", "postId", "status", "note", "reviewerNote", "reviewerName", "requestedBy", "requestedAt", "resolvedAt", "expiresAt",
		"reviewUrl", "autoSchedule?")
}

func connectorShape(t *testing.T, a answer) {
	t.Helper()
	for _, c := range elements(t, a.raw()) {
		v := members(t, c, "id", "name", "authorized", "capabilities", "features?", "planned?")
		elements(t, v["capabilities"])
		if string(v["features"]) == "null" {
			t.Errorf("the features are null, want a list: %s", c)
		}
	}
}

func settingsShape(t *testing.T, a answer) {
	t.Helper()
	output := members(t, members(t, a.raw(), "output")["output"], "rules", "maxLength", "lengthUnit?", "settings", "tools")
	for _, tool := range elements(t, output["tools"]) {
		for _, field := range elements(t, members(t, tool, "methodName", "description", "dataSchema")["dataSchema"]) {
			members(t, field, "key", "type", "description")
		}
	}
}
