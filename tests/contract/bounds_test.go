package contract

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/tests/sandboxtest"
)

// largest returns a create with as many parts and as much text as allowed.
func largest(channel string) m {
	var entries []m
	for range 5 {
		var parts []m
		for i := range 100 {
			p := part(strings.Repeat("x", 1900))
			if i > 0 {
				p["delay"] = 1
			}
			parts = append(parts, p)
		}
		entries = append(entries, entry(channel, parts...))
	}
	return request("draft", tomorrow(), entries...)
}

// TestCreate_SizeIsLimited exceeds each limit of a create by the smallest amount.
func TestCreate_SizeIsLimited(t *testing.T) {
	t.Parallel()
	o := common(t).organization(t)
	c := o.channel(t, "A").id
	large := strings.Repeat("ü", 100_000)
	draft := func(entries ...m) m { return request("draft", tomorrow(), entries...) }
	many := func(n int, p m) (out []m) { return slices.Repeat([]m{p}, n) }
	for name, v := range map[string]struct {
		body m
		want string
	}{
		"a part of 100,001 characters":       {body: draft(entry(c, part(large+"x"))), want: "longer than 100000 characters"},
		"a part that is longer when cleaned": {body: draft(entry(c, part("<p>"+strings.Repeat("&", 30_000)+"</p>"))), want: "longer than 100000 characters"},
		"501 parts":                          {body: draft(slices.Concat(many(5, entry(c, many(100, part("x"))...)), many(1, entry(c, part("x"))))...), want: "at most 500 parts"},
		"101 parts of an entry":              {body: draft(entry(c, many(101, part("x"))...)), want: "1 to 100 parts"},
		"101 entries":                        {body: draft(many(101, entry(c, part("x")))...), want: "1 to 100 entries"},
		"more than 1,000,000 bytes of text":  {body: draft(entry(c, many(11, part(strings.Repeat("x", 95_000)))...)), want: "1000000 bytes"},
		"as much when cleaned":               {body: draft(entry(c, many(15, part("<p>"+strings.Repeat("&", 15_000)+"</p>"))...)), want: "1000000 bytes"},
		"a long channel id":                  {body: draft(entry(strings.Repeat("c", 256), part("x"))), want: "at most 255 bytes"},
		"settings of 1,100,000 bytes":        {body: draft(withSettings(m{"a": strings.Repeat("x", 99_000)}, entry(c, delayed(11)...))), want: "1000000 bytes of settings"},
		"a number that Postgres writes out":  {body: draft(withSettings(m{"a": json.RawMessage("1e-16383")}, entry(c, part("x")))), want: "exponents from -30 to 30"},
		"zero written at length":             {body: draft(withSettings(m{"a": json.RawMessage("0e-16383")}, entry(c, part("x")))), want: "exponents from -30 to 30"},
		"a number of 65 digits":              {body: draft(withSettings(m{"a": json.RawMessage(strings.Repeat("1", 65))}, entry(c, part("x")))), want: "at most 64 characters"},
		"2,001 images":                       {body: draft(entry(c, many(51, part("x", slices.Repeat([]any{"id"}, 40)...))...)), want: "at most 2000 images"},
	} {
		a := o.do(t, http.MethodPost, "/posts", v.body).want(t, http.StatusBadRequest)
		if !strings.Contains(a.Body, v.want) {
			t.Errorf("%s is refused with %v, want %q in it", name, a, v.want)
		}
	}
	o.wantCount(t, 0)
	o.create(t, draft(entry(c, part(large))))
	o.create(t, largest(c))
}

func withSettings(settings, entry m) m {
	entry["settings"] = settings
	return entry
}

// delayed returns n parts. All but the first have a delay.
func delayed(n int) []m {
	parts := []m{part("x")}
	for range n - 1 {
		p := part("x")
		p["delay"] = 1
		parts = append(parts, p)
	}
	return parts
}

// nextDays returns the query for the posts of the next n days, starting today.
func nextDays(n int) string {
	today := time.Now().UTC()
	return "/posts?startDate=" + today.Format(time.DateOnly) +
		"&endDate=" + today.Add(time.Duration(n)*day).Format(time.DateOnly)
}

// refusesList ends the test unless a list is refused with this text.
func (o org) refusesList(t *testing.T, path, want string) {
	t.Helper()
	if a := o.get(t, path); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, want) {
		t.Fatalf("%s is answered with %d and %d bytes, want 400 and %q", path, a.Status, len(a.Body), want)
	}
}

func TestList_SizeIsLimited(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"of the answer": testAnswerSize,
		"of the text":   testTextSize,
	})
}

// testAnswerSize checks that lists are refused if markup or occurrences that are not stored make
// the response much larger than the stored posts.
func testAnswerSize(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("markup of stored posts", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A").id
		lines := slices.Repeat([]m{part("x" + strings.Repeat("\n", 99_000))}, 10)
		var last string
		for range 6 {
			last = o.create(t, request("draft", tomorrow(), entry(c, lines...)))
		}
		o.get(t, "/posts?page=0&limit=6").want(t, http.StatusOK)
		o.refusesList(t, "/posts?page=0&limit=6&format=html", "24 MB")
		o.get(t, "/posts?page=0&limit=2&format=html").want(t, http.StatusOK)
		o.get(t, "/posts/"+last+"?format=html").want(t, http.StatusOK)
	})
	t.Run("images of occurrences", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		described := m{"id": o.stored(t, "a.gif", gifImage(t)).ID, "alt": strings.Repeat("x", 1_500)}
		parts := slices.Repeat([]m{part("x", slices.Repeat([]any{described}, 4)...)}, 100)
		o.create(t, repeating(later(o.channel(t, "A").id, parts...), m{"inter": 1}))
		o.refusesList(t, nextDays(365), "request a shorter range")
		if list := o.get(t, nextDays(7)).want(t, http.StatusOK); len(list.Body) < 2<<20 {
			t.Errorf("a week has %d bytes, want at least 2 MB", len(list.Body))
		}
	})
}

// testTextSize checks that a list has at most 8 MB of text, which bounds the memory that parallel
// lists take.
func testTextSize(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("stored posts", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A").id
		parts := slices.Repeat([]m{part(strings.Repeat("x", 99_000))}, 10)
		var last string
		for range 9 {
			last = o.create(t, request("draft", tomorrow(), entry(c, parts...)))
		}
		o.refusesList(t, nextDays(3), "8 MB")
		o.refusesList(t, "/posts?page=0&limit=9", "8 MB")
		o.get(t, "/posts?page=0&limit=8").want(t, http.StatusOK)
		o.get(t, "/posts/"+last).want(t, http.StatusOK)
	})
	t.Run("occurrences", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A").id
		repeat := func(parts ...m) { o.create(t, repeating(later(c, parts...), m{"inter": 1})) }
		repeat(part(strings.Repeat("x", 400)))
		o.get(t, nextDays(365)).want(t, http.StatusOK)
		for range 2 {
			repeat(slices.Repeat([]m{part(strings.Repeat("x", 490))}, 100)...)
		}
		o.refusesList(t, nextDays(365), "request a shorter range")
	})
}

// TestOneOrganization_NeverTakesAllConnections creates posts in a second organization while the
// first one sends 16 large requests at once.
func TestOneOrganization_NeverTakesAllConnections(t *testing.T) {
	t.Parallel()
	r := common(t)
	busy, other := r.organization(t), r.organization(t)
	large, c := largest(busy.channel(t, "A").id), other.channel(t, "A").id
	took := func() time.Duration {
		began := time.Now()
		other.create(t, request("draft", tomorrow(), entry(c, part("x"))))
		return time.Since(began)
	}
	idle := took()
	var writers sync.WaitGroup
	done := make(chan int, 16)
	for range 16 {
		writers.Go(func() {
			a, err := busy.attempt(t.Context(), http.MethodPost, "/posts", large)
			if err != nil {
				t.Error(err)
			}
			done <- a.Status
		})
	}
	slowest := time.Duration(0)
	for len(done) < 16 {
		slowest = max(slowest, took())
	}
	writers.Wait()
	close(done)
	answers := map[int]int{}
	for status := range done {
		answers[status]++
	}
	if answers[http.StatusCreated] == 0 || answers[http.StatusCreated]+answers[http.StatusTooManyRequests] != 16 {
		t.Errorf("the busy organization got %v by status, want 16 of 201 and 429 and at least one 201", answers)
	}
	t.Logf("a create of the other organization took at most %v, %v without load; the large ones got %v",
		slowest, idle, answers)
}

// TestContent_HasType checks that text is published and returned as it was sent, that HTML is
// sanitized, and that contentType says which of the two it is.
func TestContent_HasType(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	c := o.channel(t, "A")
	for name, v := range map[string]struct {
		sent                     m
		content, kind, published string
	}{
		"text that looks like HTML": {
			sent:    m{"content": "<p>a</p><img src=x>", "contentType": "text"},
			content: "<p>a</p><img src=x>", kind: "text", published: "<p>a</p><img src=x>",
		},
		"text by itself": {
			sent: m{"content": "a < b <script>"}, content: "a < b <script>", kind: "text", published: "a < b <script>",
		},
		"HTML by itself": {
			sent:    m{"content": "<p>a<script>x</script></p><p>b &amp; c</p>"},
			content: "<p>a</p><p>b &amp; c</p>", kind: "html", published: "a\nb & c",
		},
		"text that is called HTML": {
			sent:    m{"content": "a & <i>b</i>", "contentType": "html"},
			content: "<p>a &amp; b</p>", kind: "html", published: "a & b",
		},
	} {
		post := o.create(t, now(c.id, v.sent))
		if got := o.reaches(t, post, "PUBLISHED").values()[0]; got.Content != v.content || got.ContentType != v.kind {
			t.Errorf("%s: the part is %+v, want %s %q", name, got, v.kind, v.content)
		}
		out := r.published(t, c)
		if !slices.ContainsFunc(out, func(p sandboxtest.Post) bool { return p.Text == v.published }) {
			t.Errorf("%s: published are %+v, want %q among them", name, out, v.published)
		}
	}
	unknown := now(c.id, m{"content": "x", "contentType": "markdown"})
	a := o.do(t, http.MethodPost, "/posts", unknown).want(t, http.StatusBadRequest)
	if want := "posts.0.value.0.contentType must be one of: text, html"; !strings.Contains(a.Body, want) {
		t.Errorf("an unknown type is refused with %v, want %q", a, want)
	}
}

func TestUpload_StoragePerOrganizationIsLimited(t *testing.T) {
	t.Parallel()
	file := gifImage(t)
	r := start(t, map[string]string{"ORG_MAX_STORAGE_BYTES": "1500"})
	o, other := r.organization(t), r.organization(t)
	for range 1500/len(file) + 1 { // identical bytes count once
		o.upload(t, "a.gif", file).want(t, http.StatusCreated)
	}
	for stored := len(file); stored+len(file)+1 <= 1500; stored += len(file) {
		file = append(file, 0)
		o.upload(t, "a.gif", file).want(t, http.StatusCreated)
	}
	file = append(file, 0)
	o.upload(t, "a.gif", file).want(t, http.StatusRequestEntityTooLarge)
	other.upload(t, "a.gif", file).want(t, http.StatusCreated)
}
