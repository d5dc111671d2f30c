package contract

import (
	"net/http"
	"testing"

	"crier/tenancy"
	"crier/tests/call"
)

// dashboard returns a function that sends requests with a session of the owner.
func (o org) dashboard(t *testing.T) (signedIn func(method, path string, body any, headers ...string) answer) {
	t.Helper()
	signIn, err := o.app.Accounts.Login(t.Context(), o.email, password, tenancy.Source{
		Client: "203.0.113.9", Site: "203.0.113.9",
	})
	if err != nil {
		t.Fatal(err)
	}
	o.prefix, o.key = "", ""
	return func(method, path string, body any, headers ...string) answer {
		t.Helper()
		return o.do(t, method, path, body, append(headers, "auth", signIn.Session, "showorg", o.who.Org.String())...)
	}
}

// pauses returns a function that pauses or resumes with a session of the owner.
func (o org) pauses(t *testing.T, path string) func(pause bool) paused {
	t.Helper()
	ask := o.dashboard(t)
	return func(pause bool) paused {
		t.Helper()
		return read[paused](t, ask(http.MethodPut, path, m{"paused": pause}).want(t, http.StatusOK))
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	subjects(t, start(t, map[string]string{"CATCH_UP_INTERVAL": "1s"}), map[string]subject{
		"of a channel, a group and the organization": testPause,
		"bad requests are refused":                   testBadPause,
	})
}

func testPause(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	const acme = "11111111-1111-4111-8111-111111111111"
	o.tenant(t, `insert into customer (org_id, id, name) values ($1, $2, 'Acme')`, o.who.Org.String(), acme)
	o.tenant(t, `update channel set customer_id = $1`, acme)
	ask := o.dashboard(t)
	paths := []string{"/integrations/" + c.id + "/pause", "/customers/" + acme + "/pause", "/settings/pause"}
	for _, path := range paths {
		ask(http.MethodPut, path, m{"paused": true}).want(t, http.StatusOK)
	}
	id := o.create(t, now(c.id, part("patience")))
	for _, path := range paths {
		o.wantState(t, id, "QUEUE")
		r.wantTexts(t, c, "")
		ask(http.MethodPut, path, m{"paused": false}).want(t, http.StatusOK)
	}
	o.reaches(t, id, "PUBLISHED")
}

func testBadPause(t *testing.T, r *rig) {
	t.Parallel()
	o, other := r.organization(t), r.organization(t)
	theirs := other.channel(t, "A")
	ask := o.dashboard(t)
	for _, path := range []string{
		"/integrations/" + theirs.id + "/pause", "/integrations/x/pause", "/customers/" + theirs.id + "/pause",
		"/customers/x/pause",
	} {
		ask(http.MethodPut, path, m{"paused": true}).refusal(t, http.StatusNotFound)
	}
	for _, body := range []any{m{}, m{"paused": "yes"}, m{"paused": nil}, "[]", "{"} {
		ask(http.MethodPut, "/settings/pause", body).refusal(t, http.StatusBadRequest)
	}
	o.prefix, o.key = "", ""
	for _, path := range []string{
		"/integrations/" + theirs.id + "/pause", "/customers/x/pause", "/settings/pause",
	} {
		o.do(t, http.MethodPut, path, m{"paused": true}).refusal(t, http.StatusUnauthorized)
	}
	other.reaches(t, other.create(t, now(theirs.id, part("untouched"))), "PUBLISHED")
}

func TestMonitor_OperatorSeesQueue(t *testing.T) {
	t.Parallel()
	const token = "the operator's secret"
	// Without a sweep, due posts stay queued.
	r := start(t, map[string]string{"SWEEP_INTERVAL": "1h", "MONITOR_TOKEN": token})
	o := r.organization(t)
	c, held := o.channel(t, "A"), o.channel(t, "A")
	o.create(t, later(c.id, part("next")))
	kept := o.create(t, later(held.id, part("kept")))
	o.pauses(t, "/integrations/"+held.id+"/pause")(true)
	ask := func(name string) answer {
		t.Helper()
		a, err := call.Do(t.Context(), r.http, http.MethodGet, base+"/monitor/queue/"+name, nil, "X-Monitor-Token", token)
		if err != nil {
			t.Fatal(err)
		}
		return answer{Answer: a}
	}
	stats := func(name string) queue { t.Helper(); return read[queue](t, ask(name).want(t, http.StatusOK)) }
	for _, name := range []string{"publish", "post", "sandbox"} {
		got := stats(name)
		if got.Status != "success" || got.Message == "" || got.Due != 0 {
			t.Fatalf("the queue %s is %+v, want success, a message, and nothing due", name, got)
		}
		if hasNext := got.Next != ""; hasNext != (name != "sandbox") {
			t.Fatalf("the queue %s has the next date %q, want one except for a platform", name, got.Next)
		}
	}
	r.clock(t, `update post set due = now() where id = $1`, kept)
	if got := stats("publish"); got.Due != 0 || got.Held != 1 {
		t.Fatalf("the queue is %+v, want nothing due and 1 held", got)
	}
	if got := stats("nostr"); got.Due != 0 {
		t.Fatalf("the queue of another platform is %+v, want nothing due", got)
	}
	ask("nothing").refusal(t, http.StatusNotFound)
}
