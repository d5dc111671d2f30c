package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

type words string

func (w words) LogValue() slog.Value { return slog.GroupValue(slog.String("words", string(w))) }

func TestLog_NoValueIsLongerThan8KB(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x01", 250<<10)
	for name, attr := range map[string]slog.Attr{
		"a string":          slog.String("a", long),
		"an error":          slog.Any("a", errors.New(long)),
		"a wrapped error":   slog.Any("a", fmt.Errorf("wrapped: %w", errors.New(long))),
		"a group":           slog.Group("a", slog.Group("b", slog.String("c", long))),
		"a group of errors": slog.Group("a", "b", errors.New(long)),
		"a LogValuer":       slog.Any("a", words(long)),
		"bytes":             slog.Any("a", []byte(long)),
		"a raw document":    slog.Any("a", json.RawMessage(`"`+strings.Repeat("x", 250<<10)+`"`)),
		"a list":            slog.Any("a", []string{"b", long}),
		"a list of errors":  slog.Any("a", []error{errors.New(long)}),
		"a map":             slog.Any("a", map[string]any{"b": &long}),
		"a name in a map":   slog.Any("a", map[string]bool{long: true}),
		"a struct":          slog.Any("a", struct{ B []any }{[]any{long}}),
	} {
		for _, format := range []string{"json", "text"} {
			log, out := logger(t, format)
			log.Info("m", attr)
			log.With(attr).Info("m")
			for line := range strings.Lines(out.String()) {
				if len(line) > 6*maxValue+200 || !strings.Contains(line, "bytes") {
					t.Errorf("%s in %s: a line of %d bytes that ends with %q", name, format, len(line), line[max(0, len(line)-100):])
				}
			}
		}
	}
	log, out := logger(t, "json")
	log.Info(long)
	if out.Len() > 6*maxValue+200 {
		t.Errorf("a message: %d bytes", out.Len())
	}
}

func TestLog_ShortValuesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	type pair struct {
		A any `json:"a"`
		b string
	}
	circle := []any{1}
	circle[0] = &circle
	for want, value := range map[string]any{
		`["a","b"]`:        []string{"a", "b"},
		`{"a":{"b":[1]}}`:  map[string]any{"a": map[string]any{"b": []int{1}}},
		`{"a":null}`:       pair{nil, strings.Repeat("x", 10_000)},
		`null`:             nil,
		`"INFO"`:           slog.LevelInfo,
		`"` + full() + `"`: full(),
		`"[a []interface {} of more than 8192 bytes]"`: circle,
	} {
		log, out := logger(t, "json")
		log.Info("m", "a", value)
		if !strings.HasSuffix(out.String(), `"a":`+want+"}\n") {
			t.Errorf("got %.200s, want %.200s", out, want)
		}
	}
}

// full is the longest text that is not cut.
func full() string { return strings.Repeat("é", maxValue/2) }

func TestShort_SaysHowMuchWasCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"a byte":                {strings.Repeat("x", maxValue+1), strings.Repeat("x", maxValue) + " [1 bytes cut]"},
		"a character":           {strings.Repeat("x", maxValue-1) + "é", strings.Repeat("x", maxValue-1) + " [2 bytes cut]"},
		"what is no text":       {strings.Repeat("\x80", maxValue+5), strings.Repeat("\x80", maxValue) + " [5 bytes cut]"},
		"what hiding has added": {strings.Repeat("&sig=x", 1000), strings.Repeat("&sig=[redacted]", 1000)[:maxValue] + " [6808 bytes cut]"},
	} {
		if got := short(c.in); got != c.want {
			t.Errorf("%s: got %d bytes that end with %q", name, len(got), got[max(0, len(got)-50):])
		}
	}
}

// A secret is hidden wherever the cut falls into it.
func TestShort_CutsHideTheBeginningOfSecrets(t *testing.T) {
	t.Parallel()
	const s = "s3cr3tvalue"
	for _, text := range []string{"postgres://crier:" + s + "@db/crier", "Authorization: Bearer " + s, "https://h/?code=" + s} {
		for before := maxValue - len(text) - 1; before <= maxValue; before++ {
			got := short(strings.Repeat("-", before-1) + " " + text + strings.Repeat(" -", 20))
			if strings.Contains(got, "s3c") || !utf8.ValidString(got) {
				t.Fatalf("%d bytes before %s: %q", before, text, got[maxValue-len(text):])
			}
		}
	}
}
