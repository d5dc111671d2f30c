package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestBadInput_IsRefusedAndStoresNothing(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"BODY_LIMIT": "2000", "POST_BODY_LIMIT": "250000"})
	o := r.organization(t)
	c := o.channel(t, "A")
	medium := o.upload(t, "a.png", png(t)).want(t, 201).object(t)
	date := `"date":"2040-01-01T00:00:00Z"`
	in := fmt.Sprintf(`"integration":{"id":%q}`, c.id)
	whole := func(rest string) string { return `{"type":"schedule",` + date + `,` + rest + `}` }
	one := func(value string) string { return whole(`"posts":[{` + in + `,"value":[` + value + `]}]`) }
	with := func(member string) string { return whole(`"posts":[{` + in + `,"value":[{"content":"x"}]}],` + member) }
	entryWith := func(member string) string {
		return whole(`"posts":[{` + in + `,"value":[{"content":"x"}],` + member + `}]`)
	}
	var five []any
	for range 5 {
		five = append(five, medium)
	}
	bad := map[string]any{
		"no body": "", "nothing but space": "  ", "null": "null", "an array": "[]", "a string": `"x"`, "half an object": `{"type":"now"`, "two objects": "{} {}", "not UTF-8": "{\"type\":\"\xff\"}", "form": "type=now&date=1",
		"an empty object": "{}", "deep nesting": strings.Repeat("[", 20000), "a deep object": `{"posts":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5001),
		"no type": `{` + date + `,"posts":[{` + in + `,"value":[{"content":"x"}]}]}`, "unknown type": m{"type": "tomorrow", "date": "2040-01-01", "posts": []any{entry(c.id, part("x"))}}, "type null": m{"type": nil, "date": "2040-01-01", "posts": []any{entry(c.id, part("x"))}},
		"type in capitals": m{"type": "NOW", "date": "2040-01-01", "posts": []any{entry(c.id, part("x"))}}, "type a number": m{"type": 1, "date": "2040-01-01", "posts": []any{entry(c.id, part("x"))}},
		"no date": m{"type": "now", "posts": []any{entry(c.id, part("x"))}}, "no date on a draft": m{"type": "draft", "posts": []any{entry(c.id, part("x"))}}, "date empty": m{"type": "now", "date": "", "posts": []any{entry(c.id, part("x"))}},
		"date a word": m{"type": "schedule", "date": "tomorrow", "posts": []any{entry(c.id, part("x"))}}, "date a number": m{"type": "schedule", "date": 1767225600, "posts": []any{entry(c.id, part("x"))}},
		"date impossible": m{"type": "schedule", "date": "2040-02-30T00:00:00Z", "posts": []any{entry(c.id, part("x"))}}, "date long ago": m{"type": "schedule", "date": "1066-10-14", "posts": []any{entry(c.id, part("x"))}}, "date far away": m{"type": "schedule", "date": "9999-01-01", "posts": []any{entry(c.id, part("x"))}},
		"no posts": m{"type": "now", "date": "2040-01-01"}, "posts empty": whole(`"posts":[]`), "posts an object": whole(`"posts":{}`), "posts of null": whole(`"posts":[null]`), "posts of numbers": whole(`"posts":[1,2]`),
		"no channel": whole(`"posts":[{"value":[{"content":"x"}]}]`), "channel null": whole(`"posts":[{"integration":null,"value":[{"content":"x"}]}]`), "channel a string": whole(`"posts":[{"integration":"` + c.id + `","value":[{"content":"x"}]}]`),
		"channel empty": later("", part("x")), "channel unknown": later("nobody", part("x")), "channel with NUL": later("\x00", part("x")), "channel id a number": whole(`"posts":[{"integration":{"id":1},"value":[{"content":"x"}]}]`),
		"no value": whole(`"posts":[{` + in + `}]`), "value empty": whole(`"posts":[{` + in + `,"value":[]}]`), "value a string": whole(`"posts":[{` + in + `,"value":"x"}]`), "value of null": one("null"), "value of a string": one(`"x"`),
		"empty text": later(c.id, part("")), "blank text": later(c.id, part(" \n\t ")), "empty markup": later(c.id, part("<p></p>")), "text a number": one(`{"content":1}`), "text with NUL": later(c.id, part("a\x00b")),
		"text too long": later(c.id, part(strings.Repeat("é", 501))), "second part too long": later(c.id, part("x"), part(strings.Repeat("x", 501))), "second part empty": later(c.id, part("x"), part("")), "text beyond all bounds": later(c.id, part(strings.Repeat("x", 200_001))),
		"empty draft": request("draft", tomorrow(), entry(c.id, part(""))), "more than 100 parts": later(c.id, make([]m, 101)...),
		"image a number": one(`{"content":"x","image":[1]}`), "image null": one(`{"content":"x","image":[null]}`), "image an object": one(`{"content":"x","image":{}}`), "image empty": one(`{"content":"x","image":[{}]}`), "image an empty string": one(`{"content":"x","image":[""]}`),
		"image of another host": later(c.id, part("x", m{"path": "https://example.com/a.png"})), "image of a look-alike host": later(c.id, part("x", m{"path": base + ".evil.example/files/" + strings.Repeat("a", 24) + "/a.png"})), "image a local file": later(c.id, part("x", m{"path": "file:///etc/passwd"})),
		"image with a user in its address": later(c.id, part("x", m{"path": strings.Replace(medium["url"].(string), "http://", "http://user@evil.example:80/", 1)})), "five images": later(c.id, part("x", five...)), "41 images": later(c.id, part("x", make([]any, 41)...)),
		"alt too long": later(c.id, part("x", m{"id": medium["id"], "alt": strings.Repeat("x", 2001)})), "alt too long for the platform": later(c.id, part("x", m{"id": medium["id"], "alt": strings.Repeat("x", 1501)})), "alt with NUL": later(c.id, part("x", m{"id": medium["id"], "alt": "\x00"})), "alt a list": later(c.id, part("x", m{"id": medium["id"], "alt": []any{}})),
		"delay of the first part": later(c.id, m{"content": "x", "delay": 1}), "delay negative": later(c.id, part("x"), m{"content": "y", "delay": -1}), "delay a word": later(c.id, part("x"), m{"content": "y", "delay": "soon"}), "delay for ever": later(c.id, part("x"), m{"content": "y", "delay": 1e9}), "delay a fraction": later(c.id, part("x"), m{"content": "y", "delay": 0.5}),
		"group unknown": entryWith(`"group":"nowhere"`), "group a number": entryWith(`"group":1`), "settings a list": entryWith(`"settings":[]`), "settings a word": entryWith(`"settings":"x"`), "settings with NUL": entryWith(`"settings":{"a":"\u0000"}`), "settings with NUL in a name": entryWith(`"settings":{"a\u0000":1}`),
		"settings with a number beyond all": entryWith(`"settings":{"a":1e999999}`), "settings too deep": entryWith(`"settings":{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`), "settings too large": entryWith(`"settings":{"a":"` + strings.Repeat("x", 100_001) + `"}`),
		"repeat for more than a year": with(`"inter":366`), "repeat backwards": with(`"inter":-1`), "repeat a fraction": with(`"inter":1.5`), "a count without repeat": with(`"interCount":2`), "a negative count": with(`"inter":1,"interCount":-2`), "an end without repeat": with(`"interUntil":"2099-01-01T00:00:00Z"`), "an end that is no date": with(`"inter":1,"interUntil":"soon"`), "an end before the date": with(`"inter":1,"interUntil":"2001-01-01T00:00:00Z"`), "repeat a word": with(`"inter":"weekly"`), "tags a word": with(`"tags":"x"`), "a tag without text": with(`"tags":[{"value":1,"label":2}]`), "republish a word": with(`"republish":"maybe"`), "100 entries too many": whole(`"posts":[` + strings.TrimSuffix(strings.Repeat(`{`+in+`,"value":[{"content":"x"}]},`, 101), ",") + `]`),
		"value id a number": one(`{"id":1,"content":"x"}`), "value id unknown": one(`{"id":"x","content":"x"}`),
	}
	for name, body := range bad {
		t.Run(name, func(t *testing.T) {
			a := o.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", strings.ReplaceAll(name, " ", "-"))
			msg := a.refusal(t, http.StatusBadRequest)
			if strings.Contains(msg, "SQLSTATE") || strings.Contains(msg, ".go:") || len(a.Body) > 40_000 {
				t.Errorf("%v", a)
			}
		})
	}
	t.Run("a body over the limit", func(t *testing.T) {
		o.do(t, http.MethodPost, "/posts", with(`"order":"`+strings.Repeat("x", 250_000)+`"`)).refusal(t, 413)
		o.do(t, http.MethodPut, "/posts/x/status", `{"status":"draft","x":"`+strings.Repeat("x", 2000)+`"}`).refusal(t, 413)
	})
	if n := o.count(t); n != "0" {
		t.Errorf("%s posts were stored", n)
	}
}

func TestUnusualInput_IsAccepted(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A")
	medium := o.upload(t, "a.png", png(t)).want(t, 201).object(t)
	node := later(c.id, m{"id": "", "content": "n8n", "image": []any{m{"id": "anything", "path": medium["path"]}}})
	node["posts"].([]m)[0]["group"] = ""
	node["posts"].([]m)[0]["settings"] = m{"__type": "x", "kept": m{"deep": []any{1, "two", nil}}}
	cli := m{"type": "schedule", "date": tomorrow().Format(time.RFC3339), "shortLink": true, "tags": []any{}, "creationMethod": "CLI", "posts": []any{m{"integration": m{"id": strings.ToUpper(c.id)}, "value": []any{m{"content": "cli", "image": []any{}}}}}}
	tagged := later(c.id, part("tags", medium["id"]))
	tagged["tags"], tagged["order"], tagged["unknown"], tagged["inter"] = []any{"a", m{"value": "b", "label": "b"}}, "", m{}, 0
	local := later(c.id, part("naive date"))
	local["date"] = "2040-01-01T10:00:00"
	offset := later(c.id, part("offset"))
	offset["date"] = "2040-01-01T10:00:00+05:30"
	lone := later(c.id, part("text"))
	raw := strings.Replace(string(encode(t, lone)), `"text"`, `"\ud800 is half a character"`, 1)
	for name, body := range map[string]any{"node": node, "cli": cli, "tagged": tagged, "local": local, "offset": offset, "lone": raw} {
		id := o.create(t, body)
		full := o.get(t, "/posts/"+id).want(t, 200).object(t)
		fullShape(t, full)
		switch name {
		case "node":
			s := full["settings"].(m)
			if s["__type"] != "sandbox" || fmt.Sprint(s["kept"]) != "map[deep:[1 two <nil>]]" || len(full["media"].([]any)) != 1 {
				t.Errorf("%v", full)
			}
		case "cli":
			if full["creationMethod"] != "CLI" {
				t.Errorf("%v", full)
			}
		case "local":
			if full["date"] != "2040-01-01T10:00:00.000Z" {
				t.Errorf("%v", full)
			}
		case "offset":
			if full["date"] != "2040-01-01T04:30:00.000Z" {
				t.Errorf("%v", full)
			}
		}
	}
}

func TestChangeStatus_UnknownPostPrecedesUnknownStatus(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	id := o.create(t, later(o.channel(t, "A").id, part("x")))
	for _, post := range []string{"nope", uuid.NewString()} {
		o.do(t, http.MethodPut, "/posts/"+post+"/status", m{"status": "zz"}).refusal(t, 404)
	}
	o.do(t, http.MethodPut, "/posts/"+id+"/status", m{"status": "zz"}).refusal(t, 400)
}

func TestBadInput_UnstorableTextIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A")
	person := o
	person.prefix, person.key = "", ""
	login := func(email, password string) answer {
		return person.do(t, http.MethodPost, "/auth/login", `{"provider":"LOCAL","email":"`+email+`","password":"`+password+`"}`)
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
		o.do(t, http.MethodPut, "/posts/"+bad+"/status", m{"status": "draft"}).refusal(t, 404)
		o.do(t, http.MethodPut, "/posts/"+bad+"/status", m{"status": "zz"}).refusal(t, 404)
		person.do(t, http.MethodGet, "/files/"+bad+"/a.png", nil).refusal(t, 404)
	}
	state := person.do(t, http.MethodGet, "/integrations/social/sandbox", nil, "auth", session).want(t, 200).object(t)["url"].(string)
	for _, body := range []m{
		{"state": "\x00", "code": "e30="}, {"state": state, "code": "\x00"}, {"state": state, "code": code(t, o.sandbox, "nul\x00nul", "A")},
	} {
		person.do(t, http.MethodPost, "/integrations/social-connect/sandbox", body).refusal(t, 400)
	}
	body := later(c.id, part("x"))
	body["tags"], body["creationMethod"] = []any{"\x00"}, "\x00"
	o.create(t, body) // neither is kept
}
