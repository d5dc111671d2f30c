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

type publicText string

func (w publicText) LogValue() slog.Value { return slog.GroupValue(slog.String("words", string(w))) }

func TestLog_CutsValuesAt8KB(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x01", 250<<10)
	for name, attr := range map[string]slog.Attr{
		"a string":          slog.String("a", long),
		"an error":          slog.Any("a", errors.New(long)),
		"a wrapped error":   slog.Any("a", fmt.Errorf("wrapped: %w", errors.New(long))),
		"a group":           slog.Group("a", slog.Group("b", slog.String("c", long))),
		"a group of errors": slog.Group("a", "b", errors.New(long)),
		"a LogValuer":       slog.Any("a", publicText(long)),
		"bytes":             slog.Any("a", []byte(long)),
		"a raw document":    slog.Any("a", json.RawMessage(`"`+strings.Repeat("x", 250<<10)+`"`)),
		"a list":            slog.Any("a", []string{"b", long}),
		"a list of errors":  slog.Any("a", []error{errors.New(long)}),
		"a map":             slog.Any("a", map[string]any{"b": &long}),
		"a name in a map":   slog.Any("a", map[string]bool{long: true}),
		"a struct":          slog.Any("a", struct{ B []any }{B: []any{long}}),
	} {
		for _, format := range []string{"json", "text"} {
			log, out := logger(t, format)
			log.Info("m", attr)
			log.With(attr).Info("m")
			for line := range strings.Lines(out.String()) {
				if len(line) > 6*maxValue+200 || !strings.Contains(line, "bytes") {
					t.Errorf("%s in %s: got %d bytes that end with %q, want a cut line", name, format, len(line), line[max(0, len(line)-100):])
				}
			}
		}
	}
	log, out := logger(t, "json")
	log.Info(long)
	if out.Len() > 6*maxValue+200 {
		t.Errorf("a message: got %d bytes, want at most %d", out.Len(), 6*maxValue+200)
	}
}

func TestLog_KeepsShortValues(t *testing.T) {
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
		`{"a":null}`:       pair{A: nil, b: strings.Repeat("x", 10_000)},
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

// full returns a text of the greatest length that is not cut.
func full() string { return strings.Repeat("é", maxValue/2) }

func TestShort_CountsCutBytes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"a byte":              {in: strings.Repeat("x", maxValue+1), want: strings.Repeat("x", maxValue) + " [1 bytes cut]"},
		"a character":         {in: strings.Repeat("x", maxValue-1) + "é", want: strings.Repeat("x", maxValue-1) + " [2 bytes cut]"},
		"invalid UTF-8":       {in: strings.Repeat("\x80", maxValue+5), want: strings.Repeat("\x80", maxValue) + " [5 bytes cut]"},
		"longer replacements": {in: strings.Repeat("&sig=x", 1000), want: strings.Repeat("&sig=[redacted]", 1000)[:maxValue] + " [6808 bytes cut]"},
	} {
		if got := clean(c.in); got != c.want {
			t.Errorf("%s: got %d bytes that end with %q, want the end %q", name, len(got), got[max(0, len(got)-50):], c.want[len(c.want)-50:])
		}
	}
}

// A secret is hidden even if the text is cut in the middle of the secret.
func TestShort_HidesSecretThatIsCut(t *testing.T) {
	t.Parallel()
	const s = "s3cr3tvalue"
	for _, text := range []string{"postgres://crier:" + s + "@db/crier", "Authorization: Bearer " + s, "https://h/?code=" + s} {
		for before := maxValue - len(text) - 1; before <= maxValue; before++ {
			got := clean(strings.Repeat("-", before-1) + " " + text + strings.Repeat(" -", 20))
			if strings.Contains(got, "s3c") || !utf8.ValidString(got) {
				t.Fatalf("%d bytes before %s: got the end %q, want no part of the secret", before, text, got[maxValue-len(text):])
			}
		}
	}
}
