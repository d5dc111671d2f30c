package sandbox

import (
	"testing"
)

const aPost = `{"text":"hello"}`

func (r *rig) script(body string) string {
	r.t.Helper()
	return r.want(201, "POST", "/_sim/faults", "", body).text("id")
}

func (r *rig) fault(id string) map[string]any {
	r.t.Helper()
	for _, f := range r.want(200, "GET", "/_sim/faults", "", "").body["faults"].([]any) {
		if f := f.(map[string]any); f["id"] == id {
			return f
		}
	}
	r.t.Fatalf("there is no fault %s", id)
	return nil
}

func (r *rig) waitHeld(id string, n float64) {
	r.t.Helper()
	eventually(r.t, "requests held", func() bool { return r.fault(id)["held"] == n })
}

func TestHold_ActsWhenReleased(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	id := r.script(`{"match":{"path":"/api/posts"},"action":"hold","times":3}`)

	gone := r.raw("POST", "/api/posts", tok, aPost)
	r.waitHeld(id, 1)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	r.waitHeld(id, 0)
	if n := len(r.published("c")); n != 0 {
		t.Fatalf("a client that disconnected published %d posts, want none", n)
	}
	for _, end := range []func(){
		func() { r.want(200, "POST", "/_sim/faults/"+id+"/release", "", "") },
		func() { r.want(204, "DELETE", "/_sim/faults", "", "") },
	} {
		before := len(r.published("c"))
		waits := r.raw("POST", "/api/posts", tok, aPost)
		r.waitHeld(id, 1)
		if n := len(r.published("c")); n != before {
			t.Fatalf("%d posts while the request is held, want %d", n, before)
		}
		end()
		if res := r.answered(waits); res == nil || res.StatusCode != 201 {
			t.Fatalf("the released request was answered with %v, want 201", res)
		}
		if n := len(r.published("c")); n != before+1 {
			t.Fatalf("%d posts after the release, want %d", n, before+1)
		}
	}
}

func TestHold_UploadEndsWhenItsClientDisconnects(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	id := r.script(`{"match":{"path":"/api/m*"},"action":"hold"}`)
	gone := r.raw("POST", "/api/media", tok, string(dot(t)))
	r.waitHeld(id, 1)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	r.waitHeld(id, 0)
	eventually(t, "the upload is removed", func() bool { return len(mediaFiles(t, r.p.dir)) == 0 })
}

func TestClose_EndsHeldRequestsWithoutActing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir, Options{})
	tok := r.join("c", "C")
	id := r.script(`{"match":{"path":"/api/posts"},"action":"hold"}`)
	waits := r.raw("POST", "/api/posts", tok, aPost)
	r.waitHeld(id, 1)
	if err := r.p.Close(); err != nil {
		t.Fatal(err)
	}
	if res := r.answered(waits); res != nil {
		t.Errorf("the held request was answered with %v, want no answer", res.Status)
	}
	if n := len(start(t, dir, Options{}).published("c")); n != 0 {
		t.Errorf("%d posts, want none", n)
	}
}

func TestHoldAnswer_ActsBeforeTheRelease(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	id := r.script(`{"account":"c","action":"hold_answer","times":2}`)
	for n, leave := range []bool{false, true} {
		conn := r.raw("POST", "/api/posts", tok, aPost)
		r.waitHeld(id, 1)
		if got := len(r.published("c")); got != n+1 {
			t.Fatalf("%d posts while the answer is held, want %d", got, n+1)
		}
		if leave {
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			r.waitHeld(id, 0)
			continue
		}
		if a := r.want(200, "POST", "/_sim/faults/"+id+"/release", "", ""); a.body["released"] != 1.0 {
			t.Errorf("got %s, want 1 released", a.raw)
		}
		if res := r.answered(conn); res == nil || res.StatusCode != 201 {
			t.Fatalf("the released request was answered with %v, want 201", res)
		}
	}
	if n := len(r.published("c")); n != 2 {
		t.Errorf("%d posts, want 2", n)
	}
}

func TestFaults_ResponseAndEffect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault      string
		status     int // 0 if there is no response
		retryAfter string
		published  int
	}{
		"drop_answer acts and closes the connection": {fault: `{"action":"drop_answer"}`, published: 1},
		"error_after acts":                           {fault: `{"action":"error_after"}`, status: 500, published: 1},
		"error_before does not act":                  {fault: `{"action":"error_before"}`, status: 500},
		"slow acts":                                  {fault: `{"action":"slow","ms":1}`, status: 201, published: 1},
		"rate_limit does not act":                    {fault: `{"action":"rate_limit"}`, status: 429},
		"rate_limit has a Retry-After":               {fault: `{"action":"rate_limit","retryAfter":7}`, status: 429, retryAfter: "7"},
		"rate_limit has a Retry-After of zero":       {fault: `{"action":"rate_limit","retryAfter":0}`, status: 429, retryAfter: "0"},
		"expire_token does not act":                  {fault: `{"action":"expire_token"}`, status: 401},
		"a matching body fires": {
			fault:  `{"action":"error_before","match":{"method":"POST","path":"/api/posts","contains":"hello"}}`,
			status: 500,
		},
		"another body does not":                  {fault: `{"action":"error_before","match":{"contains":"welcome"}}`, status: 201, published: 1},
		"another method does not":                {fault: `{"action":"error_before","match":{"method":"DELETE"}}`, status: 201, published: 1},
		"another path does not":                  {fault: `{"action":"error_before","match":{"path":"/api/post"}}`, status: 201, published: 1},
		"another account does not":               {fault: `{"account":"d","action":"error_before"}`, status: 201, published: 1},
		"the second request is not the first":    {fault: `{"action":"error_before","match":{"nth":2}}`, status: 201, published: 1},
		"processing leaves posts alone":          {fault: `{"action":"processing","polls":1}`, status: 201, published: 1},
		"the first request of its account fires": {fault: `{"account":"c","action":"error_before","match":{"nth":1}}`, status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := start(t, dir, Options{})
			tok := r.join("c", "C")
			r.script(c.fault)
			res := r.answered(r.raw("POST", "/api/posts", tok, aPost))
			switch {
			case c.status == 0 && res != nil:
				t.Errorf("answered with %s, want no answer", res.Status)
			case c.status != 0 && (res == nil || res.StatusCode != c.status || res.Header.Get("Retry-After") != c.retryAfter):
				t.Errorf("answered with %v, want %d and the Retry-After %q", res, c.status, c.retryAfter)
			}
			if n := len(r.published("c")); n != c.published {
				t.Errorf("%d posts, want %d", n, c.published)
			}
			if err := r.p.Close(); err != nil {
				t.Fatal(err)
			}
			if n := len(start(t, dir, Options{}).published("c")); n != c.published {
				t.Errorf("%d posts after a restart, want %d", n, c.published)
			}
		})
	}
}

func TestFaults_CountRequestsAndEnd(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	id := r.script(`{"match":{"method":"POST","path":"/api/posts","nth":2},"action":"error_before","times":2}`)
	next := r.script(`{"match":{"method":"POST","path":"/api/posts","nth":3},"action":"rate_limit"}`)
	for n, status := range []int{201, 500, 500, 429, 201} {
		if a := r.do("POST", "/api/posts", tok, aPost); a.status != status {
			t.Errorf("request %d: got %d, want %d", n+1, a.status, status)
		}
	}
	if f := r.fault(id); f["seen"] != 5.0 || f["fired"] != 2.0 {
		t.Errorf("the first fault is %v, want 5 seen and 2 fired", f)
	}
	if f := r.fault(next); f["seen"] != 5.0 || f["fired"] != 1.0 {
		t.Errorf("the second fault is %v, want 5 seen and 1 fired", f)
	}
}

func TestDeleteFaults_OfOneAccountKeepsTheOthers(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	first, second := r.join("first", "C"), r.join("second", "C")
	held := r.script(`{"account":"first","action":"hold"}`)
	kept := r.script(`{"account":"second","action":"error_before"}`)
	waits := r.raw("POST", "/api/posts", first, aPost)
	r.waitHeld(held, 1)
	r.want(204, "DELETE", "/_sim/faults?account=first", "", "")
	if res := r.answered(waits); res == nil || res.StatusCode != 201 {
		t.Fatalf("the held request was answered with %v, want 201", res)
	}
	if got := r.fault(kept)["fired"]; got != 0.0 {
		t.Fatalf("the fault of the other account fired %v times, want 0", got)
	}
	r.want(500, "POST", "/api/posts", second, aPost)
}

func TestFaults_MatchTheAccountOfASession(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	r.join("c", "C")
	refresh := `{"refreshToken":"` + r.signIn("c").text("refreshToken") + `"}`
	r.script(`{"account":"d","match":{"path":"/api/session*"},"action":"error_before","times":9}`)
	r.script(`{"account":"c","match":{"path":"/api/session*"},"action":"error_before","times":2}`)
	r.want(500, "POST", "/api/session", "", `{"name":"c","password":"pw"}`)
	r.want(500, "POST", "/api/session/refresh", "", refresh)
	r.want(200, "POST", "/api/session/refresh", "", refresh)
}

func TestExpireToken_SurvivesRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir, Options{})
	tok := r.join("c", "C")
	r.script(`{"action":"expire_token"}`)
	for range 2 {
		if a := r.want(401, "GET", "/api/me", tok, ""); a.code() != "token_expired" {
			t.Errorf("got %s, want token_expired", a.raw)
		}
	}
	if err := r.p.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, dir, Options{}).want(401, "GET", "/api/me", tok, "")
}

func TestProcessing_CountsPollsAcrossRestart(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"ready", "failed"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := start(t, dir, Options{})
			tok := r.join("c", "C")
			r.script(`{"action":"processing","polls":2,"then":"` + end + `"}`)
			id := r.upload(tok).text("id")
			use := `{"media":[{"id":"` + id + `"}]}`
			if a := r.want(422, "POST", "/api/posts", tok, use); a.code() != "media_processing" {
				t.Errorf("got %s, want media_processing", a.raw)
			}
			r.want(200, "GET", "/api/media/"+id, tok, "")
			if err := r.p.Close(); err != nil {
				t.Fatal(err)
			}
			r = start(t, dir, Options{})
			for _, status := range []string{"processing", end, end} {
				if a := r.want(200, "GET", "/api/media/"+id, tok, ""); a.text("status") != status {
					t.Errorf("the status is %s, want %s", a.text("status"), status)
				}
			}
			if end == "failed" {
				r.want(422, "POST", "/api/posts", tok, use)
				return
			}
			r.want(201, "POST", "/api/posts", tok, use)
		})
	}
}
