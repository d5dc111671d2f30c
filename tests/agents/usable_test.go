package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	mostRepairs = 3
	// mostDefinitions is the limit of tools/list in bytes, and mostAnswer that of an answer.
	mostDefinitions = 40_000
	mostAnswer      = 25_000
)

// hints are the annotations of the tools: whether it only reads, may destroy, and is idempotent.
var hints = map[string]struct{ reads, destroys, idempotent bool }{
	"service_list_channels": {reads: true, idempotent: true}, "service_list_groups": {reads: true, idempotent: true},
	"service_get_channel_schema": {reads: true, idempotent: true}, "service_trigger_channel_tool": {destroys: true},
	"service_create_post": {destroys: true}, "service_list_posts": {reads: true, idempotent: true},
	"service_get_post": {reads: true, idempotent: true}, "service_update_post_settings": {idempotent: true},
	"service_change_post_status": {idempotent: true}, "service_delete_post": {destroys: true, idempotent: true},
	"service_upload_from_url": {}, "service_find_slot": {reads: true},
	"service_get_channel_analytics": {reads: true, idempotent: true}, "service_get_overview": {reads: true, idempotent: true},
	"service_request_approval": {}, "service_get_approval_status": {reads: true, idempotent: true},
}

// TestUsable_Definitions checks what a model reads before its first call.
func TestUsable_Definitions(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	a := agent{base: s.base, token: p.grant(t, s.native(t), nil).Access}
	tools := a.tools(t)
	checkNames(t, tools)
	size := 0
	for i, x := range tools {
		size += len(x.raw)
		if len(x.Description) < 60 || len(x.Description) > 1_500 {
			t.Errorf("%s: the description has %d bytes, want 60 to 1,500", x.Name, len(x.Description))
		}
		want := hints[x.Name]
		if x.Annotations == nil {
			t.Errorf("%s has no annotations", x.Name)
		} else {
			destroys := x.Annotations.DestructiveHint == nil && !x.Annotations.ReadOnlyHint || x.Annotations.DestructiveHint != nil && *x.Annotations.DestructiveHint
			if x.Annotations.ReadOnlyHint != want.reads || destroys != want.destroys || x.Annotations.IdempotentHint != want.idempotent {
				t.Errorf("%s: got the annotations %+v (destructive %v), want %+v", x.Name, *x.Annotations, destroys, want)
			}
		}
		if x.InputSchema["type"] != "object" || x.OutputSchema["type"] != "object" {
			t.Errorf("%s: got the types %v and %v, want objects", x.Name, x.InputSchema["type"], x.OutputSchema["type"])
		}
		for _, word := range []string{"anyOf", "oneOf", "allOf", "enum", "not"} {
			if x.InputSchema[word] != nil || x.OutputSchema[word] != nil {
				t.Errorf("%s has a top-level %s", x.Name, word)
			}
		}
		if strings.Contains(string(x.raw), `"$ref"`) || strings.Contains(string(x.raw), `"$defs"`) {
			t.Errorf("%s has a $ref", x.Name)
		}
		lintProperties(t, x.Name, x.InputSchema)
		if !bytesEqual(x.raw, a.tools(t)[i].raw) {
			t.Errorf("%s is another definition, or in another place, in the next answer", x.Name)
		}
	}
	if size > mostDefinitions {
		t.Errorf("the definitions have %d bytes, want at most %d", size, mostDefinitions)
	}
}

func bytesEqual(a, b json.RawMessage) bool { return string(a) == string(b) }

// lintProperties checks that every property has a type and a description, and that every required
// one exists. A property named value may be of any type.
func lintProperties(t *testing.T, where string, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if properties[fmt.Sprint(name)] == nil {
			t.Errorf("%s requires %v, which it does not describe", where, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		at := where + "." + name
		if description, _ := property["description"].(string); len(description) < 10 {
			t.Errorf("%s has no description", at)
		}
		if property["type"] == nil && property["enum"] == nil && property["const"] == nil && property["anyOf"] == nil && name != "value" {
			t.Errorf("%s has no type", at)
		}
		lintProperties(t, at, property)
		if items, ok := property["items"].(map[string]any); ok {
			lintProperties(t, at+"[]", items)
		}
	}
}

// robot is a program that knows only tools/list. It has facts in the words of a person, puts them
// where a schema has a property for them, and repairs a call by what its error says.
type robot struct {
	t       *testing.T
	a       agent
	tools   []tool
	repairs int
}

// facts are what the robot knows, by the meaning in meanings.
type facts map[string]any

// meanings maps a meaning to the names of properties that have it.
var meanings = map[string]*regexp.Regexp{
	"channel": regexp.MustCompile(`(?i)^(integration|channel)(id)?$`), "when": regexp.MustCompile(`(?i)^(date|publishdate)$`),
	"text": regexp.MustCompile(`(?i)^(content|text)$`), "pictures": regexp.MustCompile(`(?i)^(attachments|media|images)$`),
	"kind": regexp.MustCompile(`(?i)^(type|status)$`), "post": regexp.MustCompile(`(?i)^(post)?id$`),
	"from": regexp.MustCompile(`(?i)^startdate$`), "until": regexp.MustCompile(`(?i)^enddate$`), "address": regexp.MustCompile(`(?i)^url$`),
	"note": regexp.MustCompile(`(?i)^note$`), "days": regexp.MustCompile(`(?i)^days$`), "queues": regexp.MustCompile(`(?i)^autoschedule$`),
}

func newRobot(t *testing.T, a agent) *robot {
	t.Helper()
	return &robot{t: t, a: a, tools: a.tools(t)}
}

// do calls the tool whose name has all words. It returns the output after at most mostRepairs
// repairs in all.
func (r *robot) do(words string, known facts) any {
	r.t.Helper()
	x := r.find(words)
	arguments, _ := place(x.InputSchema, known).(m)
	return r.try(x.Name, arguments)
}

// doEach is like do for a tool that takes a list, with an entry for each of the facts.
func (r *robot) doEach(words string, all []facts) any {
	r.t.Helper()
	x := r.find(words)
	arguments := m{}
	properties, _ := x.InputSchema["properties"].(map[string]any)
	for name, property := range properties {
		items, ok := property.(map[string]any)["items"].(map[string]any)
		if !ok || items["properties"] == nil {
			continue
		}
		var list []any
		for _, known := range all {
			list = append(list, place(items, known))
		}
		arguments[name] = list
	}
	return r.try(x.Name, arguments)
}

func (r *robot) find(words string) tool {
	r.t.Helper()
	for _, x := range r.tools {
		has := true
		for _, word := range strings.Fields(words) {
			has = has && strings.Contains(x.Name, word)
		}
		if has {
			return x
		}
	}
	r.t.Fatalf("no tool is named %s", words)
	return tool{}
}

// place returns a value of the schema from the facts: an object with the properties that the facts
// have, or a list with one such object. It returns nil if the facts have none.
func place(schema map[string]any, known facts) any {
	if items, ok := schema["items"].(map[string]any); ok {
		if v := place(items, known); v != nil {
			return []any{v}
		}
		return nil
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return nil
	}
	out := m{}
	for name, property := range properties {
		if v, ok := meant(name, known); ok {
			out[name] = v
		} else if inner, ok := property.(map[string]any); ok {
			if v := place(inner, known); v != nil {
				out[name] = v
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func meant(name string, known facts) (any, bool) {
	for meaning, v := range known {
		if meanings[meaning].MatchString(name) {
			return v, true
		}
	}
	return nil, false
}

// try calls a tool and repairs the call.
func (r *robot) try(name string, arguments m) any {
	r.t.Helper()
	if arguments == nil {
		arguments = m{}
	}
	for {
		got := r.a.call(r.t, name, arguments)
		if len(got.answer.Body) > 2*mostAnswer {
			r.t.Errorf("%s: the answer has %d bytes, want at most %d of text", name, len(got.answer.Body), mostAnswer)
		}
		if !got.IsError {
			var wrapped struct{ Output any }
			decode(r.t, got.text(), &wrapped)
			return wrapped.Output
		}
		wrong := got.mistake(r.t)
		r.repairs++
		r.t.Logf("repair %d: %s %v: %+v", r.repairs, name, arguments, wrong)
		if r.repairs > mostRepairs {
			r.t.Fatalf("%s %v: got %+v after %d repairs", name, arguments, wrong, mostRepairs)
		}
		r.repair(name, arguments, wrong)
	}
}

// repair changes the arguments by field, allowed and next.
func (r *robot) repair(name string, arguments m, wrong mistake) {
	r.t.Helper()
	path := fieldPath(wrong.Field)
	switch {
	case len(wrong.Allowed) > 0 && len(path) > 0:
		replace(arguments, path, func(old any) any { return closest(wrong.Allowed, old) })
	case wrong.Next != nil && wrong.Next.Tool == name:
		maps.Copy(arguments, wrong.Next.Arguments)
	case wrong.Next != nil && len(path) > 0:
		got := r.a.call(r.t, wrong.Next.Tool, wrong.Next.Arguments)
		if got.IsError {
			r.t.Fatalf("the next step %s %v: got %v, want a success", wrong.Next.Tool, wrong.Next.Arguments, got.answer)
		}
		var wrapped struct{ Output any }
		decode(r.t, got.text(), &wrapped)
		replace(arguments, path, func(old any) any { return suitable(wrapped.Output, path, old) })
	case len(path) == 1:
		delete(arguments, path[0]) // the property is unknown
	default:
		r.t.Fatalf("%s %v: nothing in %+v says how to repair the call", name, arguments, wrong)
	}
}

var fieldParts = regexp.MustCompile(`[^.\[\]/]+`)

// fieldPath splits a path such as socialPost[0].date.
func fieldPath(field string) []string {
	return fieldParts.FindAllString(strings.TrimPrefix(field, "arguments."), -1)
}

// replace replaces the value at a path. If the path names a list without an index, it replaces the
// value in every entry. Every entry with the same wrong value gets the same new one.
func replace(value any, path []string, change func(old any) any) {
	switch v := value.(type) {
	case m:
		if len(path) == 1 {
			v[path[0]] = change(v[path[0]])
			return
		}
		replace(v[path[0]], path[1:], change)
	case []any:
		i, err := strconv.Atoi(path[0])
		switch {
		case err != nil:
			for _, x := range v {
				replace(x, path, change)
			}
		case i >= len(v):
		case len(path) == 1:
			v[i] = change(v[i])
		default:
			old := at(v[i], path[1:])
			replace(v[i], path[1:], change)
			for _, x := range v {
				if other := at(x, path[1:]); other != nil && fmt.Sprint(other) == fmt.Sprint(old) {
					replace(x, path[1:], change)
				}
			}
		}
	}
}

// at returns the value at a path, or nil.
func at(value any, path []string) any {
	for _, part := range path {
		switch v := value.(type) {
		case m:
			value = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// closest returns the allowed value that has most in common with the wrong one: the id if it is an
// object.
func closest(allowed []any, old any) any {
	best, most := allowed[0], -1
	for _, x := range allowed {
		text, want := strings.ToLower(fmt.Sprint(x)), strings.ToLower(fmt.Sprint(old))
		common := 0
		if strings.Contains(text, want) || strings.Contains(want, text) {
			common = min(len(text), len(want))
		}
		if common > most {
			best, most = x, common
		}
	}
	if object, ok := best.(map[string]any); ok && object["id"] != nil {
		return object["id"]
	}
	return best
}

// suitable finds in the output of another tool what the property at the path needs: the property
// itself, the id of the object that names the old value, or an address for an attachment.
func suitable(output any, path []string, old any) any {
	last := path[len(path)-1]
	if _, err := strconv.Atoi(last); err == nil && len(path) > 1 {
		last = path[len(path)-2]
	}
	object, _ := output.(map[string]any)
	for _, name := range []string{last, "date", "url", "path", "id"} {
		if v := object[name]; v != nil {
			if _, list := old.([]any); list {
				return []any{v}
			}
			return v
		}
	}
	want := strings.ToLower(fmt.Sprint(old))
	var found any
	walk(output, func(x map[string]any) {
		if found == nil && x["id"] != nil && strings.Contains(strings.ToLower(fmt.Sprint(x)), want) {
			found = x["id"]
		}
	})
	if found != nil {
		return found
	}
	return old
}

// walk visits every object in a value.
func walk(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(v[name], visit)
		}
	case []any:
		for _, x := range v {
			walk(x, visit)
		}
	}
}

// postIDs returns the ids of the posts in an output.
func postIDs(output any) (out []string) {
	walk(output, func(x map[string]any) {
		if id, ok := x["postId"].(string); ok {
			out = append(out, id)
		}
	})
	return out
}

// TestUsable checks that a program that knows only tools/list finishes six recipes, with at most
// three repairs each.
func TestUsable(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	c := p.connect(t)
	p.connect(t) // so that there is a choice
	key := rest{base: s.base, credential: p.key(t)}
	a := agent{base: s.base, token: p.grant(t, s.native(t), nil).Access}
	checkState := func(t *testing.T, want string, ids ...string) {
		t.Helper()
		if len(ids) == 0 {
			t.Error("no post was made")
		}
		for _, id := range ids {
			if got := key.state(t, id); got != want {
				t.Errorf("the post is %s, want %s", got, want)
			}
		}
	}
	for name, recipe := range map[string]func(t *testing.T, r *robot){
		// It knows the channel by its name, and a word of its own for the kind.
		"plan a week of posts": func(t *testing.T, r *robot) {
			var week []facts
			for day := range 7 {
				week = append(week, facts{
					"channel": c.account, "when": in(time.Duration(day+1) * 24 * time.Hour), "text": fmt.Sprintf("Day %d of %s", day, unique("")), "kind": "scheduled",
				})
			}
			made := postIDs(r.doEach("create post", week))
			if len(made) != 7 {
				t.Errorf("got %d posts, want 7", len(made))
			}
			checkState(t, "QUEUE", made...)
		},
		// It attaches the picture by its own address.
		"schedule with a picture from a URL": func(t *testing.T, r *robot) {
			made := postIDs(r.doEach("create post", []facts{{
				"channel": c.id, "when": tomorrow(), "text": unique("A picture "), "kind": "schedule", "pictures": []any{s.pictureURL()},
			}}))
			checkState(t, "QUEUE", made...)
			if got := key.ask(t, http.MethodGet, "/posts/"+made[0], nil); !strings.Contains(got.Body, ".png") {
				t.Errorf("got %v, want the picture", got)
			}
		},
		"submit for approval and wait": func(t *testing.T, r *robot) {
			made := postIDs(r.doEach("create post", []facts{{"channel": c.account, "when": tomorrow(), "text": unique("For approval "), "kind": "draft"}}))
			asked, _ := r.do("request approval", facts{"post": made[0], "note": "May this go out?", "queues": true}).(map[string]any)
			status := func() any {
				got, _ := r.do("approval status", facts{"post": made[0]}).(map[string]any)
				return got["status"]
			}
			if got := status(); got != "PENDING" {
				t.Errorf("before the answer: got %v, want PENDING", got)
			}
			p.want(t, nil, http.MethodPost, fmt.Sprintf("/approvals/%v/resolve", asked["id"]), m{"action": "approve"})
			if got := status(); got != "APPROVED" {
				t.Errorf("after the answer: got %v, want APPROVED", got)
			}
			checkState(t, "QUEUE", made...)
		},
		// Its first date has passed.
		"find a slot and queue": func(t *testing.T, r *robot) {
			slot, _ := r.do("find slot", facts{"channel": c.account}).(map[string]any)
			if slot["date"] == nil || slot["now"] == nil {
				t.Errorf("got the slot %v, want date and now", slot)
			}
			made := postIDs(r.doEach("create post", []facts{{"channel": c.id, "when": "2020-01-01T09:00:00Z", "text": unique("Queued "), "kind": "schedule"}}))
			checkState(t, "QUEUE", made...)
		},
		"change a scheduled post": func(t *testing.T, r *robot) {
			text, next, date := unique("Old text "), unique("New text "), in(72*time.Hour)
			post := key.create(t, "schedule", tomorrow(), c.id, text)
			var found any
			walk(r.do("list posts", facts{"from": in(0), "until": in(10 * 24 * time.Hour)}), func(x map[string]any) {
				if content, _ := x["content"].(string); strings.Contains(content, text) {
					found = x["id"]
				}
			})
			if found != post {
				t.Fatalf("got the post %v in the list, want %s", found, post)
			}
			r.do("update post", facts{"post": post, "text": next, "when": date})
			got := key.ask(t, http.MethodGet, "/posts/"+post, nil)
			if !strings.Contains(got.Body, next) || strings.Contains(got.Body, text) || !strings.Contains(got.Body, date[:19]) {
				t.Errorf("got %v, want the new text at %s", got, date)
			}
			checkState(t, "QUEUE", post)
		},
		"report on a channel": func(t *testing.T, r *robot) {
			r.do("channel analytics", facts{"channel": c.account, "days": "30"})
			if got := r.do("overview", facts{"days": 30}); got == nil {
				t.Error("got no overview")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recipe(t, newRobot(t, a))
		})
	}
}

// TestUsable_RepeatedCall checks that a call repeated after a lost answer makes no second post.
func TestUsable_RepeatedCall(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	c := p.connect(t)
	a := agent{base: s.base, token: p.grant(t, s.native(t), nil).Access}
	for what, arguments := range map[string]m{
		"without a key": {"socialPost": []m{postEntry("draft", tomorrow(), c.id, unique("twice "))}},
		"with a key":    {"socialPost": []m{postEntry("draft", tomorrow(), c.id, unique("twice "))}, "idempotencyKey": unique("key-")},
	} {
		first, second := a.call(t, "service_create_post", arguments), a.call(t, "service_create_post", arguments)
		var one, two struct{ Output any }
		decode(t, first.text(), &one)
		decode(t, second.text(), &two)
		if ids := postIDs(one.Output); first.IsError || second.IsError || len(ids) != 1 || !slices.Equal(ids, postIDs(two.Output)) {
			t.Errorf("%s: got %v and %v, want the same post", what, first.answer, second.answer)
		}
		if !strings.Contains(second.text(), "replayed") {
			t.Errorf("%s: got %s, want replayed in it", what, second.text())
		}
	}
	text := unique("the same text ")
	a.must(t, nil, "service_create_post", m{"socialPost": []m{postEntry("schedule", in(26*time.Hour), c.id, text)}})
	again := m{"socialPost": []m{postEntry("schedule", in(27*time.Hour), c.id, text)}}
	if got := a.call(t, "service_create_post", again); !got.IsError {
		t.Errorf("the same text at another time: got %v, want an error", got.answer)
	}
	again["allowDuplicate"] = true
	a.must(t, nil, "service_create_post", again)
	entries := []m{postEntry("draft", tomorrow(), c.id, unique("fine ")), postEntry("schedule", tomorrow(), c.id, strings.Repeat("long ", 200))}
	before := len(postIDsOf(t, a))
	if got := a.call(t, "service_create_post", m{"socialPost": entries}); !got.IsError {
		t.Errorf("one entry is too long: got %v, want an error", got.answer)
	}
	if after := len(postIDsOf(t, a)); after != before {
		t.Errorf("got %d posts after a call that failed, want %d", after, before)
	}
}

// postIDsOf returns the ids in service_list_posts.
func postIDsOf(t *testing.T, a agent) (out []string) {
	t.Helper()
	var got any
	a.must(t, &got, "service_list_posts", m{"startDate": in(-24 * time.Hour), "endDate": in(10 * 24 * time.Hour)})
	walk(got, func(x map[string]any) {
		if id, ok := x["id"].(string); ok && x["state"] != nil {
			out = append(out, id)
		}
	})
	return out
}
