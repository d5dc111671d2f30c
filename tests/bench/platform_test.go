package main

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestThePlatformCounts(t *testing.T) {
	t.Parallel()
	type call struct {
		channel, number int
		key             string
	}
	due := now()
	for name, x := range map[string]struct {
		calls                    []call
		posts, twice, outOfOrder int
	}{
		"what comes in order as it is":               {[]call{{1, 1, "a"}, {2, 1, "b"}, {1, 2, "c"}}, 3, 0, 0},
		"a call repeated under its key as one post":  {[]call{{1, 1, "a"}, {1, 1, "a"}, {1, 2, "b"}}, 2, 0, 0},
		"a post under another key as out twice":      {[]call{{1, 1, "a"}, {1, 2, "b"}, {1, 1, "c"}, {1, 3, "d"}}, 4, 1, 0},
		"a post without a key as out twice":          {[]call{{1, 1, ""}, {1, 1, ""}}, 2, 1, 0},
		"a post that another one overtook once":      {[]call{{1, 2, "b"}, {1, 1, "a"}, {1, 3, "c"}}, 3, 0, 1},
		"a gap in one channel as nobody else's":      {[]call{{1, 1, "a"}, {2, 2, "b"}, {1, 2, "c"}}, 3, 0, 1},
		"the same number of another channel as fine": {[]call{{1, 1, "a"}, {2, 1, "b"}}, 2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &platform{}
			p.begin(0)
			for _, c := range x.calls {
				if _, err := p.note(content(c.channel, c.number, due), c.key); err != nil {
					t.Fatal(err)
				}
			}
			if s := p.end(); len(s.late) != x.posts || s.twice != x.twice || s.outOfOrder != x.outOfOrder {
				t.Errorf("%d posts, %d twice, %d out of order", len(s.late), s.twice, s.outOfOrder)
			}
		})
	}
}

func TestThePlatformKnowsTheLatestOfAChannel(t *testing.T) {
	t.Parallel()
	p := &platform{}
	p.begin(0)
	for i, late := range []time.Duration{time.Hour, time.Minute} {
		for channel := range 3 {
			if _, err := p.note(content(channel, i+1, now().Add(-late)), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := p.below(2); n != 4 {
		t.Errorf("the first two channels have %d posts", n)
	}
	if late := p.end().worst["1"].Round(time.Minute); late != time.Hour {
		t.Errorf("the latest was %v late", late)
	}
	if _, err := p.note("not ours", ""); err == nil {
		t.Error("it takes any text")
	}
}

func TestAnAccountIsReadBackByPages(t *testing.T) {
	t.Parallel()
	p := &platform{}
	p.begin(0)
	for i := range 150 {
		for channel := range 2 {
			if _, err := p.note(content(channel, i+1, now()), string(rune('a'+channel))+strings.Repeat("x", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, x := range map[string]struct {
		channel string
		query   url.Values
		want    int
	}{
		"a whole page of the newest":         {"0", nil, 100},
		"the rest after it":                  {"0", url.Values{"before": {"p101"}}, 50},
		"nothing since what is yet to come":  {"0", url.Values{"since": {now().Add(time.Hour).Format(time.RFC3339Nano)}}, 0},
		"nothing of an account without post": {"2", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := p.list(x.channel, x.query)
			if n := strings.Count(said, `"id":`); n != x.want {
				t.Errorf("%d posts", n)
			}
			if strings.Contains(said, `"key":"b`) {
				t.Error("it tells another account's posts")
			}
		})
	}
}

func TestTheLeaseIsWhatIsSet(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		settings []string
		want     time.Duration
		bad      bool
	}{
		"the default when nothing is said": {nil, leaseDefault, false},
		"the setting":                      {[]string{"BEAT=1s", "LEASE=3s"}, 3 * time.Second, false},
		"an error when it is no duration":  {[]string{"LEASE=three"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := options{settings: x.settings}.lease()
			if (err != nil) != x.bad || err == nil && d != x.want {
				t.Errorf("%v, %v", d, err)
			}
		})
	}
}
