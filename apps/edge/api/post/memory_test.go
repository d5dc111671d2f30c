//go:build !race

package post_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"crier/tests/edgetest"
)

// list returns a JSON array of equal elements with about the given number of bytes.
func list(element string, bytes int) string {
	n := max(1, bytes/(len(element)+1))
	return "[" + strings.Repeat(element+",", n-1) + element + "]"
}

// Not parallel: it measures what the whole process allocates.
func TestCreate_LongListsAreNotReadIntoMemory(t *testing.T) {
	const most = 10<<20 - 200 // the body of a request to create a post
	s := edgetest.New(t, nil)
	for name, body := range map[string]string{
		"entries":           `{"type":"draft","date":"2030-01-01","posts":` + list("1", most) + `}`,
		"entries of a type": `{"type":"draft","date":"2030-01-01","posts":` + list(`{"integration":{"id":"c"}}`, most) + `}`,
		"values":            `{"type":"draft","date":"2030-01-01","posts":[{"integration":{"id":"c"},"value":` + list("1", most) + `}]}`,
		"images":            `{"type":"draft","date":"2030-01-01","posts":[{"integration":{"id":"c"},"value":[{"image":` + list(`{}`, most) + `}]}]}`,
		"tags":              `{"type":"draft","date":"2030-01-01","tags":` + list("1", most) + `,"posts":[]}`,
		"an unused member":  `{"other":` + list("1", most) + `,"posts":[]}`,
		"members":           `{` + strings.TrimSuffix(strings.Repeat(`"a":1,`, most/6), ",") + `,"type":1}`,
		"other members":     strings.TrimSuffix(members(most), ",") + `}`,
		"faults":            `{"type":"draft","date":"2030-01-01","posts":` + strings.TrimSuffix("["+strings.Repeat(`{"value":`+list("1", 200)+`},`, 100), ",") + `]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := s.CallAPI(t, "POST", "/public/v1/posts", body)
		runtime.ReadMemStats(&after)
		if a.Status != 400 || len(a.Body) > 64<<10 {
			t.Errorf("%s: got %d with %d bytes, want 400 with at most %d", name, a.Status, len(a.Body), 64<<10)
		}
		allocated := after.TotalAlloc - before.TotalAlloc
		if allocated > 5*uint64(len(body))+4<<20 {
			t.Errorf("%s: %d bytes were allocated for a body of %d, want at most 5 times as many", name, allocated, len(body))
		}
		t.Logf("%s: %.1f bytes allocated for each that was sent", name, float64(allocated)/float64(len(body)))
	}
}

// members returns about the given number of bytes of an object with many members, without the
// closing brace.
func members(bytes int) string {
	var b strings.Builder
	b.WriteString("{")
	for i := 0; b.Len() < bytes; i++ {
		b.WriteString(`"` + strings.Repeat("m", 1+i%7) + time.Duration(i).String() + `":1,`)
	}
	return b.String()
}
