//go:build !race

package bounds

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	ordinary = 1 << 20  // the largest JSON body
	creating = 10 << 20 // that of a create
	answers  = 64 << 10 // bytes of an answer to a body that is refused
)

// bodies are the worst that a client may send, by what is large in them.
func bodies(most int) map[string]string {
	text := strings.Repeat("x", most-100)
	return map[string]string{
		"a list":           list("1", most-100),
		"a list of lists":  list("[]", most-100),
		"a list in posts":  `{"type":"draft","date":"2030-01-01","posts":` + list("1", most-200) + `}`,
		"a deep list":      strings.Repeat("[", most/2-100) + strings.Repeat("]", most/2-100),
		"a deep object":    strings.Repeat(`{"a":`, most/6-100) + "1" + strings.Repeat("}", most/6-100),
		"many members":     "{" + strings.TrimSuffix(strings.Repeat(`"abcdef":1,`, most/11-100), ",") + "}",
		"a long text":      `{"content":"` + text + `"}`,
		"a long name":      `{"` + text + `":1}`,
		"an endless quote": `{"a":"` + text,
		"escapes":          `{"email":"` + strings.Repeat(`\\u0041`, most/6-100) + `"}`,
		"no JSON":          text,
		"white space":      strings.Repeat(" ", most-100) + "{}",
	}
}

// Not parallel: it measures what the whole process allocates.
func TestNoRouteTakesMoreThanItsBodyIsWorth(t *testing.T) {
	r := start(t)
	before := r.rows(t)
	for _, route := range routes() {
		if route.Method == http.MethodGet {
			continue
		}
		most := ordinary
		if strings.HasSuffix(route.Path, "/public/v1/posts") {
			most = creating
		}
		for name, body := range bodies(most) {
			var was, is runtime.MemStats
			runtime.ReadMemStats(&was)
			began := time.Now()
			a := r.do(t, route, body)
			took := time.Since(began)
			runtime.ReadMemStats(&is)
			allocated := float64(is.TotalAlloc-was.TotalAlloc) / float64(len(body))
			if a.Status >= 500 && a.Status != http.StatusNotImplemented {
				t.Errorf("%s with %s is answered with %d", route, name, a.Status)
			}
			if len(a.Body) > answers {
				t.Errorf("%s with %s is answered with %d bytes", route, name, len(a.Body))
			}
			if allocated > 16 { // what is decoded is copied, and the client's own copies are among them
				t.Errorf("%s with %s: %.1f bytes are allocated for each that is sent", route, name, allocated)
			}
			if testing.Verbose() {
				t.Logf("%s with %s: %d, %d bytes, %v, %.1f bytes allocated for each", route, name, a.Status, len(a.Body), took, allocated)
			}
		}
	}
	if after := r.rows(t); after != before {
		t.Errorf("%d rows were written by requests that were refused", after-before)
	}
}
