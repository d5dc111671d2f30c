package contract

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	first := start(t, map[string]string{"API_LIMIT": "1000"})
	second := first.beside(t, map[string]string{"API_LIMIT": "1000"})

	t.Run("one after another", func(t *testing.T) { testKeys(t, first) })
	for name, nodes := range map[string][]*rig{"one node": {first}, "two nodes": {first, second}} {
		t.Run("200 parallel repeats on "+name+" make one group", func(t *testing.T) {
			t.Parallel()
			storm(t, first.organization(t), nodes)
		})
	}
	t.Run("parallel edits of one group under one key are one edit", func(t *testing.T) {
		t.Parallel()
		o := first.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, later(c.id, part("before")))
		body := request("now", time.Now(), byGroup(c.id, o.post(t, id).Group, part("after")))
		for _, a := range burst(t, o, []*rig{first, second}, 40, body) {
			a.want(t, http.StatusCreated)
		}
		o.reaches(t, id, "PUBLISHED")
		o.wantTexts(t, c, "after")
	})
}

// keyed sends a body to POST /posts under the idempotency key k.
func (o org) keyed(t *testing.T, body any) answer {
	t.Helper()
	return o.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", "k")
}

func testKeys(t *testing.T, r *rig) {
	t.Parallel()

	t.Run("a repeat is marked, and a differing one too", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		body := later(c.id, part("one"))
		a := o.keyed(t, body).want(t, http.StatusCreated)
		b := o.keyed(t, body).want(t, http.StatusCreated)
		d := o.keyed(t, later(c.id, part("two"))).want(t, http.StatusCreated)
		alias := o
		alias.prefix = "/api/public/v1"
		e := alias.keyed(t, body).want(t, http.StatusCreated)
		for i, v := range []struct {
			answer
			want string
		}{{answer: a, want: "/"}, {answer: b, want: "true/"}, {answer: d, want: "true/true"}, {answer: e, want: "true/"}} {
			got := v.Header.Get("Idempotent-Replayed") + "/" + v.Header.Get("Idempotent-Mismatch")
			if got != v.want || v.Body != a.Body {
				t.Fatalf("request %d is answered with %v and the marks %s, want %v and %s", i, v.answer, got, a, v.want)
			}
		}
		o.wantCount(t, 1)
	})
	t.Run("a refused request does not use up the key", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		o.keyed(t, later(c.id, part(""))).refusal(t, http.StatusBadRequest)
		o.keyed(t, m{"type": "never"}).refusal(t, http.StatusBadRequest)
		o.keyed(t, later(c.id, part("good"))).fresh(t)
	})
	t.Run("the key of a deleted post returns the first result", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		body := later(o.channel(t, "A").id, part("gone soon"))
		a := o.keyed(t, body).want(t, http.StatusCreated)
		o.deletes(t, "/posts/", read[[]created](t, a)[0].PostID)
		b := o.keyed(t, body).want(t, http.StatusCreated)
		if a.Body != b.Body || b.Header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("the repeat is answered with %v %v, want %v and a mark", b, b.Header, a)
		}
		o.wantCount(t, 0)
	})
	t.Run("another organization may use the same key", func(t *testing.T) {
		t.Parallel()
		a, b := r.organization(t), r.organization(t)
		a.keyed(t, later(a.channel(t, "A").id, part("a"))).fresh(t)
		b.keyed(t, later(b.channel(t, "A").id, part("b"))).fresh(t)
		a.wantCount(t, 1)
		b.wantCount(t, 1)
	})
}

// fresh ends the test unless the response is the first one for its idempotency key.
func (a answer) fresh(t *testing.T) {
	t.Helper()
	if mark := a.want(t, http.StatusCreated).Header.Get("Idempotent-Replayed"); mark != "" {
		t.Fatalf("Idempotent-Replayed is %q, want none on the first result", mark)
	}
}

// storm sends one request 200 times in parallel with one key. Only one of them may create a post.
func storm(t *testing.T, o org, nodes []*rig) {
	t.Helper()
	body := later(o.channel(t, "A").id, part("only once"))
	fresh := 0
	answers := burst(t, o, nodes, 200, body)
	for _, a := range answers {
		a.want(t, http.StatusCreated)
		if a.Body != answers[0].Body {
			t.Fatalf("a repeat is answered with %v, want %v like the first", a, answers[0])
		}
		if a.Header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	if fresh != 1 {
		t.Fatalf("%d answers are no repeat, want 1", fresh)
	}
	o.wantCount(t, 1)
}

// burst sends one request n times in parallel with one key. If too many are in progress, it waits
// as long as the response asks and sends that request again.
func burst(t *testing.T, o org, nodes []*rig, n int, body any) []answer {
	t.Helper()
	answers := make([]answer, n)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			mine := o
			mine.rig = nodes[i%len(nodes)]
			a, err := mine.attempt(t.Context(), http.MethodPost, "/posts", body, "Idempotency-Key", "k")
			for err == nil && a.Status == http.StatusTooManyRequests {
				wait, _ := strconv.Atoi(a.Header.Get("Retry-After"))
				<-time.After(time.Duration(wait) * time.Second)
				a, err = mine.attempt(t.Context(), http.MethodPost, "/posts", body, "Idempotency-Key", "k")
			}
			if err != nil {
				t.Error(err)
			}
			answers[i] = a
		})
	}
	all.Wait()
	return answers
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"API_LIMIT": "60"})
	o, neighbour := r.organization(t), r.organization(t)
	body := later(o.channel(t, "A").id, part("refused"))
	refusedKeys(t, o)
	var reset int64
	for i := 1; i <= 60; i++ {
		h := o.get(t, "/posts/none").want(t, http.StatusNotFound).Header
		if got, want := h.Get("X-RateLimit-Remaining"), strconv.Itoa(60-i); got != want {
			t.Fatalf("after request %d %s are left, want %s", i, got, want)
		}
		if got := h.Get("X-RateLimit-Limit"); got != "60" || h.Get("Retry-After") != "" {
			t.Fatalf("request %d is answered with the limit %s, want 60 and no Retry-After: %v", i, got, h)
		}
		reset = number(t, h.Get("X-RateLimit-Reset"))
	}
	before := time.Now()
	over := o.keyed(t, body)
	after := time.Now()
	over.refusal(t, http.StatusTooManyRequests)
	wait := number(t, over.Header.Get("Retry-After"))
	if got := read[refused](t, over).RetryAfter; got != wait || wait < 1 || wait > 60 {
		t.Fatalf("the wait is %d in the body and %d in the header, want both equal, from 1 to 60", got, wait)
	}
	if left := over.Header.Get("X-RateLimit-Remaining"); left != "0" {
		t.Fatalf("%s requests are left after the last, want 0", left)
	}
	if got := number(t, over.Header.Get("X-RateLimit-Reset")); got != reset {
		t.Fatalf("the window ends at %d, want %d as before", got, reset)
	}
	// Both values are rounded up, and the service responded between the two times.
	if reset < before.Unix()+wait-1 || reset > after.Unix()+wait+1 {
		t.Fatalf("the window ends at %d, want %d s after an answer from %v to %v", reset, wait, before, after)
	}
	neighbour.get(t, "/is-connected").want(t, http.StatusOK)
	other := o
	other.rig = r.beside(t, nil)
	other.wantCount(t, 0)
	other.keyed(t, body).fresh(t)
}

// refusedKeys checks that requests with a wrong API key are refused and not counted.
func refusedKeys(t *testing.T, o org) {
	t.Helper()
	for _, key := range []string{"", "crier_" + strings.Repeat("0", 40), "Bearer " + o.key, strings.ToUpper(o.key), "x"} {
		stranger := o
		stranger.key = key
		a := stranger.get(t, "/is-connected")
		a.refusal(t, http.StatusUnauthorized)
		if got := a.Header.Get("X-RateLimit-Limit"); got != "" {
			t.Fatalf("a 401 has X-RateLimit-Limit %s, want none", got)
		}
	}
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
