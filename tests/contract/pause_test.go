package contract

import (
	"net/http"
	"testing"

	"crier/tests/call"
)

// dashboard returns a function that sends requests with a session of the owner.
func (o org) dashboard(t *testing.T) (signedIn func(method, path string, body any) answer) {
	t.Helper()
	token, err := o.app.Accounts.Login(t.Context(), "203.0.113.9", o.email, password)
	if err != nil {
		t.Fatal(err)
	}
	o.prefix, o.key = "", ""
	return func(method, path string, body any) answer {
		t.Helper()
		return o.do(t, method, path, body, "auth", token, "showorg", o.who.Org.String())
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"LATE_GAP": "1s"})

	t.Run("the organization, a group and a channel", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		const acme = "11111111-1111-4111-8111-111111111111"
		o.tenant(t, `with c as (insert into customer (org_id, id, name) values ($1, $2, 'Acme')) update channel set customer_id = $2 where false`, o.who.Org.String(), acme)
		o.tenant(t, `update channel set customer_id = $1`, acme)
		ask := o.dashboard(t)
		paths := []string{"/integrations/" + c.id + "/pause", "/customers/" + acme + "/pause", "/settings/pause"}
		for _, path := range paths {
			ask("PUT", path, m{"paused": true}).want(t, 200)
		}
		id := o.create(t, now(c.id, part("patience")))
		for _, path := range paths {
			if v := o.get(t, "/posts/"+id).object(t); v["state"] != "QUEUE" || len(r.published(t, c)) != 0 {
				t.Fatalf("before %s: %v", path, v)
			}
			ask("PUT", path, m{"paused": false}).want(t, 200)
		}
		o.reaches(t, id, "PUBLISHED")
	})
	t.Run("bad requests", func(t *testing.T) {
		t.Parallel()
		o, other := r.organization(t), r.organization(t)
		theirs := other.channel(t, "A")
		ask := o.dashboard(t)
		for _, path := range []string{"/integrations/" + theirs.id + "/pause", "/integrations/x/pause", "/customers/" + theirs.id + "/pause", "/customers/x/pause"} {
			ask("PUT", path, m{"paused": true}).refusal(t, 404)
		}
		for _, body := range []any{m{}, m{"paused": "yes"}, m{"paused": nil}, "[]", "{"} {
			ask("PUT", "/settings/pause", body).refusal(t, 400)
		}
		o.prefix, o.key = "", ""
		for _, path := range []string{"/integrations/" + theirs.id + "/pause", "/customers/x/pause", "/settings/pause"} {
			o.do(t, http.MethodPut, path, m{"paused": true}).refusal(t, 401)
		}
		other.reaches(t, other.create(t, now(theirs.id, part("untouched"))), "PUBLISHED")
	})
	t.Run("the operator sees the queue", func(t *testing.T) {
		t.Parallel()
		const token = "the operator's secret"
		r := start(t, map[string]string{"SWEEP": "1h", "MONITOR_TOKEN": token}) // without a sweep, posts that become due stay
		o := r.organization(t)
		c, held := o.channel(t, "A"), o.channel(t, "A")
		o.create(t, later(c.id, part("next")))
		kept := o.create(t, later(held.id, part("kept")))
		o.dashboard(t)("PUT", "/integrations/"+held.id+"/pause", m{"paused": true}).want(t, 200)
		look := func(path string) answer {
			a, err := call.Do(t.Context(), r.http, http.MethodGet, base+path, nil, "X-Monitor-Token", token)
			if err != nil {
				t.Fatal(err)
			}
			return answer{a}
		}
		for _, name := range []string{"publish", "post", "sandbox"} {
			got := look("/monitor/queue/"+name).want(t, 200).object(t)
			if got["status"] != "success" || got["message"] == "" || got["due"] != 0.0 || (got["next"] != nil) != (name != "sandbox") {
				t.Fatalf("%v", got)
			}
		}
		r.clock(t, `update post set due = now() where id = $1`, kept)
		if got := look("/monitor/queue/publish").want(t, 200).object(t); got["due"] != 0.0 || got["held"] != 1.0 {
			t.Fatalf("%v", got)
		}
		if got := look("/monitor/queue/nostr").want(t, 200).object(t); got["due"] != 0.0 {
			t.Fatalf("%v", got)
		}
		look("/monitor/queue/nothing").refusal(t, 404)
	})
}
