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

// largest returns a create with the largest number of parts and bytes of text.
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

// TestCreate_SizeIsLimited exceeds each limit of a create by one.
func TestCreate_SizeIsLimited(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A").id
	large := strings.Repeat("ü", 100_000)
	many := func(n int, p m) (out []m) { return slices.Repeat([]m{p}, n) }
	for name, v := range map[string]struct {
		body m
		says string
	}{
		"a part of 100,001 characters":       {request("draft", tomorrow(), entry(c, part(large+"x"))), "longer than 100000 characters"},
		"a part that is longer when cleaned": {request("draft", tomorrow(), entry(c, part("<p>"+strings.Repeat("&", 30_000)+"</p>"))), "longer than 100000 characters"},
		"501 parts":                          {request("draft", tomorrow(), slices.Concat(many(5, entry(c, many(100, part("x"))...)), many(1, entry(c, part("x"))))...), "at most 500 parts"},
		"101 parts of an entry":              {request("draft", tomorrow(), entry(c, many(101, part("x"))...)), "1 to 100 parts"},
		"101 entries":                        {request("draft", tomorrow(), many(101, entry(c, part("x")))...), "1 to 100 entries"},
		"more than 1,000,000 bytes of text":  {request("draft", tomorrow(), entry(c, many(11, part(strings.Repeat("x", 95_000)))...)), "1000000 bytes"},
		"as much when cleaned":               {request("draft", tomorrow(), entry(c, many(15, part("<p>"+strings.Repeat("&", 15_000)+"</p>"))...)), "1000000 bytes"},
		"a long channel id":                  {request("draft", tomorrow(), entry(strings.Repeat("c", 256), part("x"))), "at most 255 bytes"},
		"settings of 1,100,000 bytes":        {request("draft", tomorrow(), withSettings(m{"a": strings.Repeat("x", 99_000)}, entry(c, delayed(11)...))), "1000000 bytes of settings"},
		"a number that Postgres writes out":  {request("draft", tomorrow(), withSettings(m{"a": json.RawMessage("1e-16383")}, entry(c, part("x")))), "exponents from -30 to 30"},
		"zero written at length":             {request("draft", tomorrow(), withSettings(m{"a": json.RawMessage("0e-16383")}, entry(c, part("x")))), "exponents from -30 to 30"},
		"a number of 65 digits":              {request("draft", tomorrow(), withSettings(m{"a": json.RawMessage(strings.Repeat("1", 65))}, entry(c, part("x")))), "at most 64 characters"},
		"2,001 images":                       {request("draft", tomorrow(), entry(c, many(51, part("x", slices.Repeat([]any{"id"}, 40)...))...)), "at most 2000 images"},
	} {
		a := o.do(t, http.MethodPost, "/posts", v.body).want(t, http.StatusBadRequest)
		if !strings.Contains(a.Body, v.says) {
			t.Errorf("%s: %v", name, a)
		}
	}
	if n := o.count(t); n != "0" {
		t.Errorf("%s posts were stored", n)
	}
	o.create(t, request("draft", tomorrow(), entry(c, part(large))))
	o.create(t, largest(c))
}

func withSettings(settings, entry m) m {
	entry["settings"] = settings
	return entry
}

// delayed returns n parts; all but the first have a delay.
func delayed(n int) []m {
	parts := []m{part("x")}
	for range n - 1 {
		p := part("x")
		p["delay"] = 1
		parts = append(parts, p)
	}
	return parts
}

// TestList_SizeOfAnswerIsLimited: markup and occurrences that are not stored can make an answer much larger than the
// stored posts.
func TestList_SizeOfAnswerIsLimited(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A").id
	lines := slices.Repeat([]m{part("x" + strings.Repeat("\n", 99_000))}, 10)
	var last string
	for range 6 {
		last = o.create(t, request("draft", tomorrow(), entry(c, lines...)))
	}
	o.get(t, "/posts?page=0&limit=6").want(t, http.StatusOK)
	if a := o.do(t, http.MethodGet, "/posts?page=0&limit=6&format=html", nil); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "24 MB") {
		t.Errorf("as HTML: %d with %d bytes", a.Status, len(a.Body))
	}
	o.get(t, "/posts?page=0&limit=2&format=html").want(t, http.StatusOK)
	o.get(t, "/posts/"+last+"?format=html").want(t, http.StatusOK)

	o = r.organization(t)
	c = o.channel(t, "A").id
	image := o.upload(t, "a.gif", gifImage(t)).want(t, http.StatusCreated).object(t)["id"]
	described := m{"id": image, "alt": strings.Repeat("x", 1_500)}
	body := request("schedule", tomorrow(), entry(c, slices.Repeat([]m{part("x", slices.Repeat([]any{described}, 4)...)}, 100)...))
	body["inter"] = 1
	o.create(t, body)
	year := "/posts?startDate=" + time.Now().UTC().Format(time.DateOnly) + "&endDate=" + time.Now().Add(365*24*time.Hour).UTC().Format(time.DateOnly)
	if a := o.do(t, http.MethodGet, year, nil); a.Status != http.StatusBadRequest {
		t.Errorf("a year of images: %d with %d bytes", a.Status, len(a.Body))
	}
	week := "/posts?startDate=" + time.Now().UTC().Format(time.DateOnly) + "&endDate=" + time.Now().Add(7*24*time.Hour).UTC().Format(time.DateOnly)
	if list := o.get(t, week).want(t, http.StatusOK); len(list.Body) < 2<<20 {
		t.Errorf("a week of it has %d bytes", len(list.Body))
	}
}

// TestList_SizeOfTextIsLimited: a list has at most 8 MB of text, which bounds the memory of parallel lists.
func TestList_SizeOfTextIsLimited(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A").id
	parts := slices.Repeat([]m{part(strings.Repeat("x", 99_000))}, 10)
	var last string
	for range 9 {
		last = o.create(t, request("draft", tomorrow(), entry(c, parts...)))
	}
	day := "/posts?startDate=" + time.Now().UTC().Format(time.DateOnly) + "&endDate=" + time.Now().Add(72*time.Hour).UTC().Format(time.DateOnly)
	for _, path := range []string{day, "/posts?page=0&limit=9"} {
		if a := o.get(t, path).want(t, http.StatusBadRequest); !strings.Contains(a.Body, "8 MB") {
			t.Errorf("%s: %v", path, a)
		}
	}
	o.get(t, "/posts?page=0&limit=8").want(t, http.StatusOK)
	o.get(t, "/posts/"+last).want(t, http.StatusOK)

	o = r.organization(t)
	c = o.channel(t, "A").id
	repeat := func(parts ...m) {
		body := request("schedule", tomorrow(), entry(c, parts...))
		body["inter"] = 1
		o.create(t, body)
	}
	repeat(part(strings.Repeat("x", 400)))
	year := "/posts?startDate=" + time.Now().UTC().Format(time.DateOnly) + "&endDate=" + time.Now().Add(365*24*time.Hour).UTC().Format(time.DateOnly)
	o.get(t, year).want(t, http.StatusOK)
	for range 2 {
		repeat(slices.Repeat([]m{part(strings.Repeat("x", 490))}, 100)...)
	}
	if a := o.do(t, http.MethodGet, year, nil); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "ask for a shorter range") {
		t.Errorf("a year of a post that repeats every day: %d with %d bytes", a.Status, len(a.Body))
	}
}

// TestOneOrganization_NeverTakesAllConnections creates posts of a second organization while the first sends 16 large
// requests at the same time.
func TestOneOrganization_NeverTakesAllConnections(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
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
	t.Logf("a create of the other organization took %v at most, %v without load; the large ones got %v", slowest, idle, answers)
}

// TestContent_HasType: text is published and answered as it was sent, HTML is sanitized, and contentType names which it
// is.
func TestContent_HasType(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A")
	for name, v := range map[string]struct {
		sent                     m
		content, kind, published string
	}{
		"text that looks like HTML": {m{"content": "<p>a</p><img src=x>", "contentType": "text"}, "<p>a</p><img src=x>", "text", "<p>a</p><img src=x>"},
		"text by itself":            {m{"content": "a < b <script>"}, "a < b <script>", "text", "a < b <script>"},
		"HTML by itself":            {m{"content": "<p>a<script>x</script></p><p>b &amp; c</p>"}, "<p>a</p><p>b &amp; c</p>", "html", "a\nb & c"},
		"text that is called HTML":  {m{"content": "a & <i>b</i>", "contentType": "html"}, "<p>a &amp; b</p>", "html", "a & b"},
	} {
		post := o.create(t, now(c.id, v.sent))
		value := o.reaches(t, post, "PUBLISHED")["posts"].([]any)[0].(m)["value"].([]any)[0].(m)
		if value["content"] != v.content || value["contentType"] != v.kind {
			t.Errorf("%s: %v", name, value)
		}
		if !slices.ContainsFunc(r.published(t, c), func(p sandboxtest.Post) bool { return p.Text == v.published }) {
			t.Errorf("%s: the platform has %+v", name, r.published(t, c))
		}
	}
	a := o.do(t, http.MethodPost, "/posts", now(c.id, m{"content": "x", "contentType": "markdown"})).want(t, http.StatusBadRequest)
	if !strings.Contains(a.Body, "posts.0.value.0.contentType must be one of: text, html") {
		t.Error(a)
	}
}

func TestUpload_StorageOfOrganizationIsLimited(t *testing.T) {
	t.Parallel()
	file := gifImage(t)
	r := start(t, map[string]string{"ORG_STORAGE_LIMIT": "1500"})
	o, other := r.organization(t), r.organization(t)
	stored := 0
	for ; stored+len(file) <= 1500; stored += len(file) {
		o.upload(t, "a.gif", file).want(t, http.StatusCreated)
	}
	o.upload(t, "a.gif", file).want(t, http.StatusRequestEntityTooLarge)
	other.upload(t, "a.gif", file).want(t, http.StatusCreated)
}
