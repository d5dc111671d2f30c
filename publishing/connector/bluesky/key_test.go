package bluesky

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"crier/platform/id"
	"crier/publishing"
)

// tidPattern matches a TID as the protocol defines it.
var tidPattern = regexp.MustCompile(`^[234567abcdefghij][234567abcdefghijklmnopqrstuvwxyz]{12}$`)

func publication(t testing.TB, s string) publishing.PublicationID {
	t.Helper()
	var p publishing.PublicationID
	if err := p.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return p
}

func fresh[T any](p *id.ID[T]) { *p = id.New[T]() }

// microseconds returns the time that a key contains.
func microseconds(key string) int64 {
	var n uint64
	for _, c := range []byte(key) {
		n = n<<5 | uint64(strings.IndexByte(base32Digits, c))
	}
	return int64(n >> 10)
}

func TestRecordKey_IsStable(t *testing.T) {
	t.Parallel()
	p := publication(t, "0199a0b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b")
	at := time.Date(2026, 11, 21, 4, 5, 6, 789e6, time.UTC)
	const want = "3n2s7vov57eak"
	if got := recordKey(p, at); got != want {
		t.Errorf("got %s, want %s as in stored publications", got, want)
	}
	if got := recordKey(p, at.In(time.FixedZone("", 3600))); got != want {
		t.Errorf("in another time zone: got %s, want %s", got, want)
	}
}

func TestRecordKey_IsTID(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{
		time.UnixMilli(0), time.UnixMilli(1), time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC),
		time.Date(2199, 12, 31, 23, 59, 59, 999e6, time.UTC),
	} {
		for range 1000 {
			var p publishing.PublicationID
			fresh(&p)
			key := recordKey(p, at)
			if !tidPattern.MatchString(key) {
				t.Fatalf("got %q, want a TID", key)
			}
			if off := microseconds(key) - at.UnixMicro(); off < 0 || off >= 1000 {
				t.Fatalf("the time of %q is %d microseconds late, want 0 to 999", key, off)
			}
		}
	}
}

func TestRecordKey_DiffersAtSameTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 4, 5, 6, 0, time.UTC)
	taken := map[string]bool{}
	clash := 0
	// 49 clashes are expected. The parts of one thread have different times.
	for range 10_000 {
		var p publishing.PublicationID
		fresh(&p)
		key := recordKey(p, at)
		if taken[key] {
			clash++
		}
		taken[key] = true
	}
	if clash > 120 {
		t.Errorf("%d of 10,000 keys clash, want at most 120", clash)
	}
}

func TestRecordKey_KeepsOrderOfTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 4, 5, 6, 789e6, time.UTC)
	last := ""
	for i := range 10_000 {
		var p publishing.PublicationID
		fresh(&p)
		key := recordKey(p, at.Add(time.Duration(i)*time.Millisecond))
		if key <= last {
			t.Fatalf("got %s for millisecond %d, want a key after %s", key, i, last)
		}
		last = key
	}
}
