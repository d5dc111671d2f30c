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
		body := request("now", time.Now(), m{"integration": m{"id": c.id}, "group": o.get(t, "/posts/"+id).object(t)["group"], "value": []m{part("after")}})
		for _, a := range burst(t, o, []*rig{first, second}, 40, body) {
			a.want(t, http.StatusCreated)
		}
		o.reaches(t, id, "PUBLISHED")
		if got := o.texts(t, c); got != "after" {
			t.Fatalf("published: %s", got)
		}
	})
	t.Run("a repeat is marked, and a differing one too", func(t *testing.T) {
		t.Parallel()
		o := first.organization(t)
		c := o.channel(t, "A")
		body := later(c.id, part("one"))
		a := o.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", "k").want(t, http.StatusCreated)
		b := o.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", "k").want(t, http.StatusCreated)
		d := o.do(t, http.MethodPost, "/posts", later(c.id, part("two")), "Idempotency-Key", "k").want(t, http.StatusCreated)
		o.prefix = "/api/public/v1"
		e := o.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", "k").want(t, http.StatusCreated)
		marks := func(a answer) string {
			return a.Header.Get("Idempotent-Replayed") + "/" + a.Header.Get("Idempotent-Mismatch")
		}
		if got := strings.Join([]string{marks(a), marks(b), marks(d), marks(e)}, " "); got != "/ true/ true/true true/" {
			t.Fatalf("marks: %s", got)
		}
		if a.Body != b.Body || a.Body != d.Body || a.Body != e.Body {
			t.Fatalf("bodies differ: %v %v %v %v", a, b, d, e)
		}
		if n := o.count(t); n != "1" {
			t.Fatalf("%s posts", n)
		}
	})
	t.Run("a refused request does not use up the key", func(t *testing.T) {
		t.Parallel()
		o := first.organization(t)
		c := o.channel(t, "A")
		o.do(t, http.MethodPost, "/posts", later(c.id, part("")), "Idempotency-Key", "k").refusal(t, http.StatusBadRequest)
		o.do(t, http.MethodPost, "/posts", m{"type": "never"}, "Idempotency-Key", "k").refusal(t, http.StatusBadRequest)
		a := o.do(t, http.MethodPost, "/posts", later(c.id, part("good")), "Idempotency-Key", "k").want(t, http.StatusCreated)
		if a.Header.Get("Idempotent-Replayed") != "" {
			t.Fatal("the refusal was stored")
		}
	})
	t.Run("a deleted post's key answers the first result", func(t *testing.T) {
		t.Parallel()
		o := first.organization(t)
		body := later(o.channel(t, "A").id, part("gone soon"))
		a := o.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", "k").want(t, http.StatusCreated)
		o.do(t, http.MethodDelete, "/posts/"+a.list(t)[0]["postId"].(string), nil).want(t, http.StatusOK)
		b := o.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", "k").want(t, http.StatusCreated)
		if a.Body != b.Body || b.Header.Get("Idempotent-Replayed") != "true" || o.count(t) != "0" {
			t.Fatalf("%v, then %v, and %s posts", a, b, o.count(t))
		}
	})
	t.Run("the same key of another organization is another key", func(t *testing.T) {
		t.Parallel()
		a, b := first.organization(t), first.organization(t)
		x := a.create(t, later(a.channel(t, "A").id, part("a")), "Idempotency-Key", "same")
		y := b.create(t, later(b.channel(t, "A").id, part("b")), "Idempotency-Key", "same")
		if x == y {
			t.Fatal("they share a post")
		}
	})
}

// storm sends one request 200 times in parallel with one key.
func storm(t *testing.T, o org, nodes []*rig) {
	t.Helper()
	body := later(o.channel(t, "A").id, part("only once"))
	fresh := 0
	answers := burst(t, o, nodes, 200, body)
	for _, a := range answers {
		a.want(t, http.StatusCreated)
		if a.Body != answers[0].Body {
			t.Fatalf("answers differ: %v and %v", answers[0], a)
		}
		if a.Header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	if n := o.count(t); n != "1" || fresh != 1 {
		t.Fatalf("%s posts, %d answers that are no repeat", n, fresh)
	}
}

func burst(t *testing.T, o org, nodes []*rig, n int, body any) []answer {
	t.Helper()
	answers := make([]answer, n)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			mine := o
			mine.rig = nodes[i%len(nodes)]
			var err error
			if answers[i], err = mine.attempt(t.Context(), http.MethodPost, "/posts", body, "Idempotency-Key", "k"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return answers
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"API_LIMIT": "60"})
	o := r.organization(t)
	c := o.channel(t, "A")
	neighbour := r.organization(t)
	for _, value := range []string{"", "crier_" + strings.Repeat("0", 40), "Bearer " + o.key, strings.ToUpper(o.key), "x"} {
		stranger := o
		stranger.key = value
		a := stranger.get(t, "/is-connected")
		a.refusal(t, http.StatusUnauthorized)
		if a.Header.Get("X-RateLimit-Limit") != "" {
			t.Fatalf("a 401 was counted: %v", a.Header)
		}
	}
	var reset int64
	for i := 1; i <= 60; i++ {
		a := o.get(t, "/posts/none").want(t, http.StatusNotFound)
		if left := a.Header.Get("X-RateLimit-Remaining"); left != strconv.Itoa(60-i) || a.Header.Get("X-RateLimit-Limit") != "60" || a.Header.Get("Retry-After") != "" {
			t.Fatalf("request %d: %v", i, a.Header)
		}
		reset = number(t, a.Header.Get("X-RateLimit-Reset"))
	}
	before := time.Now()
	over := o.do(t, http.MethodPost, "/posts", later(c.id, part("refused")), "Idempotency-Key", "k")
	after := time.Now()
	over.refusal(t, http.StatusTooManyRequests)
	wait := number(t, over.Header.Get("Retry-After"))
	if over.object(t)["retryAfter"] != float64(wait) || wait < 1 || wait > 60 || over.Header.Get("X-RateLimit-Remaining") != "0" ||
		number(t, over.Header.Get("X-RateLimit-Reset")) != reset {
		t.Fatalf("%v %v, the window ends at %d", over, over.Header, reset)
	}
	// Both are rounded up, and the service answered between the two times.
	if reset < before.Unix()+wait-1 || reset > after.Unix()+wait+1 {
		t.Fatalf("the window ends at %d, but %d s after an answer made from %v to %v", reset, wait, before, after)
	}
	neighbour.get(t, "/is-connected").want(t, http.StatusOK)
	other := o
	other.rig = r.beside(t, nil)
	if n := other.count(t); n != "0" {
		t.Fatalf("the refused request made %s posts", n)
	}
	if a := other.do(t, http.MethodPost, "/posts", later(c.id, part("refused")), "Idempotency-Key", "k").want(t, http.StatusCreated); a.Header.Get("Idempotent-Replayed") != "" {
		t.Fatal("the refused request used its key up")
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
