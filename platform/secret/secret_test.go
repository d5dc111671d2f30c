package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"crier/platform/fault"
)

func key(t *testing.T) string {
	t.Helper()
	k, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func ring(t *testing.T, keys ...string) *Keyring {
	t.Helper()
	r, err := NewKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKeyring_OpensAfterRestartAndRotation(t *testing.T) {
	t.Parallel()
	a, b, c := key(t), key(t), key(t)
	sealed, err := ring(t, a).Seal([]byte("token"), "org-1")
	if err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string][]string{
		"same key opens": {a}, "retired key opens": {b, a}, "any order opens": {c, a, b}, "spaces do not matter": {b, " " + a + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := ring(t, keys...).Open(sealed, "org-1"); err != nil || string(got) != "token" {
				t.Fatalf("got %q and error %v, want %q", got, err, "token")
			}
		})
	}
	if _, err := ring(t, b, c).Open(sealed, "org-1"); !fault.Is(err, fault.Internal) {
		t.Fatalf("open without the key that sealed: %v, want Internal", err)
	}
	fresh, err := ring(t, b, a).Seal([]byte("token"), "org-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ring(t, a).Open(fresh, "org-1"); err == nil {
		t.Fatal("the second key sealed, want the first one")
	}
}

func TestOpen_RefusesOtherBoundAndChangedBytes(t *testing.T) {
	t.Parallel()
	r := ring(t, key(t))
	rapid.Check(t, func(rt *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(rt, "plain")
		bound := rapid.StringN(1, 40, -1).Draw(rt, "bound")
		sealed, err := r.Seal(plain, bound)
		if err != nil {
			rt.Fatal(err)
		}
		if got, err := r.Open(sealed, bound); err != nil || !bytes.Equal(got, plain) {
			rt.Fatalf("got %q and error %v, want %q", got, err, plain)
		}
		if _, err := r.Open(sealed, bound+"x"); err == nil {
			rt.Fatal("opened with the bound of another organization")
		}
		sealed[rapid.IntRange(0, len(sealed)-1).Draw(rt, "at")] ^= 1
		if _, err := r.Open(sealed, bound); err == nil {
			rt.Fatal("opened with a changed byte")
		}
	})
	if _, err := r.Seal([]byte("x"), ""); err == nil {
		t.Error("sealed without a bound")
	}
	for _, junk := range [][]byte{nil, {}, {1}, make([]byte, 100)} {
		if _, err := r.Open(junk, "org"); !fault.Is(err, fault.Internal) {
			t.Errorf("open %d bytes of junk: %v, want Internal", len(junk), err)
		}
	}
}

func TestNewKeyring_ListsInvalidKeysWithoutTheirText(t *testing.T) {
	t.Parallel()
	good, zero := key(t), strings.Repeat("A", 43)+"="
	_, err := NewKeyring([]string{"", good, "not base64!", good, good[:20], zero})
	if err == nil {
		t.Fatal("invalid keys are accepted")
	}
	for _, want := range []string{"key 1 ", "key 3 ", "key 4 is the same as key 2", "key 5 ", "key 6 is all zeros"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), good[:8]) || strings.Contains(err.Error(), "not base64!") {
		t.Errorf("the error contains a key: %v", err)
	}
	if _, err := NewKeyring(nil); err == nil {
		t.Error("an empty list of keys is accepted")
	}
	if err := (Config{Keys: Text(good + "," + key(t))}).Validate(); err != nil {
		t.Errorf("two valid keys: %v", err)
	}
	if err := (Config{Keys: "x"}).Validate(); !strings.HasPrefix(fmt.Sprint(err), "ENCRYPTION_KEYS: ") {
		t.Errorf("got %v, want an error that names ENCRYPTION_KEYS", err)
	}
}

func TestToken_IsUniformAndDistinct(t *testing.T) {
	t.Parallel()
	seen, counts := map[string]bool{}, map[rune]int{}
	const tokens, n = 2000, 62
	for range tokens {
		tok, err := Token("crier_", n)
		if err != nil || len(tok) != 6+n || seen[tok] {
			t.Fatalf("got %q and error %v, want a new token of %d characters", tok, err, 6+n)
		}
		seen[tok] = true
		for _, r := range tok[6:] {
			counts[r]++
		}
	}
	if len(counts) != 62 {
		t.Fatalf("%d different characters are used, want 62", len(counts))
	}
	// Chi-square with 61 degrees of freedom exceeds 130 once in a million runs; modulo bias gives
	// about 1000.
	chi := 0.0
	for _, c := range counts {
		d := float64(c - tokens)
		chi += d * d / tokens
	}
	if chi > 130 {
		t.Errorf("chi-square is %.0f, want at most 130", chi)
	}
	for _, n := range []int{0, -1} {
		if _, err := Token("p", n); err == nil {
			t.Errorf("a token of %d characters is accepted", n)
		}
	}
	if tok, err := Token("", 1); err != nil || len(tok) != 1 {
		t.Errorf("got %q and error %v, want one character", tok, err)
	}
}

func TestHashToken_IsSHA256(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintf("%x", HashToken("abc")); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("got %s, want the SHA-256 of abc", got)
	}
}

func TestText_IsHiddenInEveryFormat(t *testing.T) {
	t.Parallel()
	const value = "hunter2"
	type config struct {
		Key  Text
		Keys []Text
		Map  map[string]Text
	}
	c := config{Key: Text(value), Keys: []Text{value}, Map: map[string]Text{"k": value}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%t"} {
		fmt.Fprintf(&out, verb+verb+verb, c, &c, c.Key)
	}
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("m", "key", c.Key, "c", c)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "key", c.Key, "c", c)
	if err := json.NewEncoder(&out).Encode(c); err != nil {
		t.Fatal(err)
	}
	shown := out.String()
	if strings.Contains(shown, value) || strings.Contains(shown, fmt.Sprintf("%x", value)) || !strings.Contains(shown, hidden) {
		t.Errorf("the value is shown, or not as %q, in %s", hidden, shown)
	}
	if c.Key.Reveal() != value || Text("").String() != "" {
		t.Errorf("Reveal returns %q and an empty text %q, want %q and nothing", c.Key.Reveal(), Text("").String(), value)
	}
}
