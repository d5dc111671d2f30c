package contract

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// badInput builds bodies for POST /posts that must be refused, for a channel of grade A.
type badInput struct {
	channel string
	medium  medium
}

// whole returns a body with the members in rest.
func (b badInput) whole(rest string) string {
	return `{"type":"schedule","date":"2040-01-01T00:00:00Z",` + rest + `}`
}

func (b badInput) integration() string { return fmt.Sprintf(`"integration":{"id":%q}`, b.channel) }

// one returns a body with one part.
func (b badInput) one(value string) string {
	return b.whole(`"posts":[{` + b.integration() + `,"value":[` + value + `]}]`)
}

// with returns a valid body with one more member.
func (b badInput) with(member string) string {
	return b.whole(`"posts":[{` + b.integration() + `,"value":[{"content":"x"}]}],` + member)
}

// entryWith returns a valid body whose entry has one more member.
func (b badInput) entryWith(member string) string {
	return b.whole(`"posts":[{` + b.integration() + `,"value":[{"content":"x"}],` + member + `}]`)
}

func (b badInput) later(parts ...m) m { return later(b.channel, parts...) }

func (b badInput) posts() []any { return []any{entry(b.channel, part("x"))} }

// picture returns the medium with an alternative text.
func (b badInput) picture(alt any) m { return m{"id": b.medium.ID, "alt": alt} }

// envelope returns bodies that are not creates at all, or have an invalid type or date.
func (b badInput) envelope() map[string]any {
	return map[string]any{
		"no body":            "",
		"nothing but space":  "  ",
		"null":               "null",
		"an array":           "[]",
		"a string":           `"x"`,
		"half an object":     `{"type":"now"`,
		"two objects":        "{} {}",
		"not UTF-8":          "{\"type\":\"\xff\"}",
		"form":               "type=now&date=1",
		"an empty object":    "{}",
		"deep nesting":       strings.Repeat("[", 20000),
		"a deep object":      `{"posts":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5001),
		"no type":            `{"date":"2040-01-01","posts":[{` + b.integration() + `,"value":[{"content":"x"}]}]}`,
		"unknown type":       m{"type": "tomorrow", "date": "2040-01-01", "posts": b.posts()},
		"type null":          m{"type": nil, "date": "2040-01-01", "posts": b.posts()},
		"type in capitals":   m{"type": "NOW", "date": "2040-01-01", "posts": b.posts()},
		"type a number":      m{"type": 1, "date": "2040-01-01", "posts": b.posts()},
		"no date":            m{"type": "now", "posts": b.posts()},
		"no date on a draft": m{"type": "draft", "posts": b.posts()},
		"date empty":         m{"type": "now", "date": "", "posts": b.posts()},
		"date a word":        m{"type": "schedule", "date": "tomorrow", "posts": b.posts()},
		"date a number":      m{"type": "schedule", "date": 1767225600, "posts": b.posts()},
		"date impossible":    m{"type": "schedule", "date": "2040-02-30T00:00:00Z", "posts": b.posts()},
		"date long ago":      m{"type": "schedule", "date": "1066-10-14", "posts": b.posts()},
		"date far away":      m{"type": "schedule", "date": "9999-01-01", "posts": b.posts()},
	}
}

// entries returns creates with invalid entries: their number, channels and groups.
func (b badInput) entries() map[string]any {
	return map[string]any{
		"no posts":            m{"type": "now", "date": "2040-01-01"},
		"posts empty":         b.whole(`"posts":[]`),
		"posts an object":     b.whole(`"posts":{}`),
		"posts of null":       b.whole(`"posts":[null]`),
		"posts of numbers":    b.whole(`"posts":[1,2]`),
		"no channel":          b.whole(`"posts":[{"value":[{"content":"x"}]}]`),
		"channel null":        b.whole(`"posts":[{"integration":null,"value":[{"content":"x"}]}]`),
		"channel a string":    b.whole(`"posts":[{"integration":"` + b.channel + `","value":[{"content":"x"}]}]`),
		"channel empty":       later("", part("x")),
		"channel unknown":     later("nobody", part("x")),
		"channel with NUL":    later("\x00", part("x")),
		"channel id a number": b.whole(`"posts":[{"integration":{"id":1},"value":[{"content":"x"}]}]`),
		"no value":            b.whole(`"posts":[{` + b.integration() + `}]`),
		"value empty":         b.whole(`"posts":[{` + b.integration() + `,"value":[]}]`),
		"value a string":      b.whole(`"posts":[{` + b.integration() + `,"value":"x"}]`),
		"value of null":       b.one("null"),
		"value of a string":   b.one(`"x"`),
		"group a number":      b.entryWith(`"group":1`),
		"100 entries too many": b.whole(`"posts":[` +
			strings.TrimSuffix(strings.Repeat(`{`+b.integration()+`,"value":[{"content":"x"}]},`, 101), ",") + `]`),
	}
}

// contents returns creates whose parts have invalid texts, ids and delays.
func (b badInput) contents() map[string]any {
	return map[string]any{
		"empty text":             b.later(part("")),
		"blank text":             b.later(part(" \n\t ")),
		"empty markup":           b.later(part("<p></p>")),
		"text a number":          b.one(`{"content":1}`),
		"text with NUL":          b.later(part("a\x00b")),
		"text too long":          b.later(part(strings.Repeat("é", 501))),
		"second part too long":   b.later(part("x"), part(strings.Repeat("x", 501))),
		"second part empty":      b.later(part("x"), part("")),
		"text beyond all bounds": b.later(part(strings.Repeat("x", 200_001))),
		"empty draft":            request("draft", tomorrow(), entry(b.channel, part(""))),
		"more than 100 parts":    b.later(make([]m, 101)...),
		"delay negative":         b.later(part("x"), m{"content": "y", "delay": -1}),
		"delay a word":           b.later(part("x"), m{"content": "y", "delay": "soon"}),
		"delay for ever":         b.later(part("x"), m{"content": "y", "delay": 1e9}),
		"delay a fraction":       b.later(part("x"), m{"content": "y", "delay": 0.5}),
		"value id a number":      b.one(`{"id":1,"content":"x"}`),
		"value id unknown":       b.one(`{"id":"x","content":"x"}`),
	}
}

// images returns creates with invalid images.
func (b badInput) images() map[string]any {
	return map[string]any{
		"image a number":        b.one(`{"content":"x","image":[1]}`),
		"image null":            b.one(`{"content":"x","image":[null]}`),
		"image an object":       b.one(`{"content":"x","image":{}}`),
		"image empty":           b.one(`{"content":"x","image":[{}]}`),
		"image an empty string": b.one(`{"content":"x","image":[""]}`),
		"image of another host": b.later(part("x", m{"path": "https://example.com/a.png"})),
		"image of a look-alike host": b.later(part("x", m{
			"path": base + ".evil.example/files/" + strings.Repeat("a", 24) + "/a.png",
		})),
		"image a local file": b.later(part("x", m{"path": "file:///etc/passwd"})),
		"image with a user in its address": b.later(part("x", m{
			"path": strings.Replace(b.medium.URL, "http://", "http://user@evil.example:80/", 1),
		})),
		"five images":                   b.later(part("x", slices.Repeat([]any{b.medium}, 5)...)),
		"41 images":                     b.later(part("x", make([]any, 41)...)),
		"alt too long":                  b.later(part("x", b.picture(strings.Repeat("x", 2001)))),
		"alt too long for the platform": b.later(part("x", b.picture(strings.Repeat("x", 1501)))),
		"alt with NUL":                  b.later(part("x", b.picture("\x00"))),
		"alt a list":                    b.later(part("x", b.picture([]any{}))),
	}
}

// members returns creates with invalid settings, repeats and tags.
func (b badInput) members() map[string]any {
	return map[string]any{
		"settings a list":                   b.entryWith(`"settings":[]`),
		"settings a word":                   b.entryWith(`"settings":"x"`),
		"settings with NUL":                 b.entryWith(`"settings":{"a":"\u0000"}`),
		"settings with NUL in a name":       b.entryWith(`"settings":{"a\u0000":1}`),
		"settings with a number beyond all": b.entryWith(`"settings":{"a":1e999999}`),
		"settings too deep":                 b.entryWith(`"settings":{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`),
		"settings too large":                b.entryWith(`"settings":{"a":"` + strings.Repeat("x", 100_001) + `"}`),
		"repeat for more than a year":       b.with(`"inter":366`),
		"repeat backwards":                  b.with(`"inter":-1`),
		"repeat a fraction":                 b.with(`"inter":1.5`),
		"a count without repeat":            b.with(`"interCount":2`),
		"a negative count":                  b.with(`"inter":1,"interCount":-2`),
		"an end without repeat":             b.with(`"interUntil":"2099-01-01T00:00:00Z"`),
		"an end that is no date":            b.with(`"inter":1,"interUntil":"soon"`),
		"an end before the date":            b.with(`"inter":1,"interUntil":"2001-01-01T00:00:00Z"`),
		"repeat a word":                     b.with(`"inter":"weekly"`),
		"tags a word":                       b.with(`"tags":"x"`),
		"a tag without text":                b.with(`"tags":[{"value":1,"label":2}]`),
		"republish a word":                  b.with(`"republish":"maybe"`),
	}
}

func TestBadInput_IsRefusedAndStoresNothing(t *testing.T) {
	t.Parallel()
	o := start(t, map[string]string{"BODY_LIMIT": "2000", "POST_BODY_LIMIT": "250000"}).organization(t)
	b := badInput{channel: o.channel(t, "A").id, medium: o.stored(t, "a.png", png(t))}
	for _, bodies := range []map[string]any{b.envelope(), b.entries(), b.contents(), b.images(), b.members()} {
		for name, body := range bodies {
			t.Run(name, func(t *testing.T) {
				a := o.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", strings.ReplaceAll(name, " ", "-"))
				msg := a.refusal(t, http.StatusBadRequest)
				if strings.Contains(msg, "SQLSTATE") || strings.Contains(msg, ".go:") {
					t.Errorf("the refusal is %q, want no detail of the implementation", msg)
				}
				if len(a.Body) > 40_000 {
					t.Errorf("the refusal has %d bytes, want at most 40,000", len(a.Body))
				}
			})
		}
	}
	t.Run("a body over the limit", func(t *testing.T) {
		long := b.with(`"order":"` + strings.Repeat("x", 250_000) + `"`)
		o.do(t, http.MethodPost, "/posts", long).refusal(t, http.StatusRequestEntityTooLarge)
		status := `{"status":"draft","x":"` + strings.Repeat("x", 2000) + `"}`
		o.changeStatus(t, "x", status).refusal(t, http.StatusRequestEntityTooLarge)
	})
	o.wantCount(t, 0)
}

func TestUnusualInput_IsAccepted(t *testing.T) {
	t.Parallel()
	o := common(t).organization(t)
	c := o.channel(t, "A")
	picture := o.stored(t, "a.png", png(t))
	dated := func(date string) m {
		body := later(c.id, part("dated"))
		body["date"] = date
		return body
	}
	t.Run("the form of an n8n node", func(t *testing.T) {
		node := entry(c.id, m{"id": "", "content": "n8n", "image": []any{m{"id": "anything", "path": picture.Path}}})
		node["group"], node["settings"] = "", m{"__type": "x", "kept": m{"deep": []any{1, "two", nil}}}
		full := o.accepts(t, request("schedule", tomorrow(), node))
		if got := fmt.Sprint(full.Settings["kept"]); got != "map[deep:[1 two <nil>]]" {
			t.Errorf("the setting kept is %s, want it as sent", got)
		}
		if full.Settings["__type"] != "sandbox" || len(full.Media) != 1 {
			t.Errorf("got the settings %v and the media %+v, want the type sandbox and one file", full.Settings, full.Media)
		}
	})
	t.Run("the form of the CLI", func(t *testing.T) {
		full := o.accepts(t, m{
			"type": "schedule", "date": tomorrow().Format(time.RFC3339), "shortLink": true, "tags": []any{},
			"creationMethod": "CLI", "posts": []any{entry(strings.ToUpper(c.id), m{"content": "cli", "image": []any{}})},
		})
		if full.CreationMethod != "CLI" {
			t.Errorf("the method is %s, want CLI", full.CreationMethod)
		}
	})
	t.Run("tags and unknown members", func(t *testing.T) {
		body := later(c.id, part("tags", picture.ID))
		body["tags"] = []any{"a", m{"value": "b", "label": "b"}}
		body["order"], body["unknown"], body["inter"] = "", m{}, 0
		o.accepts(t, body)
	})
	t.Run("dates without and with an offset", func(t *testing.T) {
		for sent, want := range map[string]string{
			"2040-01-01T10:00:00": "2040-01-01T10:00:00.000Z", "2040-01-01T10:00:00+05:30": "2040-01-01T04:30:00.000Z",
		} {
			if got := o.accepts(t, dated(sent)).Date; got != want {
				t.Errorf("%s is the date %s, want %s", sent, got, want)
			}
		}
	})
	t.Run("a whole character in two escapes", func(t *testing.T) {
		raw := string(encode(t, later(c.id, part("text"))))
		o.accepts(t, strings.Replace(raw, `"text"`, `"\ud83d\ude00 is a whole character"`, 1))
	})
}

// accepts creates a post, checks the shape of its record and returns it.
func (o org) accepts(t *testing.T, body any) record {
	t.Helper()
	a := o.get(t, "/posts/"+o.create(t, body)).want(t, http.StatusOK)
	fullShape(t, a)
	return read[record](t, a)
}

func TestChangeStatus_UnknownPostPrecedesUnknownStatus(t *testing.T) {
	t.Parallel()
	o := common(t).organization(t)
	id := o.create(t, later(o.channel(t, "A").id, part("x")))
	for _, post := range []string{"nope", uuid.NewString()} {
		o.changeStatus(t, post, m{"status": "zz"}).refusal(t, 404)
	}
	o.changeStatus(t, id, m{"status": "zz"}).refusal(t, 400)
}

func TestBadInput_UnstorableTextIsRefused(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	c := o.channel(t, "A")
	person := o
	person.prefix, person.key = "", ""
	login := func(email, password string) answer {
		body := `{"provider":"LOCAL","email":"` + email + `","password":"` + password + `"}`
		return person.do(t, http.MethodPost, "/auth/login", body)
	}
	login(`a\u0000@crier.test`, password).refusal(t, 400)
	login(o.email, `x\u0000`).refusal(t, 400)
	session := login(o.email, password).want(t, 201).Cookie("auth")
	for _, bad := range []string{"%00", "%ff", "a%00b", "%c3%28"} {
		for _, name := range []string{"refresh", "redirectUrl", "externalUrl", "onboarding"} {
			person.do(t, http.MethodGet, "/integrations/social/sandbox?"+name+"="+bad, nil, "auth", session).refusal(t, 400)
		}
		for _, query := range []string{"page=0&customer=", "page=0&group=", "startDate=", "startDate=2026-01-01&endDate="} {
			o.get(t, "/posts?"+query+bad).refusal(t, 400)
		}
		o.get(t, "/integrations?group="+bad).refusal(t, 400)
		o.get(t, "/posts/"+bad).refusal(t, 404)
		o.do(t, http.MethodDelete, "/posts/group/"+bad, nil).refusal(t, 404)
		o.changeStatus(t, bad, m{"status": "draft"}).refusal(t, 404)
		o.changeStatus(t, bad, m{"status": "zz"}).refusal(t, 404)
		person.do(t, http.MethodGet, "/files/"+bad+"/a.png", nil).refusal(t, 404)
	}
	begun := person.do(t, http.MethodGet, "/integrations/social/sandbox", nil, "auth", session)
	state := read[next](t, begun.want(t, http.StatusOK)).URL
	for _, body := range []m{
		{"state": "\x00", "code": "e30="}, {"state": state, "code": "\x00"},
		{"state": state, "code": code(t, o.sandbox, "nul\x00nul", "A")},
	} {
		person.do(t, http.MethodPost, "/integrations/social-connect/sandbox", body).refusal(t, 400)
	}
	body := later(c.id, part("x"))
	body["creationMethod"] = "\x00"
	o.create(t, body) // accepted because it is not stored
	body["tags"] = []any{"\x00"}
	o.do(t, http.MethodPost, "/posts", body).refusal(t, 400)
}
