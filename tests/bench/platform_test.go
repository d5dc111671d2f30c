package main

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestPlatform_CountsPosts(t *testing.T) {
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
		"posts in order": {
			calls: []call{{channel: 1, number: 1, key: "a"}, {channel: 2, number: 1, key: "b"}, {channel: 1, number: 2, key: "c"}},
			posts: 3,
		},
		"a repeated key counts once": {
			calls: []call{{channel: 1, number: 1, key: "a"}, {channel: 1, number: 1, key: "a"}, {channel: 1, number: 2, key: "b"}},
			posts: 2,
		},
		"a repeated text with another key is twice": {
			calls: []call{
				{channel: 1, number: 1, key: "a"},
				{channel: 1, number: 2, key: "b"},
				{channel: 1, number: 1, key: "c"},
				{channel: 1, number: 3, key: "d"},
			},
			posts: 4, twice: 1,
		},
		"a repeated text without a key is twice": {
			calls: []call{{channel: 1, number: 1, key: ""}, {channel: 1, number: 1, key: ""}}, posts: 2,
			twice: 1,
		},
		"an overtaken post is out of order once": {
			calls: []call{{channel: 1, number: 2, key: "b"}, {channel: 1, number: 1, key: "a"}, {channel: 1, number: 3, key: "c"}},
			posts: 3, outOfOrder: 1,
		},
		"a gap counts in its channel only": {
			calls: []call{{channel: 1, number: 1, key: "a"}, {channel: 2, number: 2, key: "b"}, {channel: 1, number: 2, key: "c"}},
			posts: 3, outOfOrder: 1,
		},
		"equal numbers of two channels": {calls: []call{{channel: 1, number: 1, key: "a"}, {channel: 2, number: 1, key: "b"}}, posts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &platform{}
			p.begin(0)
			for _, c := range x.calls {
				if _, err := p.record(content(c.channel, c.number, due), c.key); err != nil {
					t.Fatal(err)
				}
			}
			if s := p.end(); len(s.late) != x.posts || s.twice != x.twice || s.outOfOrder != x.outOfOrder {
				t.Errorf("got %d posts, %d twice, %d out of order, want %d, %d, %d", len(s.late), s.twice, s.outOfOrder, x.posts, x.twice, x.outOfOrder)
			}
		})
	}
}

func TestPlatform_RecordsWorstLateness(t *testing.T) {
	t.Parallel()
	p := &platform{}
	p.begin(0)
	for i, late := range []time.Duration{time.Hour, time.Minute} {
		for channel := range 3 {
			if _, err := p.record(content(channel, i+1, now().Add(-late)), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := p.below(2); n != 4 {
		t.Errorf("got %d posts of the first two channels, want 4", n)
	}
	if late := p.end().worst["1"].Round(time.Minute); late != time.Hour {
		t.Errorf("got a lateness of %v, want %v", late, time.Hour)
	}
	if _, err := p.record("another text", ""); err == nil {
		t.Error("got no error for a text that is not of a benchmark")
	}
}

func TestPlatform_ListsPostsInPages(t *testing.T) {
	t.Parallel()
	p := &platform{}
	p.begin(0)
	for i := range 150 {
		for channel := range 2 {
			if _, err := p.record(content(channel, i+1, now()), string(rune('a'+channel))+strings.Repeat("x", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, x := range map[string]struct {
		channel string
		query   url.Values
		want    int
	}{
		"a full page of the newest":          {channel: "0", query: nil, want: 100},
		"the rest after it":                  {channel: "0", query: url.Values{"before": {"p101"}}, want: 50},
		"nothing since a time to come":       {channel: "0", query: url.Values{"since": {now().Add(time.Hour).Format(time.RFC3339Nano)}}, want: 0},
		"nothing of an account without post": {channel: "2", query: nil, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := p.list(x.channel, x.query)
			if n := strings.Count(page, `"id":`); n != x.want {
				t.Errorf("got %d posts, want %d", n, x.want)
			}
			if strings.Contains(page, `"key":"b`) {
				t.Error("got posts of another account")
			}
		})
	}
}

func TestOptions_Lease(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		settings []string
		want     time.Duration
		bad      bool
	}{
		"the default without a setting":    {settings: nil, want: leaseDefault, bad: false},
		"the setting":                      {settings: []string{"HEARTBEAT_INTERVAL=1s", "LEASE_TTL=3s"}, want: 3 * time.Second, bad: false},
		"an error for an invalid duration": {settings: []string{"LEASE_TTL=three"}, want: 0, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := options{settings: x.settings}.lease()
			if (err != nil) != x.bad || err == nil && d != x.want {
				t.Errorf("got %v, %v, want %v, error %v", d, err, x.want, x.bad)
			}
		})
	}
}
