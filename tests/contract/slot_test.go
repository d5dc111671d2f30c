package contract

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// slot is the response of find-slot.
type slot struct{ Date time.Time }

// queuePlan holds the posting times of a channel.
type queuePlan struct {
	Time []struct {
		Time int
		Days []int
	}
	Timezone string
	Next     []time.Time
}

func (p queuePlan) minutes() (out []int) {
	for _, t := range p.Time {
		out = append(out, t.Time)
	}
	return out
}

func TestSlots(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"a plan is set and read with a key and with a session": testQueuePlan,
		"a plan in UTC becomes one of the channel's zone":      testTimesOfUTC,
		"plans that are not valid are refused":                 testBadPlans,
		"slots are found with a key and with a session":        testFindSlot,
		"without a slot the answer has the reason":             testNoSlot,
	})
}

func testQueuePlan(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	id, _ := o.zone(t, o.account(), "Europe/Berlin")
	path := "/integrations/" + id + "/queue-plan"
	shown := o.get(t, path).want(t, http.StatusOK)
	members(t, shown.raw(), "time", "timezone", "next")
	fresh := read[queuePlan](t, shown)
	if !slices.Equal(fresh.minutes(), []int{560, 850, 1140}) || fresh.Timezone != "Europe/Berlin" || len(fresh.Next) != 10 {
		t.Errorf("a new channel has the plan %+v, want 09:20, 14:10 and 19:00 in Berlin and ten next times", fresh)
	}
	unset, _ := o.zone(t, o.account(), nil)
	if p := read[queuePlan](t, o.get(t, "/integrations/"+unset+"/queue-plan")); !slices.Equal(p.minutes(), []int{120, 400, 700}) || p.Timezone != "UTC" {
		t.Errorf("a new channel without a zone has the plan %+v, want 02:00, 06:40 and 11:40 in UTC", p)
	}
	body := m{"time": []any{m{"time": 600, "days": []int{5, 1}, "label": "x"}, m{"time": 30}}, "timezone": "Asia/Tokyo", "unknown": 1}
	session := o.dashboard(t)
	for name, put := range map[string]func() answer{
		"with a key":     func() answer { return o.do(t, http.MethodPut, path, body) },
		"with a session": func() answer { return session(http.MethodPut, path, body) },
	} {
		changed := put().want(t, http.StatusOK)
		got := read[queuePlan](t, changed)
		if !slices.Equal(got.minutes(), []int{30, 600}) || got.Timezone != "Asia/Tokyo" || got.Time[0].Days != nil || !slices.Equal(got.Time[1].Days, []int{1, 5}) {
			t.Errorf("%s: the plan is %+v, want 00:30 of every day and 10:00 of Monday and Friday in Tokyo", name, got)
		}
		for _, at := range got.Next {
			if at = at.UTC(); at.Hour() != 15 && at.Hour() != 1 || at.Before(time.Now()) {
				t.Errorf("%s: %v is a next time, want one of Tokyo to come", name, at)
			}
		}
		if again := o.get(t, path).want(t, http.StatusOK); again.Body != changed.Body {
			t.Errorf("%s: the plan is read as %s, want %s", name, again.Body, changed.Body)
		}
		if again := session(http.MethodGet, path, nil).want(t, http.StatusOK); again.Body != changed.Body {
			t.Errorf("%s: the plan is read in a session as %s, want %s", name, again.Body, changed.Body)
		}
	}
	o.do(t, http.MethodPut, path, m{"time": []any{}}).want(t, http.StatusOK)
	if got := o.get(t, path).want(t, http.StatusOK).Body; strings.TrimSpace(got) != `{"time":[],"timezone":"Asia/Tokyo","next":[]}` {
		t.Errorf("an empty plan is read as %s", got)
	}
	theirs := r.organization(t)
	for _, other := range []string{path, "/integrations/x/queue-plan"} {
		theirs.get(t, other).refusal(t, http.StatusNotFound)
		theirs.do(t, http.MethodPut, other, m{"time": []any{m{"time": 1}}}).refusal(t, http.StatusNotFound)
	}
}

func testTimesOfUTC(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	id, _ := o.zone(t, o.account(), "+05:30")
	session := o.dashboard(t)
	set := func(body m, want ...int) {
		t.Helper()
		changed := session(http.MethodPost, "/integrations/"+id+"/time", body).want(t, http.StatusCreated)
		if got := members(t, changed.raw(), "id"); string(got["id"]) != `"`+id+`"` {
			t.Errorf("the answer is %s, want the id", changed.Body)
		}
		if p := read[queuePlan](t, o.get(t, "/integrations/"+id+"/queue-plan")); !slices.Equal(p.minutes(), want) {
			t.Errorf("after %v the plan is %+v, want %v", body, p, want)
		}
	}
	set(m{"time": []any{m{"time": 120}, m{"time": 400}}}, 450, 730)
	// As clients compute it: the minutes of their clock minus its offset.
	set(m{"time": []any{m{"time": -40}}}, 290)
	set(m{"time": []any{m{"time": 120}}, "timezone": "UTC"}, 120)
	set(m{"time": []any{m{"time": 120}}, "timezone": ""}, 120)
	theirs := r.organization(t).dashboard(t)
	theirs(http.MethodPost, "/integrations/"+id+"/time", m{"time": []any{}}).refusal(t, http.StatusNotFound)
	session(http.MethodPost, "/integrations/"+id+"/time", m{"time": []any{m{"time": 99999}}}).refusal(t, http.StatusBadRequest)
}

func testBadPlans(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	path := "/integrations/" + c.id + "/queue-plan"
	before := read[queuePlan](t, o.get(t, path).want(t, http.StatusOK))
	var many []any
	for i := range 101 {
		many = append(many, m{"time": i})
	}
	for name, body := range map[string]any{
		"no body": "", "null": "null", "an array": "[]", "no times": m{}, "times null": m{"time": nil}, "times a word": m{"time": "noon"},
		"a number": m{"time": []any{560}}, "an entry without time": m{"time": []any{m{"days": []int{1}}}},
		"a time that is a word": m{"time": []any{m{"time": "09:20"}}}, "half a minute": m{"time": []any{m{"time": 9.5}}},
		"a minute before the day": m{"time": []any{m{"time": -1}}}, "a minute after it": m{"time": []any{m{"time": 1440}}},
		"no day": m{"time": []any{m{"time": 1, "days": []int{}}}}, "an eighth day": m{"time": []any{m{"time": 1, "days": []int{7}}}},
		"a negative day": m{"time": []any{m{"time": 1, "days": []int{-1}}}}, "days a word": m{"time": []any{m{"time": 1, "days": "monday"}}},
		"too many times": m{"time": many}, "an unknown zone": m{"time": []any{}, "timezone": "Mars/Olympus"}, "a zone that is a number": m{"time": []any{}, "timezone": 60},
	} {
		if a := o.do(t, http.MethodPut, path, body); a.Status != http.StatusBadRequest {
			t.Errorf("%s is answered with %v, want 400", name, a)
		} else {
			a.refusal(t, http.StatusBadRequest)
		}
	}
	after := read[queuePlan](t, o.get(t, path).want(t, http.StatusOK))
	if !slices.Equal(after.minutes(), before.minutes()) || after.Timezone != before.Timezone {
		t.Errorf("the plan is %+v, want %+v as before", after, before)
	}
	if msg := o.do(t, http.MethodPut, path, m{"time": []any{m{"time": 1440}}}).refusal(t, http.StatusBadRequest); !strings.Contains(msg, "time.0.time") {
		t.Errorf("the refusal is %q, want it to name time.0.time", msg)
	}
}

func testFindSlot(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	first, second := o.channel(t, "A"), o.channel(t, "A")
	for _, c := range []channel{first, second} {
		o.do(t, http.MethodPut, "/integrations/"+c.id+"/queue-plan", m{"time": []any{m{"time": 0}, m{"time": 720}}}).want(t, http.StatusOK)
	}
	session := o.dashboard(t)
	var found []time.Time
	keep := func(a answer) {
		t.Helper()
		members(t, a.want(t, http.StatusOK).raw(), "date")
		if !strings.HasSuffix(strings.TrimSpace(a.Body), `Z"}`) {
			t.Errorf("the answer is %s, want a time of UTC with Z", a.Body)
		}
		found = append(found, read[slot](t, a).Date)
	}
	keep(o.get(t, "/find-slot/"+first.id))
	keep(session(http.MethodGet, "/posts/find-slot/"+first.id, nil))
	keep(o.get(t, "/find-slot"))
	keep(session(http.MethodGet, "/posts/find-slot", nil))
	for i := 1; i < len(found); i++ {
		if want := found[0].Add(time.Duration(i) * 12 * time.Hour); !found[i].Equal(want) {
			t.Errorf("call %d found %v, want %v", i, found[i], want)
		}
	}
	if until := time.Until(found[0]); until <= 0 || until > 12*time.Hour {
		t.Errorf("the first slot is in %v, want within half a day", until)
	}
	o.create(t, request("schedule", found[0], entry(first.id, part("at the slot"))))
	o.wantCount(t, 1)
	if got := read[slot](t, o.get(t, "/find-slot/"+first.id).want(t, http.StatusOK)).Date; !got.Equal(found[3].Add(12 * time.Hour)) {
		t.Errorf("after a post the slot is %v, want the one after %v", got, found[3])
	}
}

func testNoSlot(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	session := o.dashboard(t)
	for _, path := range []string{"/find-slot", "/posts/find-slot"} {
		get := o.get
		if strings.HasPrefix(path, "/posts") {
			get = func(_ *testing.T, path string) answer { return session(http.MethodGet, path, nil) }
		}
		get(t, path).refusal(t, http.StatusConflict) // the channel does not exist
		get(t, path+"/x").refusal(t, http.StatusNotFound)
		get(t, path+"/11111111-1111-4111-8111-111111111111").refusal(t, http.StatusNotFound)
	}
	c := o.channel(t, "A")
	theirs := r.organization(t)
	theirs.get(t, "/find-slot/"+c.id).refusal(t, http.StatusNotFound)
	o.do(t, http.MethodPut, "/integrations/"+c.id+"/queue-plan", m{"time": []any{}}).want(t, http.StatusOK)
	if msg := o.get(t, "/find-slot/"+c.id).refusal(t, http.StatusConflict); !strings.Contains(msg, "queue plan") {
		t.Errorf("the refusal is %q, want it to say what to do", msg)
	}
}
