//go:build !race

package bounds

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"crier/apps/edge"
)

const (
	ordinary = 1 << 20  // the largest JSON body
	creating = 10 << 20 // the largest body of a create
	answers  = 64 << 10 // the largest response to a refused body
)

// bodies returns the most expensive bodies that a client may send, keyed by what is large in them.
func bodies(most int) map[string]string {
	text := strings.Repeat("x", most-100)
	return map[string]string{
		"a list":           list("1", most-100),
		"a list of lists":  list("[]", most-100),
		"a list in posts":  `{"type":"draft","date":"2030-01-01","posts":` + list("1", most-200) + `}`,
		"a deep list":      strings.Repeat("[", most/2-100) + strings.Repeat("]", most/2-100),
		"a deep object":    strings.Repeat(`{"a":`, most/6-100) + "1" + strings.Repeat("}", most/6-100),
		"one name often":   "{" + strings.TrimSuffix(strings.Repeat(`"abcdef":1,`, most/11-100), ",") + "}",
		"many members":     "{" + members(most-100) + "}",
		"a long text":      `{"content":"` + text + `"}`,
		"a long name":      `{"` + text + `":1}`,
		"an endless quote": `{"a":"` + text,
		"escapes":          `{"email":"` + strings.Repeat(`\u0041`, most/6-100) + `"}`,
		"no JSON":          text,
		"white space":      strings.Repeat(" ", most-100) + "{}",
	}
}

// members returns the members of an object, with different names and about the given number of
// bytes.
func members(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes-16; i++ {
		fmt.Fprintf(&b, `"%x":1,`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// creates returns the most expensive creates, in addition to bodies.
func creates(most int) map[string]string {
	entry := func(members string) string {
		return `{"type":"draft","date":"2030-01-01","posts":[` + members + `]}`
	}
	value := func(value string) string {
		return `{"integration":{"id":"0190a6f0-0000-7000-8000-000000000000"},"value":[` + value + `]}`
	}
	text := strings.Repeat("x", most-400)
	images := `{"content":"x","image":` + list(`"a"`, 160) + `}`
	object := `{"integration":{` + members(7_000) + `}}`
	return map[string]string{
		"a long channel id":       entry(`{"integration":{"id":"` + text + `"},"value":[{"content":"x"}]}`),
		"a channel id that grows": entry(`{"integration":{"id":"` + strings.Repeat("\u2028", (most-400)/3) + `"},"value":[{"content":"x"}]}`),
		"a long group":            entry(`{"integration":{"id":"x"},"group":"` + text + `","value":[{"content":"x"}]}`),
		"a long part id":          entry(value(`{"content":"x","id":"` + text + `"}`)),
		"a long image":            entry(value(`{"content":"x","image":["` + text + `"]}`)),
		"a long alt":              entry(value(`{"content":"x","image":[{"id":"x","alt":"` + text + `"}]}`)),
		"a long content":          entry(value(`{"content":"` + text + `"}`)),
		"a long date":             `{"type":"draft","date":"` + text + `","posts":[]}`,
		"a long end":              `{"type":"draft","date":"2030-01-01","inter":1,"interUntil":"` + text + `","posts":[]}`,
		"many images":             entry(strings.TrimSuffix(strings.Repeat(value(strings.TrimSuffix(strings.Repeat(images+",", 100), ","))+",", 90), ",")),
		"objects with members":    entry(strings.TrimSuffix(strings.Repeat(object+",", (most-400)/(len(object)+1)), ",")),
		"long settings":           entry(`{"integration":{"id":"x"},"value":[{"content":"x"}],"settings":{"a":"` + text + `"}}`),
		"settings in a string":    entry(`{"integration":{"id":"x"},"value":[{"content":"x"}],"settings":"` + text + `"}`),
		"long tags":               `{"type":"draft","date":"2030-01-01","posts":[],"tags":["` + text + `"]}`,
	}
}

// TestEveryRoute_TakesMemoryInProportionToBody is not parallel because it measures what the whole
// process allocates.
func TestEveryRoute_TakesMemoryInProportionToBody(t *testing.T) {
	r := start(t)
	before := r.rows(t)
	for _, route := range edge.Routes() {
		if route.Method == http.MethodGet {
			continue
		}
		sent, bound := bodies(ordinary), 12.0
		if strings.HasSuffix(route.Path, "/public/v1/posts") {
			sent, bound = bodies(creating), 6
			maps.Copy(sent, creates(creating))
		}
		for name, body := range sent {
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
			if allocated > bound { // decoding copies, and the client's own copies count too
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

// TestEveryRoute_KeepsNoLongBodyWithoutCredential is not parallel because it measures what the
// whole process allocates.
func TestEveryRoute_KeepsNoLongBodyWithoutCredential(t *testing.T) {
	const bound = 512 << 10 // includes the buffers of a connection
	r := start(t)
	long := strings.Repeat(" ", ordinary-10)
	for framing, body := range map[string][]byte{
		fmt.Sprintf("Content-Length: %d", len(long)): []byte(long),
		"Transfer-Encoding: chunked":                 fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n\r\n", len(long), long),
	} {
		for _, route := range edge.Routes() {
			if route.Method == http.MethodGet {
				continue
			}
			least, status := uint64(math.MaxUint64), 0
			for try := 0; try < 3 && least > bound; try++ { // other work of the process counts too
				var was, is runtime.MemStats
				runtime.ReadMemStats(&was)
				status = r.anonymous(t, route, framing, body)
				runtime.ReadMemStats(&is)
				least = min(least, is.TotalAlloc-was.TotalAlloc)
			}
			if least > bound || status < 400 {
				t.Errorf("%s with %s is answered with %d and allocates %d bytes", route, framing, status, least)
			}
		}
	}
}
