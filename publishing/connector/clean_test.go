package connector

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"crier/platform/outbound"
)

func TestCleanJSON_ReturnsWhatJsonbHolds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"a clean document stays": {
			in:   `{ "b": 1.50, "a": ["x\ny", 9007199254740993] }`,
			want: `{ "b": 1.50, "a": ["x\ny", 9007199254740993] }`,
		},
		"U+0000 is left out of strings": {in: `{"a":["x\u0000y"]}`, want: `{"a":["xy"]}`},
		"and of names":                  {in: `{"a\u0000":"<"}`, want: `{"a":"<"}`},
		"half a pair is replaced":       {in: `["\ud800","\udc00x"]`, want: "[\"\uFFFD\",\"\uFFFDx\"]"},
		"invalid UTF-8 is replaced":     {in: "[\"a\xffb\"]", want: "[\"a\uFFFDb\"]"},
		"a number without room is null": {in: `[1e999999,1e-999999,1e3,0e5]`, want: `[null,null,1e3,0e5]`},
		"other controls stay escaped":   {in: `["\u0001\b"]`, want: `["\u0001\b"]`},
		"nothing stays nothing":         {in: ``, want: ``},
	} {
		got, err := cleanJSON(json.RawMessage(tc.in))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s (%v), want %s", name, got, err, tc.want)
		}
	}
	for name, in := range map[string]string{
		"not JSON":  `{"a":`,
		"two":       `{}{}`,
		"too large": `"` + strings.Repeat("x", maxDocument) + `"`,
		"too deep":  strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2),
	} {
		if got, err := cleanJSON(json.RawMessage(in)); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
}

func FuzzCleanJSON(f *testing.F) {
	for _, seed := range []string{`{"a\u0000":["\ud800",1e400,{"b":"\u0000"}]}`, "\"\xff\"", `[[[]]]`, `1E-400`, `null`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := cleanJSON(raw)
		if err != nil || len(raw) == 0 {
			return
		}
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("%q: got %q, want valid JSON in UTF-8", raw, got)
		}
		var doc any
		if err := json.Unmarshal(got, &doc); err != nil {
			t.Fatalf("%q: got %q: %v", raw, got, err)
		}
		if strings.ContainsRune(fmt.Sprint(doc), 0) {
			t.Fatalf("got %q, want no U+0000", got)
		}
	})
}

func TestCleanRef_NeverFails(t *testing.T) {
	t.Parallel()
	got := CleanRef(Ref{ID: "at://\x00a\n", URL: "https://a.test/\x00", Data: json.RawMessage(`{"uri":"a\u0000"}`)})
	if got.ID != "at://a" || got.URL != "" || string(got.Data) != `{"uri":"a"}` {
		t.Errorf("got %+v with the data %s, want the id and the data without U+0000 and no URL", got, got.Data)
	}
	long := strings.Repeat("x", 10_000)
	got = CleanRef(Ref{ID: long, URL: "https://a.test/" + long, Data: json.RawMessage(`{"` + long)})
	if len(got.ID) != maxID || got.URL != "" || got.Data != nil {
		t.Errorf("got %+v, want a cut id only", got)
	}
	for address, kept := range map[string]bool{
		"https://a.test/x": true, "http://a.test": true, "javascript:alert(1)": false, "/x": false, "data:text/html,x": false,
	} {
		if got := CleanRef(Ref{ID: "1", URL: address}).URL; (got == address) != kept {
			t.Errorf("the URL %q: got %q, want it kept: %t", address, got, kept)
		}
	}
}

func TestCleanError_BoundsTextOfCauses(t *testing.T) {
	t.Parallel()
	sent := &outbound.SendError{Written: true, Err: errors.New(strings.Repeat("\x01", 250<<10) + "\nmalformed " + strings.Repeat("x", 250<<10))}
	for name, err := range map[string]error{
		"a cause":                     FromSend(sent, true),
		"a cause of a wrapped error":  fmt.Errorf("publish: %w", FromSend(sent, true)),
		"an error of another type":    sent,
		"one that wraps another type": fmt.Errorf("publish: %w", sent),
	} {
		got := cleanError(err, true)
		if words := got.Error(); len(words) > maxCause+500 || strings.ContainsFunc(words, unicode.IsControl) || !strings.Contains(words, "malformed") {
			t.Errorf("%s: got %d bytes that begin with %.100q, want at most %d with the cause", name, len(words), words, maxCause+500)
		}
		var found *outbound.SendError
		if !errors.As(got, &found) || found != sent || !errors.Is(got, sent) || KindOf(got, true) != KindUnknown {
			t.Errorf("%s: got %.100q, want KindUnknown with the cause", name, got)
		}
	}
	if got := cleanError(&Error{Kind: KindContent}, true); errors.Unwrap(got) != nil {
		t.Errorf("no cause: got %v, want nil", errors.Unwrap(got))
	}
}

func TestCleanError_BoundsTextAndKinds(t *testing.T) {
	t.Parallel()
	long := "\x00" + strings.Repeat("x", 10_000)
	shared := &Error{Kind: KindContent, After: -1, Code: long, Public: long, Raw: long}
	var got *Error
	if !errors.As(cleanError(fmt.Errorf("wrapped: %w", shared), true), &got) {
		t.Fatal("got another type, want *Error")
	}
	if len(got.Code) != maxCode || len(got.Public) != maxPublic || len(got.Raw) != maxRaw {
		t.Errorf("got %d, %d and %d bytes, want %d, %d and %d", len(got.Code), len(got.Public), len(got.Raw), maxCode, maxPublic, maxRaw)
	}
	if got.After != 0 || got.Kind != KindContent {
		t.Errorf("got %+v, want KindContent without a wait", got)
	}
	if shared.Public != long {
		t.Error("the error of the connector was changed, want a copy")
	}
	for _, tc := range []struct {
		kind       Kind
		committing bool
		want       Kind
	}{
		{kind: KindUnknown, committing: true, want: KindUnknown},
		{kind: KindUnknown, committing: false, want: KindTransient},
		{kind: "", committing: true, want: KindUnknown},
		{kind: "mad", committing: false, want: KindTransient},
		{kind: KindOperator, committing: true, want: KindOperator},
	} {
		err := cleanError(&Error{Kind: tc.kind, After: 1e6 * time.Hour}, tc.committing)
		if !errors.As(err, &got) || got.Kind != tc.want || got.After != maxAfter {
			t.Errorf("%q, in a commit %v: got %v, want %s", tc.kind, tc.committing, err, tc.want)
		}
	}
	var none *Error
	if err := cleanError(none, true); err == nil || KindOf(err, true) != KindUnknown {
		t.Errorf("a nil pointer: got %v, want KindUnknown", err)
	}
}

func TestDestination_NamesHosts(t *testing.T) {
	t.Parallel()
	for want, addresses := range map[string][]string{
		"pds.example":            {"https://PDS.example./xrpc"},
		"pds.example:8443":       {"https://pds.example:8443"},
		"127.0.0.1:4009":         {"http://127.0.0.1:4009/"},
		"[::1]:7000":             {"ws://[::1]:7000"},
		"a.example,b.example:80": {"wss://b.example:80", "wss://A.example:443", "ws://a.example:80/x"},
		"":                       {"not an address", "%"},
		strings.Repeat("a", 240) + ",b" + strings.Repeat("b", 13): {"wss://b" + strings.Repeat("b", 100), "wss://" + strings.Repeat("a", 240)},
	} {
		if got := Destination(addresses...); got != want {
			t.Errorf("%q: got %q, want %q", addresses, got, want)
		}
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": `""`, "c\u00fcr": `"cür"`, `a"b\c`: `"a"b\c"`, "a\nb\x00c": `"a b c"`, strings.Repeat("é", 200): `"` + strings.Repeat("é", 100) + `…"`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q): got %s, want %s", in, got, want)
		}
	}
}
